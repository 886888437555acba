"""The request stream: a function of scenario and seed alone, with the law that it promises."""

import numpy as np
import pytest
from scipy import stats

from edgegym.simulator import Fleet
from edgegym.simulator.intensity import load_at, load_bound_at, write_family_shares
from edgegym.simulator.state import allocate
from edgegym.simulator.stream import RequestStream
from edgegym.world import preset, presets
from tests.simulator.fleets import scenario
from tests.simulator.requests import FIELDS, requests, requests_and_lengths


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


def tokens_world(output, output_tokens=None):
    """Return the world of decoding at 20 ms a token."""
    base = scenario()
    types = [item.model_dump(exclude_none=True) for item in base.request_types]
    for item in types:
        item["output_tokens"] = output_tokens or item["output_tokens"]
    hardware = base.hardware.model_dump(exclude_none=True)
    hardware["decode"] = {"kind": "tpot", "tpot_s": {1: 0.02}, "batch": 1}
    return scenario(
        request_types=types, hardware=hardware, service={"kind": "tokens", "output": output}
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
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(still.state, name), getattr(moved.state, name))


@pytest.mark.parametrize("periodic", [True, False])
def test_the_phase_of_the_day_may_depend_on_the_place(periodic):
    """Counts by place and time of day against the exact integral; means per place stay."""
    swing = {
        "kind": "diurnal",
        "amplitude": 0.9,
        "period_s": 500.0,
        "phase": 0.1,
        "phase_turns_per_km": 0.08,
    }
    world = modulated(swing, periodic=periodic)
    time, x, *_ = requests(world, 1, 60)
    periods = int(time[-1] // 500.0)
    inside = time < periods * 500.0
    counts, turns, places = np.histogram2d(
        (time[inside] % 500.0) / 500.0, x[inside], bins=(10, 5), range=((0, 1), (0, 10))
    )

    def second_integral(turn, place):
        """Return F with d²F / dt dx = 1 + 0.9 sin(2π (t + 0.1 + 0.08 x))."""
        angle = 2 * np.pi * (turn + 0.1 + 0.08 * place)
        return turn * place - 0.9 * np.sin(angle) / (4 * np.pi**2 * 0.08)

    corners = second_integral(turns[:, None], places[None, :])
    integral = np.diff(np.diff(corners, axis=0), axis=1)
    expected = world.base_rate_per_s * 500.0 * periods / 10.0 * integral
    assert stats.chi2(counts.size).sf(((counts - expected) ** 2 / expected).sum()) > 1e-3
    # Integrated over whole periods every place has the same number, whatever its phase.
    np.testing.assert_allclose(expected.sum(axis=0), expected.sum() / 5)


def test_days_of_time_and_of_place_multiply():
    """On average over time the product is 1 + (0.5 · 0.8 / 2) cos(difference of the phases)."""
    swing = {"kind": "diurnal", "amplitude": 0.8, "period_s": 50.0, "phase": 0.0}
    moving = swing | {"amplitude": 0.5, "phase_turns_per_km": 0.1}
    world = modulated(swing, moving)
    time, x, *_ = requests(world, 1, 60)
    duration = 60 * RequestStream(world, 1).block_s
    counts, edges = np.histogram(x, bins=10, range=(0.0, 10.0))
    angle = 2 * np.pi * 0.1 * edges
    mean = 1.0 + 0.2 * np.diff(np.sin(angle)) / np.diff(angle)
    expected = world.base_rate_per_s * duration * mean / 10.0
    assert stats.chi2(10).sf(((counts - expected) ** 2 / expected).sum()) > 1e-3
    assert len(time) == pytest.approx(expected.sum(), rel=0.02)


def test_gaussian_places_are_thinned_where_they_end_up():
    """A day that stands still and is dark at the spot leaves its requests out."""
    spot = {
        "kind": "hotspot",
        "concentration": 1.0,
        "sigma_km": 0.3,
        "orbit_radius_km": 0.0,
        "period_s": 1e9,
    }
    swing = {
        "kind": "diurnal",
        "amplitude": 1.0,
        "period_s": 1e9,
        "phase": 0.0,
        "phase_turns_per_km": 0.15,  # -1 at x = 5 km
    }
    for periodic in (True, False):
        world = modulated(spot, swing, periodic=periodic)
        time, x, *_ = requests(world, 1, 40)
        # 1 + sin(2π 0.15 x) near 5 km is (0.3 π d)² / 2, over a Gaussian of 0.3 km.
        expected = world.base_rate_per_s * (1.0 - np.exp(-((0.3 * np.pi * 0.3) ** 2) / 2))
        duration = 40 * RequestStream(world, 1).block_s
        assert abs(len(time) - expected * duration) < 4 * np.sqrt(expected * duration)
        assert np.abs(x - 5.0).std() > 0.15


def test_output_lengths_are_those_of_the_types_or_geometric():
    fixed, exact = requests_and_lengths(tokens_world("fixed"), 3, 5)
    random, lengths = requests_and_lengths(tokens_world("geometric"), 3, 5)
    # The lengths come from a stream of their own: nothing else changes.
    np.testing.assert_array_equal(fixed, random)
    kind = fixed[4].astype(int)
    np.testing.assert_array_equal(exact[0], np.array([1000, 600])[kind])
    np.testing.assert_array_equal(exact[1], np.array([10, 20])[kind])
    np.testing.assert_array_equal(lengths[0], exact[0])
    for index, mean in ((0, 10.0), (1, 20.0)):
        drawn = lengths[1, kind == index]
        assert drawn.min() == 1
        law = stats.geom(1.0 / mean)
        assert abs(drawn.mean() - mean) < 4 * law.std() / np.sqrt(len(drawn))
        edges = np.array([1, 3, 6, 10, 15, 25, 40])
        counts = np.histogram(drawn, np.append(edges, 10**9))[0]
        expected = len(drawn) * np.diff(np.append(law.cdf(edges - 1), 1.0))
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_a_geometric_output_of_mean_one_is_one():
    world = tokens_world("geometric", output_tokens=1)
    assert (requests_and_lengths(world, 3, 1)[1][1] == 1).all()


@pytest.mark.twin
def test_filling_with_lengths_draws_the_same_requests():
    world = tokens_world("geometric")
    stream, first, second = RequestStream(world, 5), allocate(world), allocate(world)
    first = stream.fill(first, 0)
    second, lengths = stream.fill_with_lengths(second, 0)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert lengths.input_tokens.dtype == lengths.output_tokens.dtype == np.int64


def test_load_is_one_without_swings():
    plain = np.empty((0, 4))
    assert getattr(load_at, "py_func", load_at)(plain, 12.0, 3.0) == 1.0
    assert getattr(load_bound_at, "py_func", load_bound_at)(plain, 12.0) == 1.0
