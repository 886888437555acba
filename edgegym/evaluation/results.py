"""The numbers of a comparison: one record per policy and seed, one per policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from edgegym.evaluation.episode import Episode
from edgegym.evaluation.statistics import (
    Interval,
    coverage_interval,
    difference_interval,
    interquartile_mean,
    normalised_score,
    probability_of_improvement,
    ratio_of_sums,
)


@dataclass(frozen=True)
class SeedResult:
    """One policy on one seed; None where nothing happened that could be averaged."""

    policy: str
    """Label of the policy."""
    seed: int
    """Seed of the episode."""
    arrivals: int
    """Requests made; the same under every policy."""
    decided: int
    """Requests whose target was met, missed, or that were rejected."""
    hits: int
    """Requests whose first token came within their target."""
    first_tokens: int
    """Requests that got a first token."""
    rejected: int
    """Requests that no node could take."""
    coverage: float | None
    """hits / decided."""
    mean_ttft_s: float | None
    """Mean time to first token, of the requests that got one."""
    p50_ttft_s: float | None
    """Its median."""
    p90_ttft_s: float | None
    """Its 90 % quantile."""
    p99_ttft_s: float | None
    """Its 99 % quantile."""
    offloading_ratio: float | None
    """Prefill seconds saved by hits over those that no hit would have cost."""
    bytes_moved: int
    """Bytes charged for moves."""
    moves: int
    """Moves started."""
    illegal_actions: int
    """Actions that were no legal move."""
    total_reward: float
    """Return of the episode."""
    utilization: float
    """Share of slot time in use, mean over nodes."""
    prefill_utilization: float
    """GPU-seconds of prefill per second, mean over nodes."""
    max_prefill_utilization: float
    """The same of the busiest node."""

    @classmethod
    def of(cls, policy: str, episode: Episode) -> "SeedResult":
        """Return the numbers of an episode."""
        stats = episode.stats
        return cls(
            policy=policy,
            seed=episode.seed,
            arrivals=stats.arrivals,
            decided=stats.decided,
            hits=stats.hits,
            first_tokens=stats.first_tokens,
            rejected=stats.rejected,
            coverage=ratio_of_sums(stats.hits, stats.decided),
            mean_ttft_s=ratio_of_sums(stats.ttft_sum_s, stats.first_tokens),
            p50_ttft_s=_finite(stats.ttft_quantile_s(0.5)),
            p90_ttft_s=_finite(stats.ttft_quantile_s(0.9)),
            p99_ttft_s=_finite(stats.ttft_quantile_s(0.99)),
            offloading_ratio=ratio_of_sums(stats.saved_prefill_sum_s, stats.cold_prefill_sum_s),
            bytes_moved=stats.bytes_moved,
            moves=episode.moves,
            illegal_actions=episode.illegal_actions,
            total_reward=episode.total_reward,
            utilization=float(stats.utilization[: episode.nodes].mean()),
            prefill_utilization=float(stats.prefill_utilization[: episode.nodes].mean()),
            max_prefill_utilization=float(stats.prefill_utilization[: episode.nodes].max()),
        )


@dataclass(frozen=True)
class PolicyResult:
    """One policy over all seeds; None where nothing happened that could be averaged."""

    policy: str
    """Label of the policy."""
    source: str
    """What was compared: a policy's name, a model's path, or a description."""
    seeds: int
    """Number of seeds."""
    coverage: float | None
    """Requests within target over those decided, all seeds together."""
    coverage_interval: Interval
    """95 % bootstrap interval of the coverage."""
    difference: float | None
    """Coverage less that of the reference."""
    difference_interval: Interval
    """Paired 95 % bootstrap interval of the difference."""
    interquartile_mean: float | None
    """Mean coverage of the middle half of the seeds."""
    probability_of_improvement: float | None
    """Share of the seeds with a higher coverage than the reference, ties half."""
    normalised_score: float | None
    """0 for ``static``, 1 for ``clairvoyant``; None unless both were compared."""
    mean_ttft_s: float | None
    """Mean time to first token, of all requests that got one."""
    p50_ttft_s: float | None
    """Its median."""
    p90_ttft_s: float | None
    """Its 90 % quantile."""
    p99_ttft_s: float | None
    """Its 99 % quantile."""
    offloading_ratio: float | None
    """Prefill seconds saved by hits over those that no hit would have cost."""
    bytes_moved: float
    """Bytes charged for moves, mean per episode."""
    moves: float
    """Moves started, mean per episode."""
    rejected: int
    """Requests that no node could take, all seeds together."""
    illegal_actions: int
    """Actions that were no legal move, all seeds together."""
    mean_return: float
    """Mean return of an episode."""
    utilization: float
    """Share of slot time in use, mean over nodes and seeds."""
    prefill_utilization: float
    """GPU-seconds of prefill per second, mean over nodes and seeds."""
    max_prefill_utilization: float
    """The same of the busiest node of any seed."""


class ResultTable(Sequence[PolicyResult]):
    """The results by policy, in the order compared; printed as a readable table.

    Parameters
    ----------
    rows : sequence of PolicyResult
        The results.
    reference : str
        Label of the policy that differences are to.
    """

    def __init__(self, rows: Sequence[PolicyResult], reference: str) -> None:
        self._rows = tuple(rows)
        self.reference = reference

    @overload
    def __getitem__(self, index: int | str) -> PolicyResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PolicyResult]: ...
    def __getitem__(self, index: int | str | slice) -> PolicyResult | Sequence[PolicyResult]:
        """Return a row by position or label, or several rows.

        Raises
        ------
        KeyError
            If no policy has that label.
        """
        if isinstance(index, str):
            for row in self._rows:
                if row.policy == index:
                    return row
            raise KeyError(f"no policy '{index}' (compared: {', '.join(self.policies)})")
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResultTable):
            return NotImplemented
        return (self._rows, self.reference) == (other._rows, other.reference)

    def __hash__(self) -> int:
        return hash((self._rows, self.reference))

    def __str__(self) -> str:
        from edgegym.evaluation.terminal import plain_text, result_table

        return plain_text(result_table(self))

    __repr__ = __str__

    @property
    def policies(self) -> tuple[str, ...]:
        """Labels of the policies."""
        return tuple(row.policy for row in self._rows)


def summarise(
    episodes: dict[str, tuple[Episode, ...]], sources: dict[str, str], reference: str | None
) -> tuple[ResultTable, tuple[SeedResult, ...]]:
    """Return the results of all episodes.

    Parameters
    ----------
    episodes : dict
        By label, each policy's on the same seeds in the same order.
    sources : dict
        What was compared, by label.
    reference : str or None
        Label of the policy that differences are to; by default the best analytic one, or the first
        if there is none.

    Returns
    -------
    ResultTable, tuple of SeedResult
        By policy, and by policy and seed.
    """
    by_seed = {
        label: tuple(SeedResult.of(label, episode) for episode in played)
        for label, played in episodes.items()
    }
    coverage = {
        label: ratio_of_sums([seed.hits for seed in rows], [seed.decided for seed in rows])
        for label, rows in by_seed.items()
    }
    chosen = reference or _best_analytic(coverage, sources) or next(iter(episodes))
    ends = tuple(_by_source(coverage, sources, name) for name in ("static", "clairvoyant"))
    rows = [
        _policy_result(
            label, sources[label], episodes[label], by_seed[label], by_seed[chosen], ends
        )
        for label in episodes
    ]
    return ResultTable(rows, chosen), tuple(seed for rows in by_seed.values() for seed in rows)


def _policy_result(
    label: str,
    source: str,
    episodes: tuple[Episode, ...],
    seeds: tuple[SeedResult, ...],
    reference: tuple[SeedResult, ...],
    ends: tuple[float | None, ...],
) -> PolicyResult:
    stats = episodes[0].stats
    for episode in episodes[1:]:
        stats = stats + episode.stats
    hits, decided = [seed.hits for seed in seeds], [seed.decided for seed in seeds]
    reference_hits = [seed.hits for seed in reference]
    reference_decided = [seed.decided for seed in reference]
    coverage = ratio_of_sums(hits, decided)
    against = ratio_of_sums(reference_hits, reference_decided)
    covered = [seed.coverage for seed in seeds if seed.coverage is not None]
    pairs = [
        (mine.coverage, theirs.coverage)
        for mine, theirs in zip(seeds, reference, strict=True)
        if mine.coverage is not None and theirs.coverage is not None
    ]
    static, clairvoyant = ends
    return PolicyResult(
        policy=label,
        source=source,
        seeds=len(seeds),
        coverage=coverage,
        coverage_interval=coverage_interval(hits, decided),
        difference=None if coverage is None or against is None else coverage - against,
        difference_interval=difference_interval(hits, decided, reference_hits, reference_decided),
        interquartile_mean=interquartile_mean(covered) if covered else None,
        probability_of_improvement=(
            probability_of_improvement(*zip(*pairs, strict=True)) if pairs else None
        ),
        normalised_score=(
            None
            if coverage is None or static is None or clairvoyant is None
            else normalised_score(coverage, static, clairvoyant)
        ),
        mean_ttft_s=ratio_of_sums(stats.ttft_sum_s, stats.first_tokens),
        p50_ttft_s=_finite(stats.ttft_quantile_s(0.5)),
        p90_ttft_s=_finite(stats.ttft_quantile_s(0.9)),
        p99_ttft_s=_finite(stats.ttft_quantile_s(0.99)),
        offloading_ratio=ratio_of_sums(stats.saved_prefill_sum_s, stats.cold_prefill_sum_s),
        bytes_moved=float(np.mean([seed.bytes_moved for seed in seeds])),
        moves=float(np.mean([seed.moves for seed in seeds])),
        rejected=sum(seed.rejected for seed in seeds),
        illegal_actions=sum(seed.illegal_actions for seed in seeds),
        mean_return=float(np.mean([seed.total_reward for seed in seeds])),
        utilization=float(np.mean([seed.utilization for seed in seeds])),
        prefill_utilization=float(np.mean([seed.prefill_utilization for seed in seeds])),
        max_prefill_utilization=max(seed.max_prefill_utilization for seed in seeds),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _best_analytic(coverage: dict[str, float | None], sources: dict[str, str]) -> str | None:
    """Return the label of the analytic policy with the highest coverage; the first of equals."""
    from edgegym.policies import policies

    names = {name for name in policies() if name.startswith("analytic")} | {"static_optimal"}
    analytic = [
        label
        for label, source in sources.items()
        if source in names and coverage[label] is not None
    ]
    return max(analytic, key=lambda label: coverage[label] or 0.0, default=None)


def _by_source(
    coverage: dict[str, float | None], sources: dict[str, str], name: str
) -> float | None:
    """Return the coverage of the first policy that is, or is called, ``name``."""
    for label, source in sources.items():
        if name in (source, label):
            return coverage[label]
    return None
