"""Small fleets whose prefixes must come over a scarce link, under each fetch controller."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator import Fleet
from edgegym.simulator.full.flows import FLOW_TICKS
from edgegym.simulator.full.sharing import link_params
from edgegym.simulator.full.transfers import imposed_delays_s
from edgegym.simulator.records import ArraySink, RecordTable
from edgegym.simulator.state import TICKS_PER_S
from edgegym.world.scenario import Scenario

CONTENDERS: dict[str, dict[str, Any]] = {
    "never": {"controller": "never"},
    "always": {"controller": "always"},
    "independent": {"controller": "independent"},
    "joint": {"controller": "joint"},
    "joint, half the target": {"controller": "joint", "budget_share": 0.5},
}
"""The block ``fetch`` of each contender."""

_DOCUMENTS = 4
_NODES = 16
_PREFIX_TOKENS, _NEW_TOKENS, _OUTPUT_TOKENS = 8192, 512, 128
_LINK_BYTES_PER_S = 25e9 / 8
_TARGET_S = 1.5
_ADVERTISE_S = 10.0
_WARM_UP_S = 60.0
_GRACE_S = 5.0


@dataclass(frozen=True)
class Length:
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
    """Prefill that a fetch spares its own request, less its stall; NaN without a fetch, or where
    less than half of them end."""
    imposed_s: float
    """By how much later the transfers end that are there when it begins, added up; NaN likewise."""


def fetch_scenario(contender: str, rate_per_s: float) -> Scenario:
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
            "fetch": {"advertise_s": _ADVERTISE_S} | CONTENDERS[contender],
            "service": {"kind": "deterministic"},
            "initial": {"mix": {f"holds_{name}": 1.0 / _DOCUMENTS for name in names}},
            "objective": {"ttft_target_s": _TARGET_S},
        }
    )


def filling_rate_per_s() -> float:
    """Return the rate at which the prefixes that nearest nodes lack would fill the link."""
    return 1.0 / (alone_s() * (1.0 - 1.0 / _DOCUMENTS))


def alone_s() -> float:
    """Return how long one prefix takes alone on the link."""
    world = fetch_scenario("always", 1.0)
    return float(world.state_bytes[0]) / world.backhaul.rate_bytes_per_s


def spared_s() -> float:
    """Return the prefill that a fetched prefix spares."""
    world = fetch_scenario("always", 1.0)
    cold, warm = world.prefill_s(np.array([[0.0], [float(_PREFIX_TOKENS)]]))[:, 0]
    return float(cold - warm)


def run(contender: str, rate_per_s: float, length: Length) -> Outcome:
    """Simulate fleets under one controller.

    Parameters
    ----------
    contender : str
        One of ``CONTENDERS``.
    rate_per_s : float
        Requests per second of the whole fleet.
    length : Length
        How long.
    """
    results = np.array(list(_runs(fetch_scenario(contender, rate_per_s), length)))
    means = results.mean(axis=0)
    error = results[:, 0].std(ddof=1) / np.sqrt(len(results)) if len(results) > 1 else 0.0
    coverage, *rest = (float(value) for value in means)
    return Outcome(coverage, float(error), *rest)


def _runs(scenario: Scenario, length: Length) -> Iterator[list[float]]:
    for seed in range(length.seeds):
        sink = ArraySink()
        fleet = Fleet(scenario, seed=seed, records=sink)
        fleet.advance(_WARM_UP_S)
        before = _flow_ticks(fleet)
        window = fleet.advance(length.counted_s)
        flows = (_flow_ticks(fleet) - before) / (length.counted_s * TICKS_PER_S)
        # Those that came last get as long as the target allows, and a little more.
        fleet.advance(_GRACE_S)
        rows = sink.table().by_request()
        arrival_s = rows["arrival_s"]
        counted = rows.where((arrival_s > _WARM_UP_S) & (arrival_s <= window_end(length)))
        yield [
            window.coverage,
            _median(counted["ttft_s"], window.arrivals),
            window.fetches / window.arrivals,
            window.link_utilization,
            flows,
            *_worth(rows, counted, window.fetches, scenario, length),
        ]


def window_end(length: Length) -> float:
    """Return when the counted time ends."""
    return _WARM_UP_S + length.counted_s


def _flow_ticks(fleet: Fleet) -> int:
    full = fleet.state.full
    assert full is not None
    return full.link.num.item(0, FLOW_TICKS)


def _median(values: NDArray[np.float64], count: int) -> float:
    """Return the median of ``count`` numbers of which those not given are larger."""
    ordered = np.sort(values[np.isfinite(values)])
    return float(ordered[count // 2]) if count // 2 < len(ordered) else math.inf


def _worth(
    rows: RecordTable, counted: RecordTable, fetches: int, scenario: Scenario, length: Length
) -> tuple[float, float]:
    """Return what fetches spare their own requests and cost others, means in seconds.

    NaN where less than half of them have ended, or there was none.
    """
    own = counted.where(counted["fetched_bytes"] > 0)
    if own.num_rows < max(0.5 * fetches, 1.0):
        return math.nan, math.nan
    saved_s = spared_s() - float(own["stall_s"].mean())
    fetched = rows.where(rows["fetched_bytes"] > 0)
    begin_s = fetched["arrival_s"] + fetched["radio_s"]
    order = np.argsort(begin_s, kind="stable")
    begun = begin_s[order]
    inside = np.flatnonzero((begun > _WARM_UP_S) & (begun <= _WARM_UP_S + length.counted_s))
    some = np.linspace(0, len(inside) - 1, min(length.samples, len(inside))).astype(int)
    imposed_s = imposed_delays_s(
        link_params(scenario),
        begun,
        np.zeros(len(order), dtype=np.int64),
        fetched["fetched_bytes"][order],
        inside[some],
    )
    return saved_s, float(imposed_s.mean()) if len(imposed_s) else 0.0
