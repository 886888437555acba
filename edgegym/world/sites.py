"""Places of nodes from a file."""

import csv
import math
from pathlib import Path

_COLUMNS = ("x_km", "y_km")
_KIND_COLUMN, _KIND = "kind", "site"
_MOST_SITES = 10_000_000


def read_sites(path: str) -> tuple[tuple[float, float], ...]:
    """Read coordinates of nodes from a CSV file.

    Parameters
    ----------
    path : str
        A file with the columns ``x_km`` and ``y_km``, in any order among others; where there is a
        column ``kind``, only rows with the value ``site`` count. Without a header x and y are the
        first two columns.

    Returns
    -------
    tuple of (float, float)
        x and y of each site in km, in the file's order.

    Raises
    ------
    ValueError
        If the file can't be read, has no site, or has a row without two finite numbers; the
        message names the file and the line.
    """
    where = f"nodes.coordinates_file = '{path}'"
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except OSError as error:
        raise ValueError(f"{where}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{where}: not a CSV file of UTF-8 text ({error})") from None
    header = [cell.strip() for cell in rows[0]] if rows else []
    named = bool(header) and not _is_number(header[0])
    if named and not set(_COLUMNS) <= set(header):
        raise ValueError(f"{where}: has the columns {', '.join(header)}; must have x_km and y_km")
    columns = [header.index(name) for name in _COLUMNS] if named else [0, 1]
    kind = header.index(_KIND_COLUMN) if named and _KIND_COLUMN in header else None
    sites = []
    for number, row in enumerate(rows[named:], 1 + named):
        if kind is not None and (len(row) <= kind or row[kind].strip() != _KIND):
            continue
        cells = [row[column] if column < len(row) else "" for column in columns]
        if not all(_is_number(cell) for cell in cells):
            raise ValueError(f"{where}, row {number}: {cells}: x_km and y_km must be numbers")
        sites.append((float(cells[0]), float(cells[1])))
    if not 1 <= len(sites) <= _MOST_SITES:
        rule = f"must have from 1 to {_MOST_SITES:.0e}"
        raise ValueError(f"{where}: has {len(sites)} sites; {rule}")
    return tuple(sites)


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
