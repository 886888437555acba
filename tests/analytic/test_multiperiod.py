"""Paths of placements: against brute force over all paths, and what they must never do."""

from itertools import product

import numpy as np
import pytest

from edgegym.analytic import (
    Exchange,
    PathEnumeration,
    PathExchange,
    TieredNetwork,
    evaluate,
    migration_plan,
    optimize_placement,
    plan_path,
    solve_equilibrium,
)
from edgegym.world import preset
from tests.analytic.networks import paper_network

TARGET_S = 0.8
PRICES = np.array([[0, 4, 7], [0, 0, 3], [0, 0, 0]])
BUDGET = 4.0


def network(intensity: float = 3.0, long_share: float = 0.6) -> TieredNetwork:
    """Return the paper's nodes at another load and share of long prompts."""
    return paper_network(intensity, type_probabilities=[1.0 - long_share, long_share])


RISING = (network(2.0, 0.2), network(3.0, 0.5), network(3.5, 0.8))


def coverage(net: TieredNetwork, counts: tuple[int, ...]) -> float:
    changed = net.with_mix(np.array(counts) / sum(counts))
    equilibrium = solve_equilibrium(changed)
    value = evaluate(changed, equilibrium, TARGET_S).coverage
    return value if equilibrium.stable else value - 1.0


def brute_force(networks, start, weight, level, budget, burst) -> float:
    """Return the best objective of all paths, one after the other."""
    nodes = sum(start)
    placements = [p for p in product(range(nodes + 1), repeat=3) if sum(p) == nodes]
    value = [{p: coverage(net, p) for p in placements} for net in networks]
    price = {(a, b): migration_plan(a, b, PRICES).bytes for a in placements for b in placements}
    best = -np.inf
    for path in product(placements, repeat=len(networks)):
        held, total, before = level, 0.0, tuple(start)
        for epoch, after in enumerate(path):
            spent = price[before, after]
            if spent > held:
                break
            held = min(held - spent + budget, burst)
            total += value[epoch][after] - weight * spent
            before = after
        else:
            best = max(best, total)
    return best


@pytest.mark.parametrize(
    ("start", "weight", "level", "budget", "burst"),
    [
        ((3, 0, 0), 0.0, 4.0, 4.0, 4.0),
        ((3, 0, 0), 0.0, 3.0, 4.0, 8.0),  # saves for what it can't pay at once
        ((0, 3, 0), 0.01, 7.0, 3.0, 9.0),
        ((1, 1, 1), 0.05, 7.0, 7.0, 7.0),
    ],
)
def test_enumeration_is_the_best_of_all_paths(start, weight, level, budget, burst) -> None:
    plan = plan_path(
        RISING,
        start_counts=start,
        move_bytes=PRICES,
        budget_bytes=budget,
        level_bytes=level,
        burst_bytes=burst,
        weight=weight,
        ttft_target_s=TARGET_S,
        method="enumeration",
    )
    expected = brute_force(RISING, start, weight, level, budget, burst)
    assert plan.objective == pytest.approx(expected, abs=2e-5)


def test_the_exchange_finds_the_best_path_of_small_problems() -> None:
    rng = np.random.default_rng(0)
    short = 0
    for _ in range(8):
        networks = [network(rng.uniform(1.0, 4.0), rng.uniform(0.1, 0.9)) for _ in range(3)]
        kwargs = {
            "start_counts": rng.multinomial(5, [0.4, 0.4, 0.2]),
            "move_bytes": PRICES,
            "budget_bytes": rng.uniform(3.0, 9.0),
            "weight": rng.choice([0.0, 0.01]),
            "ttft_target_s": TARGET_S,
        }
        exact = plan_path(networks, method=PathEnumeration(), **kwargs)
        found = plan_path(networks, method=PathExchange(screen=40), **kwargs)
        assert found.objective <= exact.objective + 2e-5
        assert found.objective > exact.objective - 0.02
        short += found.objective < exact.objective - 2e-5
    assert short <= 2


