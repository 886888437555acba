"""Writes what a router observes of a request, and which of its actions are legal."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegym.interface.layout import clock_period_s
from edgegym.jit import kernel
from edgegym.simulator.columns import (
    ARRIVALS,
    COMPLETED,
    DECIDED,
    FIRST_TOKENS,
    GOODPUT_TOKENS,
    HITS,
    PREFILL_TICKS,
    RADIO_TICKS,
    REJECTED,
    REPORTED,
    SITE_BITS,
    SITE_WAIT_S,
    SLOTS,
    WAIT_TICKS,
)
from edgegym.simulator.columns import HOLDS_SHIFT as ROW_SHIFT
from edgegym.simulator.compiling import entry_point, helper, inlined, lend
from edgegym.simulator.full.asking import Near, is_asking, next_ask, nodes_around
from edgegym.simulator.full.columns import DOWN
from edgegym.simulator.full.counts import (
    FETCHES,
    ORIGIN_DISPATCHES,
    REDISPATCHED,
    RESTORE_TICKS,
    STALL_TICKS,
)
from edgegym.simulator.full.fetch import (
    best_held_hit,
    can_fetch,
    expected_transfer,
    fetched_s,
    missing_prefix,
)
from edgegym.simulator.full.flows import LINK_UP
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import advertised_bytes_per_s
from edgegym.simulator.full.margin import margin_s
from edgegym.simulator.full.routing_groups import Ask, Routing
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.full.sight import advertised_hit, node_at, origin_expected_s, radio_s_of
from edgegym.simulator.routers.dispatch import LOAD_AWARE, score

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edgegym.interface.routing import RoutingLayout
    from edgegym.simulator.asking import AskingFleet
    from edgegym.world.scenario import Scenario

# The largest float32 below 1: a finite value never reads as infinite.
_BELOW_ONE = np.nextafter(np.float32(1.0), np.float32(0.0))
_MOST_SCALES = 1e6

# Columns of a candidate.
PRESENT, RADIO, PREFILL, HIT, WAIT, BACKLOG, TTFT, FETCHABLE, TRANSFER, FETCH_TTFT = range(10)

# Columns of the running totals of an episode.
TOTALS = (
    "arrivals",
    "decided",
    "hits",
    "first_tokens",
    "rejected",
    "completed",
    "ttft_ticks",
    "goodput_tokens_sum",
    "fetches",
    "to_origin",
    "sent_again",
)
"""What the totals count since the fleet began to ask."""


class Plan(NamedTuple):
    """Numbers of the layout that a kernel needs, and where it writes."""

    features: int  # of a candidate
    families: int
    second: float  # scales
    token: float
    clock_period_s: float  # 0 where the clock is not observed
    near: Near
    node: "NDArray[np.int64]"  # [C] the candidates, -1 where there is none
    mask: "NDArray[np.bool_]"  # [2C + 2]
    totals: "NDArray[np.int64]"  # [len(TOTALS)]


@inlined
def _squash(value: float, scale: float) -> np.float32:
    """Return ``value / (value + scale)`` as a float32 below one."""
    if value <= 0.0:
        return np.float32(0.0)
    value = min(value, _MOST_SCALES * scale)
    return min(np.float32(value / (value + scale)), _BELOW_ONE)


@inlined
def _margin_s(routing: Routing, station: int, now: float) -> float:
    return margin_s(routing, station, now) if routing.params.margin.used else 0.0


@inlined
def _is_origin_up(fleet: FullLane) -> bool:
    return bool(fleet.faults.num[fleet.life.num_nodes, DOWN] == 0)


@helper
def _write_candidate(
    fleet: FullLane,
    plan: Plan,
    ask: Ask,
    row: int,
    out: "NDArray[np.float32]",
    best_hit: float,
    now: float,
) -> None:
    """Write one candidate's features, and whether it may fetch."""
    routing, stock, fetching = fleet.routing, fleet.routing.stock, fleet.fetch_params
    place, base_s = plan.near.place[row], fleet.area.radio_base_s
    node, sites = node_at(fleet.area, place), fleet.area.sites
    hit = advertised_hit(routing, ask, place)
    held = int(np.float64(sites[place, SITE_BITS]).view(np.int64)) >> ROW_SHIFT
    node_class = stock.row_class[held]
    radio_s = radio_s_of(routing, ask, plan.near.squared_km2[row])
    prefill_s = prefill_seconds(stock.coefficients, node_class, ask.input_tokens, hit)
    wait_s, psi_s = sites[place, SITE_WAIT_S], _margin_s(routing, node, now)
    work = fleet.core.nodes.work
    at = row * plan.features
    out[at + PRESENT] = 1.0
    out[at + RADIO] = _squash(base_s + radio_s, plan.second)
    out[at + PREFILL] = _squash(prefill_s, plan.second)
    out[at + HIT] = _squash(hit, plan.token)
    out[at + WAIT] = _squash(wait_s, plan.second)
    out[at + BACKLOG] = _squash(float(work[node, REPORTED]), max(float(work[node, SLOTS]), 1.0))
    ttft_s = base_s + score(LOAD_AWARE, radio_s, prefill_s, wait_s) + psi_s
    out[at + TTFT] = _squash(ttft_s, plan.second)
    plan.node[row] = node
    plan.mask[2 * row] = True
    if fleet.life.lru:
        return
    size, whole = missing_prefix(fetching, ask.type, hit, best_hit)
    whole = min(whole, ask.input_tokens - 1.0)
    short_s = prefill_seconds(stock.coefficients, node_class, ask.input_tokens, whole)
    if not can_fetch(fleet.link, size, prefill_s, short_s):
        return
    transfer_s, _ = expected_transfer(fetching, fleet.link_params, fleet.link, now, node, size)
    landed_s = fetched_s(fleet.link_params, size, transfer_s, wait_s, short_s)
    out[at + FETCHABLE] = _squash(whole - hit, plan.token)
    out[at + TRANSFER] = _squash(transfer_s, plan.second)
    out[at + FETCH_TTFT] = _squash(base_s + (radio_s + landed_s) + psi_s, plan.second)
    plan.mask[2 * row + 1] = True


