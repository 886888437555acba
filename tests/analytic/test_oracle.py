"""Every value of the reference file, and the published figures it belongs to."""

import numpy as np
import pytest

from edgegym.analytic import evaluate, solve_equilibrium
from tests.analytic.networks import ORACLE, oracle_network, paper_network

EQUILIBRIUM = (
    "assumed_wait_s",
    "mean_wait_s",
    "association",
    "arrival_rate_per_node",
    "service_rate",
    "utilization",
    "erlang_c",
)
PERFORMANCE = (
    "coverage",
    "coverage_no_queue",
    "mean_ttft_s",
    "mean_distance_km",
    "conditional_mean_distance_km",
    "expected_hit_tokens",
    "offloading_ratio",
)


@pytest.mark.parametrize("case", sorted(ORACLE))
def test_every_reference_value(case):
    expected = ORACLE[case]
    assert set(expected) == {
        "spec",
        "equilibrium_residual",
        "ttft_p90_s",
        *EQUILIBRIUM,
        *PERFORMANCE,
    }
    net = oracle_network(case)
    policy = "queue_unaware" if "queue_unaware" in case else "load_aware"
    eq = solve_equilibrium(net, policy)
    perf = evaluate(net, eq, expected["spec"]["ttft_target_s"])
    assert eq.converged
    assert eq.stable
    assert eq.residual <= 1e-12
    found = {name: getattr(eq, name) for name in EQUILIBRIUM}
    found |= {name: getattr(perf, name) for name in PERFORMANCE}
    found["ttft_p90_s"] = perf.quantile(0.9)
    for name, value in found.items():
        reference = np.array(expected[name], dtype=float)
        np.testing.assert_allclose(value, reference, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("policy", "intensity", "density", "printed", "fitted"),
    [
        ("load_aware", 3, 1, 0.69, 0.6840),
        ("load_aware", 4, 1, 0.63, 0.6290),
        ("queue_unaware", 3, 1, 0.55, 0.5428),
        ("queue_unaware", 4, 1, 0.23, 0.238),
        ("nearest", 3, 1, 0.52, 0.516),
        ("nearest", 4, 1, 0.52, 0.516),
        ("load_aware", 3, 0.5, 0.48, 0.4775),
        ("load_aware", 3, 3, 0.94, 0.962),
        ("nearest", 3, 3, 0.52, 0.520),
    ],
)
def test_published_coverage(policy, intensity, density, printed, fitted):
    net = paper_network(intensity, density_per_km2=density)
    coverage = evaluate(net, solve_equilibrium(net, policy), 0.8).coverage
    assert coverage == pytest.approx(printed, abs=0.025)
    assert coverage == pytest.approx(fitted, abs=6e-4)


@pytest.mark.parametrize(
    ("mix", "intensity", "fitted"),
    [
        ((0.2, 0.6, 0.2), 3, 0.6889),
        ((0.8, 0.0, 0.2), 3, 0.6715),
        ((0.2, 0.6, 0.2), 7, 0.5150),
        ((0.8, 0.0, 0.2), 7, 0.5213),
        ((0.2, 0.6, 0.2), 9, 0.371),
        ((0.8, 0.0, 0.2), 9, 0.466),
    ],
)
def test_coverage_of_other_mixes(mix, intensity, fitted):
    net = paper_network(intensity, profile_probabilities=mix)
    coverage = evaluate(net, solve_equilibrium(net), 0.8).coverage
    assert coverage == pytest.approx(fitted, abs=5e-4)


def test_awareness_does_not_matter_at_light_load():
    net = paper_network(1.0)
    aware = evaluate(net, solve_equilibrium(net), 0.8).coverage
    unaware = evaluate(net, solve_equilibrium(net, "queue_unaware"), 0.8).coverage
    assert aware == pytest.approx(unaware, abs=1e-3)
