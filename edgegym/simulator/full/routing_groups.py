"""What routing reads and keeps: parameters of a scenario, state of fleets, views for kernels."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgegym.simulator.full.groups import Faults, OriginParams
from edgegym.simulator.full.joint import Reach
from edgegym.simulator.full.routing_columns import (
    FLIP_S,
    NOTED_TIER,
    NUM_FEATURES,
    NUM_LOAD,
    NUM_STATION_PAST,
    NUM_STATION_SUMS,
    NUM_TIER_SUMS,
    SENT_AT_S,
)
from edgegym.simulator.full.user_router import UserRouter
from edgegym.simulator.lane import Area, Nodes, Signals
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.compiled import ROUTER_KINDS, World
from edgegym.world.routing import (
    Admission,
    CacheAwareRouting,
    CandidateRouting,
    KvRouting,
    LoadAwareRouting,
    Margin,
    MooncakeRouting,
)
from edgegym.world.serving import LruCache

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

USER = len(ROUTER_KINDS)
"""Kind of a user's own rule."""

SPILLS = ("next_best", "origin", "reject")
"""Names of what becomes of a request whose node is closed, by code."""


class RuleParams(NamedTuple):
    """A routing rule."""

    kind: int  # index into ROUTER_KINDS, or USER
    quota: int  # candidates of each group
    num_groups: int  # profiles, or 1 where nodes have none
    max_gap: float  # cache_aware: requests
    max_ratio: float
    match_share: float
    overlap_weight: float  # kv_router
    block_tokens: float
    temperature: float
    transfer_ratio: float  # mooncake
    transfer_s_per_token: float
    user_address: int  # of a compiled function, 0 without one
    user_parameters: Floats  # [any]
    num_user_parameters: int

    COLUMNS = ()


class MarginParams(NamedTuple):
    """The safety margin ψ of a prediction."""

    used: bool
    deviations: float
    moving_s: float
    burst_s: float
    ewma_s: float  # memory of errors and of arrivals


class AdmissionParams(NamedTuple):
    """When nodes and tiers close."""

    used: bool
    ewma_s: float
    node_close_above: float  # inf: never
    node_reopen_below: float
    tier_close_above: float
    tier_reopen_below: float
    spill: int  # NEXT_BEST, SPILL_TO_ORIGIN or REJECT
    redirect: bool


class RoutingParams(NamedTuple):
    """What routing needs to know of a scenario; never changes."""

    rule: RuleParams
    margin: MarginParams
    admission: AdmissionParams
    num_classes: int  # C
    num_profiles: int  # S
    family: Ints  # [Q]
    xi_factor: Floats  # [Q] of the radio latency beyond its base

    COLUMNS = ()


class RoutingState(NamedTuple):
    """What routing remembers of B fleets; columns in :mod:`.routing_columns`.

    M stations, S profiles, K candidates at most. In a kernel the same without the leading axis.
    """

    station_load: Floats  # [B, M, NUM_LOAD]
    tier_load: Floats  # [B, S, NUM_LOAD]
    tier_sums: Ints  # [B, S, NUM_TIER_SUMS]
    station_sums: Ints  # [B, M, NUM_STATION_SUMS]
    station_past: Floats  # [B, M, NUM_STATION_PAST]
    candidates: Floats  # [B, K, NUM_FEATURES] scratch
    near_squared_km2: Floats  # [B, groups, quota] scratch: the nearest so far, nearest first
    near_place: Ints  # [B, groups, quota] scratch: where in the sites they are
    near_count: Ints  # [B, groups] scratch
    scores: Floats  # [B, K] scratch
    failed: Floats  # [B, K or 0, NUM_FEATURES] the candidates on which a user's rule has failed
    failed_count: Ints  # [B, 1] how many these are, 0 as long as it has not

    COLUMNS = (
        ("station_load", NUM_LOAD),
        ("tier_load", NUM_LOAD),
        ("tier_sums", NUM_TIER_SUMS),
        ("station_sums", NUM_STATION_SUMS),
        ("station_past", NUM_STATION_PAST),
        ("candidates", NUM_FEATURES),
        ("failed", NUM_FEATURES),
    )


