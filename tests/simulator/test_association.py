"""Finite fleets against the association law that they approximate."""

import numpy as np
from scipy import stats

from edgegym.analytic import solve_equilibrium
from edgegym.jit import kernel
from edgegym.simulator import Fleet
from edgegym.simulator.columns import NUM_REQUESTS
from edgegym.simulator.lane import lane_of
from edgegym.simulator.search import choose_node
from edgegym.world import preset

TORI = 20
BLOCKS = 8


@kernel
def _count(lane, num_requests, counts):
    for k in range(num_requests):
        x, y, kind = lane.requests.x_km[k], lane.requests.y_km[k], lane.requests.type[k]
        choice = choose_node(lane.area, x, y, kind)
        counts[lane.catalogue.profile[choice.node], kind] += 1


def test_association_shares_of_large_tori_are_those_of_the_law():
    scenario = preset("paper").with_overrides(
        {"region": {"width_km": 40.0, "height_km": 40.0}, "routing.advertised_wait": "tier"}
    )
    equilibrium = solve_equilibrium(scenario.tiered_network())
    assert equilibrium.converged
    assert equilibrium.mean_wait_s.max() > 0.01
    shares = []
    for seed in range(TORI):
        fleet = Fleet(scenario, seed, tier_wait_s=equilibrium.assumed_wait_s)
        counts = np.zeros(equilibrium.association.shape, dtype=np.int64)
        state = fleet.state
        for _ in range(BLOCKS):
            _count(lane_of(fleet.world, state, 0), state.scalars[0, NUM_REQUESTS], counts)
            state = fleet.stream.fill(state, 0)
        shares.append(counts / counts.sum(axis=0))
    mean = np.mean(shares, axis=0)
    error = np.std(shares, axis=0, ddof=1) / np.sqrt(TORI)
    half_width = stats.t(TORI - 1).ppf(0.995) * error
    assert half_width.max() < 0.01
    assert (np.abs(mean - equilibrium.association) < half_width).all(), (
        mean,
        equilibrium.association,
        half_width,
    )
