"""Fetch or recompute: whether a request's missing prefix comes over the backhaul.

A request that reaches a station which lacks some of its prefix can wait until that has been copied
from where it is held, or have it computed. With Q the wait for a slot and T the transfer of the
missing bytes, both from now, D the restoration, and P and P' the prefill with the local and with
the fetched prefix, its first token comes after

    recompute  Q + P
    fetch      max(Q, T) + D + P'            (with layers: see `exposed_stall_s`)

Fetching pays when the second is less. The controllers differ in what they take for T, and whether
they also count what they do to others:

    never        no fetch
    always       every fetch that saves prefill
    independent  T from the rate that was advertised last: all act on the same old number
    joint        T as it will be with the flows there are now; a fetch must save more than the delay
                 it imposes on them, and keep within a share of the request's latency target
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.flows import LINK_UP, LinkState
from edgegym.simulator.full.forecast import forecast_flow
from edgegym.simulator.full.link import advertised_bytes_per_s
from edgegym.simulator.full.sharing import LinkParams, bytes_on_link
from edgegym.simulator.state import Floats, Ints
from edgegym.world.scenario import Scenario

NEVER, ALWAYS, INDEPENDENT, JOINT = range(4)
CONTROLLERS = ("never", "always", "independent", "joint")
"""Names of the controllers, by code."""


class FetchParams(NamedTuple):
    """What never changes about fetching; P is the most vertices of a path that hold tokens."""

    controller: int
    budget_share: float
    from_origin: bool  # whether the origin's store has everything
    target_s: Floats  # [Q]
    path_length: Ints  # [Q] vertices
    path_tokens: Floats  # [Q, P] hit with the first vertices up to each, ascending
    path_bytes: Ints  # [Q, P] bytes of those vertices


class Choice(NamedTuple):
    """A fetch weighed against computing, all from the moment at which a request lands."""

    fetch: bool
    fetch_s: float  # until the first token with a fetch, as predicted, inf without a link
    compute_s: float  # the same without
    imposed_s: float  # delay of other flows by the fetch, added up; joint only


def fetch_params(scenario: Scenario) -> FetchParams:
    """Return the constants of fetching.

    Parameters
    ----------
    scenario : Scenario
        Any.

    Returns
    -------
    FetchParams
        Only vertices that lengthen a type's hit stand in its path. A model's weights don't: where
        they are missing, nothing is served.
    """
    forest = scenario.catalogue.forest
    paths: list[list[tuple[float, int]]] = []
    for item in scenario.request_types:
        whole = forest.path(item.path)
        steps: list[tuple[float, int]] = []
        deepest, without_tokens = 0.0, 0
        for name in sorted(whole, key=lambda name: len(forest.path(name))):
            held = forest.path(name)
            hit = float(min(forest.hit_depth(held, whole), item.input_tokens - 1))
            if hit > deepest:
                steps.append((hit, forest.total_bytes(held) - without_tokens))
                deepest = hit
            elif deepest == 0.0:
                without_tokens = forest.total_bytes(held)
        paths.append(steps)
    longest = max(1, *map(len, paths))
    tokens = np.zeros((len(paths), longest))
    sizes = np.zeros((len(paths), longest), dtype=np.int64)
    for row, steps in enumerate(paths):
        for column, (hit, size) in enumerate(steps):
            tokens[row, column], sizes[row, column] = hit, size
    return FetchParams(
        controller=CONTROLLERS.index(scenario.fetch.controller),
        budget_share=scenario.fetch.budget_share,
        from_origin=scenario.origin is not None,
        target_s=scenario.ttft_target_s.copy(),
        path_length=np.array([len(steps) for steps in paths], dtype=np.int64),
        path_tokens=tokens,
        path_bytes=sizes,
    )


@helper
def best_held_hit(
    params: FetchParams, hit_tokens: Floats, holders: Ints, request_type: int, origin_up: bool
) -> float:
    """Return the deepest hit of a type that can be fetched from somewhere, tokens.

    ``holders[row]`` are the up nodes that hold a row of the table of hits, ``[rows, Q]``.
    """
    if params.from_origin and origin_up:
        return np.inf
    best = 0.0
    for row in range(len(holders)):
        if holders[row] > 0:
            best = max(best, hit_tokens[row, request_type])
    return best


@helper
def missing_prefix(
    params: FetchParams, request_type: int, local_hit: float, best_hit: float
) -> tuple[int, float]:
    """Return the bytes between what a station holds and the deepest holder, and the hit with them.

    No bytes, and the local hit, where nobody holds more.
    """
    have, size, hit = 0, 0, local_hit
    for step in range(params.path_length[request_type]):
        tokens = params.path_tokens[request_type, step]
        if tokens <= local_hit:
            have = params.path_bytes[request_type, step]
        elif tokens <= best_hit:
            size, hit = params.path_bytes[request_type, step] - have, tokens
    return size, hit


@inlined
def whole_path_hit(params: FetchParams, request_type: int) -> float:
    """Return the hit of a type whose whole path is held, tokens."""
    steps = params.path_length[request_type]
    return params.path_tokens[request_type, steps - 1] if steps > 0 else 0.0


@inlined
def restore_seconds(link_params: LinkParams, size_bytes: int) -> float:
    """Return the time to unpack state that was fetched, in all its layers."""
    return size_bytes / link_params.restore_bytes_per_s


@inlined
def exposed_stall_s(
    layers: int, begin_s: float, end_s: float, slot_s: float, busy_s: float
) -> float:
    """Return how long a request waits in its slot for its fetch.

    With one layer, until the transfer from ``begin_s`` to ``end_s`` is complete; restoration and
    prefill, ``busy_s`` together, follow. With K layers the state comes layer by layer at a constant
    rate: that of layer k is there at ``begin + k (end - begin) / K``. Restoration and prefill go
    through the layers as well: ``busy / K`` for each, that of layer k not before its state is there
    and not before layer k - 1 is done. The first token comes when the last layer is done:

        max over k of  max(slot, arrival of layer k) + (K - k + 1) busy / K

    which is linear in k, so only the first and the last layer count. The stall is what this exceeds
    ``slot + busy``: the part of the transfer that neither the wait for the slot nor the work on
    other layers hides.

    Parameters
    ----------
    layers : int
        K.
    begin_s, end_s : float
        Begin and end of the transfer.
    slot_s : float
        When the request gets its slot.
    busy_s : float
        Restoration and prefill.

    Returns
    -------
    float
        Seconds, at least 0.
    """
    if layers == 1:
        return max(0.0, end_s - slot_s)
    first = begin_s + (end_s - begin_s) / layers - slot_s
    last = end_s - slot_s - busy_s * (layers - 1) / layers
    return max(0.0, first, last)


@inlined
def can_fetch(
    link: LinkState, size_bytes: int, compute_prefill_s: float, fetched_prefill_s: float
) -> bool:
    """Return whether a fetch is possible and saves prefill."""
    return size_bytes > 0 and fetched_prefill_s < compute_prefill_s and link.num[LINK_UP] == 1


@helper
def expected_transfer(
    params: FetchParams,
    link_params: LinkParams,
    link: LinkState,
    now: float,
    station: int,
    size_bytes: int,
) -> tuple[float, float]:
    """Return how long a controller expects state to flow, and the delay of others, seconds.

    A joint one looks at the link; the others know the rate that was advertised last.
    """
    if params.controller == JOINT:
        return forecast_flow(link_params, link, now, station, size_bytes)
    advertised = advertised_bytes_per_s(link_params, link, now)
    if advertised > 0.0:
        return bytes_on_link(link_params, size_bytes) / advertised, 0.0
    return np.inf, 0.0


@inlined
def fetched_s(
    link_params: LinkParams,
    size_bytes: int,
    transfer_s: float,
    slot_wait_s: float,
    fetched_prefill_s: float,
) -> float:
    """Return the time to the first token with a fetch, from the moment of landing."""
    busy_s = restore_seconds(link_params, size_bytes) + fetched_prefill_s
    stall_s = exposed_stall_s(link_params.layers, 0.0, transfer_s, slot_wait_s, busy_s)
    return slot_wait_s + stall_s + busy_s


@helper
def choose_fetch(
    params: FetchParams,
    link_params: LinkParams,
    link: LinkState,
    now: float,
    station: int,
    request_type: int,
    size_bytes: int,
    slot_wait_s: float,
    compute_prefill_s: float,
    fetched_prefill_s: float,
    age_s: float,
) -> Choice:
    """Weigh a fetch against computing for a request that is, or would be, at a station now.

    Parameters
    ----------
    params, link_params, link
        The controller, and the link as it is.
    now : float
        Time, s.
    station, request_type, size_bytes : int
        Where the state is missing, for whom, and how much of it.
    slot_wait_s : float
        Predicted wait for a slot from now.
    compute_prefill_s, fetched_prefill_s : float
        Prefill with what the station holds, and with the fetched prefix.
    age_s : float
        Time since the request arrived.

    Returns
    -------
    Choice
        A joint controller fetches when that saves the request more than it costs the flows that are
        there, and its first token is then predicted within ``budget_share`` of its target: the link
        is not spent on requests that come late all the same.
    """
    compute_s = slot_wait_s + compute_prefill_s
    possible = can_fetch(link, size_bytes, compute_prefill_s, fetched_prefill_s)
    if params.controller == NEVER or not possible:
        return Choice(False, np.inf, compute_s, 0.0)
    transfer_s, imposed_s = expected_transfer(params, link_params, link, now, station, size_bytes)
    fetch_s = fetched_s(link_params, size_bytes, transfer_s, slot_wait_s, fetched_prefill_s)
    if params.controller == ALWAYS:
        return Choice(True, fetch_s, compute_s, 0.0)
    fetch = fetch_s + imposed_s < compute_s
    if params.controller == JOINT:
        budget_s = params.budget_share * params.target_s[request_type]
        fetch = fetch and age_s + fetch_s <= budget_s
    return Choice(fetch, fetch_s, compute_s, imposed_s)
