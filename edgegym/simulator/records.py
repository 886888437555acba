"""Records of single requests: what is recorded, and where it goes.

A fleet that is given a sink writes one row for each request that ends: it left its slot, was
rejected, or was interrupted by a failure. Rows come in the order in which requests end; those still
in the system when the fleet stops have none.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.full import log
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.scenario import Scenario

NOBODY = -1
"""In a column of nodes: no node, or none that is known."""
ORIGIN = -2
"""In a column of nodes: the origin."""


@dataclass(frozen=True)
class Column:
    """One column of the records.

    Attributes
    ----------
    name : str
        Its name; ends in its unit.
    kind : str
        NumPy type.
    meaning : str
        What it holds, in words.
    labels : tuple of str
        What the codes stand for; empty for a column of numbers.
    """

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()


_NODE = "index of a node, -1 for none, -2 for the origin"
_NUMBERS: tuple[tuple[str, str, int, str], ...] = (
    ("request", "int64", log.LOG_REQUEST, "position in the request stream, from 0"),
    ("type", "int32", log.LOG_TYPE, "request type"),
    ("node", "int32", log.LOG_STATION, f"who served it: {_NODE}"),
    ("nearest_node", "int32", log.LOG_NEAREST, f"nearest node that was up: {_NODE}"),
    ("runner_up_node", "int32", log.LOG_RUNNER_UP, f"best path that was not taken: {_NODE}"),
    ("outcome", "int32", log.LOG_OUTCOME, "how it ended"),
    ("source", "int32", log.LOG_SOURCE, "where the prefix state came from that prefill used"),
    ("input_tokens", "int64", log.LOG_INPUT_TOKENS, "length of the prompt"),
    ("output_tokens", "int64", log.LOG_OUTPUT_TOKENS, "length of the answer"),
    ("hit_tokens", "int64", log.LOG_HIT_TOKENS, "prompt tokens that were not computed anew"),
    ("fetched_bytes", "int64", log.LOG_FETCHED_BYTES, "state that was fetched for it"),
    (
        "redispatches",
        "int32",
        log.LOG_REDISPATCHES,
        "times a failed or closed station sent it on",
    ),
)
_REALS: tuple[tuple[str, int, str], ...] = (
    ("arrival_s", log.LOG_ARRIVAL_S, "when it was made"),
    ("x_km", log.LOG_X_KM, "where it was made"),
    ("y_km", log.LOG_Y_KM, "where it was made"),
    ("radio_s", log.LOG_RADIO_S, "until it landed where it was served, lost ways included"),
    ("wait_s", log.LOG_WAIT_S, "then until it took a slot"),
    ("stall_s", log.LOG_STALL_S, "then until its fetched state was there"),
    ("restore_s", log.LOG_RESTORE_S, "then until that was unpacked"),
    ("server_wait_s", log.LOG_SERVER_WAIT_S, "then until the prefill server took it"),
    ("prefill_s", log.LOG_PREFILL_S, "then until its first token"),
    ("ttft_s", log.LOG_TTFT_S, "from arrival to first token: the sum of the six before"),
    ("end_to_end_s", log.LOG_END_TO_END_S, "from arrival to its end"),
    ("transfer_wait_s", log.LOG_TRANSFER_WAIT_S, "what its fetch took longer than alone"),
    ("predicted_s", log.LOG_PREDICTED_S, "TTFT that the router expected"),
    ("runner_up_s", log.LOG_RUNNER_UP_S, "TTFT that it expected of the best path not taken"),
)
_STATIONS = ("node", "nearest_node", "runner_up_node")


def record_columns(scenario: Scenario) -> tuple[Column, ...]:
    """Return the columns of a scenario's records, in order.

    Parameters
    ----------
    scenario : Scenario
        Gives the names of types and families.

    Returns
    -------
    tuple of Column
        Times are NaN where the request never came so far, or where the router predicts none.
    """
    labels = {"type": scenario.type_names, "outcome": log.OUTCOMES, "source": log.SOURCES}
    numbers = [
        Column(name, kind, meaning, labels.get(name, ())) for name, kind, _, meaning in _NUMBERS
    ]
    family = Column("family", "int32", "family of its type", scenario.family_names)
    reals = [Column(name, "float64", meaning) for name, _, meaning in _REALS]
    seed = Column("seed", "uint64", "seed of the fleet")
    return (seed, *numbers[:2], family, *numbers[2:], *reals)


class RecordTable(Mapping[str, NDArray[Any]]):
    """Records in memory: a mapping of column names to arrays of equal length.

    Parameters
    ----------
    columns : mapping
        Names to arrays.
    labels : mapping
        For columns of codes, what they stand for.
    """

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], labels: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._columns = dict(columns)
        self._labels = dict(labels)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._columns:
            raise KeyError(f"column = {name!r}: must be one of {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns, as of any mapping."""
        return len(self._columns)

    def __repr__(self) -> str:
        """Return the size."""
        return f"RecordTable({self.num_rows} rows, {len(self)} columns)"

    @property
    def num_rows(self) -> int:
        """Number of requests."""
        return len(next(iter(self._columns.values())))

    def labels(self, name: str) -> tuple[str, ...]:
        """Return what the codes of a column stand for; empty for a column of numbers."""
        self[name]  # it must exist
        return self._labels.get(name, ())

    def words(self, name: str) -> NDArray[Any]:
        """Return a column of codes as text.

        Raises
        ------
        ValueError
            If it is a column of numbers.
        """
        if not self.labels(name):
            raise ValueError(f"column = {name!r}: holds numbers, not codes")
        return np.array(self._labels[name])[self[name]]

    def is_label(self, name: str, label: str) -> Bools:
        """Return which rows have a label, ``[n]``.

        Raises
        ------
        ValueError
            If the column has no such label.
        """
        labels = self.labels(name)
        if label not in labels:
            raise ValueError(
                f"label = {label!r}: column '{name}' has {', '.join(labels) or 'none'}"
            )
        return self[name] == labels.index(label)

    def where(self, rows: Bools | Ints) -> "RecordTable":
        """Return some rows, given as a mask or as indices."""
        chosen = {name: column[rows] for name, column in self._columns.items()}
        return RecordTable(chosen, self._labels)

    def by_request(self) -> "RecordTable":
        """Return the rows in the order of the request stream, seed by seed."""
        return self.where(np.lexsort((self["request"], self["seed"])))


