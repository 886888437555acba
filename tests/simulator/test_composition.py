"""Any combination of modulations has the intensity it should, and can be made piece by piece."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from edgegym.simulator import Fleet
from edgegym.simulator.stream import RequestStream
from tests.simulator.fleets import scenario
from tests.simulator.replays import replay_modulation
from tests.simulator.requests import FIELDS, requests_and_lengths

SIDE_KM = 10.0
FAMILIES = ("chat", "code")


def duration(low, high):
    return st.floats(low, high)


DIURNAL = st.fixed_dictionaries(
    {"kind": st.just("diurnal"), "amplitude": st.floats(0.1, 1), "period_s": duration(100, 1000)},
    optional={"phase": st.floats(-1, 1), "phase_turns_per_km": st.floats(-0.3, 0.3)},
)
MMPP = st.fixed_dictionaries(
    {
        "kind": st.just("mmpp"),
        "burst_level": st.floats(1.1, 3.0),
        "burst_s": st.floats(1.0, 100.0),
        "calm_s": st.floats(200.0, 300.0),
    },
    optional={"families": st.sampled_from([["chat"], ["code"]])},
)
DRIFT = st.fixed_dictionaries(
    {
        "kind": st.just("drift"),
        "zipf_exponent": st.floats(0.1, 2),
        "period_s": duration(100, 1000),
    }
)
HOTSPOT = st.fixed_dictionaries(
    {
        "kind": st.just("hotspot"),
        "concentration": st.floats(0.1, 1),
        "sigma_km": st.floats(1.0, 4.0),
        "orbit_radius_km": st.floats(0, 4),
        "period_s": duration(500, 2000),
    },
    optional={"families": st.just(["code"])},
)
FLASH = st.fixed_dictionaries(
    {
        "kind": st.just("flash_crowd"),
        "interval_s": duration(100, 400),
        "duration_s": duration(20, 100),
        "magnitude": st.floats(0.5, 3.0),
        "sigma_km": st.floats(1.0, 3.0),
    }
)


@st.composite
def modulations(draw):
    parts = [
        *draw(st.lists(DIURNAL, max_size=2)),
        *draw(st.lists(MMPP, max_size=2)),
        *draw(st.lists(DRIFT, max_size=1)),
        *draw(st.lists(HOTSPOT, max_size=1)),
        *draw(st.lists(FLASH, max_size=1)),
    ]
    return draw(st.permutations(parts))


@pytest.fixture(scope="module")
def replay_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("replay")


def composed(parts, periodic, folder=None):
    parts = list(parts)
    if folder is not None:
        parts.append(replay_modulation(folder))
    return scenario(
        demand={"rate_per_node": 1.0, "modulations": parts},
        region={"width_km": SIDE_KM, "height_km": SIDE_KM, "periodic": periodic},
    ).compile()


def reference_intensity(world, stream, time, x, y, family):
    """Return requests/s/km² of a family by the formulas of the modulations, one point at a time."""
    demand = stream.demand
    load = 1.0
    for amplitude, period, phase, turns_per_km in demand.diurnal:
        load *= 1.0 + amplitude * np.sin(2 * np.pi * (time / period + phase + turns_per_km * x))
    share = world.family_base_share[family]
    if len(world.drift):
        zipf = 1.0 / np.arange(1.0, 3.0) ** world.drift[0, 0]
        zipf /= zipf.sum()
        turns = time / world.drift[0, 1] + demand.drift_phase
        position = (demand.drift_rank[family] + 2 * turns) % 2
        share = np.interp(position, [0, 1, 2], [zipf[0], zipf[1], zipf[0]])
    for number, (calm, burst, _, _) in enumerate(world.mmpp):
        if world.mmpp_member[number, family]:
            bursting = stream.bursts._chains[number].states(time, time + 1e-9)[1][0]
            share *= burst if bursting else calm

    def density(centre_x, centre_y, sigma):
        found = 1.0
        for at, centre in ((x, centre_x), (y, centre_y)):
            law = stats.norm(centre, sigma)
            if world.periodic:
                found *= law.pdf(at + SIDE_KM * np.arange(-6, 7)).sum()
            else:
                found *= law.pdf(at) / (law.cdf(SIDE_KM) - law.cdf(0.0))
        return found

    place = 1.0 / SIDE_KM**2
    if len(world.hotspot) and world.hotspot_order[family] >= 0:
        concentration, sigma, radius, period = world.hotspot[0]
        members = (world.hotspot_order >= 0).sum()
        angle = time / period + demand.hotspot_phase + world.hotspot_order[family] / members
        spot = density(
            5 + radius * np.cos(2 * np.pi * angle), 5 + radius * np.sin(2 * np.pi * angle), sigma
        )
        place = (1 - concentration) * place + concentration * spot
    total = load * share * place
    for start, end, centre_x, centre_y, member in stream.flashes(time, time + 1e-9):
        if start <= time < end and member == family:
            total += world.flash[0, 2] * density(centre_x, centre_y, world.flash[0, 3])
    return world.base_rate_per_s * total


@settings(max_examples=30)
@given(
    parts=modulations(),
    periodic=st.booleans(),
    seed=st.integers(0, 2**32),
    point=st.tuples(st.floats(0, 2000), st.floats(0, SIDE_KM), st.floats(0, SIDE_KM)),
)
def test_intensity_is_the_product_of_its_factors(parts, periodic, seed, point):
    world = composed(parts, periodic)
    stream = RequestStream(world, seed)
    found = stream.intensity_per_km2(*point)
    assert found.shape == (2,)
    for family in range(2):
        expected = reference_intensity(world, stream, *point, family)
        assert found[family] == pytest.approx(expected, rel=1e-9, abs=1e-14)


def expected_counts(stream, duration_s, periods, cells):
    """Return the integral of the intensity over equal spans of time and strips of x, by family."""
    steps, inner = 500, 6
    # Midpoints: a second of a crowd or burst at its ends, hardly anything of the smooth factors.
    times = (np.arange(periods * steps) + 0.5) * duration_s / (periods * steps)
    x = (np.arange(cells * inner) + 0.5) * SIDE_KM / (cells * inner)
    y = (np.arange(12) + 0.5) * SIDE_KM / 12
    found = stream.intensity_per_km2(times[:, None, None], x[None, :, None], y[None, None, :])
    found = found.reshape(periods, steps, cells, inner, len(y), 2).mean(axis=(1, 3, 4))
    return found * duration_s / periods * SIDE_KM**2 / cells


@pytest.mark.parametrize("replayed", [False, True])
@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(parts=modulations(), periodic=st.booleans(), seed=st.integers(0, 2**32))
def test_thinned_counts_are_the_integral_of_the_intensity(
    replayed, replay_folder, parts, periodic, seed
):
    """In 4 spans x 3 strips x 2 families, by 4.5 standard errors of a Poisson count.

    A replayed trace of even pace scatters less than that.
    """
    world = composed(parts, periodic, replay_folder if replayed else None)
    stream = RequestStream(world, seed)
    blocks = max(1, round(3000.0 / stream.block_s))
    duration_s = blocks * stream.block_s
    time, x, _, _, kind = requests_and_lengths(world, seed, blocks)[0]
    edges = (np.linspace(0, duration_s, 5), np.linspace(0, SIDE_KM, 4), (-0.5, 0.5, 1.5))
    counts = np.histogramdd(np.column_stack((time, x, kind)), bins=edges)[0]
    expected = expected_counts(stream, duration_s, 4, 3)
    slack = 0.02 * expected + 2.0  # of the integral
    assert (np.abs(counts - expected) < 4.5 * np.sqrt(expected) + slack).all()
    assert abs(counts.sum() - expected.sum()) < 4.5 * np.sqrt(expected.sum()) + 0.01 * counts.sum()


@settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    parts=modulations(),
    periodic=st.booleans(),
    replayed=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    order=st.permutations(range(4)),
)
def test_blocks_are_the_same_in_any_order(replay_folder, parts, periodic, replayed, seed, order):
    world = composed(parts, periodic, replay_folder if replayed else None)
    whole, lengths = requests_and_lengths(world, seed, 4)
    parts = {block: requests_and_lengths(world, seed, 1, first=block) for block in order}
    np.testing.assert_array_equal(whole, np.concatenate([parts[b][0] for b in range(4)], axis=1))
    np.testing.assert_array_equal(lengths, np.concatenate([parts[b][1] for b in range(4)], axis=1))
    time, x, y, *_ = whole
    assert (np.diff(time) >= 0.0).all()
    assert ((x >= 0.0) & (x <= SIDE_KM) & (y >= 0.0) & (y <= SIDE_KM)).all()


@pytest.mark.twin
def test_the_stream_does_not_depend_on_slices_or_moves():
    parts = [
        {"kind": "mmpp", "burst_level": 3.0, "burst_s": 2.0, "calm_s": 6.0},
        {"kind": "diurnal", "amplitude": 0.5, "period_s": 60.0, "phase_turns_per_km": 0.1},
    ]
    chosen = scenario(demand={"rate_per_node": 1.0, "modulations": parts})
    whole, sliced = Fleet(chosen, seed=3), Fleet(chosen, seed=3)
    total = whole.advance(12.0)
    sliced.start_move(*np.argwhere(sliced.legal_moves())[0])
    windows = [sliced.advance(3.0) for _ in range(4)]
    assert sum(window.arrivals for window in windows) == total.arrivals > 0
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(whole.state, name), getattr(sliced.state, name))
