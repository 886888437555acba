"""One model near the users on small GPUs, and far away on fast ones: the worlds of the study."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegym.simulator import Fleet
from edgegym.simulator.records import ArraySink
from edgegym.world.hardware_presets import HardwareFigures, hardware_figures
from edgegym.world.scenario import Scenario

SHORT_TOKENS, LONG_TOKENS, CAP_TOKENS = 8, 400, 64
"""Output tokens of short and of long answers, and the longest that a capped edge serves."""

_EDGE, _ORIGIN = "llama-3.1-8b-fp8@l4", "llama-3.1-8b@h100"
_ORIGIN_GPUS, _ORIGIN_BATCH = 4, 32
_RTT_S, _HANDSHAKES, _NEW_CONNECTIONS = 0.1, 2.0, 0.3
_PREFIX_TOKENS, _NEW_TOKENS = 2048, 64
_LONG_SHARE = 0.25
_NODES = 12
_TARGET_S = 0.25
_WARM_UP_S = 180.0

_CLOSING = {"ewma_s": 1.0, "node": {"close_above": 0.9, "reopen_below": 0.8}}
CONTENDERS: dict[str, dict[str, Any]] = {
    "edge alone": {"origin": None},
    "least predicted TTFT": {},
    "spill to neighbours": {"admission": _CLOSING | {"spill": "next_best"}},
    "spill to the origin": {"admission": _CLOSING | {"spill": "origin"}},
    "output cap": {"origin.output_cap_tokens": CAP_TOKENS},
    "origin alone": {"origin.output_cap_tokens": 1},
}
"""What each contender changes in the scenario."""

PATHS: dict[str, dict[str, Any]] = {
    "edge, prefix held": {"origin": None},
    "edge, prefix not held": {"origin": None, "initial.mix": {"empty": 1.0}},
    "origin": {"origin.output_cap_tokens": 1, "origin.new_connection_share": 0.0},
    "origin, new connection": {"origin.output_cap_tokens": 1, "origin.new_connection_share": 1.0},
}
"""The ways of a request when nobody else is there."""


@dataclass(frozen=True)
class Length:
    """How long the fleets run."""

    counted_s: float
    """Traffic that is counted, after the warm-up."""
    seeds: int
    """Fleets for each point."""


@dataclass(frozen=True)
class Outcome:
    """What came of one contender at one load; means over the fleets."""

    origin_share: float
    """First tokens from the origin, of all."""
    origin_load: float
    """Share of the origin's slot time in use."""
    coverage: float
    coverage_error: float
    """Standard error of the coverage."""
    short_p99_s: float
    """From the request to its last token, short answers; NaN where none came."""
    long_p99_s: float
    """The same, long answers."""


def origin_scenario(changes: dict[str, Any], rate_per_node: float) -> Scenario:
    """Return the world of the study.

    Twelve L4 nodes serve what four H100 at the origin serve too, a quarter of it long answers. All
    prompts share a prefix of 2048 tokens, which the nodes hold.

    Parameters
    ----------
    changes : dict
        One of ``CONTENDERS`` or ``PATHS``.
    rate_per_node : float
        Requests per second and node.
    """
    far = hardware_figures(_ORIGIN)
    scenario = Scenario.from_document(
        {
            "name": "origin-study",
            "region": {"width_km": 4.0, "height_km": 3.0},
            "nodes": {"count": _NODES, "layout": {"kind": "lattice", "jitter": 0.2}},
            "forest": [{"name": "instructions", "depth_tokens": _PREFIX_TOKENS}],
            "request_types": [
                _request_type("short", SHORT_TOKENS, 1.0 - _LONG_SHARE),
                _request_type("long", LONG_TOKENS, _LONG_SHARE),
            ],
            "profiles": [{"name": "empty"}, {"name": "full", "vertices": ["instructions"]}],
            "hardware": {"preset": _EDGE},
            "radio": {"xi": 0.005, "alpha": 2.0, "base_s": 0.01},
            "demand": {"rate_per_node": rate_per_node},
            "routing": {"kind": "load_aware"},
            "migration": {"budget_bytes_per_s": 1.0, "burst_bytes": 1},
            "backhaul": {"rate_bytes_per_s": 1.25e9},
            "service": {"kind": "engine", "schedule": "fifo"},
            "initial": {"mix": {"full": 1.0}},
            "objective": {"ttft_target_s": _TARGET_S},
            "origin": {
                "rtt_s": _RTT_S,
                "handshakes": _HANDSHAKES,
                "new_connection_share": _NEW_CONNECTIONS,
                "slots": _ORIGIN_GPUS * _ORIGIN_BATCH,
                "prefill_linear_s": far.prefill_linear_s,
                "prefill_quadratic_s": far.prefill_quadratic_s,
                "tpot_s": tpot_s(far, _ORIGIN_BATCH),
            },
        }
    )
    return scenario.with_overrides(changes)


