"""Choosing the mix of profiles that covers most requests [49]: the exchange search."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic import fixed_point
from edgegym.analytic.association import check_network
from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.coverage import cost_coverage
from edgegym.analytic.equilibrium import Equilibrium, solve_equilibrium
from edgegym.analytic.grouping import build_tiers, spread_to_profiles, spread_to_tiers
from edgegym.analytic.maps import COARSE_NODES
from edgegym.analytic.newton import newton_step
from edgegym.analytic.performance import checked_target, evaluate
from edgegym.analytic.quadrature import rule
from edgegym.analytic.queueing import delay_probability
from edgegym.analytic.tier_map import Tiers, evaluate_map, tier_loads
from edgegym.jit import kernel
from edgegym.world.network import (
    TieredNetwork,
    checked_choice,
    checked_number,
    checked_numbers,
    checked_whole,
)

FloatArray = NDArray[np.float64]

# The search compares mixes: it can do with less than the accuracy of a published value.
_SEARCH_NODES = 24
_SCORE_NODES = 16
_PROBE_NODES = 8
_SEARCH_TOLERANCE = 1e-7
_ROUNDS = 20
# Share that an empty profile gets while neighbours are compared: its queue is then well defined.
_SEED_SHARE = 1e-6
_LEAST_GAIN = 1e-7
_ROUNDING = 1e-9
_COMPARED = 3
_LEAST_STEP = 1e-8
_MOST = 10**9


@dataclass(frozen=True, eq=False)
class PlacementResult:
    """The mix that a search settled on.

    Attributes
    ----------
    probabilities : float64 [S]
        Share of the nodes that hold each profile.
    coverage : float
        Coverage of the mix in its equilibrium, at full accuracy.
    evaluations : int
        Equilibria solved.
    converged : bool
        Whether the search ended because no screened exchange helps (rather than at `max_moves`).
    equilibrium : Equilibrium
        Of the mix; ``stable`` is False if no mix in reach carries the load.
    """

    probabilities: FloatArray
    coverage: float
    evaluations: int
    converged: bool
    equilibrium: Equilibrium


@kernel
def mix_score(tiers, wait, overloaded, target, points, weights):
    """Return how good a mix is at these waits: its coverage, less a penalty beyond saturation.

    A saturated mix scores below every stable one (-1), and the lower, the larger the part of its
    load that exceeds its slots: searches find their way back to stability over this slope.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    delay = np.empty(count)
    decay = np.empty(count)
    empty = np.empty((0, 0))
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    excess = 0.0
    capacity = 0.0
    for s in range(count):
        capacity += tiers.density[s] * tiers.slots[s]
        if load[s] >= tiers.slots[s]:
            excess += tiers.density[s] * (load[s] - tiers.slots[s])
            delay[s] = 1.0
            decay[s] = 0.0
        elif rate[s] <= 0.0:
            delay[s] = 0.0
            decay[s] = 0.0
        else:
            delay[s] = delay_probability(tiers.slots[s], load[s])[0]
            decay[s] = (tiers.slots[s] - load[s]) * rate[s] / (load[s] * tiers.wait_scale)
    costs = tiers.prefill + wait
    value = cost_coverage(
        costs,
        tiers.density,
        tiers.xi,
        tiers.power,
        points,
        weights,
        tiers.shares,
        target,
        wait,
        delay,
        decay,
    )
    if overloaded or excess > 0.0:
        return value - 1.0 - excess / capacity
    return value


