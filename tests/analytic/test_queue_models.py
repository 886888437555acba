"""Queue modules in place of the compiled one."""

import math

import numpy as np
import pytest

from edgegym.analytic import (
    Delay,
    ErlangC,
    FittedDelayMap,
    MixedService,
    QueueSweep,
    Traffic,
    damping_limit,
    evaluate,
    mean_wait,
    solve_equilibrium,
)
from tests.analytic.networks import paper_network, random_network


def called_erlang_c(traffic):
    """Return the default's delays through Python."""
    return ErlangC()(traffic)


def traffic(rate, mixture, occupancy, slots, scv=1.0):
    return Traffic(rate, np.array(mixture), np.array(occupancy), slots, scv)


@pytest.mark.parametrize("policy", ["load_aware", "queue_unaware", "nearest"])
def test_a_called_module_gives_what_the_compiled_one_gives(policy):
    for k in range(12):
        net = random_network([2027, k])
        compiled = solve_equilibrium(net, policy)
        called = solve_equilibrium(net, policy, queue=called_erlang_c)
        assert called.converged, k
        for name in ("mean_wait_s", "erlang_c", "wait_decay_per_s", "association"):
            expected = getattr(compiled, name)
            np.testing.assert_allclose(
                getattr(called, name), expected, rtol=1e-6, atol=1e-8, err_msg=f"{k} {name}"
            )
        coverages = [evaluate(net, eq, 0.8).coverage for eq in (compiled, called)]
        assert coverages[0] == pytest.approx(coverages[1], abs=1e-7)


def test_overload_with_a_called_module():
    for k in range(5):
        eq = solve_equilibrium(random_network([2026, k], load=20.0), queue=called_erlang_c)
        assert not eq.stable, k
        assert not eq.converged, k
        assert np.isfinite(eq.assumed_wait_s).all(), k


def test_damped_iteration_and_its_limit_follow_the_module():
    net = paper_network(4.0)
    eq = solve_equilibrium(net, queue=called_erlang_c)
    assert damping_limit(net, eq) == pytest.approx(0.495, abs=0.005)
    run = solve_equilibrium(net, method="damped", damping=0.4, queue=called_erlang_c)
    assert run.converged
    np.testing.assert_allclose(run.assumed_wait_s, eq.assumed_wait_s, atol=1e-7)


def test_a_module_that_knows_no_limit_but_its_own():
    def polled(traffic):
        # Served in rounds: everybody waits, and the node gives up at 80 % utilization.
        spare = 0.8 - traffic.utilization
        return (0.05 / spare, 1.0) if spare > 0 else (math.inf, 1.0)

    net = paper_network(4.0)
    eq = solve_equilibrium(net, queue=polled)
    assert eq.converged
    assert eq.stable
    assert (eq.utilization < 0.8).all()
    np.testing.assert_allclose(eq.mean_wait_s, 0.05 / (0.8 - eq.utilization), rtol=1e-9)
    np.testing.assert_allclose(eq.wait_decay_per_s, 1.0 / eq.mean_wait_s)
    np.testing.assert_allclose(eq.assumed_wait_s, eq.mean_wait_s, rtol=1e-8)


def test_mixed_service_is_exact_for_one_slot():
    # Pollaczek-Khinchine, with the second moment of constants 1 and 4 in shares 3/4 and 1/4.
    found = MixedService()(traffic(0.4, [0.75, 0.25], [1.0, 4.0], 1, scv=0.0))
    second = 0.75 * 1 + 0.25 * 16
    assert found.mean_wait_s == pytest.approx(0.4 * second / (2 * (1 - 0.4 * 1.75)))
    assert found.waiting_probability == pytest.approx(0.4 * 1.75)
    # Exponential times of the same means: twice the second moment.
    both = MixedService()(traffic(0.4, [0.75, 0.25], [1.0, 4.0], 1))
    assert both.mean_wait_s == pytest.approx(2 * found.mean_wait_s)


def test_mixed_service_of_one_type_is_erlang_c():
    for scv in (0.0, 1.0, 2.5):
        case = traffic(7.0, [1.0], [1.2], 9, scv)
        assert MixedService()(case) == ErlangC()(case)
        expected = mean_wait(9, 7.0, 1 / 1.2, scv)
        assert ErlangC()(case).mean_wait_s == pytest.approx(expected)


def sweep(factor=1.0, slots=9, rho=(0.5, 0.7, 0.8, 0.9), error=0.0):
    exact = [mean_wait(slots, slots * value / 2.0, 0.5) for value in rho]
    waits = QueueSweep(
        slots=slots,
        mean_occupancy_s=2.0,
        utilization=np.array(rho),
        mean_wait_s=factor * np.array(exact),
        waiting_probability=np.full(len(rho), 0.5),
        mean_wait_error_s=np.full(len(rho), error),
        waiting_probability_error=np.zeros(len(rho)),
    )
    fields = {name: getattr(waits, name) for name in waits.__dataclass_fields__}
    return QueueSweep(**fields | {"waiting_probability": waits.erlang_c()[1]})


