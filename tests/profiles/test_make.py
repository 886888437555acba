from typing import Any, cast

import numpy as np
import pytest

from edgegym.analytic import evaluate, solve_equilibrium
from edgegym.profiles import (
    CandidateProfile,
    Cluster,
    Greedy,
    Knapsack,
    additive_value_s,
    candidate_profile,
    family_clusters,
    lifetime_value_s,
    make_profiles,
    path_score,
    root_clusters,
    scenario_demand,
    valid_share,
    without_dominated,
)
from edgegym.world import Scenario, preset
from tests.profiles.forests import random_demand


def promised(profiles, demand, usable, runtime, number):
    """What every set of made profiles promises."""
    assert 1 <= len(profiles) <= number
    assert profiles[0].name == "uncached"
    assert profiles[0].vertices == ()
    assert len({p.vertices for p in profiles}) == len({p.name for p in profiles}) == len(profiles)
    for profile in profiles:
        held = frozenset(profile.vertices)
        assert demand.closure(held) == held
        assert profile.bytes == demand.total_bytes(held)
        assert profile.hit_tokens == demand.hit_tokens(held)
        assert profile.concurrency == (usable - profile.bytes) // runtime >= 1
    assert without_dominated(profiles[1:]) == list(profiles[1:])


@pytest.mark.parametrize("fill", [None, Knapsack()])
@pytest.mark.parametrize("seed", range(8))
def test_made_profiles_keep_their_promises(seed, fill):
    demand = random_demand(
        seed, vertices=20, types=15, type_family=[f"f{q % 4}" for q in range(15)]
    )
    usable = int(demand.bytes.sum())
    for number in (1, 4, 12):
        for runtime in (1, usable // 3, usable):
            profiles = make_profiles(
                demand, usable_bytes=usable, runtime_bytes=runtime, number=number, fill=fill
            )
            promised(profiles, demand, usable, runtime, number)


def test_the_exact_fill_saves_no_less():
    better = 0
    for seed in range(20):
        demand = random_demand(seed, vertices=14, types=14)
        usable = int(demand.bytes.sum())
        shared = [
            make_profiles(
                demand, usable_bytes=usable, runtime_bytes=1, levels=[0.4], clusters=[], fill=fill
            )[-1]
            for fill in (None, Knapsack())
        ]
        greedy, exact = (demand.saved_s(frozenset(p.vertices)) for p in shared)
        assert exact >= greedy - 1e-12
        better += exact > greedy + 1e-9
    assert better > 0


def test_clusters_of_families_and_of_trees():
    demand = scenario_demand(preset("stationary"))
    families = family_clusters(demand)
    named = {c.name: {demand.vertex_names[v] for v in c.vertices} for c in families}
    assert named["family_2"] == {"root", "family_2"}
    (tree,) = root_clusters(demand)
    assert tree.name == "root"
    assert tree.vertices == tuple(range(demand.num_vertices))


def test_the_presets_own_profiles_come_out():
    # Nothing, the root alone, and the root with each of six families: chosen by hand there.
    scenario = preset("stationary")
    made = make_profiles(
        scenario_demand(scenario),
        usable_bytes=scenario.hardware.usable_bytes,
        runtime_bytes=scenario.runtime_bytes_per_sequence,
        levels=[0.45],
    )
    found = {frozenset(profile.vertex_names) for profile in made}
    assert len(made) == len(found) == 8
    assert found == set(scenario.catalogue.profile_sets)


def test_made_profiles_are_a_scenarios_profiles():
    scenario = preset("stationary")
    made = make_profiles(
        scenario_demand(scenario),
        usable_bytes=scenario.hardware.usable_bytes,
        runtime_bytes=scenario.runtime_bytes_per_sequence,
        number=8,
        fill=Knapsack(),
    )
    document = scenario.document() | {
        "profiles": [profile.as_profile() for profile in made],
        "initial": {"mix": {profile.name: 1 / len(made) for profile in made}},
    }
    built = Scenario(**document)
    assert built.concurrency == tuple(profile.concurrency for profile in made)
    assert built.state_bytes == tuple(profile.bytes for profile in made)
    hits = built.catalogue.hit_tokens[: len(made)]
    np.testing.assert_array_equal(hits, [profile.hit_tokens for profile in made])
    net = built.tiered_network()
    equilibrium = solve_equilibrium(net)
    assert equilibrium.converged
    assert 0.3 < evaluate(net, equilibrium, 0.8).coverage < 1.0


def test_what_expires_soon_is_not_kept():
    scenario = preset("stationary")
    lifetimes = {"family_1": 0.01}
    demand = scenario_demand(scenario, lifetime_s=lifetimes)
    value = lifetime_value_s(demand, requests_per_s=3.0)
    place = demand.vertex_names.index("family_1")
    assert value[place] < 0.1 * additive_value_s(demand)[place]
    arguments = {
        "usable_bytes": scenario.hardware.usable_bytes,
        "runtime_bytes": scenario.runtime_bytes_per_sequence,
        "levels": [0.45],
        "clusters": [],
    }
    assert "family_1" in make_profiles(demand, **arguments)[1].vertex_names
    assert "family_1" not in make_profiles(demand, **arguments, value_s=value)[1].vertex_names


def profile(size, hits, slots, name="p"):
    return CandidateProfile(name, (), (), size, hits, slots)


def test_dominance_needs_all_three():
    base = profile(10, (5, 5), 4)
    kept = without_dominated([base])
    assert kept == [base]
    assert without_dominated([]) == []
    # Worse in one and better in none: gone.
    for worse in (profile(11, (5, 5), 4), profile(10, (5, 4), 4), profile(10, (5, 5), 3)):
        assert without_dominated([worse, base]) == [base]
    # Better in one of them: both stay, in order.
    for other in (profile(9, (5, 4), 4), profile(11, (6, 5), 4), profile(11, (5, 5), 5)):
        assert without_dominated([other, base]) == [other, base]
    # Equals stay.
    assert len(without_dominated([base, base])) == 2


def test_the_fallback_stays_although_a_prefix_without_bytes_beats_it():
    demand = random_demand(2, bytes=np.zeros(9, dtype=int))
    made = make_profiles(demand, usable_bytes=100, runtime_bytes=10)
    assert [p.name for p in made] == ["uncached", "shared_50"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("usable_bytes", 0),
        ("usable_bytes", 9),
        ("usable_bytes", "1"),
        ("runtime_bytes", 1.5),
        ("number", 0),
        ("number", True),
        ("levels", [0.5, 0.501]),
        ("levels", [0.0]),
        ("levels", 0.5),
        ("levels", "half"),
        ("levels", [1.5]),
        ("value_s", [1.0]),
        ("value_s", [-1.0] * 9),
        ("value_s", [np.nan] * 9),
        ("clusters", [Cluster("shared", (0,))]),
        ("clusters", [Cluster("a", (0,)), Cluster("a", (1,))]),
        ("clusters", [Cluster("a", (9,))]),
    ],
)
def test_wrong_arguments_are_refused_by_name(field, value):
    arguments = {"usable_bytes": 100, "runtime_bytes": 10} | {field: value}
    with pytest.raises(ValueError, match=rf"^{field}.*must"):
        make_profiles(random_demand(0), **arguments)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clusters", 5),
        ("clusters", ["a"]),
        ("fill", "greedy"),
        ("fill", np.zeros(3)),
        ("fill", 0),
    ],
)
def test_what_is_no_cluster_or_fill_is_refused(field, value):
    arguments = {"usable_bytes": 100, "runtime_bytes": 10} | {field: value}
    with pytest.raises(TypeError, match=rf"^{field} (is|holds) .*must be"):
        make_profiles(random_demand(0), **arguments)