@helper
def _write_request(
    fleet: FullLane, plan: Plan, ask: Ask, at: int, out: "NDArray[np.float32]"
) -> None:
    """Write what the request itself is."""
    types = fleet.core.types
    out[at + types.family[ask.type]] = 1.0
    at += plan.families
    prefix = min(float(fleet.holdings.path_tokens[ask.type]), ask.input_tokens - 1.0)
    out[at] = _squash(ask.input_tokens, plan.token)
    out[at + 1] = _squash(prefix, plan.token)
    out[at + 2] = _squash(types.target_s[ask.type], plan.second)


@helper
def _write_fleet(
    fleet: FullLane, plan: Plan, at: int, out: "NDArray[np.float32]", now: float
) -> None:
    """Write how the whole fleet stands."""
    work, counters = fleet.core.nodes.work, fleet.core.window.counters
    requests, slots = 0, 0
    for node in range(fleet.area.num_nodes):
        if fleet.catalogue.up[node]:
            requests += work[node, REPORTED]
            slots += work[node, SLOTS]
    out[at] = _squash(float(requests), max(float(slots), 1.0))
    out[at + 1] = min(counters[REJECTED] / max(counters[DECIDED], 1), 1.0)
    params = fleet.link_params
    idle = params.bytes_per_s
    if params.shared:
        idle = min(idle, params.access_bytes_per_s)
    if fleet.link.num[LINK_UP] == 1:
        out[at + 2] = min(advertised_bytes_per_s(params, fleet.link, now) / idle, 1.0)
    if plan.clock_period_s > 0.0:
        turn = 2.0 * math.pi * (now / plan.clock_period_s)
        out[at + 3] = min(max(0.5 * (1.0 + math.sin(turn)), 0.0), 1.0)
        out[at + 4] = min(max(0.5 * (1.0 + math.cos(turn)), 0.0), 1.0)


@helper
def _write_totals(fleet: FullLane, totals: "NDArray[np.int64]") -> None:
    """Write what the window has counted, in the order of ``TOTALS``."""
    counters, extra = fleet.core.window.counters, fleet.desk.counts.extra
    totals[0] = counters[ARRIVALS]
    totals[1] = counters[DECIDED]
    totals[2] = counters[HITS]
    totals[3] = counters[FIRST_TOKENS]
    totals[4] = counters[REJECTED]
    totals[5] = counters[COMPLETED]
    totals[6] = counters[RADIO_TICKS] + counters[WAIT_TICKS] + counters[PREFILL_TICKS]
    totals[6] += extra[STALL_TICKS] + extra[RESTORE_TICKS]
    totals[7] = counters[GOODPUT_TOKENS]
    totals[8] = extra[FETCHES]
    totals[9] = extra[ORIGIN_DISPATCHES]
    totals[10] = extra[REDISPATCHED]