def test_a_fit_goes_through_its_points_and_on_as_queues_do():
    fitted = FittedDelayMap.fit(sweep(0.6))
    for rho in (0.1, 0.5, 0.63, 0.9, 0.99, 0.9999):
        # Another time scale than the measured one.
        case = traffic(9 * rho / 0.5, [1.0], [0.5], 9)
        assert fitted(case).mean_wait_s == pytest.approx(0.6 * ErlangC()(case).mean_wait_s)
        assert fitted(case).waiting_probability == pytest.approx(
            ErlangC()(case).waiting_probability
        )


def test_the_nearest_number_of_slots_counts_and_noise_does_not():
    fitted = FittedDelayMap.fit(sweep(0.6, slots=4), sweep(0.9, slots=16))
    for slots, factor in ((1, 0.6), (6, 0.6), (10, 0.9), (64, 0.9)):
        case = traffic(0.8 * slots, [1.0], [1.0], slots)
        expected = factor * ErlangC()(case).mean_wait_s
        assert fitted(case).mean_wait_s == pytest.approx(expected)
    # A point within its error is left out.
    noisy = sweep(0.6, rho=(0.01, 0.8), error=1e-9)
    case = traffic(9 * 0.3, [1.0], [1.0], 9)
    found = FittedDelayMap.fit(noisy)(case).mean_wait_s
    assert found == pytest.approx(0.6 * ErlangC()(case).mean_wait_s)


def test_points_at_which_erlang_c_has_no_waits_are_left_out():
    # Half a million busy slots of a million: the probability of waiting underflows.
    case = sweep(0.6, slots=10**6, rho=(0.9999, 0.99999))
    fields = {name: getattr(case, name) for name in case.__dataclass_fields__}
    assert QueueSweep(**fields | {"utilization": [0.5, 0.99999]}).erlang_c()[1][0] == 0.0
    measured = fields["mean_wait_s"]
    both = QueueSweep(**fields | {"utilization": [0.5, 0.99999], "mean_wait_s": measured})
    alone = FittedDelayMap.fit(both)
    load = traffic(0.99999 * 10**6 / 2.0, [1.0], [2.0], 10**6)
    assert alone(load).mean_wait_s == pytest.approx(measured[1])
    with pytest.raises(ValueError, match="a utilization at which M/M/c has waits"):
        FittedDelayMap.fit(QueueSweep(**fields | {"utilization": [0.4, 0.5]}))


def test_a_fit_solves_and_shortens_waits():
    net = paper_network(4.0)
    eq = solve_equilibrium(net, queue=FittedDelayMap.fit(sweep(0.6)))
    assert eq.converged
    expected = solve_equilibrium(paper_network(4.0, service_scv=0.2))
    np.testing.assert_allclose(eq.mean_wait_s, expected.mean_wait_s, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda _: None, "must be a Delay"),
        (lambda _: (1.0,), "must be a Delay"),
        (lambda _: (math.nan, 0.5), "mean_wait_s is nan"),
        (lambda _: (-1.0, 0.5), "mean_wait_s is -1.0"),
        (lambda _: (1.0, 1.5), "waiting_probability is 1.5"),
        (lambda _: Delay(1.0, 0.5, -2.0), "decay_per_s is -2.0"),
    ],
)
def test_answers_that_are_no_delay_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        solve_equilibrium(paper_network(), queue=model)


def test_what_is_no_module_is_refused():
    for queue in (None, "erlang", ErlangC):
        with pytest.raises(TypeError, match="must be a QueueModel"):
            solve_equilibrium(paper_network(), queue=queue)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="sweeps is empty"):
        FittedDelayMap.fit()
    with pytest.raises(ValueError, match="must differ"):
        FittedDelayMap.fit(sweep(), sweep(0.5))
    with pytest.raises(ValueError, match="must be above its error"):
        FittedDelayMap.fit(sweep(error=100.0))
    with pytest.raises(ValueError, match=r"utilization is .*must rise"):
        sweep(rho=(0.9, 0.5))


def test_a_sweep_of_unequal_rows_is_refused():
    case = sweep()
    fields = {name: getattr(case, name) for name in case.__dataclass_fields__}
    with pytest.raises(ValueError, match=r"^utilization is .*must be an array of numbers"):
        QueueSweep(**fields | {"utilization": [[0.1, 0.2], [0.3]]})
