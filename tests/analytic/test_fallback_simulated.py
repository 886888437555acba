"""Bursts, late waits and uncertain popularity in simulated fleets: is more fallback worth more?

Two mixes at 5 requests/s/km², one without fallback nodes and one with as many as the cap on deep
nodes leaves, in fleets of 100 nodes that serve the same requests. In a fleet the load of a
node varies with its cell, so that coverage, and which mix has more of it, differ from the model's.
What can be compared is the sign of an effect: whether the fallback mix gains on the other. Its
advantage in coverage, as means of the fleets of this file:

* calm to wild bursts: 0.024 to 0.035 routed by the tiers' waits, -0.015 to 0.020 by live backlogs
  (model: -0.014 to 0.049);
* no delay to 60 s, tiers' waits: 0.033 to 0.026 (model: -0.002 to -0.013); live backlogs to reports
  every 20 s: -0.005 to 0.033, which is outside the model;
* known popularity to uncertain, over four draws: 0.033 to 0.016 by the tiers' waits (model: -0.002
  to 0.008, so these fleets contradict it), -0.005 to -0.002 by live backlogs, which is
  noise as likely as not.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from edgegym.analytic import TrafficUncertainty
from edgegym.analytic.robust import ExpectedCoverage
from edgegym.world import preset
from tests.analytic.bursty_fleets import simulated_coverage

SEEDS = 3
SCENARIO = preset("paper").with_overrides(
    {
        "region": {"width_km": 10.0, "height_km": 10.0},
        "nodes": {"count": 100},
        "demand.request_intensity": 5.0,
    }
)
LIVE = SCENARIO.with_overrides({"telemetry.period_s": 0.0})
WITHOUT, WITH = (0.0, 0.8, 0.2), (0.8, 0.0, 0.2)
CALM = TrafficUncertainty(burst_scv=0.025)
WILD = TrafficUncertainty(burst_scv=0.2)
BURSTY = TrafficUncertainty(burst_scv=0.1)
LATE = replace(BURSTY, telemetry_delay_s=60.0)


def modelled(traffic):
    """Return how far the mix with fallback nodes is ahead."""
    net = SCENARIO.tiered_network()
    target = np.full(net.num_types, SCENARIO.objective.ttft_target_s)
    objective = ExpectedCoverage.for_network(net, target, traffic)
    ahead = [objective.assess(np.array(mix), objective.first_wait())[0] for mix in (WITH, WITHOUT)]
    return ahead[0] - ahead[1]


def simulated(traffic, scenario=SCENARIO, *, tier_waits=True):
    """Return how far it is ahead in each fleet ``[SEEDS]``."""
    ahead = [
        [
            simulated_coverage(scenario, mix, traffic, seed=seed, visits=6, tier_waits=tier_waits)
            for mix in (WITH, WITHOUT)
        ]
        for seed in range(SEEDS)
    ]
    return -np.diff(np.array(ahead))[:, 0]


def gain(before, after):
    """Return the mean change over the fleets and its standard error."""
    change = after - before
    return change.mean(), change.std(ddof=1) / math.sqrt(SEEDS)


@pytest.mark.slow
def test_bursts_favour_fallback_nodes():
    assert modelled(WILD) - modelled(CALM) == pytest.approx(0.063, abs=0.002)
    change, error = gain(simulated(CALM), simulated(WILD))
    assert change > 2 * error
    change, error = gain(
        simulated(CALM, LIVE, tier_waits=False), simulated(WILD, LIVE, tier_waits=False)
    )
    assert change > 2 * error


@pytest.mark.slow
def test_late_waits_of_tiers_disfavour_them_and_late_backlogs_do_not():
    assert modelled(LATE) - modelled(BURSTY) == pytest.approx(-0.011, abs=0.002)
    change, error = gain(simulated(BURSTY), simulated(LATE))
    assert change < -2 * error
    late = SCENARIO.with_overrides({"telemetry.period_s": 20.0})
    change, error = gain(
        simulated(BURSTY, LIVE, tier_waits=False), simulated(BURSTY, late, tier_waits=False)
    )
    assert change > 2 * error


def of_popularity(long_share, *, tier_waits):
    """Return the advantage in each fleet if so many requests are long."""
    changes = {"request_types.short.share": 1 - long_share, "request_types.long.share": long_share}
    return simulated(BURSTY, LIVE.with_overrides(changes), tier_waits=tier_waits)


@pytest.mark.slow
def test_uncertain_popularity_disfavours_them_by_tier_waits_unlike_the_model():
    uncertain = replace(BURSTY, concentration=3.0, samples=4)
    assert modelled(uncertain) - modelled(BURSTY) == pytest.approx(0.010, abs=0.002)
    draws = uncertain.popularities(SCENARIO.tiered_network().type_probabilities)
    ahead = [of_popularity(float(long_share), tier_waits=True) for _, long_share in draws]
    change, error = gain(simulated(BURSTY), np.array(ahead).mean(axis=0))
    assert change < -2 * error
