"""The event queue: a calendar whose current page is a small heap.

At equal times the smaller kind goes first, then the event that was scheduled first. Routing comes
last and has no events: requests come sorted from the stream.

Time is cut into pages of a few events each. An event of the current page, or of one before it,
lies in the heap ``soon``, which is small and stays in the nearest cache; one of the next pages is
written to the end of its page, unsorted; one beyond the last page lies in the heap ``far``. When
``soon`` is empty, the next page that is not is poured into it, with what ``far`` has of that time.
So the first event of all is always the first of ``soon``, and nearly all events cost the same,
however many there are.

A page is a list of leaves of eight entries (time as bits, order, item), taken from a common pool.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import (
    CURRENT_PAGE,
    FREE_LEAF,
    HEAD,
    NEXT_SEQUENCE,
    ON_PAGES,
    PLACE,
    SITE_X_KM,
    SIZE,
    TAIL,
    USED_LEAVES,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined, prefetch
from edgegym.simulator.heap import pop, push, replace
from edgegym.simulator.lane import Calendar, Nodes, Queue, Records
from edgegym.simulator.state import LEAF_ENTRIES, Ints

SLOT_END = 0
READY = 1  # what was fetched is unpacked
FLOW_END = 2
FAULT = 3
EXPIRY = 4
TELEMETRY = 5
CATALOGUE = 6
LANDING = 7

KIND_SHIFT = 56  # 2^56 events before two sequence numbers meet
NODE_SHIFT = 32
RECORD_MASK = (1 << NODE_SHIFT) - 1
_LAST_PAGE = 2.0**62
LEAF_SHIFT = 4  # a page's head is its first leaf and the number of entries in it


class Walk(NamedTuple):
    """Where one is among the entries of a page."""

    entry: int
    end: int  # of its leaf; the walk is over where the entry is not before it
    leaf: int  # the next, below 0 for none


NO_WALK = Walk(0, 0, -1)


@inlined
def kind_of(order: int) -> int:
    """Return the kind of an event from its order key."""
    return order >> KIND_SHIFT


@inlined
def request_item(node: int, record: int) -> int:
    """Return the item of an event that concerns a request at a node."""
    return (node << NODE_SHIFT) + record


@inlined
def node_of(item: int) -> int:
    """Return the node of an event that concerns a request."""
    return item >> NODE_SHIFT


@inlined
def record_of(item: int) -> int:
    """Return the record of an event that concerns a request."""
    return item & RECORD_MASK


@inlined
def _next_order(numbers: Ints, kind: int) -> int:
    sequence = numbers[NEXT_SEQUENCE]
    numbers[NEXT_SEQUENCE] = sequence + 1
    return (kind << KIND_SHIFT) + sequence


@inlined
def _page_of(calendar: Calendar, time: float) -> int:
    return int(min(time * calendar.pages_per_s, _LAST_PAGE))


@inlined
def _new_leaf(calendar: Calendar) -> int:
    leaf = calendar.num[FREE_LEAF]
    if leaf >= 0:
        calendar.num[FREE_LEAF] = calendar.following[leaf]
        return leaf
    leaf = calendar.num[USED_LEAVES]
    calendar.num[USED_LEAVES] = leaf + 1
    return leaf


@helper
def _write(calendar: Calendar, page: int, time: float, order: int, item: int) -> None:
    """Write an event to the end of a page."""
    slot = page & (calendar.pages - 1)
    head = calendar.head[slot]
    leaf, used = head >> LEAF_SHIFT, head & ((1 << LEAF_SHIFT) - 1)
    if head < 0 or used == LEAF_ENTRIES:
        full = leaf if head >= 0 else -1
        leaf, used = _new_leaf(calendar), 0
        calendar.following[leaf] = full
    entry = leaf * LEAF_ENTRIES + used
    calendar.entries[entry, 0] = np.float64(time).view(np.int64)
    calendar.entries[entry, 1] = order
    calendar.entries[entry, 2] = item
    calendar.head[slot] = (leaf << LEAF_SHIFT) + used + 1
    calendar.num[ON_PAGES] += 1


@inlined
def _put(queue: Queue, time: float, order: int, item: int) -> None:
    calendar = queue.calendar
    page, current = _page_of(calendar, time), calendar.num[CURRENT_PAGE]
    if page <= current:
        push(queue.soon, time, order, item)
    elif page - current < calendar.pages:
        _write(calendar, page, time, order, item)
    else:
        push(queue.far, time, order, item)


@inlined
def push_event(queue: Queue, time: float, kind: int, item: int) -> None:
    """Schedule an event, not before the first."""
    _put(queue, time, _next_order(queue.calendar.num, kind), item)


@inlined
def pop_event(queue: Queue) -> None:
    """Remove the first event."""
    pop(queue.soon)


@inlined
def replace_event(queue: Queue, time: float, kind: int, item: int) -> None:
    """Replace the first event by a new one."""
    order = _next_order(queue.calendar.num, kind)
    if _page_of(queue.calendar, time) <= queue.calendar.num[CURRENT_PAGE]:
        replace(queue.soon, time, order, item)
    else:
        pop(queue.soon)
        _put(queue, time, order, item)


@inlined
def leaves_of(calendar: Calendar, page: int) -> tuple[int, int]:
    """Return the first leaf of a page, below 0 for none, and the entries in it; others are full."""
    head = calendar.head[page & (calendar.pages - 1)]
    return head >> LEAF_SHIFT, head & ((1 << LEAF_SHIFT) - 1)


@helper
def _pour(queue: Queue, page: int) -> None:
    """Move the events of a page into the heap."""
    calendar = queue.calendar
    leaf, used = leaves_of(calendar, page)
    calendar.head[page & (calendar.pages - 1)] = -1
    while leaf >= 0:
        begin = leaf * LEAF_ENTRIES
        for entry in range(begin, begin + used):
            time = np.int64(calendar.entries[entry, 0]).view(np.float64)
            push(queue.soon, time, calendar.entries[entry, 1], calendar.entries[entry, 2])
        calendar.num[ON_PAGES] -= used
        following = calendar.following[leaf]
        calendar.following[leaf] = calendar.num[FREE_LEAF]
        calendar.num[FREE_LEAF] = leaf
        leaf, used = following, LEAF_ENTRIES


@inlined
def walk_page(calendar: Calendar, page: int) -> Walk:
    """Return the place before the first entry of a page."""
    leaf, used = leaves_of(calendar, page)
    if leaf < 0:
        return NO_WALK
    begin = leaf * LEAF_ENTRIES
    return Walk(begin, begin + used, int(calendar.following[leaf]))


@inlined
def next_entry(calendar: Calendar, walk: Walk) -> Walk:
    """Return the place after an entry; ask for the memory of the leaf after the next."""
    if walk.entry + 1 < walk.end:
        return Walk(walk.entry + 1, walk.end, walk.leaf)
    if walk.leaf < 0:
        return NO_WALK
    begin = walk.leaf * LEAF_ENTRIES
    following = calendar.following[walk.leaf]
    if following >= 0:
        _fetch_leaf(calendar, following)
    return Walk(begin, begin + LEAF_ENTRIES, following)


@inlined
def _fetch_leaf(calendar: Calendar, leaf: int) -> None:
    """Ask for the three cache lines of a leaf, and for where the next one is."""
    begin = leaf * LEAF_ENTRIES
    prefetch(calendar.entries, begin, 0)
    prefetch(calendar.entries, begin + 3, 0)
    prefetch(calendar.entries, begin + 6, 0)
    prefetch(calendar.following, leaf, 0)


@inlined
def walks_ahead(calendar: Calendar) -> tuple[Walk, Walk]:
    """Return walks over the page after the current one, and over the page after that."""
    page = calendar.num[CURRENT_PAGE]
    leaf, _ = leaves_of(calendar, page + 3)
    if leaf >= 0:
        _fetch_leaf(calendar, leaf)
    prefetch(calendar.head, (page + 10) & (calendar.pages - 1), 0)
    return walk_page(calendar, page + 1), walk_page(calendar, page + 2)


@inlined
def concerns_request(order: int) -> bool:
    """Return whether an event, by its order key, is a request's landing or slot end."""
    kind = kind_of(order)
    return kind in (SLOT_END, LANDING)


