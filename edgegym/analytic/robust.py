"""Placement under traffic that varies: bursts, late telemetry, popularity known only roughly.

The framework's model is of one stationary traffic. Here the same fleet meets a set of traffic
states, and a mix is worth the coverage expected over them, weighted by requests:

* Bursts: the request intensity alternates between two levels (a Markov-modulated Poisson process),
  with a given share of the time in the upper one and a given squared coefficient of variation of
  the intensity. When the level changes, the queues of the old one go over into those of the new one
  in the time that this takes (:mod:`edgegym.analytic.transient`); each visit of a level is taken to
  follow one of mean length.
* Telemetry: the router acts on the waits that belong to the state of `telemetry_delay_s` ago, those
  of its load-association equilibrium. Where that was the other state, requests are routed by the
  one's waits and meet the queues that fill, meanwhile, under the other's load; once the router
  knows, what has piled up drains under its usual routing. It never sees the pile itself, as a
  router with reports from the nodes would.
* Popularity: type probabilities are drawn from a Dirichlet law around the nominal ones, once for
  the life of the placement. Routing and queues adapt to the draw, the mix does not.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.placement.objective import CoverageObjective, Settled
from edgegym.analytic.quadrature import rule
from edgegym.analytic.transient import LONGEST_AGE, advance_queues, phase_coverage
from edgegym.world.network import TieredNetwork, checked_number, checked_whole

FloatArray = NDArray[np.float64]

_LONGEST_S = 1e9
_LARGEST = 1e9
_MOST_SAMPLES = 10**4
_MOST_SEED = 2**63 - 1
# So little that it decides only between mixes of equal coverage.
_EXCESS_WEIGHT = 1e-6
_TRANSIENT_NODES = 12
_RAKING_ROUNDS = 100
_LEAST_SHARE = 1e-12


@dataclass(frozen=True, kw_only=True)
class TrafficUncertainty:
    """How traffic differs from the stationary one of a network.

    Parameters
    ----------
    burst_scv : float
        Squared coefficient of variation of the request intensity over time, at least 0 and at most
        ``(1 - burst_time_share) / burst_time_share``: beyond, the quiet state's would be negative.
    burst_time_share : float
        Share of the time in the busy state, between 0 and 1.
    burst_length_s : float
        Mean length of a burst in seconds, above 0.
    telemetry_delay_s : float
        Age of the waits that the router acts on.
    concentration : float
        Sum of the parameters of the Dirichlet law of the type probabilities, above 0: as certain as
        after so many observed requests. Infinite: they are known.
    samples : int
        Draws from that law.
    seed : int
        Of the draws; the same seed gives draws that move smoothly with the concentration.

    Raises
    ------
    ValueError
        If a field breaks its rule.
    """

    burst_scv: float = 0.0
    burst_time_share: float = 0.25
    burst_length_s: float = 60.0
    telemetry_delay_s: float = 0.0
    concentration: float = math.inf
    samples: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        share = checked_number("burst_time_share", self.burst_time_share, 0.0, 1.0, strict=True)
        if share == 1.0:
            raise ValueError("burst_time_share is 1.0: must be less than 1")
        checked_number("burst_scv", self.burst_scv, 0.0, (1.0 - share) / share)
        checked_number("burst_length_s", self.burst_length_s, 0.0, _LONGEST_S, strict=True)
        checked_number("telemetry_delay_s", self.telemetry_delay_s, 0.0, _LONGEST_S)
        if not (isinstance(self.concentration, float) and self.concentration == math.inf):
            checked_number("concentration", self.concentration, 0.0, _LARGEST, strict=True)
        checked_whole("samples", self.samples, 1, _MOST_SAMPLES)
        checked_whole("seed", self.seed, 0, _MOST_SEED)

    def intensities(self) -> FloatArray:
        """Return the intensity of the states over the mean: ``[1]`` or quiet and busy ``[2]``."""
        if self.burst_scv == 0:
            return np.ones(1)
        odds = self.burst_time_share / (1.0 - self.burst_time_share)
        deviation = math.sqrt(self.burst_scv)
        return np.array([1.0 - deviation * math.sqrt(odds), 1.0 + deviation / math.sqrt(odds)])

    def routing_weights(self) -> FloatArray:
        """Return the share of requests that arrive in state i, routed by the waits of state j.

        Returns
        -------
        float64 [states, states]
            Sums to 1. The state of a time ago is that of a two-state Markov chain.
        """
        levels = self.intensities()
        if len(levels) == 1:
            return np.ones((1, 1))
        busy = self.burst_time_share
        time = np.array([1.0 - busy, busy])
        rate_per_s = (1.0 / self.visit_lengths_s()).sum()  # of both transitions together
        forgotten = -math.expm1(-rate_per_s * self.telemetry_delay_s)
        before = (1.0 - forgotten) * np.eye(2) + forgotten * time
        return (time * levels)[:, None] * before

    def visit_lengths_s(self) -> FloatArray:
        """Return how long the states last on average ``[states]``; infinite without bursts."""
        if self.burst_scv == 0:
            return np.full(1, np.inf)
        odds = self.burst_time_share / (1.0 - self.burst_time_share)
        return np.array([self.burst_length_s / odds, self.burst_length_s])

    def popularities(self, type_probabilities: FloatArray) -> FloatArray:
        """Return draws of the type probabilities ``[K, Q]``, whose mean is the nominal one."""
        if self.concentration == math.inf:
            return type_probabilities[None, :].copy()
        from scipy.special import gammaincinv

        present = np.flatnonzero(type_probabilities > 0)
        rng = np.random.Generator(np.random.Philox(self.seed))
        # A stratified sample of each gamma variate: few draws then stand for the whole law.
        count = self.samples
        strata = np.stack([rng.permutation(count) for _ in present], axis=1)
        levels = (strata + rng.random((count, len(present)))) / count
        variates = gammaincinv(self.concentration * type_probabilities[present], levels)
        draws = np.zeros((count, len(type_probabilities)))
        draws[:, present] = np.maximum(variates, _LEAST_SHARE * variates.max())
        for _ in range(_RAKING_ROUNDS):
            draws /= draws.sum(axis=1, keepdims=True)
            means = draws[:, present].mean(axis=0)
            draws[:, present] *= type_probabilities[present] / means
        return draws / draws.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class ExpectedCoverage:
    """Coverage expected over traffic states; an objective for every search method.

    Attributes
    ----------
    states : tuple of tuples of CoverageObjective
        Of each popularity, each state of intensity.
    weights : float64 [intensities, intensities]
        Share of requests that arrive in state i and are routed by the waits of state j.
    visits_s : float64 [intensities]
        How long the states last on average.
    delay_s : float
        Age of the waits that the router acts on.
    """

    states: tuple[tuple[CoverageObjective, ...], ...]
    weights: FloatArray
    visits_s: FloatArray
    delay_s: float

    @classmethod
    def for_network(
        cls, net: TieredNetwork, target_s: FloatArray, traffic: TrafficUncertainty
    ) -> "ExpectedCoverage":
        """Return the objective for targets of all types ``[Q]``."""
        states = tuple(
            tuple(
                CoverageObjective.for_network(
                    replace(
                        net,
                        request_intensity=net.request_intensity * level,
                        type_probabilities=shares,
                    ),
                    target_s,
                )
                for level in traffic.intensities()
            )
            for shares in traffic.popularities(net.type_probabilities)
        )
        return cls(
            states, traffic.routing_weights(), traffic.visit_lengths_s(), traffic.telemetry_delay_s
        )

    def first_wait(self) -> FloatArray:
        """Return no waits ``[popularities, intensities, S]``."""
        one = self.states[0][0].first_wait()
        return np.zeros((len(self.states), len(self.weights), len(one)))

    def assess(self, mix: FloatArray, wait: FloatArray) -> tuple[float, FloatArray]:
        """Return the expected coverage of a mix, and the waits of every state."""
        total = 0.0
        settled_wait = np.empty_like(wait)
        for k, levels in enumerate(self.states):
            settled = [state.settle(mix, wait[k, i]) for i, state in enumerate(levels)]
            settled_wait[k] = [each.wait for each in settled]
            if len(levels) == 1:
                value, excess = levels[0].grade(settled[0].tiers, settled[0].tier_wait)
                total += value - _EXCESS_WEIGHT * excess
            else:
                total += self._bursty(levels, settled)
        return total / len(self.states), settled_wait

    def _bursty(self, levels: tuple[CoverageObjective, ...], settled: list[Settled]) -> float:
        """Return the score over a visit of the busy state and the quiet one that follows."""
        quiet, busy = 0, 1
        points, weights = rule(levels[quiet].net.radio_alpha, _TRANSIENT_NODES)
        queues = np.zeros(len(settled[quiet].tier_wait))
        _advance(settled, quiet, quiet, points, weights, queues, self.visits_s[quiet])
        total = 0.0
        for i, j in ((busy, quiet), (quiet, busy)):
            tiers, target, visit_s = settled[i].tiers, levels[i].target, self.visits_s[i]
            phase = queues.copy()
            if self.delay_s > 0.0:
                # How long late reports have misled by now: this law follows from the two-state
                # chain's, by the probability that it stayed in j, then went to i and stayed there.
                rate = (1.0 / self.visits_s).sum()
                value, excess = phase_coverage(
                    tiers, settled[j].tier_wait, target, points, weights, phase, self.delay_s, rate
                )
                total += self.weights[i, j] * (value - _EXCESS_WEIGHT * excess)
            longest_s = LONGEST_AGE * visit_s
            value, excess = phase_coverage(
                tiers, settled[i].tier_wait, target, points, weights, phase, longest_s, 1 / visit_s
            )
            total += self.weights[i, i] * (value - _EXCESS_WEIGHT * excess)
            misled_s = min(self.delay_s, visit_s)
            _advance(settled, i, j, points, weights, queues, misled_s)
            _advance(settled, i, i, points, weights, queues, visit_s - misled_s)
        return total

    def probe(self, mix: FloatArray, wait: FloatArray, profile: int, change: float) -> float:
        """Return about the score after a change of one share, by the states in time."""
        total = 0.0
        for k, levels in enumerate(self.states):
            for i, state in enumerate(levels):
                value = state.probe(mix, wait[k, i], profile, change)
                total += self.weights[i].sum() * max(value, 0.0)
        return total / len(self.states)


def _advance(
    settled: list[Settled],
    load: int,
    routing: int,
    points: FloatArray,
    weights: FloatArray,
    queues: FloatArray,
    seconds: float,
) -> None:
    """Change the queues by the load of one state, routed by the waits of another."""
    wait = settled[routing].tier_wait
    advance_queues(settled[load].tiers, wait, points, weights, queues, seconds)