@dataclass(frozen=True, eq=False)
class _Search:
    """One search: what does not change while mixes are compared."""

    net: TieredNetwork
    target: FloatArray
    constraints: MixConstraints
    step: float

    def tiers(self, mix: FloatArray) -> tuple[Tiers, NDArray[np.int64]]:
        return build_tiers(self.net, self.net.density_per_km2 * mix)

    def assess(self, mix: FloatArray, wait: FloatArray) -> tuple[float, FloatArray]:
        """Return the score of a mix and its waits ``[S]``, solved from these waits.

        Empty profiles keep the wait given: a good start for when they get nodes.
        """
        tiers, group = self.tiers(mix)
        tier_wait = spread_to_tiers(wait, group)
        status, _ = fixed_point.solve(
            tiers,
            tier_wait,
            warm=True,
            coarse=rule(self.net.radio_alpha, COARSE_NODES),
            fine=rule(self.net.radio_alpha, _SEARCH_NODES),
            tolerance=_SEARCH_TOLERANCE,
            rounds=_ROUNDS,
        )
        if status == fixed_point.FAILED:
            return -np.inf, wait
        points, weights = rule(self.net.radio_alpha, _SCORE_NODES)
        overloaded = status == fixed_point.OVERLOADED
        score = mix_score(tiers, tier_wait, overloaded, self.target, points, weights)
        return score, np.where(group >= 0, spread_to_profiles(tier_wait, group), wait)

    def amount(self, mix: FloatArray, source: int) -> float:
        """Return the mass that an exchange takes: a step, or what the profile's floor leaves."""
        return min(self.step, float(mix[source] - self.constraints.minimum[source]))

    def moved(self, mix: FloatArray, exchanges: list[tuple[int, int]]) -> FloatArray | None:
        """Return the mix after these exchanges, or None if the constraints forbid it."""
        result = mix.copy()
        for source, sink in exchanges:
            amount = self.amount(result, source)
            if amount <= 1e-9:
                return None
            result[source] -= amount
            result[sink] += amount
            if result[source] < 1e-12:
                result[sink] += result[source]
                result[source] = 0.0
        return result if self.constraints.allows(result) else None

    def worth(
        self, mix: FloatArray, wait: FloatArray
    ) -> tuple[dict[tuple[int, int], float], FloatArray]:
        """Return a first-order estimate of every exchange's gain, the best first, and the waits.

        Sources and sinks are judged one by one, by the score with a step of mass taken away or
        added; an exchange is worth the sum of its two. The waits include those that empty profiles
        would have with few nodes.
        """
        seeded = np.maximum(mix, _SEED_SHARE)
        score, seeded_wait = self.assess(seeded, wait)
        sources = [s for s in range(len(mix)) if self.amount(mix, s) > 1e-9]
        sinks = [t for t in range(len(mix)) if mix[t] < self.constraints.maximum[t] - 1e-9]
        loss = {s: self._probed(seeded, seeded_wait, s, -self.step) - score for s in sources}
        gain = {t: self._probed(seeded, seeded_wait, t, self.step) - score for t in sinks}
        exchanges = [(s, t) for s in sources for t in sinks if s != t]
        exchanges.sort(key=lambda exchange: -(loss[exchange[0]] + gain[exchange[1]]))
        return {(s, t): loss[s] + gain[t] for s, t in exchanges}, seeded_wait

    def singles(self, mix: FloatArray, worth: dict[tuple[int, int], float]) -> Iterator[FloatArray]:
        """Yield the allowed neighbours one exchange away, the most promising first."""
        for exchange in worth:
            if (candidate := self.moved(mix, [exchange])) is not None:
                yield candidate

    def pairs(self, mix: FloatArray, worth: dict[tuple[int, int], float]) -> Iterator[FloatArray]:
        """Yield the allowed neighbours two exchanges away that a budget keeps apart.

        At a binding budget no single exchange towards a larger profile is allowed: another has to
        free the bytes. Where no budget is set, two exchanges are no more than one after the other.
        """
        weight = self.constraints.weight
        exchanges = list(worth)
        used = np.array([weight[t] - weight[s] for s, t in exchanges])
        value = np.array(list(worth.values()))
        frees, takes = np.flatnonzero(used < 0), np.flatnonzero(used > 0)
        if not len(frees) or not len(takes):
            return
        total = (value[frees][:, None] + value[takes]).ravel()
        for k in np.argsort(-total, kind="stable"):
            first, second = frees[k // len(takes)], takes[k % len(takes)]
            candidate = self.moved(mix, [exchanges[first], exchanges[second]])
            if candidate is not None:
                yield candidate

    def _probed(self, mix: FloatArray, wait: FloatArray, profile: int, change: float) -> float:
        """Return the score after a change of one share and one Newton step of the waits."""
        changed = mix.copy()
        changed[profile] = max(changed[profile] + change, _SEED_SHARE)
        tiers, group = self.tiers(changed)
        points, weights = rule(self.net.radio_alpha, _PROBE_NODES)
        old = spread_to_tiers(wait, group)
        moved, gap, jacobian = old.copy(), np.empty(len(old)), np.empty((len(old), len(old)))
        evaluate_map(tiers, old, points, weights, gap, jacobian)
        newton_step(tiers, old, gap, jacobian, moved)
        return mix_score(tiers, moved, False, self.target, points, weights)

    def exchange(
        self, mix: FloatArray, wait: FloatArray, screen: int, max_moves: int | None
    ) -> tuple[FloatArray, FloatArray, int, bool]:
        """Exchange mass while it helps; return mix, waits, evaluations, and whether it ended."""
        score, wait = self.assess(mix, wait)
        evaluations = 1
        moves = 0
        while max_moves is None or moves < max_moves:
            worth, wait = self.worth(mix, wait)
            better = None
            for neighbours in (self.singles, self.pairs):
                better, solved = self._best(neighbours(mix, worth), score, wait, screen)
                evaluations += solved
                if better is not None:
                    break
            if better is None:
                return mix, wait, evaluations, True
            score, mix, wait = better
            moves += 1
        return mix, wait, evaluations, False

    def _best(
        self, candidates: Iterator[FloatArray], score: float, wait: FloatArray, screen: int
    ) -> tuple[tuple[float, FloatArray, FloatArray] | None, int]:
        """Return a candidate that beats `score`, if there is one, and how many were solved.

        Of the first `screen`: the best of the first few, or beyond them the first that is better.
        """
        best = None
        solved = 0
        for candidate in islice(candidates, screen):
            if best is not None and solved >= _COMPARED:
                break
            candidate_score, candidate_wait = self.assess(candidate, wait)
            solved += 1
            if candidate_score > score + _LEAST_GAIN:
                score = candidate_score
                best = (score, candidate, candidate_wait)
        return best, solved


def optimize_placement(
    net: TieredNetwork,
    *,
    ttft_target_s: ArrayLike,
    budget_bytes: float | None = None,
    minimum: ArrayLike | None = None,
    maximum: ArrayLike | None = None,
    method: Literal["exchange"] = "exchange",
    start: "PlacementResult | ArrayLike | None" = None,
    step: float = 0.02,
    screen: int = 12,
    max_moves: int | None = None,
) -> PlacementResult:
    """Search the mix of profiles with the largest coverage under load-aware routing [49].

    The exchange search moves `step` of the nodes from one profile to another while it helps. The
    S(S-1) exchanges are ranked by a first-order estimate, and the best `screen` of them solved;
    each equilibrium starts from the one before. Stability is a constraint: a stable mix is better
    than any unstable one, and among unstable ones the smaller overload is better.

    Parameters
    ----------
    net : TieredNetwork
        Its ``profile_probabilities`` are the start unless `start` is given.
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.
    budget_bytes : float, optional
        Mean bytes of persistent state per node; needs ``net.state_bytes``.
    minimum, maximum : array_like [S] or float, optional
        Floors and caps of the shares.
    method : {"exchange"}
    start : PlacementResult or array_like [S], optional
        Where to start; the nearest allowed mix is taken. A result also gives the waits to start
        from.
    step : float
        Mass moved at a time, from 1e-8 to 1: 1/N for a fleet of N nodes.
    screen : int
        Neighbours solved before the search gives up; S(S-1) makes it exhaustive.
    max_moves : int, optional
        Most exchanges.

    Returns
    -------
    PlacementResult

    Raises
    ------
    ValueError
        If an argument breaks its rule, or no mix satisfies the constraints.
    TypeError
        If `net` is no network.
    """
    check_network(net)
    checked_choice("method", method, ("exchange",))
    step = checked_number("step", step, _LEAST_STEP, 1.0)
    screen = checked_whole("screen", screen, 1, _MOST)
    if max_moves is not None:
        max_moves = checked_whole("max_moves", max_moves, 0, _MOST)
    present = net.type_probabilities > 0
    target = checked_target(net, ttft_target_s)
    constraints = MixConstraints.for_network(net, budget_bytes, minimum, maximum)
    search = _Search(net, target[present] - net.radio_base_s, constraints, step)
    mix, wait = _start(net, start)
    mix, wait, evaluations, converged = search.exchange(
        constraints.project(mix), wait, screen, max_moves
    )
    chosen = net.with_mix(mix)
    equilibrium = solve_equilibrium(chosen, start=wait)
    return PlacementResult(
        probabilities=chosen.profile_probabilities,
        coverage=evaluate(chosen, equilibrium, ttft_target_s).coverage,
        evaluations=evaluations,
        converged=converged,
        equilibrium=equilibrium,
    )


def _start(
    net: TieredNetwork, start: "PlacementResult | ArrayLike | None"
) -> tuple[FloatArray, FloatArray]:
    """Return the mix and the waits to start from."""
    wait = np.zeros(net.num_profiles)
    if start is None:
        return net.profile_probabilities, wait
    shares: ArrayLike
    if isinstance(start, PlacementResult):
        shares, wait = start.probabilities, start.equilibrium.assumed_wait_s
    else:
        shares = start
    mix = checked_numbers("start", shares, "[S]")
    within = (mix >= -_ROUNDING) & (mix <= 1 + _ROUNDING)
    if mix.shape != (net.num_profiles,) or not within.all():
        raise ValueError(
            f"start is {shares!r}: must be {net.num_profiles} shares from 0 to 1, one per profile"
        )
    return mix, wait
