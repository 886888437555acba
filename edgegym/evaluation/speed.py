"""How fast this installation is: the simulator, the environment, the analytic model, the start."""

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edgegym.world.presets import preset
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    from edgegym.analytic import TieredNetwork

FLEET_SIZES = (25, 200, 20_000)
"""Nodes of the measured fleets, all under the same load per node."""

FULL_SIZES = (200, 20_000)
"""The same, simulated by the loop with everything."""

_TWIN_SIZES = (200, 20_000)
_FEATURE_NODES = 200
_MMC_SLOTS = 9
_MMC_LOAD = 0.82
_GIB = 2**30

_IMPORT = "import time; t = time.perf_counter(); import edgegym; print(time.perf_counter() - t)"
_FIRST_STEP = """
import gymnasium as gym
env = gym.make("edgegym:EdgeGym/Placement-v0", scenario="moving-hotspot")
env.reset(seed=0)
env.step(env.action_space.n - 1)
"""


@dataclass(frozen=True)
class Effort:
    """How long to measure: medians of ``repeats`` runs."""

    repeats: int
    """Runs of each measurement."""
    requests: int
    """Requests of a run of the simulator."""
    episodes: int
    """Episodes of each environment."""
    solves: int
    """Solutions of the equilibrium."""
    networks: int
    """Random networks of twelve tiers, for the equilibrium and for quadrature."""


FULL = Effort(repeats=5, requests=1_000_000, episodes=10, solves=200, networks=6)
QUICK = Effort(repeats=3, requests=200_000, episodes=3, solves=50, networks=6)


@dataclass(frozen=True)
class Speed:
    """The measurements, on one core where not said otherwise.

    A slower or busy machine gives smaller rates.
    """

    mmc_requests_per_s: float
    """One node with nine slots at 82 % load (M/M/9)."""
    fleet_requests_per_s: dict[str, float]
    """By number of nodes, eight profiles and a load-aware router."""
    full_requests_per_s: dict[str, float]
    """The same fleets by the loop that can do everything, in which nothing more is used."""
    engine_requests_per_s: float
    """200 nodes whose engines prefill one prompt at a time."""
    lru_requests_per_s: float
    """200 nodes with radix caches."""
    cpp_ratio: float | None
    """Rate relative to the C++ twin of the event loop, the smaller ratio of those at 200 and at
    20,000 nodes; None where there is no ``g++``."""
    peer_requests_per_s: dict[str, float | None]
    """M/M/9 in ciw, SimPy and plain Python with a heap; None for what is not installed."""
    env_steps_per_s: float
    """Steps of ``moving-hotspot`` with random legal moves, resets included."""
    env_requests_per_step: float
    """Requests that such a step serves."""
    vector_steps_per_s: float
    """The same of 64 environments as one, on the available cores, at most 4."""
    mobile_env_steps_per_s: float | None
    """Steps of mobile-env's ``mobile-medium-central-v0`` with random actions, resets included;
    None where mobile-env is not installed."""
    mobile_env_ratio: float | None
    """Steps of our environment over those of mobile-env, of episodes played in turn. The two do
    different work: see :func:`edgegym.evaluation.env_speed.measure_env_speed`."""
    mobile_env_vector_ratio: float | None
    """The same of 64 environments as one."""
    training_steps_per_s: float | None
    """The same of MaskablePPO that learns from 64 of it, updates included, on the available cores,
    at most 4; None without the extra ``sb3``."""
    equilibrium_ms: float
    """Load-association equilibrium of three tiers and two types."""
    equilibrium_12x8_ms: float
    """The same of twelve tiers and eight types, over random networks and loads up to 90 %."""
    equilibrium_40x40_ms: float
    """The same of forty tiers and forty types."""
    quad_ratio: float
    """Time of association, mean distance and coverage by ``scipy.integrate.quad`` over that of
    ``evaluate``, which works out these and more; of twelve tiers and eight types."""
    import_s: float
    """``import edgegym`` in a new process."""
    first_step_s: float
    """A new process, from its start to the end of its first step, with compiled kernels."""

    def to_json(self) -> str:
        """Return the measurements as one JSON object."""
        return json.dumps(asdict(self), indent=2, allow_nan=False)


