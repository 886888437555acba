import itertools
import math
import time

import numpy as np
import pytest

from edgegym.analytic import association_law, solve_equilibrium, wait_cdf
from tests.analytic.networks import oracle_network, paper_network, random_network


def induced_waits(net, wait):
    """Return the waits that routing by these waits induces, written out from the equations."""
    share = association_law(net, wait).probability * net.type_probabilities
    result = np.zeros(len(wait))
    for s in np.flatnonzero((net.tier_density > 0) & (share.sum(axis=1) > 0)):
        rate = net.request_intensity * share[s].sum() / net.tier_density[s]
        occupancy = share[s] @ net.occupancy_s[s] / share[s].sum()
        load, slots = rate * occupancy, int(net.concurrency[s])
        blocking = 1.0
        for k in range(1, slots + 1):
            blocking = load * blocking / (k + load * blocking)
        rho = load / slots
        waiting = blocking / (1 - rho * (1 - blocking))
        result[s] = waiting / (slots / occupancy - rate) if rho < 1 else math.inf
    return result


@pytest.mark.parametrize("block", range(3))
def test_300_random_networks(block):
    for k in range(100 * block, 100 * (block + 1)):
        net = random_network([2024, k])
        eq = solve_equilibrium(net)
        assert eq.converged, k
        assert eq.stable, k
        assert eq.residual <= 1e-9, k
        wait = eq.assumed_wait_s
        residual = np.abs(wait - induced_waits(net, wait)) / (1 + wait)
        # Rounding of cost = prefill + wait differs in the separate code; near ties it is amplified.
        assert residual.max() <= 1e-8, k
        assert (eq.utilization < 1).all(), k


def test_random_networks_at_the_highest_load():
    for k in range(40):
        eq = solve_equilibrium(random_network([2025, k], load=0.97))
        assert eq.converged, k
        assert eq.stable, k


@pytest.mark.parametrize(
    ("seed", "load"),
    [([31337, 650], None), ([4242, 1947], None), ([9, 172], 0.97), ([5, 2554], 0.97)],
)
def test_networks_that_once_failed(seed, load):
    # Cycling Newton ends, a wait that raises itself, ties near alpha 5, overload seen too early.
    eq = solve_equilibrium(random_network(seed, load))
    assert eq.converged
    assert eq.stable


def test_overload_is_reported():
    for k in range(20):
        eq = solve_equilibrium(random_network([2026, k], load=20.0))
        assert not eq.stable, k
        assert not eq.converged, k
        assert math.isinf(eq.residual), k
        assert np.isinf(eq.mean_wait_s).any(), k
        assert np.isfinite(eq.assumed_wait_s).all(), k
        assert np.isfinite(eq.association).all(), k


def test_just_below_and_above_the_critical_load():
    below, above = solve_equilibrium(paper_network(10.6)), solve_equilibrium(paper_network(10.75))
    assert below.converged
    assert below.stable
    assert not above.converged
    assert not above.stable
    assert np.isinf(above.mean_wait_s).all()


def test_three_tiers_and_two_types_take_a_millisecond():
    net = paper_network(4.0)
    solve_equilibrium(net)
    times = []
    for _ in range(101):
        begin = time.process_time()
        solve_equilibrium(net)
        times.append(time.process_time() - begin)
    assert np.median(times) < 1e-3


# Below these dampings the iteration converges, above it cycles (a property of the paper's method).
@pytest.mark.parametrize(
    ("intensity", "limit"), [(3, 0.90), (3.5, 0.65), (4, 0.495), (4.5, 0.35), (5, 0.25)]
)
def test_damped_iteration_converges_up_to_its_limit(intensity, limit):
    net = paper_network(intensity)
    exact = solve_equilibrium(net)
    calm = solve_equilibrium(
        net, method="damped", damping=limit - 0.05, tolerance=1e-11, max_iterations=3000
    )
    assert calm.converged
    np.testing.assert_allclose(calm.assumed_wait_s, exact.assumed_wait_s, atol=1e-9)
    wild = solve_equilibrium(net, method="damped", damping=min(limit + 0.05, 1.0))
    assert not wild.converged
    assert wild.residual > 1e-3
    assert wild.cycle_length == 2


def test_history_of_the_damped_iteration():
    net = paper_network(2.0, profile_probabilities=[0.8, 0.0, 0.2])
    eq = solve_equilibrium(net, method="damped", damping=0.3, history=True)
    history = eq.history
    assert history is not None
    assert history.shape == (eq.iterations + 1, 3)
    assert (history[0] == 0).all()
    np.testing.assert_array_equal(history[-1], eq.assumed_wait_s)
    for before, after in itertools.pairwise(history[:6]):
        expected = before + 0.3 * (induced_waits(net, before) - before)
        np.testing.assert_allclose(after, expected, atol=1e-12)
    steps = np.abs(np.diff(history, axis=0)).max(axis=1)
    assert steps[-1] < 1e-6 * steps.max()
    plain = solve_equilibrium(net, method="damped", damping=0.3)
    assert plain.history is None
    np.testing.assert_array_equal(plain.assumed_wait_s, eq.assumed_wait_s)


