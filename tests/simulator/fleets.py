"""Small fleets with nodes and requests set by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgegym.simulator import Fleet
from edgegym.simulator.columns import (
    ACTIVE,
    IN_FLIGHT,
    NEXT_REQUEST,
    NUM_REQUESTS,
    QUEUED,
    SLOT_FREED,
    STATUS,
    USED_RECORDS,
)
from edgegym.simulator.lane import lane_of
from edgegym.simulator.search import build_grid
from edgegym.simulator.topology import refresh_nodes
from edgegym.world import Scenario, preset

GB = 10**9


def scenario(**overrides: Any) -> Scenario:
    """Return a plain 10 × 10 km world of five nodes with round numbers.

    Prefill takes 1 ms per token that is not held, decode 0.5 s, the radio 0.1 s/km² · r². Profiles:
    `none` (4 slots), `small` (3 slots, 400 of the 1000 tokens of `chat`), `big` (2 slots, 800 of
    them), `other` (3 slots, 500 of the 600 tokens of `code`). Transfers take 1 s per GB.
    """
    base = preset("paper").with_overrides(
        {
            "region": {"width_km": 10.0, "height_km": 10.0, "periodic": False},
            "nodes": {"count": 5},
            "forest": [
                {"name": "small", "depth_tokens": 400, "bytes": 1 * GB},
                {"name": "big", "parent": "small", "depth_tokens": 800, "bytes": 1 * GB},
                {"name": "other", "depth_tokens": 500, "bytes": 1 * GB},
            ],
            "request_types": [
                {
                    "name": "chat",
                    "path": "big",
                    "input_tokens": 1000,
                    "output_tokens": 10,
                    "family": "chat",
                    "share": 0.5,
                },
                {
                    "name": "code",
                    "path": "other",
                    "input_tokens": 600,
                    "output_tokens": 20,
                    "family": "code",
                    "share": 0.5,
                },
            ],
            "profiles": [
                {"name": "none"},
                {"name": "small", "vertices": ["small"]},
                {"name": "big", "vertices": ["big"]},
                {"name": "other", "vertices": ["other"]},
            ],
            "hardware": {
                "memory_bytes": 4 * GB,
                "kv_bytes_per_token": 1000,
                "runtime_bytes_per_sequence": 1 * GB,
                "prefill": {"linear_s": 1e-3, "quadratic_s": 0.0},
                "decode": {"kind": "occupancy", "occupancy_s": 0.5},
            },
            "radio": {"xi": 0.1, "alpha": 2.0, "base_s": 0.0},
            "demand": {"rate_per_node": 1.0},
            "routing": {"kind": "load_aware", "advertised_wait": "backlog"},
            "telemetry": {"period_s": 0.0},
            "migration": {"budget_bytes_per_s": 0.1 * GB, "burst_bytes": 3 * GB},
            "backhaul": {"rate_bytes_per_s": 1.0 * GB},
            "service": {"kind": "deterministic"},
            "initial": {"mix": {"none": 1.0}},
            "objective": {"kind": "coverage", "ttft_target_s": 1.0},
        }
    )
    return base.with_overrides(overrides) if overrides else base


def place(fleet: Fleet, places_km: Sequence[tuple[float, float]], profiles: Sequence[int]) -> None:
    """Put the nodes of a new fleet at given places with given profiles."""
    state, count = fleet.state, len(places_km)
    assert count == state.node_count[0]
    state.node_x[0, :count], state.node_y[0, :count] = np.transpose(places_km)
    state.profile[0, :count] = state.holding[0, :count] = profiles
    build_grid(fleet.world, state, 0, tuple(state.cells[0]))
    refresh_nodes(lane_of(fleet.world, state, 0))


def feed(fleet: Fleet, requests: Sequence[tuple[float, float, float, int]]) -> None:
    """Replace the request stream by (time, x, y, type), all with service mark 1."""
    state, count = fleet.state, len(requests)
    times, xs, ys, types = np.transpose(requests)
    state.request_time_s[0, :count] = times
    state.request_x_km[0, :count] = xs
    state.request_y_km[0, :count] = ys
    state.request_type[0, :count] = types.astype(np.int64)
    state.request_mark[0, :count] = 1.0
    state.scalars[0, NEXT_REQUEST], state.scalars[0, NUM_REQUESTS] = 0, count
    state.stream_end_s[0] = np.inf


def in_system(fleet: Fleet) -> int:
    """Return how many requests have neither left their slot nor been rejected."""
    used = fleet.state.scalars[0, USED_RECORDS]
    status = fleet.state.record_index[0, :used, STATUS]
    return int(np.isin(status, (IN_FLIGHT, QUEUED, ACTIVE)).sum())


def awaiting_first_token(fleet: Fleet) -> int:
    """Return how many requests have left their slot but not yet got their first token."""
    used = fleet.state.scalars[0, USED_RECORDS]
    return int((fleet.state.record_index[0, :used, STATUS] == SLOT_FREED).sum())