class Stock(NamedTuple):
    """What stations are known to hold, and what it is worth."""

    hit_tokens: Floats  # [R, Q] by row; below 0 where a type can't be served
    row_class: Ints  # [R]
    coefficients: Floats  # [C + 1, 4] prefill of each class, the origin last
    most_hit_tokens: Floats  # [C, Q] over the rows of a class; below 0 where none serves the type
    tier_serves: Ints  # [S, Q] 1 where some node with that profile can serve the type

    COLUMNS = (("coefficients", 4),)


class Routing(NamedTuple):
    """All that routing touches of one fleet."""

    params: RoutingParams
    state: RoutingState
    stock: Stock
    signals: Signals
    nodes: Nodes  # one row for each station
    area: Area
    origin: OriginParams
    origin_station: int  # -1 without an origin
    faults: Faults  # the origin's row says whether it is down
    profile: Ints  # [N]
    up: Bools  # [N]
    receiving: Bools  # [N]
    reach: Reach
    seeks_runner_up: bool  # somebody reads which path was the best of those not taken
    looks_plainly: bool  # nor do admission, margins and fetches matter to routing

    COLUMNS = ()


class Ask(NamedTuple):
    """A request as the router sees it."""

    x_km: float
    y_km: float
    type: int
    input_tokens: float
    output_tokens: float
    number: int  # in the stream
    key: int  # of random draws for rules
    origin_key: int  # of random draws for the origin


class Decision(NamedTuple):
    """Where a request goes, and what the router expects of it."""

    node: int  # -1: rejected; the origin's station where it goes there
    nearest: int  # nearest up node, -1 when no node is up
    distance_squared_km2: float  # to the node, for the origin to the nearest node
    predicted_s: float  # time to the first token, without the margin
    runner_up_s: float  # the least of the other candidates, inf without one
    runner_up: int  # that station, -1 without one
    spilled: int  # NOT_SPILLED, SPILLED_NODE or SPILLED_ORIGIN of the columns


def routing_params(
    scenario: "Scenario", world: World, user: UserRouter | None = None
) -> RoutingParams:
    """Return what routing needs to know of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Any valid scenario.
    world : World
        The same, compiled.
    user : UserRouter, optional
        A rule that takes the place of the scenario's.
    """
    routing = scenario.routing
    profiles = not isinstance(scenario.cache, LruCache)
    per_profile = routing.candidates_per_profile if isinstance(routing, CandidateRouting) else 2
    if user is not None:
        per_profile = user.candidates_per_profile
    # There is no more than every node.
    per_profile = min(per_profile, world.max_nodes)
    count = len(scenario.profiles)
    cache_aware = routing if isinstance(routing, CacheAwareRouting) else CacheAwareRouting()
    kv = routing if isinstance(routing, KvRouting) else KvRouting()
    mooncake = routing if isinstance(routing, MooncakeRouting) else MooncakeRouting()
    link_bytes_per_s = scenario.backhaul.rate_bytes_per_s * scenario.backhaul.compression
    rule = RuleParams(
        kind=world.router_kind if user is None else USER,
        quota=per_profile if profiles else per_profile * count,
        num_groups=count if profiles else 1,
        max_gap=float(cache_aware.max_gap),
        max_ratio=float(cache_aware.max_ratio),
        match_share=float(cache_aware.match_share),
        overlap_weight=float(kv.overlap_weight),
        block_tokens=float(kv.block_tokens),
        temperature=float(kv.temperature),
        transfer_ratio=float(mooncake.transfer_ratio),
        transfer_s_per_token=scenario.hardware.kv_bytes_per_token / link_bytes_per_s,
        user_address=0 if user is None else user.address,
        user_parameters=np.zeros(0) if user is None else user.parameters,
        num_user_parameters=0 if user is None else len(user.parameters),
    )
    margin = routing.margin if isinstance(routing, LoadAwareRouting) else Margin()
    return RoutingParams(
        rule=rule,
        margin=MarginParams(
            used=max(margin.deviations, margin.moving_s, margin.burst_s) > 0.0,
            deviations=float(margin.deviations),
            moving_s=float(margin.moving_s),
            burst_s=float(margin.burst_s),
            ewma_s=world.telemetry_ewma_s,
        ),
        admission=_admission_params(scenario.admission),
        num_classes=len(world.classes.share),
        num_profiles=count,
        family=world.type_family,
        xi_factor=world.type_xi_factor,
    )


