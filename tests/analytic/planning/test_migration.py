import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from edgegym.analytic import migration_plan
from edgegym.analytic.planning import transport
from edgegym.world import preset
from tests.profiles.forests import random_demand


def fewest_bytes(current, target, move_bytes):
    """Bellman's equation over all placements that moves of one node lead to."""
    size = len(current)
    best = {tuple(current): 0}
    frontier = [tuple(current)]
    while frontier:
        reached = []
        for here in frontier:
            for s in range(size):
                for t in range(size):
                    if s == t or here[s] == 0:
                        continue
                    there = list(here)
                    there[s] -= 1
                    there[t] += 1
                    price = best[here] + int(move_bytes[s][t])
                    if price < best.get(tuple(there), price + 1):
                        best[tuple(there)] = price
                        reached.append(tuple(there))
        frontier = reached
    return best[tuple(target)]


def check(plan, current, target, move_bytes):
    """What every plan promises."""
    assert (plan.moves >= 0).all()
    assert np.diag(plan.moves).sum() == 0
    net = plan.moves.sum(axis=1) - plan.moves.sum(axis=0)
    assert net.tolist() == (np.asarray(current) - target).tolist()
    assert plan.bytes == (plan.moves.astype(object) * move_bytes).sum()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 4),
    nodes=st.integers(0, 5),
)
def test_no_sequence_of_moves_takes_fewer_bytes(seed, size, nodes):
    # Any prices, so that detours may pay.
    rng = np.random.default_rng(seed)
    move_bytes = rng.integers(0, 9, (size, size))
    current, target = (rng.multinomial(nodes, rng.dirichlet(np.ones(size))) for _ in range(2))
    plan = migration_plan(current, target, move_bytes)
    check(plan, current, target, move_bytes)
    assert plan.bytes == fewest_bytes(current, target, move_bytes)


def test_a_detour_is_taken_where_it_is_cheaper():
    move_bytes = [[0, 9, 1], [9, 0, 9], [9, 2, 0]]
    plan = migration_plan([2, 0, 0], [0, 2, 0], move_bytes)
    assert plan.moves.tolist() == [[0, 0, 2], [0, 0, 0], [0, 2, 0]]
    assert plan.bytes == 6


@pytest.mark.parametrize("seed", range(30))
def test_missing_vertices_never_make_a_detour_pay(seed):
    # Bytes of t without s obey the triangle inequality: what a third profile brings, t brings too.
    demand = random_demand(seed, vertices=8, most_bytes=1000)
    rng = np.random.default_rng(seed)
    sets = [demand.closure(rng.permutation(8)[: rng.integers(0, 5)].tolist()) for _ in range(6)]
    move_bytes = np.array([[demand.total_bytes(t - s) for t in sets] for s in sets])
    by_third = (move_bytes[:, :, None] + move_bytes[None, :, :]).min(axis=1)
    assert (by_third >= move_bytes).all()
    current, target = (rng.multinomial(20, rng.dirichlet(np.ones(6))) for _ in range(2))
    plan = migration_plan(current, target, move_bytes)
    check(plan, current, target, move_bytes)
    # Straight moves only, so a node moves at most once and what has its count stays.
    assert plan.moves.sum() == np.maximum(current - target, 0).sum()
    assert ((plan.moves.sum(axis=1) == 0) | (plan.moves.sum(axis=0) == 0)).all()


def linear_program(current, target, move_bytes):
    size = len(current)
    balance = np.zeros((size, size * size))
    for s in range(size):
        for t in range(size):
            balance[s, s * size + t] += 1
            balance[t, s * size + t] -= 1
    price = np.asarray(move_bytes, dtype=np.float64).ravel()
    found = linprog(price, A_eq=balance, b_eq=np.asarray(current) - target, method="highs")
    return found.fun