class RecordSink(ABC):
    """Where records go. Several fleets of one scenario may share a sink.

    As a context manager it is closed at the end of the block; after an error or an interrupt
    nothing is left of it.
    """

    def __init__(self) -> None:
        self._scenario: Scenario | None = None
        self._columns: tuple[Column, ...] = ()
        self._family = np.empty(0, dtype=np.int64)
        self._origin = 0
        self._closed = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns; empty until a fleet has begun."""
        return self._columns

    def begin(self, scenario: Scenario) -> None:
        """Prepare for the rows of a fleet.

        Parameters
        ----------
        scenario : Scenario
            What the fleet simulates.

        Raises
        ------
        ValueError
            If the sink is closed, or has the records of another scenario.
        OSError
            If its file can't be written.
        """
        if self._closed:
            raise ValueError("records: this sink is closed; make a new one")
        if self._scenario is not None:
            if self._scenario != scenario:
                raise ValueError(
                    f"records: this sink has records of scenario '{self._scenario.name}', and "
                    f"'{scenario.name}' is another one"
                )
            return
        world = scenario.compile()
        self._columns = record_columns(scenario)
        self._family, self._origin = world.type_family, scenario.max_nodes
        self._open(scenario)
        self._scenario = scenario

    def write(self, seed: int, real: Floats, num: Ints) -> None:
        """Take rows of the log.

        Parameters
        ----------
        seed : int
            Seed of the fleet.
        real, num : ndarray
            ``[n, NUM_LOG_REALS]`` and ``[n, NUM_LOG_NUMS]``, columns as in
            :mod:`edgegym.simulator.full.log`.
        """
        if len(real) == 0:
            return
        if self._closed:
            raise ValueError("records: this sink is closed; make a new one")
        found: dict[str, NDArray[Any]] = {"seed": np.full(len(real), seed, dtype=np.uint64)}
        for name, kind, column, _ in _NUMBERS:
            codes = num[:, column]
            if name in _STATIONS:
                codes = np.where(codes == self._origin, ORIGIN, codes)
            found[name] = codes.astype(kind)
        found["family"] = self._family[num[:, log.LOG_TYPE]].astype(np.int32)
        for name, column, _ in _REALS:
            values = real[:, column]
            found[name] = np.where(np.isinf(values), np.nan, values)
        self._take({column.name: found[column.name] for column in self._columns})

    def close(self) -> None:
        """Finish: a file appears under its name. A sink without any fleet leaves none."""
        if not self._closed:
            self._closed = True
            if self._scenario is not None:
                self._finish()

    def discard(self) -> None:
        """Give up: nothing is left."""
        if not self._closed:
            self._closed = True
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    @abstractmethod
    def _open(self, scenario: Scenario) -> None: ...

    @abstractmethod
    def _take(self, columns: dict[str, NDArray[Any]]) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    @abstractmethod
    def _drop(self) -> None: ...


class ArraySink(RecordSink):
    """Keeps records in memory: some 190 bytes for each request."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._rows = 0

    @property
    def num_rows(self) -> int:
        """Number of requests recorded so far."""
        return self._rows

    def _open(self, scenario: Scenario) -> None:
        """Nothing to open."""

    def _take(self, columns: dict[str, NDArray[Any]]) -> None:
        self._parts.append(columns)
        self._rows += len(columns["request"])

    def _finish(self) -> None:
        """Nothing to finish: the table stays."""

    def _drop(self) -> None:
        self._parts.clear()
        self._rows = 0

    def table(self) -> RecordTable:
        """Return what was recorded so far.

        Raises
        ------
        ValueError
            If no fleet was given this sink.
        """
        if not self._columns:
            raise ValueError("records: no fleet has written to this sink")
        empty = {column.name: np.empty(0, dtype=column.kind) for column in self._columns}
        parts = [empty, *self._parts]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in empty}
        self._parts = [columns]
        return RecordTable(
            columns, {column.name: column.labels for column in self._columns if column.labels}
        )
