"""The request stream: a function of scenario and seed alone, with the law that it promises."""

import numpy as np
import pytest
from scipy import stats

from edgegym.simulator import Fleet
from edgegym.simulator.columns import NEXT_BLOCK, NUM_REQUESTS
from edgegym.simulator.intensity import load_at, write_family_shares
from edgegym.simulator.state import allocate
from edgegym.simulator.stream import RequestStream
from edgegym.world import preset, presets
from tests.simulator.fleets import scenario


def requests(world, seed, blocks, first=0):
    """Return time, x, y, mark and type of all requests of some blocks, ``[5, n]``."""
    stream = RequestStream(world, seed)
    state = allocate(world)
    state.scalars[0, NEXT_BLOCK] = first
    parts = []
    for _ in range(blocks):
        state = stream.fill(state, 0)
        count = state.scalars[0, NUM_REQUESTS]
        names = ("request_time_s", "request_x_km", "request_y_km", "request_mark", "request_type")
        parts.append(np.array([getattr(state, name)[0, :count] for name in names]))
    return np.concatenate(parts, axis=1)


@pytest.mark.twin
@pytest.mark.parametrize("name", presets())
def test_blocks_are_repeatable_sorted_and_inside_the_region(name):
    world = preset(name).compile()
    whole = requests(world, 7, 3)
    np.testing.assert_array_equal(whole, requests(world, 7, 3))
    block = requests(world, 7, 1, first=2)
    np.testing.assert_array_equal(whole[:, -block.shape[1] :], block)
    time, x, y, mark, kind = whole
    assert (np.diff(time) >= 0.0).all()
    assert (x >= 0.0).all()
    assert (x < world.width_km).all()
    assert (y >= 0.0).all()
    assert (y < world.height_km).all()
    assert (mark > 0.0).all()
    assert np.isfinite(mark).all()
    assert kind.min() >= 0
    assert kind.max() < world.num_types
    assert not np.array_equal(requests(world, 8, 1)[0, :100], whole[0, :100])


def test_plain_demand_is_poisson_uniform_and_of_the_right_types():
    world = scenario().compile()
    time, x, y, mark, kind = requests(world, 3, 20)
    assert stats.kstest(np.diff(time) * world.base_rate_per_s, "expon").pvalue > 1e-3
    assert stats.kstest(x / world.width_km, "uniform").pvalue > 1e-3
    assert stats.kstest(y / world.height_km, "uniform").pvalue > 1e-3
    assert stats.binomtest(int(kind.sum()), len(kind), 0.5).pvalue > 1e-3
    assert (mark == 1.0).all()


@pytest.mark.parametrize("service", [{"kind": "exponential"}, {"kind": "lognormal", "sigma": 0.5}])
def test_service_marks_have_mean_one_and_the_law(service):
    world = scenario(service=service).compile()
    mark = requests(world, 3, 20)[3]
    if service["kind"] == "exponential":
        law = stats.expon
    else:
        law = stats.lognorm(0.5, scale=np.exp(-0.125))
    assert law.mean() == pytest.approx(1.0)
    assert stats.kstest(mark, law.cdf).pvalue > 1e-3


def modulated(*modulations, periodic=True):
    return scenario(
        demand={"rate_per_node": 1.0, "modulations": list(modulations)},
        region={"width_km": 10.0, "height_km": 10.0, "periodic": periodic},
    ).compile()