@pytest.mark.parametrize(
    ("size", "nodes"), [(3, 10**6), (8, 5000), (20, 3000), (70, 400), (8, 250)]
)
def test_large_fleets_as_a_linear_program(size, nodes):
    rng = np.random.default_rng(size)
    move_bytes = rng.integers(0, 1000, (size, size))
    current, target = (rng.multinomial(nodes, rng.dirichlet(np.ones(size))) for _ in range(2))
    plan = migration_plan(current, target, move_bytes)
    check(plan, current, target, move_bytes)
    assert plan.bytes == pytest.approx(linear_program(current, target, move_bytes), rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_matching_and_augmenting_agree(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 6, 2)
    units = int(rng.integers(max(rows, columns), 30))
    supply = rng.multinomial(units - rows, np.full(rows, 1 / rows)) + 1
    need = rng.multinomial(units - columns, np.full(columns, 1 / columns)) + 1
    cost = rng.integers(0, 8, (rows, columns))
    one, other = (f(supply, need, cost) for f in (transport._matched, transport._augmented))
    for flows in (one, other):
        assert flows.sum(axis=1).tolist() == supply.tolist()
        assert flows.sum(axis=0).tolist() == need.tolist()
    assert (one * cost).sum() == (other * cost).sum()


@pytest.mark.parametrize("cheap", [(0, 2), (0, 3)])
@pytest.mark.parametrize("count", [1, 300])
def test_bytes_beyond_the_precision_of_floats(cheap, count):
    # The pairings differ by one byte in 10^17.
    huge = 10**17
    move_bytes = np.full((4, 4), huge)
    move_bytes[cheap] = huge - 1
    plan = migration_plan([count, count, 0, 0], [0, 0, count, count], move_bytes)
    assert plan.bytes == 2 * count * huge - count
    assert plan.moves[cheap] == count


def test_by_hand() -> None:
    # none, shallow, deep_1..6: to shallow from deep is free, to deep_2 from deep_1 costs 3 GiB.
    move_bytes = preset("stationary").compile().move_bytes
    current = np.array([2, 0, 2, 0, 0, 0, 0, 0])
    target = np.array([0, 2, 0, 2, 0, 0, 0, 0])
    plan = migration_plan(current, target, move_bytes)
    # 2 x (none -> shallow, 4 GiB) and 2 x (deep_1 -> deep_2, 3 GiB), not 2 x 0 + 2 x 7 = as much:
    # both plans cost 14 GiB, so only the balance and the cost are fixed.
    check(plan, current, target, move_bytes)
    assert plan.bytes == 14 * 2**30
    assert plan.moves.sum() == 4  # nothing moves that need not


def test_free_moves_are_preferred() -> None:
    move_bytes = preset("stationary").compile().move_bytes
    plan = migration_plan([0, 0, 3, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0], move_bytes)
    assert plan.bytes == 0
    assert plan.moves[2, 0] == plan.moves[2, 1] == 1


def test_moves_are_paired_by_bytes() -> None:
    move_bytes = np.zeros((4, 4), dtype=np.int64)
    move_bytes[:2, 2:] = [[1, 5], [1, 2]]
    move_bytes[2:, 2:] = move_bytes[:2, :2] = 9
    plan = migration_plan([1, 1, 0, 0], [0, 0, 1, 1], move_bytes)
    assert plan.moves[0].tolist() == [0, 0, 1, 0]  # 1 + 2 bytes; the other way round 5 + 1
    assert plan.moves[1].tolist() == [0, 0, 0, 1]


def test_shares_are_rounded_to_nodes():
    move_bytes = [[0, 10], [0, 0]]
    plan = migration_plan([1.0, 0.0], [0.5, 0.5], move_bytes, nodes=5)
    assert plan.current.tolist() == [5, 0]
    assert plan.target.tolist() == [3, 2]
    assert plan.bytes == 20
    nothing = migration_plan([0.3, 0.7], [0.3, 0.7], move_bytes, nodes=7)
    assert nothing.bytes == nothing.moves.sum() == 0


BYTES = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("current", ([1.5, 0], [1, 0], BYTES)),
        ("current", ([-1, 2], [1, 0], BYTES)),
        ("current", ("ab", [1, 0], BYTES)),
        ("current", ([True, False], [1, 0], BYTES)),
        ("current", ([1, 0, 0], [1, 0], BYTES)),
        ("current", ([[1, 0]], [1, 0], BYTES)),
        ("target", ([1, 0], [2, 0], BYTES)),
        ("target", ([1, 0], [np.nan, 0], BYTES)),
        ("move_bytes", ([1, 0], [0, 1], [0, 1])),
        ("move_bytes", ([1, 0], [0, 1], [[0, 1]])),
        ("move_bytes", ([1, 0], [0, 1], [[0, -1], [1, 0]])),
        ("move_bytes", ([1, 0], [0, 1], [[0, 1e19], [1, 0]])),
    ],
)
def test_wrong_arguments_are_refused_by_name(field, arguments):
    with pytest.raises(ValueError, match=rf"^{field}.*must"):
        migration_plan(*arguments)


@pytest.mark.parametrize(
    ("field", "current", "nodes"),
    [
        ("current", [0.5, 0.4], 3),
        ("current", [np.inf, 0.0], 3),
        ("current", [-0.5, 1.5], 3),
        ("nodes", [0.5, 0.5], 1.5),
        ("nodes", [0.5, 0.5], -1),
    ],
)
def test_wrong_shares_are_refused_by_name(field, current, nodes):
    with pytest.raises(ValueError, match=rf"^{field}.*must"):
        migration_plan(current, [0.5, 0.5], BYTES, nodes=nodes)
