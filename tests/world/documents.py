"""Scenario documents for tests: a small one to change, and random ones."""

import copy
from typing import Any

from hypothesis import strategies as st

MINIMAL: dict[str, Any] = {
    "name": "minimal",
    "region": {"width_km": 2.0, "height_km": 1.0},
    "nodes": {"count": 3},
    "forest": [
        {"name": "root", "depth_tokens": 100},
        {"name": "leaf", "parent": "root", "depth_tokens": 400},
    ],
    "request_types": [
        {"name": "long", "path": "leaf", "input_tokens": 500, "family": "f", "share": 0.25},
        {"name": "short", "path": "root", "input_tokens": 200, "family": "g", "share": 0.75},
    ],
    "profiles": [
        {"name": "none"},
        {"name": "shallow", "vertices": ["root"]},
        {"name": "deep", "vertices": ["leaf"]},
    ],
    "hardware": {
        "memory_bytes": 10_000,
        "kv_bytes_per_token": 10,
        "runtime_bytes_per_sequence": 1000,
        "prefill": {"linear_s": 0.001},
        "decode": {"kind": "occupancy", "occupancy_s": 0.5},
    },
    "radio": {"xi": 0.1, "alpha": 2.0},
    "demand": {"rate_per_node": 2.0},
    "migration": {"budget_bytes_per_s": 100.0, "burst_bytes": 5000},
    "backhaul": {"rate_bytes_per_s": 500.0},
    "service": {"kind": "exponential"},
    "initial": {"mix": {"none": 1.0}},
    "objective": {"ttft_target_s": 0.8},
}


