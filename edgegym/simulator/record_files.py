"""Records in files: written in pieces as they come, complete or absent in the end."""

import json
import os
import zipfile
from abc import abstractmethod
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from edgegym.files import atomic_path, refuse_folder
from edgegym.simulator.records import RecordSink, RecordTable
from edgegym.world.scenario import Scenario

_ROWS_AT_ONCE = 1 << 17
_MAX_GROUP = 1 << 20
_LABELS = "labels"


class _FileSink(RecordSink):
    """Collects rows until there are enough for a piece of a file.

    The file is written under another name in the same folder and gets its own when the sink is
    closed. After an interrupt or an error neither is left.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = Path(path)
        refuse_folder(self._path)
        self._stack = ExitStack()
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._rows = 0

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def _take(self, columns: dict[str, NDArray[Any]]) -> None:
        self._parts.append(columns)
        self._rows += len(columns["request"])
        if self._rows >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            names = self._parts[0]
            whole = {name: np.concatenate([part[name] for part in self._parts]) for name in names}
            self._parts, self._rows = [], 0
            self._write_piece(whole)

    @abstractmethod
    def _write_piece(self, columns: dict[str, NDArray[Any]]) -> None: ...

    def _drop(self) -> None:
        self._parts = []
        given_up = InterruptedError("the records were given up")
        self._stack.__exit__(type(given_up), given_up, None)


class ParquetSink(_FileSink):
    """Writes a Parquet file, in row groups of 131,072 requests or more.

    Types, families, outcomes and sources are text there; the schema holds what each column means,
    the scenario (JSON, key ``scenario``) and the version that wrote it.

    Parameters
    ----------
    path : path-like
        The file; its folder is created when missing.

    Raises
    ------
    ModuleNotFoundError
        If the extra ``records`` is not installed.
    IsADirectoryError
        If ``path`` is a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        _pyarrow()
        super().__init__(path)
        self._writer: Any = None

    def _open(self, scenario: Scenario) -> None:
        pa = _pyarrow()
        from pyarrow import parquet

        from edgegym import __version__

        fields = [
            pa.field(
                column.name,
                pa.dictionary(pa.int32(), pa.string())
                if column.labels
                else pa.from_numpy_dtype(np.dtype(column.kind)),
                nullable=False,
                metadata={"meaning": column.meaning, _LABELS: json.dumps(column.labels)},
            )
            for column in self._columns
        ]
        notes = {"edgegym": __version__, "scenario": json.dumps(scenario.document())}
        temporary = self._stack.enter_context(atomic_path(self._path))
        self._writer = self._stack.enter_context(
            parquet.ParquetWriter(temporary, pa.schema(fields, metadata=notes), compression="zstd")
        )

    def _write_piece(self, columns: dict[str, NDArray[Any]]) -> None:
        pa = _pyarrow()
        arrays = [
            pa.DictionaryArray.from_arrays(
                columns[column.name].astype(np.int32), list(column.labels)
            )
            if column.labels
            else pa.array(columns[column.name])
            for column in self._columns
        ]
        schema = self._writer.schema
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema), _MAX_GROUP)

    def _finish(self) -> None:
        with self._stack:
            self._flush()


