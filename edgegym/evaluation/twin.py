"""The simulator's twin in C++: the same requests give the same numbers, and how fast it is."""

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator import Fleet
from edgegym.simulator.columns import NUM_REQUESTS, REQUEST_S_BITS, SLOTS
from edgegym.simulator.search import grid_shape
from edgegym.simulator.state import allocate, pages_per_s, to_ticks
from edgegym.simulator.stream import USUAL_BLOCK_CAPACITY, RequestStream
from edgegym.simulator.window import WindowStats
from edgegym.world.compiled import ROUTER_KINDS, SERVICE_KINDS, WAIT_KINDS, World
from edgegym.world.scenario import Scenario

# No fused multiply-add: it would round differently.
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-std=c++17")
_WARM_UP_S = 5.0


def build_twin(folder: Path) -> Path | None:
    """Compile the twin.

    Parameters
    ----------
    folder : pathlib.Path
        Where the program goes.

    Returns
    -------
    pathlib.Path or None
        The program; None where there is no ``g++``.

    Raises
    ------
    RuntimeError
        If ``g++`` does not compile it; the message is the compiler's.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    program = folder / "twin"
    source = Path(__file__).with_name("twin.cpp")
    finished = subprocess.run(
        [compiler, *_FLAGS, "-o", str(program), str(source)], capture_output=True, text=True
    )
    if finished.returncode != 0:
        raise RuntimeError(f"g++ does not compile {source}:\n{finished.stderr}")
    return program


def twin_window(program: Path, scenario: Scenario, seed: int, seconds: float) -> WindowStats:
    """Let the twin serve the first requests of an episode.

    Parameters
    ----------
    program : pathlib.Path
        From :func:`build_twin`.
    scenario : Scenario
        Load-aware routing by live backlogs, exponential service, no modulations, 80 nodes or more.
    seed : int
        Seed of the episode.
    seconds : float
        How long.

    Returns
    -------
    WindowStats
        What ``Fleet(scenario, seed).advance(seconds)`` returns.

    Raises
    ------
    ValueError
        If the twin does not know such a world.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world"
        requests = _requests(scenario, seed, seconds)
        _write_world(path, scenario, seed, requests, seconds)
        counted = json.loads(_run(program, str(path)))
    num_nodes, num_families = len(counted["busy_ticks"]), scenario.compile().num_families
    shapes = {"families": (3, num_families), "nearest_demand": (num_nodes, num_families)}
    # It is the twin of the fast loop, which counts nothing else.
    arrays = {
        name: np.array(values, dtype=np.int64).reshape(shapes.get(name, -1))
        for name, values in counted.items()
        if name in WindowStats.__dataclass_fields__
    }
    return WindowStats(ticks=to_ticks(seconds), **arrays)


def cpp_ratio(scenarios: Sequence[Scenario], requests: int, repeats: int) -> float | None:
    """Return the simulator's speed relative to the twin's.

    Both draw their requests themselves, start from the same nodes, and are measured in turns, in
    processor time.

    Parameters
    ----------
    scenarios : sequence of Scenario
        Worlds that the twin knows.
    requests, repeats : int
        Requests of a run, and how many runs of each.

    Returns
    -------
    float or None
        The smallest ratio of median rates among the scenarios; None where there is no ``g++``.

    Raises
    ------
    ValueError
        If the twin does not know one of the worlds.
    RuntimeError
        If the twin does not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = build_twin(Path(folder))
        if program is None:
            return None
        ratios = []
        for scenario in scenarios:
            path = Path(folder) / "world"
            _write_world(path, scenario, 0, np.empty((5, 0)), 0.0)
            fleet = Fleet(scenario, seed=0)
            fleet.advance(_WARM_UP_S)
            window_s = requests / fleet.world.base_rate_per_s
            ours, theirs = [], []
            for _ in range(repeats):
                theirs.append(float(_run(program, str(path), str(requests), "1")))
                begin = time.process_time()
                arrivals = fleet.advance(window_s).arrivals
                ours.append(arrivals / (time.process_time() - begin))
            ratios.append(statistics.median(ours) / statistics.median(theirs))
    return min(ratios)


def _run(program: Path, *arguments: str) -> str:
    finished = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, check=True
    )
    return finished.stdout


def _check_known(world: World) -> None:
    known = {
        "routing.kind": ROUTER_KINDS[world.router_kind] == "load_aware",
        "routing.advertised_wait": WAIT_KINDS[world.wait_kind] == "backlog",
        "telemetry.period_s": world.telemetry_period_s == 0.0,
        "service.kind": SERVICE_KINDS[world.service_kind] == "exponential",
        "demand.modulations": not any(map(len, (world.diurnal, world.drift, world.flash)))
        and not any(map(len, (world.hotspot, world.mmpp, world.replay.begin_s))),
        "nodes.count": grid_shape(world) != (0, 0),
    }
    for field, fits in known.items():
        if not fits:
            raise ValueError(f"{field}: the C++ twin only knows the worlds of the speed test")


def _requests(scenario: Scenario, seed: int, seconds: float) -> NDArray[np.float64]:
    """Return time, x, y, mark and type of the requests up to a time, ``[5, R]``."""
    world = scenario.compile()
    stream, state = RequestStream(world, seed), allocate(world, USUAL_BLOCK_CAPACITY)
    blocks = []
    while state.stream_end_s[0] <= seconds:
        state = stream.fill(state, 0)
        columns = (
            state.request_time_s,
            state.request_x_km,
            state.request_y_km,
            state.request_mark,
            state.request_type,
        )
        loaded = int(state.scalars[0, NUM_REQUESTS])
        blocks.append(np.array([column[0, :loaded] for column in columns]))
    requests = np.concatenate(blocks, axis=1)
    return requests[:, requests[0] <= seconds]


def _write_world(
    path: Path, scenario: Scenario, seed: int, requests: NDArray[np.float64], seconds: float
) -> None:
    """Write what the twin reads: doubles, in its order."""
    world = scenario.compile()
    _check_known(world)
    state = Fleet(scenario, seed).state
    count = int(state.node_count[0])
    work = state.node_work[0, :count]
    head = (
        world.width_km,
        world.height_km,
        world.periodic,
        world.radio_xi,
        world.radio_alpha,
        world.radio_base_s,
        pages_per_s(world),
        world.base_rate_per_s,
        seconds,
        count,
        world.num_types,
        world.num_holdings,
        world.num_families,
        *state.cells[0],
        state.page_head.shape[1],
        requests.shape[1],
    )
    parts = (
        np.array(head, dtype=np.float64),
        state.node_x[0, :count],
        state.node_y[0, :count],
        state.holding[0, :count],
        work[:, SLOTS],
        np.ascontiguousarray(work[:, REQUEST_S_BITS]).view(np.float64),
        world.prefill_s,
        world.min_prefill_s,
        world.decode_occupancy_s,
        world.type_target_s,
        world.cold_prefill_s,
        world.output_tokens,
        world.hit_tokens,
        world.type_family,
        world.type_share,
        requests,
    )
    np.concatenate([np.ravel(part).astype(np.float64) for part in parts]).tofile(path)
