"""Exact search with joint fetching: the rings it leaves out can't hold a better node."""

import numpy as np
import pytest

from tests.simulator.full.stations import CHAT, CODE, Stations

LINK = {"rate_bytes_per_s": 8e9, "sharing": "shared"}


def stations(seed, controller, cells):
    """Return thirty nodes with random places, profiles and waits, the same for any grid."""
    rng = np.random.default_rng(seed)
    places, profiles = rng.random((30, 2)) * 10.0, rng.integers(0, 4, 30)
    made = Stations(places, profiles, cells=cells, fetch={"controller": controller}, backhaul=LINK)
    made.routing.reach.holders[:4] = np.bincount(profiles, minlength=4)
    for node in range(30):
        made.load(node, int(rng.integers(0, 5)), 2, 0.3)
    return made


@pytest.mark.twin
@pytest.mark.parametrize("seed", range(6))
def test_a_grid_finds_what_a_scan_finds(seed):
    scan, grid = (stations(seed, "joint", cells) for cells in ((0, 0), (5, 5)))
    without = stations(seed, "never", (5, 5))
    rng = np.random.default_rng(seed)
    changed = 0
    for place in rng.random((20, 2)) * 10.0:
        for kind in (CHAT, CODE):
            expected = scan.route(kind, place_km=place)
            assert grid.route(kind, place_km=place) == expected
            plain = without.route(kind, place_km=place)
            assert expected.predicted_s <= plain.predicted_s + 1e-12
            changed += expected.node != plain.node
    assert changed > 0