def test_diurnal_load_swings_around_the_base_rate():
    swing = {"kind": "diurnal", "amplitude": 0.6, "period_s": 500.0, "phase": 0.25}
    world = modulated(swing)
    time = requests(world, 1, 40)[0]
    periods = int(time[-1] // 500.0)
    phase = (time[time < periods * 500.0] % 500.0) / 500.0
    counts, edges = np.histogram(phase, bins=20, range=(0.0, 1.0))
    middle = (edges[1:] + edges[:-1]) / 2
    expected = (
        world.base_rate_per_s * 25.0 * periods * (1 + 0.6 * np.sin(2 * np.pi * (middle + 0.25)))
    )
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3
    assert counts.sum() == pytest.approx(expected.sum(), rel=0.02)


def test_drift_rotates_the_families_through_the_zipf_ranks():
    world = modulated({"kind": "drift", "zipf_exponent": 1.0, "period_s": 400.0})
    demand = RequestStream(world, 5).demand
    shares = np.empty(2)
    seen = []
    for time in np.linspace(0.0, 400.0, 101):
        (getattr(write_family_shares, "py_func", write_family_shares))(demand, time, shares)
        assert shares.sum() == pytest.approx(1.0)
        seen.append(shares.copy())
    seen = np.array(seen)
    np.testing.assert_allclose(seen[0], seen[-1], atol=1e-12)
    np.testing.assert_allclose(seen[0], seen[50][::-1], atol=1e-12)
    assert seen.max() <= 2 / 3 + 1e-12
    time, *_, kind = requests(world, 5, 20)
    index = np.floor((time % 400.0) / 4.0).astype(int)
    assert kind.sum() == pytest.approx(seen[index, 1].sum(), abs=4 * np.sqrt(len(kind) / 4))
    weighted = ((kind == 1) - seen[index, 1]) * (seen[index, 1] - 0.5)
    assert abs(weighted.sum()) < 5 * np.sqrt((weighted**2).sum())


@pytest.mark.parametrize("periodic", [True, False])
def test_hotspots_gather_a_share_of_the_requests_around_their_centres(periodic):
    spot = {
        "kind": "hotspot",
        "concentration": 0.7,
        "sigma_km": 0.5,
        "orbit_radius_km": 3.0,
        "period_s": 1000.0,
    }
    world = modulated(spot, periodic=periodic)
    stream = RequestStream(world, 2)
    time, x, y, _, kind = requests(world, 2, 10)
    angle = 2 * np.pi * (time / 1000.0 + stream.demand.hotspot_phase + kind / 2)
    away = np.hypot(x - 5.0 - 3.0 * np.cos(angle), y - 5.0 - 3.0 * np.sin(angle))
    # Within two deviations: 1 − e^(−2) of the Gaussian, and π of the 100 km² of the rest.
    expected = 0.7 * (1 - np.exp(-2.0)) + 0.3 * np.pi / 100.0
    near = int((away < 1.0).sum())
    assert stats.binomtest(near, len(away), expected).pvalue > 1e-3


def test_hotspots_on_a_plain_rectangle_are_conditioned_on_it():
    spot = {
        "kind": "hotspot",
        "concentration": 1.0,
        "sigma_km": 2.0,
        "orbit_radius_km": 5.0,
        "period_s": 1e9,
    }
    world = modulated(spot, periodic=False)
    phase = RequestStream(world, 2).demand.hotspot_phase
    _, x, _, _, kind = requests(world, 2, 10)
    centre = 5.0 + 5.0 * np.cos(2 * np.pi * phase)
    law = stats.truncnorm(-centre / 2.0, (10.0 - centre) / 2.0, loc=centre, scale=2.0)
    assert stats.kstest(x[kind == 0], law.cdf).pvalue > 1e-3


def test_flash_crowds_add_one_burst_in_one_place_to_each_interval():
    crowd = {
        "kind": "flash_crowd",
        "interval_s": 500.0,
        "duration_s": 100.0,
        "magnitude": 4.0,
        "sigma_km": 0.2,
    }
    world = modulated(crowd)
    stream = RequestStream(world, 4)
    time, x, y, _, kind = requests(world, 4, 25)
    intervals = int(time[-1] // 500.0)
    assert intervals >= 5
    for interval in range(intervals):
        table = stream.flashes(interval * 500.0, interval * 500.0 + 499.0)
        start, end, place_x, place_y, family = table[0]
        assert interval * 500.0 <= start
        assert end <= (interval + 1) * 500.0
        inside = (time >= start) & (time < end)
        delta = np.abs(np.array([x - place_x, y - place_y]))
        near = np.hypot(*np.minimum(delta, 10.0 - delta)) < 0.8
        crowd_size = (inside & near & (kind == family)).sum()
        assert crowd_size == pytest.approx(4.0 * world.base_rate_per_s * 100.0, rel=0.15)
        rest = inside.sum() - crowd_size
        assert rest == pytest.approx(world.base_rate_per_s * 100.0, rel=0.25)


def test_moves_and_slicing_do_not_change_the_requests():
    chosen = preset("moving-hotspot")
    still, moved = Fleet(chosen, seed=11), Fleet(chosen, seed=11)
    rng = np.random.default_rng(0)
    arrivals = []
    for _ in range(40):
        legal = np.argwhere(moved.legal_moves())
        moved.start_move(*legal[rng.integers(len(legal))])
        arrivals.append(moved.advance(5.0))
    total = arrivals[0]
    for window in arrivals[1:]:
        total = total + window
    whole = still.advance(200.0)
    assert moved.state.holding.tolist() != still.state.holding.tolist()
    np.testing.assert_array_equal(total.nearest_demand, whole.nearest_demand)
    np.testing.assert_array_equal(total.family_arrivals, whole.family_arrivals)
    for name in ("request_time_s", "request_x_km", "request_y_km", "request_mark", "request_type"):
        np.testing.assert_array_equal(getattr(still.state, name), getattr(moved.state, name))


def test_load_is_one_without_swings():
    assert (getattr(load_at, "py_func", load_at))(np.empty((0, 3)), 12.0) == 1.0
