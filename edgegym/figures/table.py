"""The numbers of a figure: named columns of equal length, to and from CSV."""

import csv
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_DIGITS = 10


class Table:
    """Columns of numbers or text; what a figure plots and what its CSV file holds.

    Parameters
    ----------
    columns : mapping
        One-dimensional arrays of equal length by name. A name ends in the unit of its numbers
        (``wait_s``, ``distance_km``); probabilities and shares have none. Numbers are kept as
        float64.

    Raises
    ------
    ValueError
        If there is no column, or they are not one-dimensional and of equal length.
    """

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        self._columns = {name: _column(values) for name, values in columns.items()}
        shapes = {name: values.shape for name, values in self._columns.items()}
        if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
            raise ValueError(f"columns have shapes {shapes}: must be one-dimensional and equal")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, float64 or text."""
        return self._columns[name]

    def where(self, **values: Any) -> "Table":
        """Return the rows in which these columns have these values.

        Raises
        ------
        KeyError
            If there is no such column, or no such row.
        """
        chosen = np.ones(len(self), np.bool_)
        for name, value in values.items():
            column = self[name]
            equal = column == value if isinstance(value, str) else np.isclose(column, value)
            chosen &= equal
        if not chosen.any():
            raise KeyError(f"no row has {values}")
        return Table({name: column[chosen] for name, column in self._columns.items()})

    def value(self, column: str, **where: Any) -> float:
        """Return the number of a column in the first row that has these values.

        Raises
        ------
        KeyError
            If there is no such column or row.
        """
        return float(self.where(**where)[column][0])

    def distinct(self, name: str) -> list[Any]:
        """Return the values of a column, each once, in order of appearance."""
        return list(dict.fromkeys(self[name].tolist()))

    def to_csv(self) -> str:
        """Return the table as CSV text; NaN is an empty cell."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self._columns)
        columns = [_cells(values) for values in self._columns.values()]
        writer.writerows(zip(*columns, strict=True))
        return buffer.getvalue()

    @classmethod
    def from_csv(cls, text: str) -> "Table":
        """Return the table that :meth:`to_csv` wrote; numbers have 10 digits."""
        header, *rows = csv.reader(io.StringIO(text))
        cells = list(zip(*rows, strict=True)) or [() for _ in header]
        return cls({name: _parsed(column) for name, column in zip(header, cells, strict=True)})


def _column(values: ArrayLike) -> NDArray[Any]:
    array = np.array(values)
    return array if array.dtype.kind == "U" else array.astype(np.float64)


def _cells(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind == "U":
        return values.tolist()
    return ["" if np.isnan(value) else f"{value:.{_DIGITS}g}" for value in values]


def _parsed(cells: tuple[str, ...]) -> NDArray[Any]:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)
