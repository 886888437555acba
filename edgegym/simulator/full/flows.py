"""The flows on the backhaul as arrays: a pool of flows, and a priority queue of them per group.

A group is what shares one rate: all flows where only the link limits them, else the flows to one
station. Within a group every flow gets the same rate, so flows end in the order of the bytes that
each member of the group will have received by then, and this never changes while they last. Each
group's order is a pairing heap through links in the flows themselves: it grows with the pool, and
any flow can be taken out of it.
"""

from typing import NamedTuple

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.state import Floats, Ints

# Kinds of flows.
MOVE = 0  # bytes of a node's new profile; the item is the node
FETCH = 1  # a prefix for one request; the item is its record
REFRESH = 2  # a new version of state that expired; the item is the node
NUM_FLOW_KINDS = 3
NO_FLOW = -1

# Columns of `LinkState.flow`.
FLOW_KIND = 0
FLOW_STATION = 1  # where the bytes go
FLOW_SOURCE = 2  # where they come from
FLOW_ITEM = 3
FLOW_BYTES = 4  # on the link, compressed
FLOW_SEQUENCE = 5  # number of the flow, breaks ties
FLOW_PLACE = 6  # where it stands in `LinkState.listed`, -1 in the free list
FIRST_CHILD = 7
NEXT_SIBLING = 8  # or the next in the free list
BEFORE = 9  # the sibling before it, the parent of a first child, -1 at the root
NUM_FLOW_INTS = 10

# Columns of `LinkState.flow_real`.
FLOW_BEGIN_S = 0
FLOW_FINISH = 1  # bytes that each flow of its group has received when it ends (dedicated: seconds)
NUM_FLOW_REALS = 2

# Columns of `LinkState.group`, which has the groups with flows first.
GROUP_STATION = 0
GROUP_ROOT = 1  # the flow that ends first
GROUP_FLOWS = 2
NUM_GROUP_INTS = 3

# Columns of `LinkState.group_real`.
GROUP_SERVED = 0  # bytes that each of its flows has received since the group had none
GROUP_RATE = 1  # bytes/s of each of its flows
GROUP_ENDED = 2  # FLOW_FINISH of the last that ended: those with the same end at the same time
NUM_GROUP_REALS = 3

# Columns of `LinkState.num`.
FLOWS = 0
FREE_FLOW = 1  # head of the list of free flows, -1 when empty
USED_FLOWS = 2  # flows from here on have never been used
NUM_FLOWS = 3  # flows that there is room for
GROUPS = 4  # groups with flows
NEXT_FLOW_SEQUENCE = 5
LINK_UP = 6
ADVERTISED_INDEX = 7  # which multiple of the period the advertised rate belongs to
LINK_ACCRUED_TICK = 8  # until when the next two are counted
BUSY_TICKS = 9  # time with at least one flow on a working link
FLOW_TICKS = 10  # the same, once for each flow
CARRIED_BYTES = 11  # of ended flows, a column for each kind of flow
ABANDONED_BYTES = CARRIED_BYTES + NUM_FLOW_KINDS  # carried for flows that were cancelled
FIRST_GROUP = ABANDONED_BYTES + 1  # place of the group whose first flow ends first
NUM_LINK_INTS = FIRST_GROUP + 1

# Columns of `LinkState.real`.
CHANGED_S = 0  # when the rates were last set
FLOW_END_S = 1  # when the first flow ends, inf if none does
DOWN_S = 2  # how long the link has been down (dedicated only)
ADVERTISED = 3  # bytes/s that were advertised last
NUM_LINK_REALS = 4


class LinkState(NamedTuple):
    """The backhaul of B fleets with M stations; without the first axis that of one fleet."""

    num: Ints  # [B, NUM_LINK_INTS]
    real: Floats  # [B, NUM_LINK_REALS]
    flow: Ints  # [B, F, NUM_FLOW_INTS]
    flow_real: Floats  # [B, F, NUM_FLOW_REALS]
    listed: Ints  # [B, F] the flows there are, in no order
    group: Ints  # [B, G, NUM_GROUP_INTS]
    group_real: Floats  # [B, G, NUM_GROUP_REALS]
    group_of: Ints  # [B, M] place of a station's group, -1 without flows


@inlined
def _precedes(link: LinkState, one: int, other: int) -> bool:
    """Return whether a flow of a group ends before another; equal ones in the order they came."""
    first, second = link.flow_real[one, FLOW_FINISH], link.flow_real[other, FLOW_FINISH]
    return first < second or (
        first == second and link.flow[one, FLOW_SEQUENCE] < link.flow[other, FLOW_SEQUENCE]
    )