def measure_speed(effort: Effort, report: Callable[[str], None] = lambda _: None) -> Speed:
    """Measure this installation; the first time, kernels are compiled before the clock starts.

    Parameters
    ----------
    effort : Effort
        How long to measure.
    report : callable
        Called with a few words before each measurement.

    Returns
    -------
    Speed
        Medians.
    """
    from edgegym.evaluation.env_speed import measure_env_speed
    from edgegym.evaluation.learning_speed import training_steps_per_s
    from edgegym.evaluation.peers import peer_requests_per_s
    from edgegym.evaluation.twin import cpp_ratio

    report("one node")
    mmc = _requests_per_s(mmc_scenario(), effort)
    fleets = {}
    for nodes in FLEET_SIZES:
        report(f"fleet of {nodes} nodes")
        fleets[str(nodes)] = _requests_per_s(fleet_scenario(nodes), effort)
    full = {}
    for nodes in FULL_SIZES:
        report(f"fleet of {nodes} nodes, full loop")
        full[str(nodes)] = _requests_per_s(fleet_scenario(nodes), effort, full=True)
    report("engines")
    engine = _requests_per_s(engine_scenario(_FEATURE_NODES), effort)
    report("radix caches")
    lru = _requests_per_s(lru_scenario(_FEATURE_NODES), effort)
    report("C++ twin")
    ratio = cpp_ratio([fleet_scenario(n) for n in _TWIN_SIZES], effort.requests, effort.repeats)
    report("other simulators")
    peers = peer_requests_per_s(
        _MMC_LOAD * _MMC_SLOTS, 1.0, max(effort.requests // 50, 100), effort.repeats
    )
    report("environments, mobile-env's too")
    envs = measure_env_speed(effort.episodes)
    report("training")
    learned_steps_per_s = training_steps_per_s(4 * effort.episodes)
    report("equilibrium")
    network = preset("paper").tiered_network()
    equilibrium_ms = _equilibrium_ms([network], effort.solves)
    medium = [speed_network(12, 8, seed) for seed in range(effort.networks)]
    large = [speed_network(40, 40, seed) for seed in range(2)]
    equilibrium_12x8_ms = _equilibrium_ms(medium, max(effort.solves // 20, 1))
    equilibrium_40x40_ms = _equilibrium_ms(large, max(effort.solves // 100, 1))
    report("quadrature")
    quad_ratio = _quad_ratio(medium, effort)
    report("import")
    import_s = statistics.median(float(_python(_IMPORT)) for _ in range(effort.repeats))
    report("first step of a new process")
    return Speed(
        mmc_requests_per_s=mmc,
        fleet_requests_per_s=fleets,
        full_requests_per_s=full,
        engine_requests_per_s=engine,
        lru_requests_per_s=lru,
        cpp_ratio=ratio,
        peer_requests_per_s=peers,
        env_steps_per_s=envs.steps_per_s,
        env_requests_per_step=envs.requests_per_step,
        vector_steps_per_s=envs.vector_steps_per_s,
        mobile_env_steps_per_s=envs.mobile_steps_per_s,
        mobile_env_ratio=envs.ratio,
        mobile_env_vector_ratio=envs.vector_ratio,
        training_steps_per_s=learned_steps_per_s,
        equilibrium_ms=equilibrium_ms,
        equilibrium_12x8_ms=equilibrium_12x8_ms,
        equilibrium_40x40_ms=equilibrium_40x40_ms,
        quad_ratio=quad_ratio,
        import_s=import_s,
        first_step_s=_first_step_s(effort),
    )


def mmc_scenario() -> Scenario:
    """Return one node with nine slots at 82 % load, exponential service and one request type."""
    base = preset("paper")
    prefill = base.hardware.prefill
    tokens = 1024
    occupancy_s = prefill.linear_s * tokens + prefill.quadratic_s * tokens**2 + 0.58
    document = base.document() | {
        "name": "one-node",
        "region": {"width_km": 1.0, "height_km": 1.0},
        "nodes": {"count": 1},
        "forest": [],
        "request_types": [{"name": "only", "input_tokens": tokens, "family": "only", "share": 1.0}],
        "profiles": [{"name": "none"}],
        "initial": {"mix": {"none": 1.0}},
        "routing": {"kind": "nearest"},
        "demand": {"request_intensity": _MMC_LOAD * _MMC_SLOTS / occupancy_s},
    }
    document["hardware"] = document["hardware"] | {"memory_bytes": _MMC_SLOTS * _GIB}
    return Scenario(**document)


def fleet_scenario(nodes: int) -> Scenario:
    """Return ``stationary`` with another number of nodes at the same density and load per node."""
    side_km = math.sqrt(nodes)
    return preset("stationary").with_overrides(
        {"nodes.count": nodes, "region.width_km": side_km, "region.height_km": side_km}
    )


def engine_scenario(nodes: int) -> Scenario:
    """Return :func:`fleet_scenario` with an engine at each node.

    One server prefills all prompts of a node: it is ten times as fast, or else it were overloaded.
    """
    base = fleet_scenario(nodes)
    prefill = base.hardware.prefill
    return base.with_overrides(
        {
            "service": {"kind": "engine"},
            "hardware.prefill.linear_s": 0.1 * prefill.linear_s,
            "hardware.prefill.quadratic_s": 0.1 * prefill.quadratic_s,
            "hardware.decode": {"kind": "tpot", "tpot_s": {1: 0.029}},
        }
    )


def lru_scenario(nodes: int) -> Scenario:
    """Return :func:`fleet_scenario` with radix caches instead of profiles."""
    return fleet_scenario(nodes).with_overrides(
        {"cache": {"kind": "lru", "budget_bytes": 7 * _GIB}}
    )


def _requests_per_s(scenario: Scenario, effort: Effort, full: bool = False) -> float:
    """Return the median rate of runs of one fleet, after a run that fills its queues."""
    from edgegym.simulator import Fleet

    rate_per_s = scenario.compile().base_rate_per_s
    fleet = Fleet(scenario, seed=0, tier_wait_s=None, full=full)
    fleet.advance(5.0)
    rates = []
    for _ in range(effort.repeats):
        begin = time.perf_counter()
        window = fleet.advance(effort.requests / rate_per_s)
        rates.append(window.arrivals / (time.perf_counter() - begin))
    return statistics.median(rates)


def speed_network(tiers: int, types: int, seed: int) -> "TieredNetwork":
    """Return a random network at 50, 70 or 90 % (by seed) of its critical load."""
    from edgegym.analytic import TieredNetwork, critical_intensity

    rng = np.random.default_rng([tiers, types, seed])
    lengths = np.exp(rng.uniform(np.log(200.0), np.log(16_000.0), types))
    hits = rng.uniform(0.0, 0.95, (tiers, types)) * (rng.random((tiers, types)) < 0.7)
    hits[0] = 0.0
    network = TieredNetwork(
        density_per_km2=1.0,
        request_intensity=1.0,
        profile_probabilities=rng.dirichlet(np.full(tiers, 2.0)),
        concurrency=rng.integers(2, 64, tiers),
        input_tokens=lengths,
        hit_tokens=np.floor(hits * (lengths - 1.0)),
        type_probabilities=rng.dirichlet(np.ones(types)),
        prefill_linear_s=2.5e-4,
        prefill_quadratic_s=1.4e-8,
        decode_occupancy_s=rng.uniform(0.2, 2.0, types),
        radio_xi=0.36,
        radio_alpha=(2.0, 2.5, 3.0, 3.5)[seed % 4],
        radio_base_s=0.0,
    )
    share = (0.5, 0.7, 0.9)[seed % 3]
    return replace(network, request_intensity=share * critical_intensity(network))


def _equilibrium_ms(networks: "list[TieredNetwork]", solves: int) -> float:
    """Return the median over networks of the median time to solve one."""
    from edgegym.analytic import solve_equilibrium

    medians = []
    for network in networks:
        solve_equilibrium(network)
        medians.append(_median_s(lambda network=network: solve_equilibrium(network), solves))
    return 1e3 * statistics.median(medians)


def _quad_ratio(networks: "list[TieredNetwork]", effort: Effort) -> float:
    """Return how much longer general-purpose quadrature takes, both timed in turn."""
    from edgegym.analytic import evaluate, solve_equilibrium
    from edgegym.evaluation.quad_reference import quad_values

    ratios = []
    for network in networks:
        equilibrium = solve_equilibrium(network)

        def ours(network=network, equilibrium=equilibrium) -> object:
            return evaluate(network, equilibrium, ttft_target_s=0.8)

        def theirs(network=network, equilibrium=equilibrium) -> object:
            return quad_values(network, equilibrium, ttft_target_s=0.8)

        ours()
        ratios.append(_median_s(theirs, 1) / _median_s(ours, effort.repeats))
    return statistics.median(ratios)


def _median_s(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _first_step_s(effort: Effort) -> float:
    _python(_FIRST_STEP)
    times = []
    for _ in range(effort.repeats):
        begin = time.perf_counter()
        _python(_FIRST_STEP)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _python(code: str) -> str:
    """Run code in a new interpreter and return what it prints."""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return finished.stdout