def minimal() -> dict[str, Any]:
    """Return a fresh valid document."""
    return copy.deepcopy(MINIMAL)


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the minimal document with one value replaced; list items by position."""
    document = minimal()
    *above, last = path.split(".")
    here: Any = document
    for key in above:
        here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
    here[last] = value
    return document


def _positive(high: float = 1e3) -> st.SearchStrategy[float]:
    return st.floats(1e-6, high)


def _duration() -> st.SearchStrategy[float]:
    return st.floats(1e-3, 1e3)


_MODULATIONS = {
    "diurnal": st.fixed_dictionaries(
        {"kind": st.just("diurnal"), "amplitude": st.floats(0.01, 1), "period_s": _duration()},
        optional={"phase": st.floats(-1, 1), "phase_turns_per_km": st.floats(-1, 1)},
    ),
    "mmpp": st.fixed_dictionaries(
        {
            "kind": st.just("mmpp"),
            "burst_level": st.floats(1.01, 2),
            "burst_s": st.floats(1e-3, 10),
            "calm_s": st.floats(10, 100),
        },
        optional={"families": st.just(["f0"])},
    ),
    "drift": st.fixed_dictionaries(
        {"kind": st.just("drift"), "zipf_exponent": st.floats(0, 3), "period_s": _duration()},
        optional={"families": st.just(["f0"])},
    ),
    "hotspot": st.fixed_dictionaries(
        {
            "kind": st.just("hotspot"),
            "concentration": st.floats(0.01, 1),
            "sigma_km": _positive(),
            "orbit_radius_km": st.floats(0, 1),
            "period_s": _duration(),
        }
    ),
    "flash_crowd": st.fixed_dictionaries(
        {
            "kind": st.just("flash_crowd"),
            "interval_s": st.floats(10, 100),
            "duration_s": st.floats(0.1, 10),
            "magnitude": _positive(),
            "sigma_km": _positive(),
        }
    ),
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Random valid scenario documents over all kinds of blocks."""
    names: list[str] = []
    depths: dict[str | None, int] = {None: 0}
    forest = []
    for number in range(draw(st.integers(0, 5))):
        parent = draw(st.sampled_from([None, *names]))
        name = f"v{number}"
        depths[name] = depths[parent] + draw(st.integers(0, 500))
        forest.append({"name": name, "depth_tokens": depths[name]})
        if parent is not None:
            forest[-1]["parent"] = parent
        if draw(st.booleans()):
            forest[-1]["bytes"] = draw(st.integers(0, 10**12))
        names.append(name)
    weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    types = []
    for number, weight in enumerate(weights):
        path = draw(st.sampled_from([None, *names]))
        item = {
            "name": f"q{number}",
            "input_tokens": max(1, depths[path]) + draw(st.integers(0, 5000)),
            "output_tokens": draw(st.integers(1, 500)),
            "family": f"f{draw(st.integers(0, number))}" if number else "f0",
            "share": weight / sum(weights),
        }
        if path is not None:
            item["path"] = path
        if draw(st.booleans()):
            item["ttft_target_s"] = draw(_positive())
        if draw(st.booleans()):
            item["xi_factor"] = draw(_positive())
        types.append(item)
    profiles = [{"name": "none"}]
    for number in range(draw(st.integers(0, 3))):
        held = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        profiles.append({"name": f"p{number}", "vertices": held})
    decode = draw(
        st.sampled_from(
            [
                {"kind": "occupancy", "occupancy_s": 0.58},
                {"kind": "tpot", "tpot_s": {1: 0.02, 16: 0.0311}, "batch": 8},
                {"kind": "steps", "step_s": {1: {0: 0.02, 512: 0.05}, 16: {0: 0.0311}}},
            ]
        )
    )
    by_token = [
        {"kind": "tokens", "output": "geometric"},
        {"kind": "engine"},
        {"kind": "engine", "schedule": "chunked", "step_tokens": 200_000},
    ]
    nodes = draw(st.sampled_from([{"count": 7}, {"density_per_km2": 0.75, "max_count": 40}]))
    rate = draw(_positive())
    demand: dict[str, Any] = draw(
        st.sampled_from([{"rate_per_node": rate}, {"request_intensity": rate}])
    )
    kinds = draw(st.lists(st.sampled_from(sorted(_MODULATIONS)), unique=True))
    demand = demand | {"modulations": [draw(_MODULATIONS[kind]) for kind in kinds]}
    return {
        "name": draw(st.text("abü- :#'\"", min_size=1)),
        "description": draw(st.text(st.characters(codec="utf-8", categories=["L", "P", "Z"]))),
        "region": {
            "width_km": 10.0,
            "height_km": draw(st.floats(0.2, 5)),
            "periodic": draw(st.booleans()),
        },
        "nodes": nodes,
        "forest": forest,
        "request_types": types,
        "profiles": profiles,
        "hardware": {
            "memory_bytes": 10**16,
            "runtime_bytes_per_sequence": draw(st.integers(10**11, 10**12)),
            "kv_bytes_per_token": draw(st.integers(1, 10**6)),
            "prefill": {
                "linear_s": draw(st.floats(0, 1e-3)),
                "quadratic_s": draw(st.floats(0, 1e-7)),
                "attention": draw(st.sampled_from(["residual", "context"])),
            },
            "decode": decode,
        },
        "radio": {"xi": draw(_positive()), "alpha": draw(st.floats(0.1, 5)), "base_s": 0.001},
        "demand": demand,
        "routing": draw(
            st.sampled_from(
                [
                    {"kind": "nearest"},
                    {"kind": "prefix_aware"},
                    {"kind": "load_aware", "advertised_wait": "tier"},
                ]
            )
        ),
        "migration": {"budget_bytes_per_s": draw(_positive()), "burst_bytes": 10**12},
        "backhaul": {"rate_bytes_per_s": draw(_positive(1e12))},
        "service": draw(
            st.sampled_from(
                [{"kind": "deterministic"}, {"kind": "lognormal", "sigma": 0.31}]
                + (by_token if decode["kind"] != "occupancy" else [])
            )
        ),
        "initial": {"mix": {"none": 1.0}},
        "objective": {"kind": "goodput", "ttft_target_s": draw(_positive())},
        "evaluation_seeds": draw(st.lists(st.integers(0, 10**9), min_size=1, unique=True)),
    }
