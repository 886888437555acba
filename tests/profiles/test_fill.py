import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.profiles import ForestDemand, Greedy, Knapsack, additive_value_s
from tests.profiles.forests import PREFILL, closed_sets, random_demand


def best_by_brute_force(demand, value, room):
    return max(
        value[sorted(held)].sum()
        for held in closed_sets(demand)
        if demand.total_bytes(held) <= room
    )


@pytest.mark.parametrize("most_bytes", [2, 50, 10**12])
@pytest.mark.parametrize("seed", range(25))
def test_knapsack_is_the_best_of_all_sets(seed, most_bytes):
    demand = random_demand(seed, vertices=10, most_bytes=most_bytes)
    value = additive_value_s(demand)
    for part in (0.0, 0.1, 0.3, 0.6, 1.0):
        room = int(part * demand.bytes.sum())
        held = Knapsack().fill(demand, value, room)
        assert demand.closure(held) == held
        assert demand.total_bytes(held) <= room
        best = best_by_brute_force(demand, value, room)
        assert value[sorted(held)].sum() == pytest.approx(best, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("seed", range(12))
def test_knapsack_within_a_scope_counts_only_the_scope(seed):
    demand = random_demand(seed, vertices=9)
    rng = np.random.default_rng(seed)
    scope = rng.permutation(9)[:5].tolist()
    value = additive_value_s(demand)
    inside = np.zeros(9)
    inside[scope] = value[scope]
    room = int(0.4 * demand.bytes.sum())
    held = Knapsack().fill(demand, value, room, scope)
    assert demand.closure(held) == held
    assert demand.total_bytes(held) <= room
    best = best_by_brute_force(demand, inside, room)
    assert inside[sorted(held)].sum() == pytest.approx(best, rel=1e-12, abs=1e-15)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    values=st.lists(st.integers(0, 4), min_size=8, max_size=8),
    part=st.floats(0.0, 1.0),
)
def test_knapsack_with_ties_and_zero_values(seed, values, part):
    demand = random_demand(seed, vertices=8, most_bytes=4)
    value = np.array(values, dtype=np.float64)
    room = int(part * demand.bytes.sum())
    held = Knapsack().fill(demand, value, room)
    best = best_by_brute_force(demand, value, room)
    assert demand.closure(held) == held
    assert value[sorted(held)].sum() == best
    # Of equal sets the one with fewest bytes.
    least = min(
        demand.total_bytes(other)
        for other in closed_sets(demand)
        if value[sorted(other)].sum() == best and demand.total_bytes(other) <= room
    )
    assert demand.total_bytes(held) == least


def test_a_root_that_brings_nothing_itself_is_bought_for_its_children():
    # Weights of 50 bytes with two prefixes below; a prefix of its own that greedy prefers.
    demand = ForestDemand(
        parent=[-1, 0, 0, -1],
        depth_tokens=[0, 1000, 1000, 300],
        bytes=[50, 25, 25, 20],
        type_vertex=[1, 2, 3],
        share=[0.4, 0.4, 0.2],
        input_tokens=[2000] * 3,
        prefill=PREFILL,
    )
    value = additive_value_s(demand)
    assert Knapsack().fill(demand, value, 100) == {0, 1, 2}
    assert Knapsack().fill(demand, value, 99) == {0, 1, 3}
    assert Knapsack().fill(demand, value, 49) == {3}
    assert Knapsack().fill(demand, value, 19) == frozenset()


def test_many_vertices_with_sizes_that_have_no_common_measure():
    demand = random_demand(5, vertices=300, types=300, most_bytes=10**11)
    value = additive_value_s(demand)
    room = int(demand.bytes.sum() // 3)
    best, greedy = (f.fill(demand, value, room) for f in (Knapsack(), Greedy()))
    gain = value[sorted(best)].sum() - value[sorted(greedy)].sum()
    assert 0 <= gain < 0.01 * value[sorted(best)].sum()
    with pytest.raises(ValueError, match=r"^most_choices is 50: must be larger"):
        Knapsack(most_choices=50).fill(demand, value, room)


def slow_greedy(demand, value, room, scope):
    """The rule in plain words, without anything remembered between steps."""
    held = frozenset()
    while True:
        best, best_density = None, 0.0
        for vertex in sorted(scope):
            missing = demand.closure([vertex]) - held
            size = demand.total_bytes(missing)
            gain = float(sum(value[v] for v in sorted(missing)))
            density = gain / size if size else (np.inf if gain > 0 else 0.0)
            if vertex not in held and size <= room and density > best_density:
                best, best_density = vertex, density
        if best is None:
            return held
        missing = demand.closure([best]) - held
        room -= demand.total_bytes(missing)
        held |= missing


@pytest.mark.parametrize("seed", range(20))
def test_greedy_follows_its_rule(seed):
    demand = random_demand(seed, vertices=25, types=20)
    value = additive_value_s(demand)
    scope = range(25) if seed % 2 else range(0, 25, 2)
    for part in (0.2, 0.5, 1.0):
        room = int(part * demand.bytes.sum())
        held = Greedy().fill(demand, value, room, scope)
        assert held == slow_greedy(demand, value, room, scope)
        assert demand.total_bytes(held) <= room


def test_nothing_to_choose_from():
    demand = ForestDemand(
        parent=[],
        depth_tokens=[],
        bytes=[],
        type_vertex=[-1],
        share=[1.0],
        input_tokens=[10],
        prefill=PREFILL,
    )
    for fill in (Greedy(), Knapsack()):
        assert fill.fill(demand, np.zeros(0), 100) == frozenset()


@pytest.mark.parametrize("fill", [Greedy(), Knapsack()])
@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("value_s", (np.full(9, -1.0), 10)),
        ("value_s", (np.full(9, np.inf), 10)),
        ("value_s", (np.ones(8), 10)),
        ("room_bytes", (np.ones(9), -1)),
        ("room_bytes", (np.ones(9), 1.5)),
        ("scope", (np.ones(9), 10, [9])),
        ("scope", (np.ones(9), 10, [-1])),
    ],
)
def test_wrong_arguments_are_refused_by_name(fill, field, arguments):
    with pytest.raises(ValueError, match=rf"^{field}.*must"):
        fill.fill(random_demand(0), *arguments)
    with pytest.raises(ValueError, match=r"^most_choices is 0: must"):
        Knapsack(most_choices=0)
