"""A binary heap over (time, order) in flat arrays; one with four children is no faster."""

import numpy as np

from edgegym.simulator.columns import SIZE
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.lane import Heap


@helper
def sift_down(times, orders, items, size, time, order, item):
    """Place an event into the hole at the root and restore the heap of ``size`` events."""
    hole = 0
    child = 1
    while child < size:
        right = child + 1
        if right < size and (
            times[right] < times[child]
            or (times[right] == times[child] and orders[right] < orders[child])
        ):
            child = right
        if time < times[child] or (time == times[child] and order < orders[child]):
            break
        times[hole] = times[child]
        orders[hole] = orders[child]
        items[hole] = items[child]
        hole = child
        child = 2 * hole + 1
    times[hole] = time
    orders[hole] = order
    items[hole] = item


@helper
def sift_up(times, orders, items, hole, time, order, item):
    """Place an event into the hole at the end and restore the heap."""
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[parent] < time or (times[parent] == time and orders[parent] < order):
            break
        times[hole] = times[parent]
        orders[hole] = orders[parent]
        items[hole] = items[parent]
        hole = parent
    times[hole] = time
    orders[hole] = order
    items[hole] = item


@inlined
def push(heap: Heap, time: float, order: int, item: int) -> None:
    """Add an event."""
    size = heap.num[SIZE]
    heap.num[SIZE] = size + 1
    sift_up(heap.time, heap.order, heap.item, size, time, order, item)


@inlined
def pop(heap: Heap) -> None:
    """Remove the first event; an empty heap has its first event at infinity."""
    size = heap.num[SIZE] - 1
    heap.num[SIZE] = size
    times, orders, items = heap.time, heap.order, heap.item
    if size == 0:
        times[0] = np.inf
    else:
        sift_down(times, orders, items, size, times[size], orders[size], items[size])


@inlined
def replace(heap: Heap, time: float, order: int, item: int) -> None:
    """Replace the first event: cheaper than to remove and to add."""
    sift_down(heap.time, heap.order, heap.item, heap.num[SIZE], time, order, item)