def test_a_plan_adds_up_and_never_overdraws_the_bucket() -> None:
    scenario = preset("stationary")
    world = scenario.compile()
    net = scenario.tiered_network()
    gib = 2**30
    start = np.array([5, 5, 3, 3, 3, 2, 2, 2])
    plan = plan_path(
        [net, net],
        start_counts=start,
        move_bytes=world.move_bytes,
        budget_bytes=6.5 * gib,
        level_bytes=9 * gib,
        burst_bytes=9 * gib,
        ttft_target_s=TARGET_S,
        method=PathExchange(screen=4, surcharges=(0.3,)),
    )
    level, before = 9 * gib, start
    for counts, moves, spent in zip(plan.counts, plan.moves, plan.bytes, strict=True):
        np.testing.assert_array_equal(before - moves.sum(axis=1) + moves.sum(axis=0), counts)
        assert spent == (moves * world.move_bytes).sum()
        assert spent <= level
        level, before = min(level - spent + 6.5 * gib, 9 * gib), counts
    np.testing.assert_allclose(plan.mixes, plan.counts / 25)
    assert plan.objective == pytest.approx(plan.coverage.sum())
    held = net.with_mix(start / 25)
    assert plan.coverage[0] > evaluate(held, solve_equilibrium(held), TARGET_S).coverage
    assert plan.coverage[1] >= plan.coverage[0]


def test_no_bytes_no_moves_that_cost() -> None:
    plan = plan_path(
        RISING, start_counts=[2, 1, 1], move_bytes=PRICES, budget_bytes=0.0, ttft_target_s=TARGET_S
    )
    assert plan.bytes.tolist() == [0, 0, 0]


def test_a_byte_too_dear_moves_nothing() -> None:
    plan = plan_path(
        RISING,
        start_counts=[0, 4, 0],
        move_bytes=PRICES + 1 - np.eye(3, dtype=int),
        budget_bytes=50.0,
        weight=10.0,
        ttft_target_s=TARGET_S,
    )
    np.testing.assert_array_equal(plan.counts, [[0, 4, 0]] * 3)
    assert not plan.moves.any()


def test_moves_are_made_ahead_of_a_demand_that_the_budget_could_not_follow() -> None:
    # One deep node costs all of an epoch's bytes: for two of them at the peak, one moves before.
    networks = [network(1.0, 0.1), network(1.0, 0.1), network(3.0, 0.9)]
    plan = plan_path(
        networks,
        start_counts=[0, 4, 0],
        move_bytes=PRICES,
        budget_bytes=3.0,
        ttft_target_s=TARGET_S,
        method="enumeration",
    )
    assert plan.counts[-1, 2] == 3
    assert (np.diff(plan.counts[:, 2], prepend=0) == 1).all()


def test_one_long_epoch_without_a_budget_is_the_optimal_placement() -> None:
    net = network()
    best = optimize_placement(net, ttft_target_s=TARGET_S, method=Exchange(step=0.1))
    plan = plan_path(
        [net],
        start_counts=[4, 4, 2],
        move_bytes=PRICES,
        budget_bytes=1e6,
        ttft_target_s=TARGET_S,
    )
    assert plan.coverage[0] == pytest.approx(best.coverage, abs=2e-3)
    assert plan.converged


def test_steps_are_limited_and_reported() -> None:
    lines: list[str] = []
    plan = plan_path(
        RISING,
        start_counts=[4, 0, 0],
        move_bytes=PRICES,
        budget_bytes=14.0,
        ttft_target_s=TARGET_S,
        method=PathExchange(max_steps=1, surcharges=(0.0,)),
        report=lines.append,
    )
    assert not plan.converged
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("networks", []),
        ("start_counts", [1, 2]),
        ("start_counts", [1, 2, 0.5]),
        ("start_counts", [0, 0, 0]),
        ("start_counts", [2, -1, 1]),
        ("move_bytes", np.ones((3, 3))),
        ("move_bytes", PRICES[:2]),
        ("move_bytes", -PRICES),
        ("budget_bytes", -1.0),
        ("budget_bytes", float("nan")),
        ("level_bytes", "x"),
        ("burst_bytes", -1.0),
        ("weight", float("inf")),
        ("method", "annealing"),
        ("method", None),
    ],
)
def test_wrong_arguments_are_named(field, value) -> None:
    kwargs = {
        "networks": RISING,
        "start_counts": [1, 2, 1],
        "move_bytes": PRICES,
        "budget_bytes": BUDGET,
        "ttft_target_s": TARGET_S,
    } | {field: value}
    with pytest.raises(ValueError, match=field):
        plan_path(kwargs.pop("networks"), **kwargs)


def test_too_many_placements_are_refused() -> None:
    with pytest.raises(ValueError, match="enumeration of"):
        plan_path(
            RISING,
            start_counts=[40, 40, 40],
            move_bytes=PRICES,
            budget_bytes=BUDGET,
            ttft_target_s=TARGET_S,
            method="enumeration",
        )


@pytest.mark.parametrize(
    ("field", "value"), [("screen", 0), ("max_steps", -1), ("surcharges", ()), ("surcharges", 0.1)]
)
def test_wrong_settings_are_named(field, value) -> None:
    with pytest.raises(ValueError, match=field):
        PathExchange(**{field: value})