def test_a_cycle_is_seen_and_said():
    net = paper_network(4.0)
    eq = solve_equilibrium(net, method="damped", damping=0.6, history=True)
    assert not eq.converged
    assert eq.cycle_length == 2
    assert eq.iterations < 1000
    assert eq.history is not None
    jump = np.abs(eq.history[-1] - eq.history[-2]).max()
    assert np.abs(eq.history[-1] - eq.history[-3]).max() < 1e-5 * jump
    # Slow is no cycle.
    slow = solve_equilibrium(net, method="damped", damping=0.49, max_iterations=30)
    assert not slow.converged
    assert slow.cycle_length == 0
    assert slow.iterations == 30


def test_damped_iteration_survives_overload():
    eq = solve_equilibrium(paper_network(30.0), method="damped", max_iterations=50)
    assert not eq.converged
    assert not eq.stable
    assert np.isfinite(eq.assumed_wait_s).all()


@pytest.mark.twin
def test_a_warm_start_finds_the_same_equilibrium():
    exact = solve_equilibrium(paper_network(4.0))
    net = paper_network(4.1)
    cold, warm = solve_equilibrium(net), solve_equilibrium(net, start=exact)
    assert warm.converged
    assert warm.iterations < 7
    np.testing.assert_allclose(warm.assumed_wait_s, cold.assumed_wait_s, atol=1e-11)
    again = solve_equilibrium(net, start=cold.assumed_wait_s)
    assert again.iterations <= 1


def test_a_bad_start_does_no_harm():
    net = paper_network(6.0)
    exact = solve_equilibrium(net)
    for start in ([1e6, 0, 0], [1e4, 1e4, 1e4], [0, 3.0, 0]):
        eq = solve_equilibrium(net, start=start)
        assert eq.converged
        np.testing.assert_allclose(eq.assumed_wait_s, exact.assumed_wait_s, atol=1e-9)


def test_empty_and_unused_tiers():
    eq = solve_equilibrium(oracle_network("wide_load_10"))
    assert eq.service_rate[4] == eq.utilization[4] == eq.mean_wait_s[4] == 0
    # Far too slow to be chosen: waits 0, and the service rate is that of the mean occupancy.
    net = paper_network(prefill_s=[[0.1, 0.1], [0.1, 0.1], [500.0, 700.0]])
    eq = solve_equilibrium(net)
    assert eq.arrival_rate_per_node[2] == 0
    assert eq.mean_wait_s[2] == 0
    assert eq.service_rate[2] == pytest.approx(1 / 600.58)


def test_equal_profiles_are_one_tier():
    split = paper_network(
        4.0,
        profile_probabilities=[0.4, 0.1, 0.3, 0.2],
        concurrency=[16, 12, 12, 9],
        hit_tokens=[[0, 0], [256, 256], [256, 256], [768, 3072]],
        radio_alpha=4.5,
    )
    found = solve_equilibrium(split)
    whole = solve_equilibrium(paper_network(4.0, radio_alpha=4.5))
    np.testing.assert_allclose(found.assumed_wait_s, whole.assumed_wait_s[[0, 1, 1, 2]], atol=1e-12)
    np.testing.assert_allclose(found.association[1:3].sum(axis=0), whole.association[1], atol=1e-12)


def test_ten_thousand_slots():
    net = paper_network(18_000.0, concurrency=[10_000, 30_000, 30_000])
    eq = solve_equilibrium(net)
    assert eq.converged
    assert eq.stable
    assert eq.residual <= 1e-9
    assert eq.utilization.max() > 0.99


def test_no_load():
    eq = solve_equilibrium(paper_network(0.0))
    assert eq.converged
    assert (eq.mean_wait_s == 0).all()
    assert (eq.service_rate > 0).all()


def test_less_variable_service_waits_less():
    exponential = solve_equilibrium(paper_network(4.0), "queue_unaware")
    constant = solve_equilibrium(paper_network(4.0, service_scv=0.0), "queue_unaware")
    finite = np.isfinite(exponential.mean_wait_s)
    np.testing.assert_allclose(constant.mean_wait_s[finite], exponential.mean_wait_s[finite] / 2)
    eq = solve_equilibrium(paper_network(4.0, service_scv=0.0))
    assert eq.converged
    assert eq.mean_wait_s[2] < 0.33


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "fastest"}, "policy is 'fastest'"),
        ({"method": "magic"}, "method is 'magic'"),
        ({"start": [0.0, 1.0]}, "start has shape"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"damping": 1.5}, "damping is 1.5"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"history": True}, "history is True: must be False with method 'newton'"),
        ({"history": 1}, "history is 1"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        solve_equilibrium(paper_network(), **arguments)


def test_the_tail_of_the_wait():
    net = paper_network(4.0, service_scv=0.4)
    for policy in ("load_aware", "queue_unaware", "nearest"):
        eq = solve_equilibrium(net, policy)
        np.testing.assert_array_equal(eq.stable_tiers, eq.utilization < 1)
        assert eq.stable == eq.stable_tiers.all()
        for s in range(3):
            for wait_s in (0.0, 0.05, 0.7):
                tail = eq.erlang_c[s] * math.exp(-eq.wait_decay_per_s[s] * wait_s)
                below = wait_cdf(
                    wait_s, net.concurrency[s], eq.arrival_rate_per_node[s], eq.service_rate[s], 0.4
                )
                assert tail == pytest.approx(1 - below, abs=1e-12)
    assert not solve_equilibrium(net, "queue_unaware").stable_tiers[2]