class NpzSink(_FileSink):
    """Writes a NumPy archive (``.npz``), one member for each column, in constant memory.

    Columns of codes have their meaning in members ``labels/NAME``.

    Parameters
    ----------
    path : path-like
        The file; its folder is created when missing. Needs free space for the records twice while
        it is closed.

    Raises
    ------
    IsADirectoryError
        If ``path`` is a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._files: dict[str, IO[bytes]] = {}
        self._temporary = Path()
        self._written = 0

    def _open(self, scenario: Scenario) -> None:
        self._temporary = self._stack.enter_context(atomic_path(self._path))
        folder = self._temporary.parent
        for column in self._columns:
            file = TemporaryFile(prefix=".", dir=folder)  # noqa: SIM115 (the stack closes it)
            self._files[column.name] = self._stack.enter_context(file)

    def _write_piece(self, columns: dict[str, NDArray[Any]]) -> None:
        for name, values in columns.items():
            self._files[name].write(np.ascontiguousarray(values).data)
        self._written += len(columns["request"])

    def _finish(self) -> None:
        with self._stack:
            self._flush()
            with zipfile.ZipFile(self._temporary, "w") as archive:
                for column in self._columns:
                    with archive.open(f"{column.name}.npy", "w", force_zip64=True) as member:
                        self._copy_column(column.name, np.dtype(column.kind), member)
                    if column.labels:
                        name = f"{_LABELS}/{column.name}.npy"
                        with archive.open(name, "w", force_zip64=True) as member:
                            np.lib.format.write_array(member, np.array(column.labels))

    def _copy_column(self, name: str, kind: np.dtype[Any], member: IO[bytes]) -> None:
        header = {
            "descr": np.lib.format.dtype_to_descr(kind),
            "fortran_order": False,
            "shape": (self._written,),
        }
        np.lib.format.write_array_header_1_0(member, header)
        file = self._files[name]
        file.seek(0)
        while piece := file.read(1 << 20):
            member.write(piece)


def sink_to(path: str | os.PathLike[str]) -> ParquetSink | NpzSink:
    """Return a sink for a file, by the suffix of its name.

    Parameters
    ----------
    path : path-like
        Ends in ``.parquet`` or ``.npz``.

    Raises
    ------
    ValueError
        If it ends otherwise.
    ModuleNotFoundError
        If it is Parquet and the extra ``records`` is not installed.
    IsADirectoryError
        If it is a folder.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return ParquetSink(path)
    if suffix == ".npz":
        return NpzSink(path)
    raise ValueError(f"records = {os.fspath(path)!r}: the name must end in .parquet or .npz")


def read_records(path: str | os.PathLike[str]) -> RecordTable:
    """Read records back into memory.

    Parameters
    ----------
    path : path-like
        A file that a sink wrote, ``.parquet`` or ``.npz``.

    Returns
    -------
    RecordTable
        As :meth:`ArraySink.table` returns it.

    Raises
    ------
    ValueError
        If the name ends otherwise or the file holds no records.
    OSError
        If it can't be read.
    ModuleNotFoundError
        If it is Parquet and the extra ``records`` is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        columns, labels = _read_parquet(path)
    elif suffix == ".npz":
        columns, labels = _read_npz(path)
    else:
        raise ValueError(f"records = {os.fspath(path)!r}: the name must end in .parquet or .npz")
    if "request" not in columns or "ttft_s" not in columns:
        raise ValueError(f"records = {os.fspath(path)!r}: holds no records of requests")
    return RecordTable(columns, labels)


def _read_npz(path: Any) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
    columns, labels = {}, {}
    with Path(path).open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"records = {os.fspath(path)!r}: is no NumPy archive")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                folder, _, column = name.rpartition("/")
                if folder == _LABELS:
                    labels[column] = tuple(archive[name].tolist())
                else:
                    columns[name] = archive[name]
    return columns, labels


def _read_parquet(path: Any) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
    pa = _pyarrow()
    from pyarrow import parquet

    try:
        table = parquet.read_table(path).unify_dictionaries()
    except pa.ArrowInvalid:
        raise ValueError(f"records = {os.fspath(path)!r}: is no Parquet file") from None
    columns, labels = {}, {}
    for field in table.schema:
        column = table[field.name].combine_chunks()
        if not pa.types.is_dictionary(field.type):
            columns[field.name] = column.to_numpy(zero_copy_only=False)
            continue
        # The file's own order of the words may be another one.
        words = tuple(json.loads(field.metadata[_LABELS.encode()]))
        code_of = np.array([words.index(word) for word in column.dictionary.to_pylist()], "int32")
        labels[field.name] = words
        columns[field.name] = code_of[column.indices.to_numpy(zero_copy_only=False)]
    return columns, labels


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'records in Parquet need PyArrow: pip install "edgegym[records]"', name="pyarrow"
        ) from None
    return pa