@inlined
def fetch_own(calendar: Calendar, nodes: Nodes, records: Records, entry: int) -> None:
    """Ask for the node and the record of an event to come."""
    if concerns_request(calendar.entries[entry, 1]):
        item = calendar.entries[entry, 2]
        node, record = node_of(item), record_of(item)
        prefetch(nodes.work, node, 0)
        prefetch(nodes.work, node, 8)
        prefetch(records.time, record, 0)
        prefetch(records.info, record, 0)


@inlined
def neighbour_of(calendar: Calendar, nodes: Nodes, entry: int) -> int:
    """Return the queued request that an event to come will touch, -1 if none.

    Slot ends start the first in the queue, landings queue up behind the last.
    """
    order, node = calendar.entries[entry, 1], node_of(calendar.entries[entry, 2])
    if not concerns_request(order) or nodes.work[node, WAITING] == 0:
        return -1
    neighbour: int = nodes.work[node, HEAD if kind_of(order) == SLOT_END else TAIL]
    return neighbour


@inlined
def fetch_others(calendar: Calendar, nodes: Nodes, records: Records, entry: int) -> None:
    """Ask for what else an event to come will touch; its node has been asked for long before."""
    if kind_of(calendar.entries[entry, 1]) == SLOT_END:
        node = node_of(calendar.entries[entry, 2])
        prefetch(nodes.sites, nodes.work[node, PLACE], SITE_X_KM)
    neighbour = neighbour_of(calendar, nodes, entry)
    if neighbour >= 0:
        prefetch(records.time, neighbour, 0)
        prefetch(records.info, neighbour, 0)


@inlined
def turn_page(queue: Queue, limit_s: float) -> None:
    """Fill ``soon``, which is empty, with the next events, or those up to a time if none come."""
    calendar, far = queue.calendar, queue.far
    last = _page_of(calendar, limit_s)
    if far.num[SIZE] > 0:
        last = min(last, _page_of(calendar, far.time[0]))
    page = calendar.num[CURRENT_PAGE]
    if calendar.num[ON_PAGES] == 0:
        page = max(page, last)
    else:
        mask = calendar.pages - 1
        while page < last:
            page += 1
            if calendar.head[page & mask] >= 0:
                _pour(queue, page)
                break
    calendar.num[CURRENT_PAGE] = page
    while far.num[SIZE] > 0 and _page_of(calendar, far.time[0]) <= page:
        push(queue.soon, far.time[0], far.order[0], far.item[0])
        pop(far)