def test_what_is_no_forest_is_refused():
    nothing: Any = None
    for call in (
        lambda: make_profiles(nothing, usable_bytes=10, runtime_bytes=1),
        lambda: candidate_profile("a", nothing, [], usable_bytes=10, runtime_bytes=1),
        lambda: family_clusters(nothing),
        lambda: root_clusters(nothing),
        lambda: path_score(nothing),
        lambda: additive_value_s(nothing),
        lambda: valid_share(nothing, 1.0),
        lambda: lifetime_value_s(nothing, 1.0),
        lambda: Greedy().fill(nothing, np.zeros(0), 1),
        lambda: Knapsack().fill(nothing, np.zeros(0), 1),
    ):
        with pytest.raises(TypeError, match="demand is None: must be a ForestDemand"):
            call()
    with pytest.raises(TypeError, match="scenario is None: must be a Scenario"):
        scenario_demand(nothing)
    with pytest.raises(TypeError, match="profiles holds 1: must be CandidateProfiles"):
        without_dominated([cast("Any", 1)])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", None),
        ("usable_bytes", np.nan),
        ("usable_bytes", "100"),
        ("runtime_bytes", 0),
        ("runtime_bytes", 1.5),
    ],
)
def test_wrong_arguments_of_a_profile_are_refused_by_name(field, value):
    arguments = {"name": "a", "usable_bytes": 100, "runtime_bytes": 1} | {field: value}
    with pytest.raises(ValueError, match=rf"^{field} is .*must be"):
        candidate_profile(demand=random_demand(0), vertices=[], **arguments)
    with pytest.raises(ValueError, match=r"^profile 'a': 5: must be several vertices"):
        candidate_profile("a", random_demand(0), cast("Any", 5), usable_bytes=9, runtime_bytes=1)


def test_a_profile_that_leaves_no_room_is_refused():
    demand = random_demand(0, bytes=[10] * 9)
    with pytest.raises(ValueError, match=r"^usable_bytes is 100: must hold profile 'all' of 90 b"):
        candidate_profile("all", demand, range(9), usable_bytes=100, runtime_bytes=11)