def _admission_params(admission: Admission | None) -> AdmissionParams:
    rules = Admission() if admission is None else admission
    node, tier = rules.node, rules.tier
    return AdmissionParams(
        used=node is not None or tier is not None,
        ewma_s=float(rules.ewma_s),
        node_close_above=math.inf if node is None else float(node.close_above),
        node_reopen_below=math.inf if node is None else float(node.reopen_below),
        tier_close_above=math.inf if tier is None else float(tier.close_above),
        tier_reopen_below=math.inf if tier is None else float(tier.reopen_below),
        spill=SPILLS.index(rules.spill),
        redirect=rules.redirect,
    )


def allocate_routing(
    params: RoutingParams, num_stations: int, num_profiles: int, batch: int = 1
) -> RoutingState:
    """Return what routing remembers of B fleets that have not served yet.

    Parameters
    ----------
    params : RoutingParams
        Of the scenario.
    num_stations, num_profiles : int
        Stations with the origin, M, and profiles, S.
    batch : int
        Number of fleets, B.

    Returns
    -------
    RoutingState
        No node is counted in a tier yet: note the load of each once it has its profile and slots.
    """
    groups, quota = params.rule.num_groups, params.rule.quota
    by_user = params.rule.kind == USER
    state = RoutingState(
        station_load=np.zeros((batch, num_stations, NUM_LOAD)),
        tier_load=np.zeros((batch, num_profiles, NUM_LOAD)),
        tier_sums=np.zeros((batch, num_profiles, NUM_TIER_SUMS), dtype=np.int64),
        station_sums=np.zeros((batch, num_stations, NUM_STATION_SUMS), dtype=np.int64),
        station_past=np.zeros((batch, num_stations, NUM_STATION_PAST)),
        candidates=np.zeros((batch, groups * quota, NUM_FEATURES)),
        near_squared_km2=np.zeros((batch, groups, quota)),
        near_place=np.zeros((batch, groups, quota), dtype=np.int64),
        near_count=np.zeros((batch, groups), dtype=np.int64),
        scores=np.zeros((batch, groups * quota)),
        failed=np.zeros((batch, groups * quota if by_user else 0, NUM_FEATURES)),
        failed_count=np.zeros((batch, 1), dtype=np.int64),
    )
    state.station_load[:, :, FLIP_S] = state.tier_load[:, :, FLIP_S] = np.inf
    state.station_sums[:, :, NOTED_TIER] = -1
    state.station_past[:, :, SENT_AT_S] = -np.inf
    return state


def most_hits(hit_tokens: Floats, row_class: Ints, num_classes: int) -> Floats:
    """Return the most that any row of a class holds of each type, ``[C, Q]``; -1 where none serves.

    Parameters
    ----------
    hit_tokens : ndarray, shape [R, Q]
        By row; below 0 where a type can't be served.
    row_class : ndarray, shape [R]
        Class of each row.
    num_classes : int
        C.
    """
    most = np.full((num_classes, hit_tokens.shape[1]), -1.0)
    np.maximum.at(most, row_class, hit_tokens)
    return most


def tier_serves(hit_tokens: Floats, num_holdings: int, num_profiles: int) -> Ints:
    """Return where nodes with a profile can serve a type, on some class, ``[S, Q]`` of 0 and 1.

    Parameters
    ----------
    hit_tokens : ndarray, shape [C * H, Q]
        By row, class · H + holding; the first S holdings are the profiles.
    num_holdings, num_profiles : int
        H and S.
    """
    by_class = hit_tokens.reshape(-1, num_holdings, hit_tokens.shape[1])
    serves: Ints = np.any(by_class[:, :num_profiles] >= 0.0, axis=0).astype(np.int64)
    return serves
