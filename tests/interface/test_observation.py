import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.interface import ObservationLayout
from edgegym.interface.layout import DEMAND_EWMA_S
from edgegym.interface.neighbourhood import neighbourhood_length_km
from edgegym.interface.observation import Observer
from edgegym.world import preset, presets
from tests.interface.fleets import random_state

pytestmark = pytest.mark.twin


def observe(scenario, state, *, counts=None, seconds=5.0, observe_clock=False):
    layout = ObservationLayout.from_scenario(scenario, observe_clock=observe_clock)
    observer = Observer(scenario, layout)
    observer.reset(state)
    if counts is not None:
        observer.update(counts, seconds)
    return layout, observer, observer.observe(state, float(state.bucket_bytes[0]))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(presets()),
    seed=st.integers(0, 2**32 - 1),
    clock=st.booleans(),
    count=st.none() | st.integers(1, 2),
)
def test_any_state_lies_in_the_box_and_decodes(name, seed, clock, count):
    rng = np.random.default_rng(seed)
    scenario = preset(name)
    world = scenario.compile()
    state = random_state(scenario, rng, count)
    counts = rng.integers(0, rng.choice([2, 10**12]), (world.max_nodes, world.num_families))
    layout, _, observation = observe(
        scenario, state, counts=counts, seconds=rng.uniform(0.01, 100.0), observe_clock=clock
    )
    assert observation.dtype == np.float32
    assert observation.shape == (layout.size,)
    assert observation.min() >= 0.0
    assert observation.max() <= 1.0
    for feature in layout.features:
        decoded = layout.decode(observation, feature.name)
        assert (decoded >= 0.0).all()
        if feature.name != "price":
            assert np.isfinite(decoded).all()
    # Padding rows say nothing.
    assert not layout.node_block(observation)[int(state.node_count[0]) :].any()


def expected_weights(scenario, state):
    """The definition of the neighbourhoods, as a dense matrix."""
    world, count = scenario.compile(), int(state.node_count[0])
    place = np.stack([state.node_x[0, :count], state.node_y[0, :count]], axis=-1)
    gap = np.abs(place[:, None] - place[None])
    if world.periodic:
        gap = np.minimum(gap, np.array([world.width_km, world.height_km]) - gap)
    distance_km = np.hypot(gap[..., 0], gap[..., 1])
    weight = np.exp(-((distance_km / neighbourhood_length_km(scenario)) ** world.radio_alpha))
    weight[weight < 0.02] = 0.0
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_decoded_features_are_the_defined_quantities(periodic, seed):
    rng = np.random.default_rng(seed)
    scenario = preset("moving-hotspot").with_overrides({"region.periodic": periodic})
    world, n = scenario.compile(), 25
    state = random_state(scenario, rng)
    for name in ("active", "queued", "in_flight"):
        getattr(state, name)[0] = rng.integers(0, 10, n)
    counts = rng.integers(0, 9, (n, world.num_families))
    layout, observer, observation = observe(scenario, state, counts=counts)

    def check(name, value):
        np.testing.assert_allclose(
            layout.decode(observation, name), value, rtol=3e-6, atol=1e-6, err_msg=name
        )

    up, profile, now = state.up[0], state.profile[0], float(state.now[0])
    held = np.eye(world.num_profiles)[profile]
    slots = world.slots[profile]
    load = (state.active[0] + state.queued[0] + state.in_flight[0]) * up
    prior = world.mean_rate_per_s / world.mean_nodes / world.num_families
    demand = prior + (1.0 - math.exp(-5.0 / DEMAND_EWMA_S)) * (counts / 5.0 - prior)
    np.testing.assert_allclose(observer.demand_per_s, demand, rtol=1e-5)
    weights = expected_weights(scenario, state)
    near_slots = weights @ (held * (slots * up)[:, None])

    check("profile", held)
    check("backlog", (load / slots)[:, None])
    start, end = state.transfer_start_s[0], state.transfer_end_s[0]
    with np.errstate(invalid="ignore"):
        left = np.where(np.isinf(end), 1.0, np.minimum((end - now) / (end - start), 1.0))
    check("receiving", np.where(state.receiving[0], left, 0.0)[:, None])
    check("up", up[:, None])
    check("demand", demand)
    check("near_demand", weights @ demand)
    check("near_capacity", near_slots)
    check("near_backlog", (weights @ load / near_slots.sum(axis=1))[:, None])
    check("family_demand", demand.sum(axis=0) / world.mean_rate_per_s)
    check("profile_share", held[up].mean(axis=0))
    check("bucket", [state.bucket_bytes[0] / world.burst_bytes])
    check("load", [load.sum() / (slots * up).sum()])


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), near=st.integers(-2, 2))
def test_price_is_at_most_one_half_exactly_if_the_bucket_can_pay(seed, near):
    rng = np.random.default_rng(seed)
    scenario = preset("moving-hotspot")
    world = scenario.compile()
    state = random_state(scenario, rng)
    prices = world.move_bytes[world.move_bytes > 0]
    level = float(rng.choice(prices)) + near
    state.bucket_bytes[0] = level
    layout, _, observation = observe(scenario, state)
    price = layout.node_block(observation)[:, layout.column("price")]
    affordable = world.move_bytes[state.profile[0]] <= level
    np.testing.assert_array_equal(price <= 0.5, affordable)
    decoded = layout.decode(observation, "price")
    np.testing.assert_allclose(decoded, world.move_bytes[state.profile[0]] / level, rtol=1e-6)


