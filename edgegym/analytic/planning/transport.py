"""Minimal-cost flow between profiles in whole numbers."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

# Up to here nodes are matched one by one: faster than any flow of quantities.
_FEW = 256
_EXACT = 2**53
# Up to here all detours are looked at together.
_NARROW = 64


def cheapest_flows(surplus: IntArray, price: IntArray) -> IntArray:
    """Return whole flows of least price with given net outflows.

    Parameters
    ----------
    surplus : ndarray of int64, shape [S]
        Net outflow of each place; adds up to 0.
    price : ndarray of int64, shape [S, S]
        Price of a unit from the first to the second, at least 0.

    Returns
    -------
    ndarray of int64, shape [S, S]
        Flows; the diagonal is zero.
    """
    sources = np.flatnonzero(surplus > 0)
    if len(sources) == 0:
        return np.zeros_like(price)
    price = price.copy()
    np.fill_diagonal(price, 0)
    if len(price) <= _NARROW and not _detours_help(price):
        return _carried(surplus, price, sources)
    least, first_step = _closed(price)
    carried = _carried(surplus, least, sources)
    flows = np.zeros_like(price)
    for start, end in np.argwhere(carried).tolist():
        here = start
        while here != end:
            step = int(first_step[here, end])
            flows[here, step] += carried[start, end]
            here = step
    return flows


def cheapest_transport(supply: IntArray, need: IntArray, cost: IntArray) -> IntArray:
    """Return whole amounts of least cost that bring what there is to where it is needed.

    Parameters
    ----------
    supply : ndarray of int64, shape [A]
        What each source has, at least 0.
    need : ndarray of int64, shape [B]
        What each sink gets, at least 0; the same sum.
    cost : ndarray of int64, shape [A, B]
        Cost of a unit from the first to the second, at least 0.

    Returns
    -------
    ndarray of int64, shape [A, B]
        Rows add up to `supply`, columns to `need`.
    """
    units = int(supply.sum())
    few = units <= _FEW and int(cost.max()) * units < _EXACT
    return (_matched if few else _augmented)(supply, need, cost)


def _carried(surplus: IntArray, price: IntArray, sources: IntArray) -> IntArray:
    """Return the least-cost flows from what has too many straight to what has too few."""
    sinks = np.flatnonzero(surplus < 0)
    between = sources[:, None], sinks
    flows = np.zeros_like(price)
    flows[between] = cheapest_transport(surplus[sources], -surplus[sinks], price[between])
    return flows


def _detours_help(price: IntArray) -> bool:
    """Return whether some move is cheaper by a third place."""
    return bool((price[:, :, None] + price[None, :, :] < price[:, None, :]).any())


def _closed(price: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least price between any two places, by others if need be, and the first step."""
    least = price
    follow = np.tile(np.arange(len(price)), (len(price), 1))
    for middle in range(len(price)):
        detour = least[:, middle, None] + least[None, middle, :]
        shorter = detour < least
        if shorter.any():
            least = np.where(shorter, detour, least)
            follow = np.where(shorter, follow[:, middle, None], follow)
    return least, follow


def _matched(supply: IntArray, need: IntArray, cost: IntArray) -> IntArray:
    """Return the least-cost flows by matching unit to unit."""
    from scipy.optimize import linear_sum_assignment

    given = np.repeat(np.arange(len(supply)), supply)
    places = np.repeat(np.arange(len(need)), need)
    units, chosen = linear_sum_assignment(cost[given[:, None], places].astype(np.float64))
    carried = np.zeros_like(cost)
    np.add.at(carried, (given[units], places[chosen]), 1)
    return carried


def _augmented(supply: IntArray, need: IntArray, cost: IntArray) -> IntArray:
    """Return the least-cost flows by successive cheapest augmenting paths, in whole numbers.

    The paths are found on costs reduced by the potentials of the search before, so that none is
    negative; each carries as much as it can.
    """
    rows, columns = cost.shape
    supply, need = supply.copy(), need.copy()
    carried = np.zeros_like(cost)
    at_row = np.zeros(rows, dtype=np.int64)
    at_column = np.zeros(columns, dtype=np.int64)
    while supply.any():
        reduced = cost + at_row[:, None] - at_column[None, :]
        row_distance, column_distance, from_row, from_column = _cheapest_paths(
            reduced, supply > 0, carried > 0
        )
        open_ends = np.flatnonzero(need > 0)
        end = int(open_ends[np.argmin(column_distance[open_ends])])
        steps = []
        column, amount = end, int(need[end])
        while True:
            row = int(from_row[column])
            steps.append((row, column, 1))
            back = int(from_column[row])
            if back < 0:
                amount = min(amount, int(supply[row]))
                break
            steps.append((row, back, -1))
            amount = min(amount, int(carried[row, back]))
            column = back
        for step_row, step_column, sign in steps:
            carried[step_row, step_column] += sign * amount
        supply[row] -= amount
        need[end] -= amount
        # No further than the path's end, so that what lies beyond keeps non-negative costs too.
        reach = column_distance[end]
        at_row += np.minimum(row_distance, reach)
        at_column += np.minimum(column_distance, reach)
    return carried


def _cheapest_paths(
    reduced: IntArray, starts: NDArray[np.bool_], carries: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return distances and predecessors of rows and columns from the rows that have supply.

    Forward along every pair at its reduced cost; backward, where something is carried, at none.
    """
    far = np.iinfo(np.int64).max // 4
    rows, columns = reduced.shape
    row_distance = np.where(starts, 0, far)
    column_distance = np.full(columns, far)
    from_row = np.full(columns, -1, dtype=np.int64)
    from_column = np.full(rows, -1, dtype=np.int64)
    row_open = np.ones(rows, dtype=np.bool_)
    column_open = np.ones(columns, dtype=np.bool_)
    for _ in range(rows + columns):
        row_key = np.where(row_open, row_distance, far)
        column_key = np.where(column_open, column_distance, far)
        row, column = int(np.argmin(row_key)), int(np.argmin(column_key))
        if row_key[row] <= column_key[column]:
            if row_key[row] >= far:
                break
            row_open[row] = False
            through = row_distance[row] + reduced[row]
            better = through < column_distance
            column_distance[better] = through[better]
            from_row[better] = row
        else:
            column_open[column] = False
            better = carries[:, column] & (column_distance[column] < row_distance)
            row_distance[better] = column_distance[column]
            from_column[better] = column
    return row_distance, column_distance, from_row, from_column
