"""A scenario as plain arrays: what compiled kernels read."""

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.world.classes import ClassTables, class_tables
from edgegym.world.demand import Diurnal, Drift, FlashCrowd, Hotspot, Mmpp
from edgegym.world.layout import PlaceLaw, place_law
from edgegym.world.replay import ReplayTable, replay_table
from edgegym.world.routing import LoadAwareRouting
from edgegym.world.serving import EngineService, LognormalService, LruCache, TokensService

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

ROUTER_KINDS = (
    "nearest",
    "prefix_aware",
    "load_aware",
    "least_loaded",
    "power_of_two",
    "lmetric",
    "cache_aware",
    "kv_router",
    "preble",
    "mooncake",
    "session_affinity",
)
WAIT_KINDS = ("backlog", "measured", "tier")
SERVICE_KINDS = ("exponential", "deterministic", "lognormal", "tokens", "engine")


_NEVER_BYTES = 2**62


class World(NamedTuple):
    """Everything a kernel needs to know of a scenario; never changes.

    S profiles, H holdings (the first S are the profiles, the rest what else a node can come to
    hold), Q request types, F families. Tables of prefill times, slots and service rates are those
    of the scenario's ``hardware``; `classes` has those of mixed fleets.
    """

    width_km: float
    height_km: float
    periodic: bool
    max_nodes: int
    mean_nodes: float
    radio_xi: float
    radio_alpha: float
    radio_base_s: float
    num_profiles: int
    num_types: int
    num_families: int
    num_holdings: int
    type_family: NDArray[np.int64]  # [Q]
    type_share: NDArray[np.float64]  # [Q] long-run mean, adds up to 1
    type_share_in_family: NDArray[np.float64]  # [Q] given its family, adds up to 1 in each
    type_target_s: NDArray[np.float64]  # [Q]
    type_xi_factor: NDArray[np.float64]  # [Q] radio latency relative to `radio_xi`
    family_share: NDArray[np.float64]  # [F] long-run mean
    family_base_share: NDArray[np.float64]  # [F] before modulations
    input_tokens: NDArray[np.float64]  # [Q]
    output_tokens: NDArray[np.float64]  # [Q]
    decode_occupancy_s: NDArray[np.float64]  # [Q]
    cold_prefill_s: NDArray[np.float64]  # [Q] without a hit
    hit_tokens: NDArray[np.float64]  # [H, Q]
    prefill_s: NDArray[np.float64]  # [H, Q]
    min_prefill_s: NDArray[np.float64]  # [Q] over holdings
    meet: NDArray[np.int64]  # [S, S] holding left when going from the first to the second
    move_bytes: NDArray[np.int64]  # [S, S] from, to
    holding_bytes: NDArray[np.int64]  # [H]
    slots: NDArray[np.int64]  # [S]
    slot_service_rate: NDArray[np.float64]  # [H] 1/s, at the long-run mix of types
    usable_bytes: int
    runtime_bytes_per_sequence: int
    initial_mix: NDArray[np.float64]  # [S]
    budget_bytes_per_s: float
    burst_bytes: int
    backhaul_bytes_per_s: float
    telemetry_period_s: float
    telemetry_ewma_s: float
    predict_on_route: bool
    router_kind: int  # index into ROUTER_KINDS
    wait_kind: int  # index into WAIT_KINDS
    service_kind: int  # index into SERVICE_KINDS
    service_sigma: float
    output_geometric: bool  # output lengths are random, with the types' as their means
    base_rate_per_s: float  # over the region, before modulations
    mean_rate_per_s: float  # over the region, long-run mean with flash crowds
    # [n, 4] amplitude, period_s, phase in turns at x = 0 (NaN: random), turns per km in x
    diurnal: NDArray[np.float64]
    drift: NDArray[np.float64]  # [n <= 1, 2] zipf exponent, period_s
    drift_member: NDArray[np.bool_]  # [F]
    hotspot: NDArray[np.float64]  # [n <= 1, 4] concentration, sigma_km, orbit_radius_km, period_s
    hotspot_order: NDArray[np.int64]  # [F] position among the members, -1 for uniform families
    flash: NDArray[np.float64]  # [n <= 1, 4] interval_s, duration_s, magnitude, sigma_km
    flash_member: NDArray[np.bool_]  # [F]
    mmpp: NDArray[np.float64]  # [n, 4] calm and burst level, mean sojourns calm_s and burst_s
    mmpp_member: NDArray[np.bool_]  # [n, F]
    replay: ReplayTable  # of no request without a trace
    epoch_s: float
    warmup_s: float
    layout: PlaceLaw
    classes: ClassTables  # of the nodes; one class in a fleet without classes
    fingerprint: int  # of all that the simulator reads of the scenario, at least 0