@kernel
def write_routing(lane: Any, where: Plan, out: "NDArray[np.float32]") -> None:
    """Write the observation of the request at which a fleet stands; mask and totals into the plan.

    Parameters
    ----------
    lane : Bound
        Of a fleet that asks.
    where : Plan
        Of the layout.
    out : ndarray of float32
        The flat observation.
    """
    fleet, plan = lend(lane), lend(where)
    now, most = fleet.now_s[0], len(plan.node)
    out[:] = 0.0
    plan.mask[:] = False
    plan.mask[2 * most + 1] = True
    plan.node[:] = -1
    _write_totals(fleet, plan.totals)
    at = most * plan.features
    _write_fleet(fleet, plan, at + plan.families + 5, out, now)
    if not is_asking(fleet):
        return
    ask = next_ask(fleet)
    _write_request(fleet, plan, ask, at, out)
    around = nodes_around(fleet.routing, ask, plan.near, most, now)
    origin_up = _is_origin_up(fleet)
    best_hit = 0.0
    if not fleet.life.lru:
        holdings = fleet.holdings
        best_hit = best_held_hit(
            fleet.fetch_params, holdings.hit_tokens, holdings.holders, ask.type, origin_up
        )
    for row in range(around.nodes):
        _write_candidate(fleet, plan, ask, row, out, best_hit, now)
    station = fleet.routing.origin_station
    if station >= 0 and origin_up and around.nearest >= 0:
        seconds = fleet.area.radio_base_s + origin_expected_s(
            fleet.routing, ask, around.closest_km2
        )
        at += plan.families + 3
        out[at] = 1.0
        out[at + 1] = _squash(seconds + _margin_s(fleet.routing, station, now), plan.second)
        plan.mask[2 * most] = True


class RoutingObserver:
    """Writes the observations of one environment.

    Parameters
    ----------
    scenario : Scenario
    layout : RoutingLayout
        Of that scenario.
    """

    def __init__(self, scenario: "Scenario", layout: "RoutingLayout") -> None:
        most = layout.num_candidates
        second, token = layout.feature("ttft").scale, layout.feature("hit").scale
        assert second is not None
        assert token is not None
        self._size = layout.size
        self._plan = Plan(
            features=layout.candidate_features,
            families=layout.num_families,
            second=second,
            token=token,
            clock_period_s=clock_period_s(scenario) if layout.observes_clock else 0.0,
            near=Near(np.zeros(most), np.zeros(most, dtype=np.int64)),
            node=np.full(most, -1, dtype=np.int64),
            mask=np.zeros(2 * most + 2, dtype=np.bool_),
            totals=np.zeros(len(TOTALS), dtype=np.int64),
        )
        self._write: Callable[..., None] | None = None

    @property
    def mask(self) -> "NDArray[np.bool_]":
        """Which actions were legal at the last observation, ``[2C + 2]``; not a copy."""
        return self._plan.mask

    @property
    def nodes(self) -> "NDArray[np.int64]":
        """The candidates of the last observation, ``[C]``, -1 where there was none; not a copy."""
        return self._plan.node

    @property
    def totals(self) -> "NDArray[np.int64]":
        """Counts since the fleet began to ask, in the order of ``TOTALS``; not a copy."""
        return self._plan.totals

    def observe(self, fleet: "AskingFleet") -> "NDArray[np.float32]":
        """Return a fresh flat observation of the request at which a fleet stands.

        Parameters
        ----------
        fleet : AskingFleet
            Of the scenario.

        Returns
        -------
        ndarray of float32
            Finite and within [0, 1]; without a request only the fleet's features are written.
        """
        out = np.empty(self._size, dtype=np.float32)
        lane = fleet.lane
        if self._write is None:
            self._write = entry_point(write_routing, lane, self._plan, out)
        self._write(lane, self._plan, out)
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle needs: compiled code stays where it is."""
        return {**self.__dict__, "_write": None}
