"""Networks that several tests share."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from edgegym.analytic import TieredNetwork

ORACLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "oracle" / "analytic.json").read_text()
)


def oracle_network(case: str, **changes: Any) -> TieredNetwork:
    """Return the network of an oracle case, some fields changed."""
    spec = dict(ORACLE[case]["spec"])
    del spec["ttft_target_s"]
    return TieredNetwork(**(spec | changes))


def paper_network(request_intensity: float = 3.0, **changes: Any) -> TieredNetwork:
    """Return the fitted network of the framework paper at another load."""
    return oracle_network("paper_load_3", request_intensity=request_intensity, **changes)


def worst_case_capacity(net: TieredNetwork) -> float:
    """Return the load that the fleet carries if every request takes its longest occupancy."""
    return float((net.tier_density * net.concurrency / net.occupancy_s.max(axis=1)).sum())


def random_network(seed: list[int], load: float | None = None) -> TieredNetwork:
    """Return a network of 2-12 tiers and 1-8 types at 10-97 % (or `load`) of worst-case capacity.

    Among them are tied tiers (same hits, sometimes the same slots), empty tiers, uncached profiles,
    one-slot nodes, and the path-loss exponents at which the law changes its character (2 and 4).
    """
    rng = np.random.default_rng(seed)
    tiers, types = int(rng.integers(2, 13)), int(rng.integers(1, 9))
    lengths = np.exp(rng.uniform(np.log(200), np.log(16000), types))
    hits = rng.uniform(0, 0.95, (tiers, types)) * (rng.random((tiers, types)) < 0.7)
    hits = np.floor(hits * (lengths - 1))
    hits[0] = 0
    slots = np.floor(np.exp(rng.uniform(0, np.log(64), tiers))).astype(int)
    for s in range(1, tiers):
        if rng.random() < 0.25:
            twin = rng.integers(s)
            hits[s] = hits[twin]
            if rng.random() < 0.5:
                slots[s] = slots[twin]
    mix = rng.dirichlet(np.full(tiers, rng.choice([0.5, 1, 3])))
    if tiers > 2 and rng.random() < 0.1:
        mix[1] = 0.0
        mix /= mix.sum()
    alpha = rng.choice([rng.uniform(1.5, 5), 2.0, 4.0, 3.5], p=[0.7, 0.1, 0.1, 0.1])
    net = TieredNetwork(
        density_per_km2=float(np.exp(rng.uniform(np.log(0.1), np.log(10)))),
        request_intensity=1.0,
        profile_probabilities=mix,
        concurrency=slots,
        input_tokens=lengths,
        hit_tokens=hits,
        type_probabilities=rng.dirichlet(np.ones(types)),
        prefill_linear_s=float(rng.uniform(3e-5, 4e-4)),
        prefill_quadratic_s=float(rng.uniform(0, 2e-8)),
        decode_occupancy_s=rng.uniform(0.05, 3, types),
        radio_xi=float(np.exp(rng.uniform(np.log(0.02), np.log(1)))),
        radio_alpha=float(alpha),
        radio_base_s=0.0,
    )
    share = rng.uniform(0.1, 0.97) if load is None else load
    return dataclasses.replace(net, request_intensity=share * worst_case_capacity(net))
