import numpy as np
import pytest

from edgegym.policies import make_policy
from edgegym.policies.analytic import Target
from edgegym.policies.base import CounterRandom
from edgegym.policies.local import LocalDemand, LocalSettings, family_savings_s, own_weight
from edgegym.world import preset
from tests.policies.observations import make_observation

SCENARIO = preset("moving-hotspot")
WORLD = SCENARIO.compile()
NODES, PROFILES, FAMILIES = 25, 8, 7
NO_OP = NODES * PROFILES
RATES = WORLD.mean_rate_per_s * WORLD.family_share
DEEP = 2  # profile of family 0; DEEP + f holds family f


def choose(held, near, *, mix=None, holders=None, settings=None, **kwargs) -> int:
    row = make_observation(SCENARIO, held, near_demand_per_s=near, near_holders=holders, **kwargs)
    view = make_policy("static", SCENARIO)._reader.view(row)
    here = np.bincount(held, minlength=PROFILES) / NODES
    target = Target(here if mix is None else mix, RATES)
    return LocalDemand(SCENARIO, settings).choose(view, target, CounterRandom(0, 0, 0))


def nobody_else(held) -> np.ndarray:
    return np.eye(PROFILES)[held] * own_weight(SCENARIO)


def flat_demand() -> np.ndarray:
    return np.tile(RATES / NODES, (NODES, 1))


def test_savings_by_hand() -> None:
    savings = family_savings_s(SCENARIO)
    prefill = lambda n: 2.5e-4 * n + 1.4e-8 * n**2  # noqa: E731
    assert savings.shape == (PROFILES, FAMILIES)
    assert savings[DEEP, 0] == pytest.approx(prefill(4096) - prefill(1024))
    assert savings[DEEP, 1] == pytest.approx(prefill(4096) - prefill(3840))  # the shared root
    assert savings[1, 6] == pytest.approx(prefill(1024) - prefill(768))
    assert savings[0].max() == 0.0


def test_savings_weigh_the_types_of_a_family() -> None:
    scenario = preset("paper").with_overrides(
        {"request_types.short.family": "all", "request_types.long.family": "all"}
    )
    world = scenario.compile()
    expected = (world.cold_prefill_s - world.prefill_s[:3]) @ np.array([0.4, 0.6])
    np.testing.assert_allclose(family_savings_s(scenario)[:, 0], expected)


def test_own_weight_matches_the_mean_of_real_neighbourhoods() -> None:
    from edgegym.interface.neighbourhood import build_neighbourhood, neighbourhood_length_km

    rng = np.random.default_rng(0)
    own = []
    for _ in range(20):
        x, y = rng.uniform(0.0, 5.0, (2, NODES))
        around = build_neighbourhood(WORLD, neighbourhood_length_km(SCENARIO), x, y, NODES)
        for node in range(NODES):
            entries = slice(around.row_start[node], around.row_start[node + 1])
            own.append(around.weight[entries][around.node[entries] == node].item())
    assert 1.0 / own_weight(SCENARIO) == pytest.approx(np.mean(1.0 / np.array(own)), rel=0.1)


def test_the_hot_node_takes_the_hot_prefix() -> None:
    held = np.full(NODES, 1)
    near = flat_demand()
    near[7, 2] = 3.0
    assert choose(held, near, holders=nobody_else(held)) == 7 * PROFILES + DEEP + 2


def test_profiles_change_places_when_the_mix_is_right() -> None:
    held = DEEP + np.arange(NODES) % 6
    near = flat_demand()
    near[:, :6] = 0.01
    for node in range(NODES):
        near[node, held[node] - DEEP] = 2.0
    near[3], near[4] = near[4].copy(), near[3].copy()  # each holds what the other's users want
    quiet = choose(held, near, holders=nobody_else(held))
    assert divmod(quiet, PROFILES) in [(3, held[4]), (4, held[3])]
    held[3], held[4] = held[4], held[3]
    assert choose(held, near, holders=nobody_else(held)) == NO_OP


