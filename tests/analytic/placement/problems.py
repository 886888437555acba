"""Small random placement problems, and their solution by trying everything."""

from dataclasses import replace
from typing import Any

import numpy as np

from edgegym.analytic import TieredNetwork


def small_problem(seed: int) -> tuple[TieredNetwork, float, dict[str, Any]]:
    """Return a network of 3-4 profiles and 1-4 types, a target, and constraints or none.

    Loads are from light to a little above what the profile with the most capacity carries alone.
    """
    rng = np.random.default_rng([77, seed])
    profiles, types = int(rng.integers(3, 5)), int(rng.integers(1, 5))
    lengths = np.exp(rng.uniform(np.log(500), np.log(8000), types))
    hits, state_gb = np.zeros((profiles, types)), np.zeros(profiles)
    for s in range(1, profiles):
        share = rng.uniform(0.1, 0.9, types) * (rng.random(types) < 0.7)
        hits[s] = np.floor(share * (lengths - 1))
        state_gb[s] = rng.uniform(1, 10)
    net = TieredNetwork(
        density_per_km2=float(np.exp(rng.uniform(np.log(0.5), np.log(4)))),
        request_intensity=1.0,
        profile_probabilities=rng.dirichlet(np.ones(profiles)),
        concurrency=np.floor(16 - state_gb).astype(np.int64),
        input_tokens=lengths,
        hit_tokens=hits,
        type_probabilities=rng.dirichlet(np.ones(types)),
        prefill_linear_s=float(rng.uniform(1e-4, 4e-4)),
        prefill_quadratic_s=float(rng.uniform(0, 2e-8)),
        decode_occupancy_s=rng.uniform(0.2, 2, types),
        radio_xi=float(rng.uniform(0.05, 0.6)),
        radio_alpha=float(rng.choice([2.0, 3.0, 4.0, rng.uniform(1.5, 5)])),
        radio_base_s=0.0,
        state_bytes=np.round(state_gb * 1e9).astype(np.int64),
    )
    per_node = (net.concurrency[:, None] / net.occupancy_s) @ net.type_probabilities
    load = float(rng.choice([0.1, 0.4, 0.7, 0.85, 0.95, 1.05]))
    net = replace(net, request_intensity=load * per_node.max() * net.density_per_km2)
    target_s = float(np.quantile(net.prefill_s, rng.uniform(0.2, 0.9)) + rng.uniform(0.05, 0.4))
    limits: dict[str, Any] = {}
    if rng.random() < 0.4:
        limits["budget_bytes"] = float(rng.uniform(0.2, 0.8)) * 1e9 * state_gb.max()
    if rng.random() < 0.3:
        limits["minimum"] = np.eye(profiles)[0] * rng.choice([0.1, 0.15, 0.2, 0.13])
    if rng.random() < 0.3:
        limits["maximum"] = 1 - np.eye(profiles)[-1] * rng.choice([0.8, 0.7, 0.58])
    return net, target_s, limits