@helper
def meld(link: LinkState, one: int, other: int) -> int:
    """Return the root of two heaps made one; either may be NO_FLOW."""
    if one < 0 or other < 0:
        return max(one, other)
    root, child = (other, one) if _precedes(link, other, one) else (one, other)
    second = link.flow[root, FIRST_CHILD]
    link.flow[child, NEXT_SIBLING] = second
    link.flow[child, BEFORE] = root
    if second >= 0:
        link.flow[second, BEFORE] = child
    link.flow[root, FIRST_CHILD] = child
    link.flow[root, NEXT_SIBLING] = NO_FLOW
    link.flow[root, BEFORE] = NO_FLOW
    return root


@helper
def _meld_children(link: LinkState, flow: int) -> int:
    """Return the root of what is below a flow: in pairs from the left, these from the right."""
    child, pairs = link.flow[flow, FIRST_CHILD], NO_FLOW
    while child >= 0:
        partner = link.flow[child, NEXT_SIBLING]
        following = link.flow[partner, NEXT_SIBLING] if partner >= 0 else NO_FLOW
        link.flow[child, NEXT_SIBLING] = link.flow[child, BEFORE] = NO_FLOW
        pair = meld(link, child, partner)
        link.flow[pair, NEXT_SIBLING] = pairs
        pairs, child = pair, following
    root = NO_FLOW
    while pairs >= 0:
        following = link.flow[pairs, NEXT_SIBLING]
        link.flow[pairs, NEXT_SIBLING] = link.flow[pairs, BEFORE] = NO_FLOW
        root = meld(link, root, pairs)
        pairs = following
    return root


@helper
def without_flow(link: LinkState, root: int, flow: int) -> int:
    """Return the root of a heap without one of its flows, NO_FLOW if it was the last."""
    below = _meld_children(link, flow)
    if flow == root:
        return below
    before, after = link.flow[flow, BEFORE], link.flow[flow, NEXT_SIBLING]
    if link.flow[before, FIRST_CHILD] == flow:
        link.flow[before, FIRST_CHILD] = after
    else:
        link.flow[before, NEXT_SIBLING] = after
    if after >= 0:
        link.flow[after, BEFORE] = before
    return meld(link, root, below)


@helper
def new_flow(link: LinkState) -> int:
    """Return a flow of the pool, which has room, entered in the list of flows."""
    flow = link.num[FREE_FLOW]
    if flow >= 0:
        link.num[FREE_FLOW] = link.flow[flow, NEXT_SIBLING]
    else:
        flow = link.num[USED_FLOWS]
        link.num[USED_FLOWS] = flow + 1
    place = link.num[FLOWS]
    link.num[FLOWS] = place + 1
    link.listed[place] = flow
    link.flow[flow, FLOW_PLACE] = place
    link.flow[flow, FLOW_SEQUENCE] = link.num[NEXT_FLOW_SEQUENCE]
    link.num[NEXT_FLOW_SEQUENCE] += 1
    link.flow[flow, FIRST_CHILD] = NO_FLOW
    link.flow[flow, NEXT_SIBLING] = NO_FLOW
    link.flow[flow, BEFORE] = NO_FLOW
    return flow


@helper
def free_flow(link: LinkState, flow: int) -> None:
    """Return a flow to the pool and take it off the list."""
    last = link.num[FLOWS] - 1
    link.num[FLOWS] = last
    place, moved = link.flow[flow, FLOW_PLACE], link.listed[last]
    link.listed[place] = moved
    link.flow[moved, FLOW_PLACE] = place
    link.flow[flow, FLOW_PLACE] = NO_FLOW
    link.flow[flow, NEXT_SIBLING] = link.num[FREE_FLOW]
    link.num[FREE_FLOW] = flow


@inlined
def has_flow_room(link: LinkState, flows: int) -> bool:
    """Return whether there is room for so many more flows."""
    return link.num[FLOWS] + flows <= link.num[NUM_FLOWS]


@helper
def find_flow(link: LinkState, begin: int, kind: int, station: int, source: int) -> int:
    """Return the first flow from an index on that fits, NO_FLOW if none does.

    A kind, station or source of -1 fits all. The flow found may be cancelled before the search goes
    on at the next index.
    """
    for flow in range(begin, link.num[USED_FLOWS]):
        row = link.flow[flow]
        if (
            row[FLOW_PLACE] >= 0
            and kind in (-1, row[FLOW_KIND])
            and station in (-1, row[FLOW_STATION])
            and source in (-1, row[FLOW_SOURCE])
        ):
            return flow
    return NO_FLOW