def test_hysteresis_keeps_small_gains_from_moving() -> None:
    held = np.full(NODES, DEEP)
    near = np.full((NODES, FAMILIES), 0.2)
    near[5, 1] = 0.3
    holders = nobody_else(held)
    eager = LocalSettings(hysteresis=0.0, prior_requests=0.0)
    assert choose(held, near, holders=holders, settings=eager) == 5 * PROFILES + DEEP + 1
    lazy = LocalSettings(hysteresis=0.2, prior_requests=0.0)
    assert choose(held, near, holders=holders, settings=lazy) == NO_OP


def test_demand_that_others_serve_counts_less() -> None:
    held = np.full(NODES, 1)
    near = np.zeros((NODES, FAMILIES))
    near[:, 0], near[:, 1] = 1.0, 0.6
    holders = nobody_else(held)
    assert choose(held, near, holders=holders) % PROFILES == DEEP
    holders[:, DEEP] = 2.0 * own_weight(SCENARIO)  # two others around hold family 0
    assert choose(held, near, holders=holders) % PROFILES == DEEP + 1
    blind = LocalSettings(crowding=0.0)
    assert choose(held, near, holders=holders, settings=blind) % PROFILES == DEEP


def test_a_mix_far_off_pulls_against_local_demand() -> None:
    held = np.full(NODES, 0)
    near = np.full((NODES, FAMILIES), 0.0)
    near[:, 0] = 0.5
    mix = np.zeros(PROFILES)
    mix[DEEP + 3] = 1.0
    settings = LocalSettings(mix_weight=1.0)
    action = choose(held, near, mix=mix, holders=nobody_else(held), settings=settings)
    assert action % PROFILES == DEEP + 3
    # Within the tolerance the mix has no say.
    settings = LocalSettings(mix_weight=1.0, mix_tolerance=1.0)
    action = choose(held, near, mix=mix, holders=nobody_else(held), settings=settings)
    assert action % PROFILES == DEEP


def test_the_mix_term_is_the_change_of_the_squared_miss() -> None:
    rng = np.random.default_rng(1)
    settings = LocalSettings(mix_weight=0.3, mix_tolerance=0.08)
    chooser = LocalDemand(SCENARIO, settings)
    free = LocalDemand(SCENARIO, LocalSettings(mix_weight=0.0))
    held = rng.integers(0, PROFILES, NODES)
    view = make_policy("static", SCENARIO)._reader.view(make_observation(SCENARIO, held))
    target = Target(rng.dirichlet(np.ones(PROFILES)), RATES)
    term = chooser.worth(view, target) - free.worth(view, target)

    def miss(placement: np.ndarray) -> float:
        off = np.abs(target.mix * NODES - np.bincount(placement, minlength=PROFILES))
        return 0.5 * (np.maximum(off - 0.08 * NODES, 0.0) ** 2).sum()

    for node in range(NODES):
        for profile in set(range(PROFILES)) - {held[node]}:
            moved = held.copy()
            moved[node] = profile
            assert term[node, profile] == pytest.approx(0.3 * (miss(held) - miss(moved)))


def test_few_requests_are_no_hotspot() -> None:
    held = np.full(NODES, DEEP)
    chooser = LocalDemand(SCENARIO, LocalSettings(prior_requests=100.0))
    near = np.zeros((NODES, FAMILIES))
    near[0, 1] = 10.0
    near[1, 1] = 0.001
    row = make_observation(SCENARIO, held, near_demand_per_s=near)
    view = make_policy("static", SCENARIO)._reader.view(row)
    believed = chooser.nearby_demand_per_s(view, Target(np.ones(PROFILES) / PROFILES, RATES))
    np.testing.assert_allclose(believed[1], RATES / NODES, rtol=0.02)
    assert believed[0, 1] == pytest.approx(10.0, rel=0.05)


def test_illegal_moves_are_never_chosen() -> None:
    held = np.full(NODES, 1)
    near = flat_demand()
    near[7, 2] = 3.0
    action = choose(held, near, holders=nobody_else(held), receiving=[7])
    assert action // PROFILES != 7
    assert choose(held, near, holders=nobody_else(held), receiving=np.arange(NODES)) == NO_OP


@pytest.mark.parametrize(
    "field", ["prior_requests", "crowding", "mix_tolerance", "mix_weight", "hysteresis"]
)
def test_negative_settings_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} is -0.1"):
        LocalSettings(**{field: -0.1})
