"""Everything constant that the full loop needs to know of a scenario."""

import math
from typing import NamedTuple

import numpy as np

from edgegym.simulator.full.engine_data import EngineParams, engine_params
from edgegym.simulator.full.expiry import ExpiryParams, expiry_params
from edgegym.simulator.full.fetch import FetchParams, fetch_params
from edgegym.simulator.full.groups import FaultParams, LifeParams, OriginParams
from edgegym.simulator.full.holding import ENGINE
from edgegym.simulator.full.lru_data import LruParams, lru_params, no_lru_params
from edgegym.simulator.full.routing_groups import RoutingParams, routing_params
from edgegym.simulator.full.service import LINEAR_S, QUADRATIC_S
from edgegym.simulator.full.sharing import LinkParams, link_params
from edgegym.simulator.full.tokens import tpot_table
from edgegym.simulator.full.user_router import UserRouter
from edgegym.simulator.state import Floats, Ints
from edgegym.world.compiled import World
from edgegym.world.hardware import OccupancyDecode
from edgegym.world.routing import Failures
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache

_MOST_DISPATCHES = 16


class FullParams(NamedTuple):
    """Parameters of the full loop, by part."""

    life: LifeParams
    origin: OriginParams
    faults: FaultParams
    routing: RoutingParams
    engine: EngineParams
    link: LinkParams
    fetch: FetchParams
    lru: LruParams
    expiry: ExpiryParams
    hit_depth: Ints  # [C * H, Q]
    path_length: Ints  # [Q]
    path_tokens: Ints  # [Q]


def full_params(scenario: Scenario, world: World, router: UserRouter | None = None) -> FullParams:
    """Return the parameters of the full loop.

    Parameters
    ----------
    scenario : Scenario
        Any valid scenario.
    world : World
        The same, compiled.
    router : UserRouter, optional
        Takes the place of the scenario's routing rule.
    """
    lru = isinstance(scenario.cache, LruCache)
    forest = scenario.catalogue.forest
    paths = [forest.path(item.path) for item in scenario.request_types]
    return FullParams(
        life=_life_params(scenario, world),
        origin=_origin_params(scenario, world),
        faults=_fault_params(scenario, world),
        routing=routing_params(scenario, world, router),
        engine=engine_params(scenario, world),
        link=link_params(scenario),
        fetch=fetch_params(scenario),
        lru=lru_params(scenario) if lru else no_lru_params(),
        expiry=expiry_params(scenario),
        hit_depth=_hit_depth(scenario, world),
        path_length=np.array([len(path) for path in paths], dtype=np.int64),
        path_tokens=np.array([forest.hit_depth(path, path) for path in paths], dtype=np.int64),
    )


def _hit_depth(scenario: Scenario, world: World) -> Ints:
    """Return how many vertices of each type's path a row holds, ``[C * H, Q]``."""
    forest = scenario.catalogue.forest
    paths = [forest.path(item.path) for item in scenario.request_types]
    depth = np.array(
        [[len(held & path) for path in paths] for held in scenario.catalogue.holdings],
        dtype=np.int64,
    )
    return np.tile(depth, (len(world.classes.share), 1))


def _life_params(scenario: Scenario, world: World) -> LifeParams:
    classes = [item.hardware for item in scenario.node_classes]
    tables = world.classes
    most = int(max(tables.slots.max(), 1))
    origin = scenario.origin
    far = np.zeros((1, tables.coefficients.shape[1]))
    if origin is not None:
        far[0, [LINEAR_S, QUADRATIC_S]] = origin.prefill_linear_s, origin.prefill_quadratic_s
    by_tokens = [gpu is not None and not isinstance(gpu.decode, OccupancyDecode) for gpu in classes]
    # A class without GPU has no slots: which figures stand in its row does not matter.
    gpus = [scenario.hardware if gpu is None else gpu for gpu in classes]
    return LifeParams(
        service_kind=world.service_kind,
        has_engine=world.service_kind == ENGINE,
        lru=isinstance(scenario.cache, LruCache),
        num_nodes=world.max_nodes,
        coefficients=np.concatenate([tables.coefficients, far]),
        occupancy_s=tables.occupancy_s,
        by_tokens=np.array(by_tokens, dtype=np.int64),
        token_s=tpot_table(gpus, most),
        most_active=most,
        catalogue_s=float(scenario.telemetry.catalogue_period_s),
        most_dispatches=_MOST_DISPATCHES,
    )


def _origin_params(scenario: Scenario, world: World) -> OriginParams:
    origin = scenario.origin
    forest = scenario.catalogue.forest
    path_tokens = np.array(
        [
            min(forest.hit_depth(path, path), item.input_tokens - 1)
            for item in scenario.request_types
            for path in [forest.path(item.path)]
        ],
        dtype=np.float64,
    )
    if origin is None:
        return OriginParams(
            exists=False,
            rtt_s=math.inf,
            handshake_s=0.0,
            new_connection_share=0.0,
            slots=0,
            tpot_s=0.0,
            affinity=0.0,
            output_cap_tokens=np.iinfo(np.int64).max,
            path_tokens=path_tokens,
            request_s=math.inf,
        )
    cap = origin.output_cap_tokens
    new_tokens = np.stack([world.input_tokens - path_tokens, world.input_tokens])
    prefill_s = origin.prefill_linear_s * new_tokens + origin.prefill_quadratic_s * new_tokens**2
    mean_prefill_s = origin.affinity * prefill_s[0] + (1.0 - origin.affinity) * prefill_s[1]
    decode_s = np.maximum(world.output_tokens - 1.0, 0.0) * origin.tpot_s
    occupancy_s = float((mean_prefill_s + decode_s) @ world.type_share)
    return OriginParams(
        exists=True,
        rtt_s=origin.rtt_s,
        handshake_s=origin.handshakes * origin.rtt_s,
        new_connection_share=origin.new_connection_share,
        slots=origin.slots,
        tpot_s=origin.tpot_s,
        affinity=origin.affinity,
        output_cap_tokens=np.iinfo(np.int64).max if cap is None else cap,
        path_tokens=path_tokens,
        request_s=occupancy_s / origin.slots,
    )


def _fault_params(scenario: Scenario, world: World) -> FaultParams:
    failures = scenario.failures or Failures()
    spells = [failures.nodes, failures.origin, failures.backhaul]
    up = [math.inf if spell is None else spell.mean_up_s for spell in spells]
    down = [math.inf if spell is None else spell.mean_down_s for spell in spells]
    first = {"node": 0, "origin": world.max_nodes, "backhaul": world.max_nodes + 1}
    outages: Floats = np.array(
        [
            (first[item.what] + (item.node or 0), item.begin_s, item.end_s)
            for item in failures.outages
        ]
    ).reshape(-1, 3)
    empty = [index for index, held in enumerate(scenario.catalogue.profile_sets) if not held]
    return FaultParams(
        mean_up_s=np.array(up),
        mean_down_s=np.array(down),
        outages=outages,
        empty_profile=empty[0] if empty else -1,
    )
