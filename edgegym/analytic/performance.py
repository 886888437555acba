"""What a fleet delivers in equilibrium: coverage, latency, hits [39]-[45]."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import LONGEST_S, checked_open_share, checked_target
from edgegym.analytic.association import cost_association, nearest_association
from edgegym.analytic.coverage import pair_coverage, pair_ttft_cdf
from edgegym.analytic.equilibrium import Equilibrium, check_solved_for
from edgegym.world.network import TieredNetwork, checked_numbers

FloatArray = NDArray[np.float64]


def wait_tail(eq: Equilibrium) -> tuple[FloatArray, FloatArray]:
    """Return delay and decay ``[S]``: P(wait > w) is ``delay * exp(-decay * w)`` [20].

    Unstable tiers have delay 1 and decay 0: their wait exceeds everything.
    """
    return eq.erlang_c, eq.wait_decay_per_s


@dataclass(frozen=True, eq=False)
class Performance:
    """Delivered service of one equilibrium.

    Values "by type" are of the requests of that type, ``[Q]``; weighted by ``type_probabilities``
    they add up to the value of all. Values "by profile" are of the requests that the tier serves,
    ``[S]``, and NaN where it serves none; weighted by `profile_share` they add up to the value of
    all, as long as every request is served (one that nobody may serve counts as not covered, and
    its TTFT is infinite). The offloading ratios add up with the prefill times without reuse as
    weights, as they are ratios of sums.

    Attributes
    ----------
    coverage : float
        Probability that TTFT is within the target [39].
    coverage_no_queue : float
        The same if no request waited, with the same association.
    mean_ttft_s : float
        Mean TTFT [42]; infinite if a used tier is unstable or a type can be served nowhere.
    mean_distance_km : float
        Mean distance to the serving node over the requests that are served; 0 if none is.
    conditional_mean_distance_km : float64 [S, Q]
        The same given type and tier; NaN where that tier serves none of that type.
    expected_hit_tokens : float
        Mean number of reused tokens per request [44].
    offloading_ratio : float
        Share of the prefill time that reuse saves [45]; 0 if prefill takes no time.
    profile_share : float64 [S]
        Share of all requests that each tier serves.
    """

    coverage: float
    coverage_no_queue: float
    mean_ttft_s: float
    mean_distance_km: float
    conditional_mean_distance_km: FloatArray
    expected_hit_tokens: float
    offloading_ratio: float
    profile_share: FloatArray
    _net: TieredNetwork = field(repr=False)
    _eq: Equilibrium = field(repr=False)
    _target: FloatArray = field(repr=False)
    _pairs: "_Pairs" = field(repr=False)

    @property
    def coverage_by_type(self) -> FloatArray:
        """Coverage of each type's requests, ``[Q]``."""
        return self._pairs.coverage.sum(axis=0)

    @property
    def coverage_by_profile(self) -> FloatArray:
        """Coverage of the requests that each tier serves, ``[S]``; NaN where it serves none."""
        return self._by_profile(self._pairs.coverage)

    @property
    def coverage_no_queue_by_type(self) -> FloatArray:
        """Coverage of each type's requests if none waited, ``[Q]``."""
        return self._pairs.no_queue.sum(axis=0)

    @property
    def coverage_no_queue_by_profile(self) -> FloatArray:
        """Coverage of each tier's requests if none waited, ``[S]``; NaN where it serves none."""
        return self._by_profile(self._pairs.no_queue)

    @property
    def mean_ttft_by_type_s(self) -> FloatArray:
        """Mean TTFT of each type's requests, ``[Q]``; infinite as `mean_ttft_s` is."""
        found = self._pairs.ttft_s.sum(axis=0)
        return np.where(self._pairs.probability.any(axis=0), found, np.inf)

    @property
    def mean_ttft_by_profile_s(self) -> FloatArray:
        """Mean TTFT of the requests that each tier serves, ``[S]``.

        Infinite where the tier is unstable, NaN where it serves none.
        """
        return self._by_profile(self._pairs.ttft_s)

    @property
    def hit_tokens_by_type(self) -> FloatArray:
        """Mean number of reused tokens of each type's requests, ``[Q]``."""
        return (self._pairs.probability * self._net.hit_tokens).sum(axis=0)

    @property
    def hit_tokens_by_profile(self) -> FloatArray:
        """Mean number of reused tokens at each tier, ``[S]``; NaN where it serves none."""
        return self._by_profile(self._pairs.probability * self._net.hit_tokens)

    @property
    def offloading_by_type(self) -> FloatArray:
        """Share of each type's prefill time that reuse saves, ``[Q]``; 0 where it takes none."""
        saved = (self._pairs.probability * self._net.saving_s).sum(axis=0)
        cold = self._net.cold_prefill_s
        return np.divide(saved, cold, out=np.zeros(len(cold)), where=cold > 0)

    @property
    def offloading_by_profile(self) -> FloatArray:
        """Share of the prefill time of each tier's requests that reuse saves, ``[S]``.

        0 where it takes none, NaN where the tier serves none.
        """
        saved = self._by_profile(self._pairs.probability * self._net.saving_s)
        cold = self._by_profile(self._pairs.probability * self._net.cold_prefill_s)
        return np.divide(saved, cold, out=saved, where=~(cold <= 0))

    def _by_profile(self, pairs: FloatArray) -> FloatArray:
        total = _over_types(np.where(self._pairs.probability > 0, pairs, 0.0), self._net)
        used = self.profile_share > 0
        return np.divide(total, self.profile_share, out=np.full(len(used), np.nan), where=used)

    def planning_lower_bound(self, epsilon: float) -> float:
        """Return a lower bound on the coverage that looks at one quantile of each tier's wait.

        ``(1 - epsilon)`` times the coverage without queues at the target less the wait that a tier
        exceeds with probability `epsilon`: of the requests in reach of that stricter target, at
        least ``1 - epsilon`` wait no longer.

        Parameters
        ----------
        epsilon : float
            Greater than 0 and less than 1.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If `epsilon` is not between 0 and 1.
        """
        epsilon = checked_open_share("epsilon", epsilon)
        delay, decay = wait_tail(self._eq)
        with np.errstate(divide="ignore", invalid="ignore"):
            rare = np.where(delay > epsilon, np.log(delay / epsilon) / decay, 0.0)
        _, reached = pair_coverage(
            self._net, self._eq, self._target - rare[:, None], np.zeros(len(rare)), decay
        )
        return float((1.0 - epsilon) * (reached @ self._net.type_probabilities).sum())

    def ttft_cdf(self, times_s: ArrayLike) -> FloatArray:
        """Return the share of all requests with a TTFT of at most each time, in one pass.

        Parameters
        ----------
        times_s : array_like [T]
            Seconds, from 0 to 1e12, in any order.

        Returns
        -------
        float64 [T]
            ``ttft_cdf(t)`` is the coverage at the target t.

        Raises
        ------
        ValueError
            If a time is out of range.
        """
        shares = self.ttft_cdf_by_type(times_s) @ self._net.type_probabilities
        return np.minimum(shares, 1.0)

    def ttft_cdf_by_type(self, times_s: ArrayLike) -> FloatArray:
        """Return the share of each type's requests with a TTFT of at most each time.

        Parameters
        ----------
        times_s : array_like [T]
            Seconds, from 0 to 1e12, in any order.

        Returns
        -------
        float64 [T, Q]

        Raises
        ------
        ValueError
            If a time is out of range.
        """
        return np.minimum(self._ttft_pairs(times_s).sum(axis=1), 1.0)

    def ttft_cdf_by_profile(self, times_s: ArrayLike) -> FloatArray:
        """Return the share of each tier's requests with a TTFT of at most each time.

        Parameters
        ----------
        times_s : array_like [T]
            Seconds, from 0 to 1e12, in any order.

        Returns
        -------
        float64 [T, S]
            NaN where the tier serves none.

        Raises
        ------
        ValueError
            If a time is out of range.
        """
        joint = self._ttft_pairs(times_s) @ self._net.type_probabilities
        used = self.profile_share > 0
        share = np.full(joint.shape, np.nan)
        np.divide(joint, self.profile_share, out=share, where=used)
        return np.minimum(share, 1.0)

    def _ttft_pairs(self, times_s: ArrayLike) -> FloatArray:
        """Return P(served by s within t), given the type, ``[T, S, Q]``."""
        times = checked_numbers("times_s", times_s, "[T]")
        if times.ndim != 1:
            raise ValueError(f"times_s has shape {times.shape}: must be [T]")
        if not ((times >= 0) & (times <= LONGEST_S)).all():
            raise ValueError(
                f"times_s is {times_s!r}: must be finite and at least 0, at most {LONGEST_S:g}"
            )
        return pair_ttft_cdf(self._net, self._eq, times, *wait_tail(self._eq))

    def quantile(self, reliability: float) -> float:
        """Return the TTFT that this share of all requests does not exceed [43].

        Parameters
        ----------
        reliability : float
            Greater than 0 and less than 1.

        Returns
        -------
        float
            Seconds; infinite if unstable tiers keep the share from ever being reached.

        Raises
        ------
        ValueError
            If `reliability` is not between 0 and 1.
        """
        return _ttft_quantile(self._net, self._eq, checked_open_share("reliability", reliability))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """What a tier does for a type, given the type: ``[S, Q]``."""

    probability: FloatArray
    coverage: FloatArray
    no_queue: FloatArray
    ttft_s: FloatArray
    """Mean TTFT times probability; 0 where that is."""