def _members(scenario: "Scenario", families: tuple[str, ...] | None) -> NDArray[np.bool_]:
    return np.array([families is None or name in families for name in scenario.family_names])


def _long_run_family_share(
    base: NDArray[np.float64],
    drift_member: NDArray[np.bool_],
    flash: NDArray[np.float64],
    flash_member: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], float]:
    """Return the mean family shares, ``[F]``, and the mean rate relative to the base rate."""
    share = base.copy()
    if drift_member.any():
        share[drift_member] = base[drift_member].sum() / drift_member.sum()
    extra = 0.0
    if len(flash):
        interval_s, duration_s, magnitude, _ = flash[0]
        extra = magnitude * duration_s / interval_s
        share = share + extra * flash_member / flash_member.sum()
    return share / share.sum(), float(1.0 + extra)


def _fingerprint(scenario: "Scenario") -> int:
    """Return a hash of what fleets read of a scenario, the same in every process."""
    document = scenario.document()
    for field in ("name", "description", "evaluation_seeds", "control"):
        document.pop(field, None)
    text = json.dumps(document, sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def _move_bytes(scenario: "Scenario") -> NDArray[np.int64]:
    """Return the price of each move, ``[S, S]``: more than any bucket holds where nothing moves."""
    if isinstance(scenario.cache, LruCache):
        never = np.full(scenario.catalogue.move_bytes.shape, _NEVER_BYTES)
        np.fill_diagonal(never, 0)
        return never
    return scenario.catalogue.move_bytes.copy()


class _Modulations(NamedTuple):
    """How demand changes with time and place; fields as of :class:`World`."""

    diurnal: NDArray[np.float64]
    drift: NDArray[np.float64]
    drift_member: NDArray[np.bool_]
    hotspot: NDArray[np.float64]
    hotspot_order: NDArray[np.int64]
    flash: NDArray[np.float64]
    flash_member: NDArray[np.bool_]
    mmpp: NDArray[np.float64]
    mmpp_member: NDArray[np.bool_]


def _modulations(scenario: "Scenario") -> _Modulations:
    num_families = len(scenario.family_names)
    none = np.zeros(num_families, dtype=np.bool_)
    diurnal = np.array(
        [
            (
                item.amplitude,
                item.period_s,
                np.nan if item.phase is None else item.phase,
                item.phase_turns_per_km,
            )
            for item in scenario.demand.modulations
            if isinstance(item, Diurnal)
        ]
    ).reshape(-1, 4)
    drift, drift_member = np.empty((0, 2)), none
    hotspot, hotspot_member = np.empty((0, 4)), none
    flash, flash_member = np.empty((0, 4)), none
    bursts: list[Mmpp] = []
    for item in scenario.demand.modulations:
        if isinstance(item, Drift):
            drift = np.array([(item.zipf_exponent, item.period_s)])
            drift_member = _members(scenario, item.families)
        elif isinstance(item, Hotspot):
            hotspot = np.array(
                [(item.concentration, item.sigma_km, item.orbit_radius_km, item.period_s)]
            )
            hotspot_member = _members(scenario, item.families)
        elif isinstance(item, FlashCrowd):
            flash = np.array([(item.interval_s, item.duration_s, item.magnitude, item.sigma_km)])
            flash_member = _members(scenario, item.families)
        elif isinstance(item, Mmpp):
            bursts.append(item)
    return _Modulations(
        diurnal=diurnal,
        drift=drift,
        drift_member=drift_member,
        hotspot=hotspot,
        hotspot_order=np.where(hotspot_member, np.cumsum(hotspot_member) - 1, -1),
        flash=flash,
        flash_member=flash_member,
        mmpp=np.array(
            [(item.calm_level, item.burst_level, item.calm_s, item.burst_s) for item in bursts]
        ).reshape(-1, 4),
        mmpp_member=np.array(
            [_members(scenario, item.families) for item in bursts], dtype=np.bool_
        ).reshape(-1, num_families),
    )


class _Popularity(NamedTuple):
    """Long-run shares of the requests."""

    type_family: NDArray[np.int64]  # [Q]
    family_base_share: NDArray[np.float64]  # [F] without changes
    family_share: NDArray[np.float64]  # [F]
    type_share: NDArray[np.float64]  # [Q]
    type_share_in_family: NDArray[np.float64]  # [Q]
    relative_rate: float  # of all requests, over the rate without changes


def _popularity(scenario: "Scenario", changes: _Modulations) -> _Popularity:
    types, families = scenario.request_types, scenario.family_names
    type_family = np.array([families.index(item.family) for item in types], dtype=np.int64)
    share = np.array([item.share for item in types])
    share = share / share.sum()
    base_share = np.zeros(len(families))
    np.add.at(base_share, type_family, share)
    family_share, relative_rate = _long_run_family_share(
        base_share, changes.drift_member, changes.flash, changes.flash_member
    )
    in_family = share / base_share[type_family]
    return _Popularity(
        type_family,
        base_share,
        family_share,
        family_share[type_family] * in_family,
        in_family,
        relative_rate,
    )


def compile_world(scenario: "Scenario") -> World:
    """Return the plain arrays of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Any valid scenario.

    Returns
    -------
    World
        Arrays of float64, int64 or bool. They stay writable: pickling forgets the flag, and Numba
        would compile every kernel again for the other type.
    """
    catalogue, types = scenario.catalogue, scenario.request_types
    changes = _modulations(scenario)
    popularity = _popularity(scenario, changes)
    prefill = scenario.prefill_s(catalogue.hit_tokens)
    occupancy = prefill + scenario.decode_occupancy_s
    base_rate = scenario.request_intensity * scenario.region.area_km2
    routing = scenario.routing
    wait = routing.advertised_wait if isinstance(routing, LoadAwareRouting) else "backlog"

    return World(
        width_km=scenario.region.width_km,
        height_km=scenario.region.height_km,
        periodic=scenario.region.periodic,
        max_nodes=scenario.max_nodes,
        mean_nodes=scenario.mean_nodes,
        radio_xi=scenario.radio.xi,
        radio_alpha=scenario.radio.alpha,
        radio_base_s=scenario.radio.base_s,
        num_profiles=len(scenario.profiles),
        num_types=len(types),
        num_families=len(scenario.family_names),
        num_holdings=len(catalogue.holdings),
        type_family=popularity.type_family,
        type_share=popularity.type_share,
        type_share_in_family=popularity.type_share_in_family,
        type_target_s=scenario.ttft_target_s.copy(),
        type_xi_factor=np.array([item.xi_factor for item in types]),
        family_share=popularity.family_share,
        family_base_share=popularity.family_base_share,
        input_tokens=np.array([item.input_tokens for item in types], dtype=np.float64),
        output_tokens=np.array([item.output_tokens for item in types], dtype=np.float64),
        decode_occupancy_s=scenario.decode_occupancy_s.copy(),
        cold_prefill_s=scenario.prefill_s(np.zeros(len(types))),
        hit_tokens=catalogue.hit_tokens.copy(),
        prefill_s=prefill,
        min_prefill_s=prefill.min(axis=0),
        meet=catalogue.meet.copy(),
        move_bytes=_move_bytes(scenario),
        holding_bytes=catalogue.holding_bytes.copy(),
        slots=np.array(scenario.concurrency, dtype=np.int64),
        slot_service_rate=1.0 / (occupancy @ popularity.type_share),
        usable_bytes=scenario.hardware.usable_bytes,
        runtime_bytes_per_sequence=scenario.runtime_bytes_per_sequence,
        initial_mix=scenario.initial_mix.copy(),
        budget_bytes_per_s=scenario.migration.budget_bytes_per_s,
        burst_bytes=scenario.migration.burst_bytes,
        backhaul_bytes_per_s=scenario.backhaul.rate_bytes_per_s,
        telemetry_period_s=scenario.telemetry.period_s,
        telemetry_ewma_s=scenario.telemetry.ewma_s,
        predict_on_route=scenario.telemetry.predict_on_route,
        router_kind=ROUTER_KINDS.index(routing.kind),
        wait_kind=WAIT_KINDS.index(wait),
        service_kind=SERVICE_KINDS.index(scenario.service.kind),
        service_sigma=(
            scenario.service.sigma if isinstance(scenario.service, LognormalService) else 0.0
        ),
        output_geometric=isinstance(scenario.service, TokensService | EngineService)
        and scenario.service.output == "geometric",
        base_rate_per_s=base_rate,
        mean_rate_per_s=base_rate * popularity.relative_rate,
        diurnal=changes.diurnal,
        drift=changes.drift,
        drift_member=changes.drift_member,
        hotspot=changes.hotspot,
        hotspot_order=changes.hotspot_order,
        flash=changes.flash,
        flash_member=changes.flash_member,
        mmpp=changes.mmpp,
        mmpp_member=changes.mmpp_member,
        replay=replay_table(scenario),
        epoch_s=scenario.control.epoch_s,
        warmup_s=scenario.initial.warmup_s,
        layout=place_law(scenario),
        classes=class_tables(scenario, popularity.type_share),
        fingerprint=_fingerprint(scenario),
    )