def test_price_of_a_profile_that_never_fits_is_infinite():
    scenario = preset("moving-hotspot")
    state = random_state(scenario, np.random.default_rng(0))
    state.bucket_bytes[0] = 1e18
    state.slots[0, 3, 2] = 0
    layout, _, observation = observe(scenario, state)
    infinite = np.isinf(layout.decode(observation, "price"))
    assert infinite[3, 2]
    assert infinite.sum() == 1


def test_estimates_converge_to_constant_rates():
    scenario = preset("moving-hotspot")
    state = random_state(scenario, np.random.default_rng(1))
    layout = ObservationLayout.from_scenario(scenario)
    observer = Observer(scenario, layout)
    observer.reset(state)
    counts = np.arange(25 * layout.num_families).reshape(25, -1)
    for _ in range(400):
        observer.update(counts, 5.0)
    np.testing.assert_allclose(observer.demand_per_s, counts / 5.0, rtol=1e-9, atol=1e-9)


def test_estimate_does_not_depend_on_how_a_window_is_cut():
    scenario = preset("moving-hotspot")
    state = random_state(scenario, np.random.default_rng(1))
    layout = ObservationLayout.from_scenario(scenario)
    whole, parts = Observer(scenario, layout), Observer(scenario, layout)
    counts = np.full((25, layout.num_families), 8)
    whole.reset(state)
    whole.update(4 * counts, 20.0)
    parts.reset(state)
    for _ in range(4):
        parts.update(counts, 5.0)
    np.testing.assert_allclose(whole.demand_per_s, parts.demand_per_s, rtol=1e-12)


def test_observations_are_fresh_and_state_restores_them():
    scenario = preset("moving-hotspot")
    rng = np.random.default_rng(2)
    state = random_state(scenario, rng)
    layout, observer, first = observe(scenario, state)
    kept = first.copy()
    saved = observer.get_state()
    observer.update(rng.integers(0, 50, (25, layout.num_families)), 5.0)
    second = observer.observe(state, float(state.bucket_bytes[0]))
    assert first is not second
    np.testing.assert_array_equal(first, kept)
    other = Observer(scenario, layout)
    other.set_state(saved)
    np.testing.assert_array_equal(other.observe(state, float(state.bucket_bytes[0])), kept)
    observer.update(rng.integers(0, 50, (25, layout.num_families)), 5.0)
    np.testing.assert_array_equal(other.observe(state, float(state.bucket_bytes[0])), kept)


def test_clock_runs_with_the_period_of_the_demand():
    scenario = preset("moving-hotspot")
    period_s = scenario.compile().hotspot[0, 3]
    state = random_state(scenario, np.random.default_rng(3))
    layout = ObservationLayout.from_scenario(scenario, observe_clock=True)
    observer = Observer(scenario, layout)
    observer.reset(state)
    for turn in (0.0, 0.25, 0.6):
        state.now[0] = (3 + turn) * period_s
        observation = observer.observe(state, float(state.bucket_bytes[0]))
        expected = [math.sin(2 * math.pi * turn), math.cos(2 * math.pi * turn)]
        np.testing.assert_allclose(
            2.0 * layout.decode(observation, "clock") - 1.0, expected, atol=1e-6
        )


def test_neighbourhood_reaches_one_to_two_spacings():
    scenario = preset("moving-hotspot")
    lengths = {
        xi: neighbourhood_length_km(scenario.with_overrides({"radio.xi": xi}))
        for xi in (1e-6, 0.2, 1e6)
    }
    assert lengths[1e-6] == 2.0
    assert lengths[1e6] == 1.0
    world = scenario.compile()
    saving_s = world.type_share @ (world.cold_prefill_s - world.min_prefill_s)
    assert lengths[0.2] == pytest.approx(math.sqrt(saving_s / 0.2))
    assert 1.0 < lengths[0.2] < 2.0