def _over_types(values: FloatArray, net: TieredNetwork) -> FloatArray:
    """Return the mean over the last axis, the types; those that never occur may be infinite."""
    shares = net.type_probabilities
    return np.asarray(np.where(shares > 0, values, 0.0) @ shares)


def _ttft_quantile(net: TieredNetwork, eq: Equilibrium, reliability: float) -> float:
    # Imported here: scipy.optimize would slow down every import of the analytic model.
    from scipy.optimize import root_scalar

    delay, decay = wait_tail(eq)
    served = net.type_probabilities @ (eq.association * np.isfinite(eq.mean_wait_s)[:, None]).sum(0)
    if reliability >= served:
        return math.inf

    def shortfall(ttft_s: float) -> float:
        pairs, _ = pair_coverage(net, eq, np.full(net.num_types, ttft_s), delay, decay)
        return float((pairs @ net.type_probabilities).sum()) - reliability

    low, high = 0.0, net.radio_base_s + net.radio_xi + float(net.cold_prefill_s.max())
    while shortfall(high) < 0:
        low, high = high, 2.0 * high
        if high > 1e15:  # within rounding of a share that is never reached
            return math.inf
    return root_scalar(shortfall, bracket=(low, high), xtol=1e-13, rtol=1e-13).root


def evaluate(net: TieredNetwork, eq: Equilibrium, ttft_target_s: ArrayLike) -> Performance:
    """Return the service that a fleet delivers in an equilibrium.

    Association follows the assumed waits; TTFT counts the induced ones. An unstable tier covers
    nothing.

    Parameters
    ----------
    net : TieredNetwork
        The network that `eq` was solved for.
    eq : Equilibrium
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.

    Returns
    -------
    Performance

    Raises
    ------
    ValueError
        If the target is negative or has another shape, or `eq` has the shape or the loads of
        another network.
    TypeError
        If `net` is no network or `eq` no equilibrium.
    """
    check_solved_for(net, eq)
    target = checked_target(net, ttft_target_s)
    law = (
        nearest_association(net)
        if eq.policy == "nearest"
        else cost_association(net, eq.assumed_wait_s)
    )
    weight = np.broadcast_to(net.type_probabilities, law.probability.shape)
    share = law.probability * weight
    served = law.probability > 0
    used = share > 0
    lost = float(net.type_probabilities @ ~served.any(axis=0))
    distance = float((share * law.mean_distance_km)[used].sum())
    parts = net.radio_base_s + law.mean_radio_s + net.prefill_s + eq.mean_wait_s[:, None]
    ttft = np.zeros(share.shape)
    np.multiply(parts, law.probability, out=ttft, where=served)
    total_prefill = float(net.type_probabilities @ net.cold_prefill_s)
    coverage, no_queue = pair_coverage(net, eq, target, *wait_tail(eq))
    return Performance(
        coverage=float((coverage @ net.type_probabilities).sum()),
        coverage_no_queue=float((no_queue @ net.type_probabilities).sum()),
        mean_ttft_s=math.inf if lost > 0 else _over_types(ttft.sum(axis=0), net).item(),
        mean_distance_km=distance / (1.0 - lost) if lost < 1 else 0.0,
        conditional_mean_distance_km=law.mean_distance_km,
        expected_hit_tokens=float((share * net.hit_tokens).sum()),
        offloading_ratio=float((share * net.saving_s).sum()) / total_prefill
        if total_prefill
        else 0.0,
        profile_share=share.sum(axis=1),
        _net=net,
        _eq=eq,
        _target=target,
        _pairs=_Pairs(law.probability, coverage, no_queue, ttft),
    )