def _request_type(name: str, output_tokens: int, share: float) -> dict[str, Any]:
    return {
        "name": name,
        "path": "instructions",
        "input_tokens": _PREFIX_TOKENS + _NEW_TOKENS,
        "output_tokens": output_tokens,
        "family": name,
        "share": share,
    }


def tpot_s(figures: HardwareFigures, batch: int) -> float:
    """Return the time per output token with so many sequences."""
    return dict(figures.decode_ms)[batch] / 1000.0


def idle_s(path: str, output_tokens: float, radio_s: float) -> float:
    """Return the time to the last token of a request alone, by the formula.

    Parameters
    ----------
    path : str
        One of ``PATHS``.
    output_tokens : float
        Length of the answer; 1 gives the time to the first token.
    radio_s : float
        To the nearest node.
    """
    scenario = origin_scenario({}, 1.0)
    origin = scenario.origin
    assert origin is not None
    if path.startswith("edge"):
        hit = 0.0 if path.endswith("not held") else float(_PREFIX_TOKENS)
        prompt_s = float(scenario.prefill_s(np.array([[hit]]))[0, 0])
        return radio_s + prompt_s + (output_tokens - 1.0) * tpot_s(hardware_figures(_EDGE), 1)
    backbone_s = origin.rtt_s
    if path.endswith("new connection"):
        backbone_s += origin.handshakes * origin.rtt_s
    prompt_s = origin.prefill_linear_s * _NEW_TOKENS + origin.prefill_quadratic_s * _NEW_TOKENS**2
    return radio_s + backbone_s + prompt_s + (output_tokens - 1.0) * origin.tpot_s


def crossing_tokens(edge: str, origin: str) -> float:
    """Return the length of the answer at which both paths take the same time.

    Longer answers come sooner from the origin; below 1 all do.
    """
    gain_s = idle_s(origin, 1.0, 0.0) - idle_s(edge, 1.0, 0.0)
    loss_s = idle_s(edge, 2.0, 0.0) - idle_s(edge, 1.0, 0.0)
    loss_s -= idle_s(origin, 2.0, 0.0) - idle_s(origin, 1.0, 0.0)
    return 1.0 + gain_s / loss_s


def simulate_idle(path: str, output_tokens: int, requests: int) -> tuple[float, float]:
    """Return simulated means of a few requests that each find everything idle.

    Parameters
    ----------
    path : str
        One of ``PATHS``.
    output_tokens : int
        Length of the answers, at least 2: the cap that sends all to the origin is 1.
    requests : int
        How many.

    Returns
    -------
    tuple of float
        Time to the last token, and radio latency to the nearest node, seconds. The same requests
        are made on all paths.
    """
    types = {"request_types": [_request_type("only", output_tokens, 1.0)]}
    rate_per_node = 1e-4
    ended = []
    for changes in (PATHS[path], PATHS["edge, prefix held"]):
        sink = ArraySink()
        fleet = Fleet(origin_scenario(changes | types, rate_per_node), seed=0, records=sink)
        while sink.table().num_rows < requests:
            fleet.advance(requests / (rate_per_node * _NODES))
        ended.append(sink.table().by_request().where(np.arange(sink.table().num_rows) < requests))
    there, near = ended
    return float(there["end_to_end_s"].mean()), float(near["radio_s"].mean())


def run(contender: str, rate_per_node: float, length: Length) -> Outcome:
    """Simulate fleets of one contender.

    Parameters
    ----------
    contender : str
        One of ``CONTENDERS``.
    rate_per_node : float
        Requests per second and node.
    length : Length
        How long.
    """
    scenario = origin_scenario(CONTENDERS[contender], rate_per_node)
    results = np.array(list(_runs(scenario, length)))
    error = results[:, 2].std(ddof=1) / math.sqrt(len(results)) if len(results) > 1 else 0.0
    share, load, coverage, *late = (float(value) for value in results.mean(axis=0))
    return Outcome(share, load, coverage, float(error), *late)


def _runs(scenario: Scenario, length: Length) -> Iterator[list[float]]:
    names = list(scenario.family_names)
    for seed in range(length.seeds):
        fleet = Fleet(scenario, seed=seed)
        fleet.advance(_WARM_UP_S)
        window = fleet.advance(length.counted_s)
        yield [
            window.origin_first_tokens / window.first_tokens,
            window.origin_utilization,
            window.coverage,
            window.end_to_end_quantile_s(0.99, names.index("short")),
            window.end_to_end_quantile_s(0.99, names.index("long")),
        ]
