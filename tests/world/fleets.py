"""Documents of mixed fleets for tests."""

import copy
from typing import Any

from tests.world.documents import minimal

SMALL_GPU = {
    "memory_bytes": 4500,
    "kv_bytes_per_token": 5,
    "runtime_bytes_per_sequence": 1500,
    "prefill": {"linear_s": 0.002, "quadratic_s": 1e-6, "floor_s": 0.3, "attention": "context"},
    "decode": {"kind": "tpot", "tpot_s": {1: 0.25}, "batch": 1},
}


def mixed() -> dict[str, Any]:
    """Return the minimal world with three classes: its own GPU, a small one, and none.

    The small one has room for the profiles 'none' (3 slots) and 'shallow' (2), not for 'deep'
    (4000 bytes), and offers no tag.
    """
    document = minimal()
    document["nodes"] = {
        "count": 10,
        "classes": [
            {"name": "big", "share": 0.5},
            {"name": "small", "share": 0.3, "hardware": copy.deepcopy(SMALL_GPU), "offers": []},
            {"name": "mast", "share": 0.2, "gpu": False},
        ],
    }
    return document


def with_model() -> dict[str, Any]:
    """Return the minimal world where the type 'long' needs a model of 2000 bytes."""
    document = minimal()
    document["forest"] = [
        {"name": "model", "depth_tokens": 0, "bytes": 2000, "weights": True},
        {"name": "leaf", "parent": "model", "depth_tokens": 400, "lifetime_s": 60.0},
        {"name": "root", "depth_tokens": 100, "lifetime_s": 20.0},
    ]
    return document
