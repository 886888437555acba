"""Small random worlds with everything that the full loop knows, for property tests."""

from typing import Any

from hypothesis import strategies as st

from edgegym.world import Scenario
from tests.simulator.fleets import GB, scenario

_ROUTINGS = [
    {"kind": "nearest"},
    {"kind": "prefix_aware"},
    {"kind": "load_aware", "advertised_wait": "backlog"},
    {"kind": "load_aware", "advertised_wait": "measured"},
    {
        "kind": "load_aware",
        "margin": {"deviations": 1.0, "moving_s": 0.3, "burst_s": 0.1},
    },
    {"kind": "least_loaded"},
    {"kind": "power_of_two"},
    {"kind": "lmetric"},
    {"kind": "cache_aware", "max_gap": 2.0},
    {"kind": "kv_router", "temperature": 0.5},
    {"kind": "preble"},
    {"kind": "mooncake"},
    {"kind": "session_affinity"},
]
_TPOT = {"kind": "tpot", "tpot_s": {1: 0.01, 4: 0.02}, "batch": 2}
_SERVICES = [
    ({"kind": "exponential"}, None),
    ({"kind": "deterministic"}, None),
    ({"kind": "lognormal", "sigma": 0.8}, None),
    ({"kind": "tokens", "output": "geometric"}, _TPOT),
    ({"kind": "engine", "schedule": "fifo", "output": "geometric"}, _TPOT),
    ({"kind": "engine", "schedule": "chunked", "step_tokens": 64}, _TPOT),
]
_BACKHAULS = [
    {"rate_bytes_per_s": 1.0 * GB},
    {"rate_bytes_per_s": 0.5 * GB, "sharing": "shared"},
    {
        "rate_bytes_per_s": 0.5 * GB,
        "sharing": "shared",
        "access_bytes_per_s": 0.3 * GB,
        "compression": 2.0,
        "restore_bytes_per_s": 5.0 * GB,
        "restore_slowdown": 2.0,
    },
    {"rate_bytes_per_s": 0.7 * GB, "sharing": "shared", "layers": 8},
]
_ORIGINS = [
    None,
    {"rtt_s": 0.2, "slots": 2, "prefill_linear_s": 2e-4, "tpot_s": 0.01, "affinity": 0.5},
    {
        "rtt_s": 0.05,
        "slots": 1,
        "prefill_linear_s": 5e-4,
        "tpot_s": 0.02,
        "new_connection_share": 0.3,
        "output_cap_tokens": 15,
    },
]
_ADMISSIONS = [
    None,
    {
        "ewma_s": 1.0,
        "node": {"close_above": 1.0, "reopen_below": 0.5},
        "spill": "next_best",
        "redirect": True,
    },
    {
        "ewma_s": 1.0,
        "node": {"close_above": 0.8, "reopen_below": 0.4},
        "tier": {"close_above": 1.5, "reopen_below": 1.0},
        "spill": "reject",
    },
]


@st.composite
def _failures(draw: st.DrawFn, origin: bool) -> dict[str, Any] | None:
    if draw(st.booleans()):
        return None
    spell = {"mean_up_s": draw(st.sampled_from([1.0, 4.0])), "mean_down_s": 0.7}
    found: dict[str, Any] = {"nodes": spell}
    if draw(st.booleans()):
        found["backhaul"] = {"mean_up_s": 2.0, "mean_down_s": 0.5}
    if origin and draw(st.booleans()):
        found["origin"] = {"mean_up_s": 2.0, "mean_down_s": 0.5}
    if draw(st.booleans()):
        found["outages"] = [{"what": "node", "node": 1, "begin_s": 1.0, "end_s": 2.5}]
    return found


def _forest(lifetime: bool) -> list[dict[str, Any]]:
    """Return the forest of ``scenario``, perhaps with contents that expire."""
    forest: list[dict[str, Any]] = [
        {"name": "small", "depth_tokens": 400, "bytes": 1 * GB},
        {"name": "big", "parent": "small", "depth_tokens": 800, "bytes": 1 * GB},
        {"name": "other", "depth_tokens": 500, "bytes": 1 * GB},
    ]
    if lifetime:
        forest[1]["lifetime_s"] = 1.3
        forest[2]["lifetime_s"] = 2.9
    return forest


@st.composite
def worlds(draw: st.DrawFn) -> Scenario:
    """Draw a small world."""
    service, decode = draw(st.sampled_from(_SERVICES))
    origin = draw(st.sampled_from(_ORIGINS))
    lru = draw(st.integers(0, 3)) == 0
    admission = draw(st.sampled_from(_ADMISSIONS))
    overrides: dict[str, Any] = {
        "nodes": {"count": draw(st.integers(1, 6))},
        "region.periodic": draw(st.booleans()),
        "demand.rate_per_node": draw(st.sampled_from([0.5, 3.0, 9.0])),
        "routing": draw(st.sampled_from(_ROUTINGS)),
        "telemetry": {
            "period_s": draw(st.sampled_from([0.0, 0.5])),
            "catalogue_period_s": draw(st.sampled_from([0.0, 0.9])),
            "predict_on_route": draw(st.booleans()),
        },
        "service": service,
        # An engine can't wait for layers: the last link is not for it.
        "backhaul": draw(st.sampled_from(_BACKHAULS[: -1 if "schedule" in service else None])),
        "forest": _forest(draw(st.booleans())),
        "initial.mix": {"none": 0.4, "small": 0.2, "big": 0.2, "other": 0.2},
        "migration": {"budget_bytes_per_s": 2.0 * GB, "burst_bytes": 4 * GB},
    }
    if overrides["nodes"]["count"] == 1:
        origin = origin or _ORIGINS[1]
    if decode is not None:
        overrides["hardware.decode"] = decode
    if origin is not None:
        overrides["origin"] = origin
    if admission is not None:
        overrides["admission"] = admission
    failures = draw(_failures(origin is not None))
    if failures is not None and overrides["nodes"]["count"] > 1:
        overrides["failures"] = failures
    if lru:
        overrides["cache"] = {"kind": "lru", "budget_bytes": 2 * GB}
    else:
        overrides["fetch"] = {
            "controller": draw(st.sampled_from(["never", "always", "independent", "joint"]))
        }
    if draw(st.booleans()):
        overrides["demand.modulations"] = [
            {"kind": "mmpp", "burst_level": 2.0, "burst_s": 1.0, "calm_s": 1.0}
        ]
    return scenario(**overrides)
