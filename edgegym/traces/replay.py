"""A scenario that replays the trace from which it was built."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.files import atomic_path
from edgegym.traces.report import BuildReport
from edgegym.world.demand import TraceReplay
from edgegym.world.recorded import write_replay
from edgegym.world.scenario import Scenario


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayRequests:
    """The R requests that a scenario was built from, each with its request type."""

    type_names: tuple[str, ...]
    """Names of the request types."""
    arrival_s: NDArray[np.float64]
    """Seconds since the first of them ``[R]``, never decreasing."""
    type_index: NDArray[np.int64]
    """Index into ``type_names`` ``[R]``."""
    input_tokens: NDArray[np.int64]
    """Prompt lengths ``[R]``."""
    output_tokens: NDArray[np.int64]
    """Generated tokens ``[R]``."""

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a replay file, whole or not at all; gzipped if its name ends in ``.gz``."""
        write_replay(
            path,
            type_names=self.type_names,
            arrival_s=self.arrival_s,
            type_index=self.type_index,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )


@dataclass(frozen=True, eq=False)
class TraceBuild:
    """What was built from a trace."""

    scenario: Scenario
    """With stationary Poisson arrivals of the trace's types."""
    report: BuildReport
    """What was measured, chosen, assumed and dropped."""
    requests: ReplayRequests
    """The requests of the trace in their order."""

    def replaying(
        self, path: str | os.PathLike[str], **fields: Any
    ) -> tuple[Scenario, BuildReport]:
        """Return the scenario that replays the requests, and its report.

        Requests come in their order and with their own lengths, at the recorded rate unless the
        options give one. Decode times follow from the own output lengths, without a random mark.

        Parameters
        ----------
        path : path-like
            The replay file, as :meth:`ReplayRequests.write` wrote it.
        **fields
            More fields of the modulation, such as ``random_start=True``.

        Raises
        ------
        ValueError
            If the file is none or not of these requests, or a field is wrong.
        """
        modulation = {"kind": "trace", "path": os.fspath(path), **fields}
        recorded = TraceReplay(**modulation).recorded
        report = self.report.replaying(Path(path).name, recorded.rate_per_s)
        scenario = self.scenario.with_overrides(
            {
                "description": report.description(),
                "demand": {"rate_per_node": report.rate_per_node, "modulations": [modulation]},
                "service": {"kind": "deterministic"},
            }
        )
        return scenario, report


def write_replaying_scenario(
    build: TraceBuild, output: str | os.PathLike[str]
) -> tuple[Path, BuildReport]:
    """Write a scenario file and, beside it, the file of requests that it replays.

    Both are written, or neither.

    Parameters
    ----------
    build : TraceBuild
        From :func:`~edgegym.traces.build_from_trace`.
    output : path-like
        The scenario file, ``.yaml``, ``.yml`` or ``.json``. The replay file has its name with the
        ending ``.requests.csv.gz``.

    Returns
    -------
    tuple of pathlib.Path and BuildReport
        The replay file, and the report of the scenario.

    Raises
    ------
    OSError
        If a file can't be written.
    """
    target = Path(output)
    requests = target.with_suffix(".requests.csv.gz")
    with atomic_path(target) as new_scenario, atomic_path(requests) as new_requests:
        build.requests.write(new_requests)
        scenario, _ = build.replaying(new_requests)
        report = build.report.replaying(requests.name, _recorded_rate(scenario))
        final = _renamed(scenario, requests, report)
        if target.suffix == ".json":
            final.to_json(new_scenario)
        else:
            final.to_yaml(new_scenario)
    return requests, report


def _recorded_rate(scenario: Scenario) -> float:
    (modulation,) = scenario.demand.modulations
    assert isinstance(modulation, TraceReplay)
    return modulation.recorded.rate_per_s


def _renamed(scenario: Scenario, requests: Path, report: BuildReport) -> Scenario:
    """Return a valid scenario with its replay file under the name that it is about to get."""
    (modulation,) = scenario.demand.modulations
    renamed = modulation.model_copy(update={"path": str(requests.absolute())})
    demand = scenario.demand.model_copy(update={"modulations": (renamed,)})
    return scenario.model_copy(update={"demand": demand, "description": report.description()})
