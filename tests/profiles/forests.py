"""Random forests with demand, and every ancestor-closed set of a small one."""

from itertools import product

import numpy as np

from edgegym.profiles import ForestDemand
from edgegym.world.hardware import Prefill

PREFILL = Prefill(linear_s=1e-3, quadratic_s=2e-7)


def random_demand(seed, vertices=9, types=6, most_bytes=50, **fields):
    """Return a random forest; some vertices have no bytes, some no tokens, some no requests."""
    rng = np.random.default_rng(seed)
    parent = np.array([int(rng.integers(-1, v)) if v else -1 for v in range(vertices)])
    depth = np.zeros(vertices, dtype=np.int64)
    for v in range(vertices):
        depth[v] = (depth[parent[v]] if parent[v] >= 0 else 0) + rng.integers(0, 300)
    given = {
        "parent": parent,
        "depth_tokens": depth,
        "bytes": rng.integers(0, most_bytes, vertices),
        "type_vertex": rng.integers(-1, vertices, types),
        "share": rng.dirichlet(np.ones(types)),
        "input_tokens": depth.max() + rng.integers(1, 500, types),
        "prefill": PREFILL,
    }
    return ForestDemand(**(given | fields))


def closed_sets(demand):
    """Yield every ancestor-closed set of vertices."""
    for taken in product((False, True), repeat=demand.num_vertices):
        held = frozenset(np.flatnonzero(taken).tolist())
        if demand.closure(held) == held:
            yield held
