"""Small fleets whose prefixes must come over a scarce link, under each fetch controller."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from edgegym.simulator import Fleet
from edgegym.simulator.records import ArraySink
from edgegym.simulator.state import TICKS_PER_S
from edgegym.world.scenario import Scenario

CONTROLLERS = ("never", "always", "independent", "joint")

_DOCUMENTS = 4
_NODES = 16
_PREFIX_TOKENS, _NEW_TOKENS, _OUTPUT_TOKENS = 8192, 512, 128
_LINK_BYTES_PER_S = 25e9 / 8
_TARGET_S = 1.5
_ADVERTISE_S = 10.0
_WARM_UP_S = 60.0


@dataclass(frozen=True)
class Effort:
    """How long the fleets run."""

    counted_s: float
    """Traffic that is counted, after the warm-up."""
    seeds: int
    """Fleets for each point."""
    samples: int
    """Fetches for each fleet whose cost to others is worked out."""


@dataclass(frozen=True)
class Outcome:
    """What came of one controller at one rate; means over the fleets."""

    coverage: float
    coverage_error: float
    """Standard error of the coverage."""
    median_ttft_s: float
    """Infinite if more than half of the requests got no first token in time."""
    fetch_share: float
    """Requests that fetched, of those that began in the counted time."""
    link_busy_share: float
    flows: float
    """Mean number of transfers at once."""
    saved_s: float
    """Prefill that a fetch spares its own request, less its stall; 0 without a fetch."""
    imposed_s: float
    """By how much later the transfers of others end because of it, added up."""


def fetch_scenario(controller: str, rate_per_s: float) -> Scenario:
    """Return the world of the study.

    Sixteen L4 nodes, each with the 8192-token prefix of one of four documents (1 GiB), a request to
    its nearest node, and 25 Gb/s for all.
    """
    names = [f"document_{k}" for k in range(_DOCUMENTS)]
    return Scenario.from_document(
        {
            "name": "fetch-study",
            "region": {"width_km": 4.0, "height_km": 4.0},
            "nodes": {"count": _NODES, "layout": {"kind": "lattice", "jitter": 0.2}},
            "forest": [{"name": name, "depth_tokens": _PREFIX_TOKENS} for name in names],
            "request_types": [
                {
                    "name": f"ask_{name}",
                    "path": name,
                    "input_tokens": _PREFIX_TOKENS + _NEW_TOKENS,
                    "output_tokens": _OUTPUT_TOKENS,
                    "family": name,
                    "share": 1.0 / _DOCUMENTS,
                }
                for name in names
            ],
            "profiles": [{"name": f"holds_{name}", "vertices": [name]} for name in names],
            "hardware": {"preset": "llama-3.1-8b-fp8@l4"},
            "radio": {"xi": 0.005, "alpha": 2.0, "base_s": 0.01},
            "demand": {"rate_per_node": rate_per_s / _NODES},
            "routing": {"kind": "nearest"},
            "migration": {"budget_bytes_per_s": 1.0, "burst_bytes": 1},
            "backhaul": {"rate_bytes_per_s": _LINK_BYTES_PER_S, "sharing": "shared"},
            "fetch": {"controller": controller, "advertise_s": _ADVERTISE_S},
            "service": {"kind": "deterministic"},
            "initial": {"mix": {f"holds_{name}": 1.0 / _DOCUMENTS for name in names}},
            "objective": {"ttft_target_s": _TARGET_S},
        }
    )


def alone_s() -> float:
    """Return how long one prefix takes alone on the link."""
    world = fetch_scenario("always", 1.0)
    return float(world.state_bytes[0]) / world.backhaul.rate_bytes_per_s


def spared_s() -> float:
    """Return the prefill that a fetched prefix spares."""
    world = fetch_scenario("always", 1.0)
    cold, warm = world.prefill_s(np.array([[0.0], [float(_PREFIX_TOKENS)]]))[:, 0]
    return float(cold - warm)


def run(controller: str, rate_per_s: float, effort: Effort) -> Outcome:
    """Simulate fleets under one controller.

    Parameters
    ----------
    controller : str
        One of ``CONTROLLERS``.
    rate_per_s : float
        Requests per second of the whole fleet.
    effort : Effort
        How long.
    """
    results = np.array(list(_runs(fetch_scenario(controller, rate_per_s), effort)))
    means = results.mean(axis=0)
    error = results[:, 0].std(ddof=1) / np.sqrt(len(results)) if len(results) > 1 else 0.0
    coverage, *rest = (float(value) for value in means)
    return Outcome(coverage, float(error), *rest)


def _runs(scenario: Scenario, effort: Effort) -> Iterator[list[float]]:
    for seed in range(effort.seeds):
        sink = ArraySink()
        fleet = Fleet(scenario, seed=seed, records=sink)
        fleet.advance(_WARM_UP_S)
        before = _link_ticks(fleet)
        window = fleet.advance(effort.counted_s)
        busy, flows = (_link_ticks(fleet) - before) / (effort.counted_s * TICKS_PER_S)
        begun = fleet.advance(0.0)
        del begun
        yield [
            window.coverage,
            _median_ttft_s(sink.table(), window.arrivals),
            *_fetches(sink.table(), scenario, effort, window.arrivals, busy, flows),
        ]
