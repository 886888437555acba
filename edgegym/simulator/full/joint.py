"""Routing that weighs three ways at once: fetch, compute, or go to where the prefix is."""

from typing import NamedTuple

from edgegym.simulator.compiling import helper
from edgegym.simulator.full.fetch import (
    JOINT,
    FetchParams,
    best_held_hit,
    choose_fetch,
    missing_prefix,
)
from edgegym.simulator.full.flows import LinkState
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.full.sharing import LinkParams
from edgegym.simulator.state import Floats, Ints


class Reach(NamedTuple):
    """What can be fetched, and the link as it is."""

    params: FetchParams
    link_params: LinkParams
    link: LinkState
    hit_tokens: Floats  # [R, Q] really held
    holders: Ints  # [R] up nodes that hold the row


class Fetching(NamedTuple):
    """What fetching changes at a station for a request."""

    fetch_s: float  # in its predicted time to the first token, at most 0
    imposed_s: float  # in that of others


@helper
def joint_fetching(
    reach: Reach,
    origin_up: bool,
    coefficients: Floats,
    node_class: int,
    station: int,
    request_type: int,
    input_tokens: float,
    hit_tokens: float,
    wait_s: float,
    prefill_s: float,
    radio_s: float,
    now: float,
) -> Fetching:
    """Return what the station's controller would do with the request if it landed there now.

    Nothing where the controller is not joint: the others decide without the router.
    """
    if reach.params.controller != JOINT:
        return Fetching(0.0, 0.0)
    best = best_held_hit(reach.params, reach.hit_tokens, reach.holders, request_type, origin_up)
    size, fetched = missing_prefix(reach.params, request_type, hit_tokens, best)
    if size == 0:
        return Fetching(0.0, 0.0)
    fetched_s = prefill_seconds(
        coefficients, node_class, input_tokens, min(fetched, input_tokens - 1.0)
    )
    choice = choose_fetch(
        reach.params,
        reach.link_params,
        reach.link,
        now,
        station,
        request_type,
        size,
        wait_s,
        prefill_s,
        fetched_s,
        radio_s,
    )
    if not choice.fetch:
        return Fetching(0.0, 0.0)
    return Fetching(choice.fetch_s - choice.compute_s, choice.imposed_s)
