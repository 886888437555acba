"""Wrong arguments: named, refused at once."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

from edgegym import analytic
from tests.analytic.networks import paper_network

NET: Any = paper_network(state_bytes=[0, 10, 30])
EQUILIBRIUM: Any = analytic.solve_equilibrium(NET)
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", None),
        ("policy", np.array([1, 2])),
        ("method", "x"),
        ("start", [NAN, 1, 1]),
        ("start", [0, 0]),
        ("start", [-1, 0, 0]),
        ("start", "abc"),
        ("start", ["1", "2", "3"]),
        ("start", [True] * 3),
        ("start", {}),
        ("start", [[1], [2, 3]]),
        ("tolerance", NAN),
        ("tolerance", INF),
        ("tolerance", True),
        ("damping", "x"),
        ("damping", NAN),
        ("max_iterations", 1.5),
        ("max_iterations", NAN),
        ("max_iterations", True),
        ("max_iterations", 10**12),
    ],
)
def test_solve_equilibrium(field, value):
    with pytest.raises(ValueError, match=rf"^{field} (is|has)(.|\n)*must be"):
        analytic.solve_equilibrium(NET, **{field: value})


@pytest.mark.parametrize("target", [NAN, -1, INF, 1e300, "0.8", None, True, [1, 2, 3], [NAN, 1]])
def test_target(target):
    with pytest.raises(ValueError, match=r"^ttft_target_s (is|has) .*must be"):
        analytic.evaluate(NET, EQUILIBRIUM, target)
    with pytest.raises(ValueError, match=r"^ttft_target_s (is|has) .*must be"):
        analytic.optimize_placement(NET, ttft_target_s=target)


def test_evaluate_refuses_the_equilibrium_of_another_network():
    other = paper_network(request_intensity=1.0)
    with pytest.raises(ValueError, match=r"eq.utilization is .*must be solved for this network"):
        analytic.evaluate(other, EQUILIBRIUM, 0.8)
    same = pickle.loads(pickle.dumps(NET))
    assert analytic.evaluate(same, EQUILIBRIUM, 0.8).coverage > 0.6


@pytest.mark.parametrize("reliability", [0, 1, NAN, -1, "x", None, True, [0.5]])
def test_quantile(reliability):
    performance = analytic.evaluate(NET, EQUILIBRIUM, 0.8)
    with pytest.raises(ValueError, match=r"^reliability is .*must be"):
        performance.quantile(reliability)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("budget_bytes", NAN),
        ("budget_bytes", -1),
        ("budget_bytes", [5]),
        ("minimum", "x"),
        ("minimum", NAN),
        ("minimum", 0.5),
        ("maximum", 0.1),
        ("maximum", True),
        ("start", [1e300, 0, 0]),
        ("start", [2, -1, 0]),
        ("start", [1, 1]),
        ("start", "x"),
        ("method", "nope"),
        ("method", None),
        ("method", analytic.Exchange),
    ],
)
def test_optimize_placement(field, value):
    with pytest.raises(ValueError, match=rf"^{field}.* (is|has|sums) .*must be"):
        analytic.optimize_placement(NET, ttft_target_s=0.8, **{field: value})


@pytest.mark.parametrize(
    ("strategy", "field", "value"),
    [
        (analytic.Exchange, "step", NAN),
        (analytic.Exchange, "step", 1e-300),
        (analytic.Exchange, "step", "x"),
        (analytic.Exchange, "screen", 1.5),
        (analytic.Exchange, "screen", INF),
        (analytic.Exchange, "screen", 0),
        (analytic.Exchange, "max_moves", NAN),
        (analytic.Exchange, "max_moves", True),
        (analytic.Exchange, "max_moves", -1),
        (analytic.Exchange, "restarts", -1),
        (analytic.SimplexGrid, "step", 0.0),
        (analytic.SimplexGrid, "step", 0.3),
        (analytic.SimplexGrid, "most", 0),
        (analytic.ProjectedSpsa, "iterations", 0),
        (analytic.ProjectedSpsa, "perturbation", 0.6),
        (analytic.ProjectedSpsa, "first_step", 0),
        (analytic.ProjectedSpsa, "tolerance", NAN),
        (analytic.ProjectedSpsa, "seed", -1),
        (analytic.Bayesian, "trials", 0),
        (analytic.Bayesian, "startup", 1.5),
        (analytic.Bayesian, "seed", 2**32),
        (analytic.TrafficUncertainty, "burst_scv", 4.0),
        (analytic.TrafficUncertainty, "burst_time_share", 1.0),
        (analytic.TrafficUncertainty, "burst_length_s", 0.0),
        (analytic.TrafficUncertainty, "telemetry_delay_s", INF),
        (analytic.TrafficUncertainty, "concentration", 0.0),
        (analytic.TrafficUncertainty, "concentration", np.zeros(0)),
        (analytic.TrafficUncertainty, "samples", 0),
        (analytic.TrafficUncertainty, "seed", "x"),
    ],
)
def test_strategies_and_traffic(strategy, field, value):
    with pytest.raises(ValueError, match=rf"^{field} is .*must be"):
        strategy(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("reliability", 1.0),
        ("reliability", 0.0),
        ("reliability", "x"),
        ("reoptimize", "yes"),
        ("budget_bytes", 5.0),
        ("minimum", 0.1),
        ("maximum", 0.5),
    ],
)
def test_minimum_density(field, value):
    arguments: Any = {"ttft_target_s": 0.8, "reliability": 0.5, field: value}
    with pytest.raises(ValueError, match=rf"^{field} is .*must be"):
        analytic.minimum_density(NET, **arguments)


def test_reports_and_methods_are_checked_before_anything_is_solved():
    task: Any = {"ttft_target_s": 0.8, "report": "x"}
    for call in (
        lambda: analytic.optimize_placement(NET, **task),
        lambda: analytic.minimum_density(NET, reliability=0.5, **task),
        lambda: analytic.robust_placement(NET, analytic.TrafficUncertainty(), **task),
        lambda: analytic.fallback_study(NET, **task),
        lambda: analytic.plan_path(
            [NET], start_counts=[1, 1, 1], move_bytes=np.zeros((3, 3)), budget_bytes=1, **task
        ),
    ):
        with pytest.raises(TypeError, match="report is 'x': must be a function"):
            call()
    with pytest.raises(ValueError, match="method is 'x': must be"):
        analytic.minimum_density(NET, ttft_target_s=0.8, reliability=0.5, method="x")
    networks: Any = None
    with pytest.raises(TypeError, match="networks is None: must be a sequence"):
        analytic.plan_path(
            networks, start_counts=[1], move_bytes=[[0]], budget_bytes=1, ttft_target_s=0.8
        )


@pytest.mark.parametrize("field", ["burst_scv", "telemetry_delay_s", "concentration"])
@pytest.mark.parametrize("values", [None, 1.0, "x", ["1", "2"], [True], [-1.0], [NAN]])
def test_fallback_study(field, values):
    arguments: Any = {field: values}
    with pytest.raises(ValueError, match=rf"^{field} (is|has) .*must be"):
        analytic.fallback_study(NET, ttft_target_s=0.8, **arguments)


@pytest.mark.parametrize("load", [None, "x", True, -1.0, NAN, INF])
def test_two_family_network(load):
    with pytest.raises(ValueError, match=r"^load is .*must be"):
        analytic.two_family_network(load)


def test_a_budget_of_almost_nothing_is_one_of_nothing():
    result = analytic.optimize_placement(NET, ttft_target_s=0.8, budget_bytes=1e-300)
    np.testing.assert_array_equal(result.probabilities, [1.0, 0.0, 0.0])


@pytest.mark.parametrize("servers", [0, 1.5, NAN, INF, "2", True, None, 10**12])
def test_servers(servers):
    for function in (analytic.erlang_b, analytic.erlang_c):
        with pytest.raises(ValueError, match=r"^servers is .*must be a whole number"):
            function(servers, 1.0)


@pytest.mark.parametrize(
    ("wait_s", "nodes", "message"),
    [
        ("x", 64, "wait_s is 'x': must be an array of numbers"),
        ([1e300] * 3, 64, "wait_s is .*: advertised waits must be at most"),
        ([0, 0, 0], 2.5, "nodes is 2.5: must be a whole number"),
        ([0, 0, 0], 10**7, "nodes is 10000000: must be a whole number .* at most 1000"),
    ],
)
def test_association_law(wait_s, nodes, message):
    with pytest.raises(ValueError, match=message):
        analytic.association_law(NET, wait_s, nodes)


def test_what_is_no_network_or_equilibrium():
    nothing: Any = None
    for call in (
        lambda: analytic.solve_equilibrium(nothing),
        lambda: analytic.evaluate(nothing, EQUILIBRIUM, 0.8),
        lambda: analytic.optimize_placement(nothing, ttft_target_s=0.8),
        lambda: analytic.association_law(nothing, [0.0]),
        lambda: analytic.minimum_density(nothing, ttft_target_s=0.8, reliability=0.5),
        lambda: analytic.fallback_study(nothing, ttft_target_s=0.8),
    ):
        with pytest.raises(TypeError, match="net is None: must be a TieredNetwork"):
            call()
    with pytest.raises(TypeError, match="eq is None: must be an Equilibrium"):
        analytic.evaluate(NET, nothing, 0.8)
    with pytest.raises(TypeError, match="base is None: must be a TrafficUncertainty"):
        analytic.fallback_study(NET, nothing, ttft_target_s=0.8)
    with pytest.raises(TypeError, match="traffic is None: must be a TrafficUncertainty"):
        analytic.robust_placement(NET, nothing, ttft_target_s=0.8)
