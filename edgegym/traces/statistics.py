"""What is in a trace: load, burstiness, lengths, and how much of the prompts could be reused."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.traces.trace import Trace
from edgegym.traces.trie import BlockTrie, block_trie, shared_prefixes

_MOST_WINDOWS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class LengthStatistics:
    """Distribution of a number of tokens over requests (quantiles interpolate linearly)."""

    mean: float
    """Mean, tokens."""
    p50: float
    """Median, tokens."""
    p90: float
    """90 % quantile, tokens."""
    p99: float
    """99 % quantile, tokens."""
    largest: int
    """Maximum, tokens."""


@dataclass(frozen=True, kw_only=True)
class HotPrefix:
    """A beginning that several prompts share."""

    root_block: int
    """Hash of its first block."""
    depth_tokens: int
    """Tokens from the start of the prompt to its end."""
    own_tokens: int
    """Tokens of it beyond the next shorter shared beginning."""
    requests: int
    """Prompts that begin with it."""
    share: float
    """``requests`` over all requests of the trace."""


@dataclass(frozen=True, kw_only=True)
class ReuseStatistics:
    """How much of the prompts an infinite prefix cache would have held, in order of arrival."""

    token_share: float
    """Reusable prompt tokens over all prompt tokens. A prompt's reusable tokens are those of its
    leading blocks that an earlier prompt began with too, at most all but its last token."""
    block_share: float
    """Leading blocks seen in an earlier prompt over all blocks of all prompts."""
    interval_p50_s: float | None
    """Median time since the last use of a reused block; None when nothing is reused."""
    interval_p90_s: float | None
    """90 % quantile of that time."""
    roots: int
    """Distinct first blocks."""
    hottest: tuple[HotPrefix, ...]
    """Shared beginnings by the tokens that their own part saves, ``(requests - 1) * own_tokens``,
    most first. Only the end of each chain that the same requests share is listed."""


@dataclass(frozen=True, kw_only=True)
class TraceStatistics:
    """Figures of a trace."""

    requests: int
    """Number of requests R."""
    duration_s: float
    """Seconds from the first arrival to the last."""
    rate_per_s: float
    """``(R - 1) / duration_s``; 0 when all requests came at one instant."""
    interarrival_scv: float | None
    """Squared coefficient of variation of the R - 1 times between arrivals: population variance
    over squared mean; 1 for Poisson arrivals, more when bursty. None when undefined."""
    window_s: float
    """Window of the index of dispersion."""
    dispersion_index: float | None
    """Population variance over mean of the numbers of requests in the complete windows of
    ``window_s`` from the first arrival on; 1 for Poisson arrivals. None below 2 windows."""
    distinct_arrival_times: int
    """Distinct timestamps. Far fewer than requests means that the recorder rounded them, and then
    ``interarrival_scv`` measures the rounding."""
    input: LengthStatistics
    """Prompt lengths."""
    output: LengthStatistics
    """Generated lengths."""
    reuse: ReuseStatistics | None
    """None when the trace has no block hashes."""


def trace_statistics(
    trace: Trace, *, window_s: float = 10.0, num_hottest: int = 10
) -> TraceStatistics:
    """Measure a trace.

    Parameters
    ----------
    trace : Trace
        What ``read_trace`` returned.
    window_s : float, optional
        Window for the index of dispersion of counts, seconds.
    num_hottest : int, optional
        How many shared beginnings to list.

    Returns
    -------
    TraceStatistics
        Figures; each is defined where it is declared.

    Raises
    ------
    ValueError
        If ``window_s`` is not a positive number or cuts the trace into more than 10,000,000
        windows, or ``num_hottest`` is negative.
    """
    if not (window_s > 0 and np.isfinite(window_s)):
        raise ValueError(f"window_s = {window_s}: must be a positive number of seconds")
    least_s = trace.duration_s / _MOST_WINDOWS
    if window_s < least_s:
        raise ValueError(
            f"window_s = {window_s}: must be at least {least_s:.3g} s for this trace of "
            f"{trace.duration_s:,.1f} s, which may have {_MOST_WINDOWS:,} windows"
        )
    if num_hottest < 0:
        raise ValueError(f"num_hottest = {num_hottest}: must be at least 0")
    return TraceStatistics(
        requests=trace.num_requests,
        duration_s=trace.duration_s,
        rate_per_s=trace.rate_per_s,
        interarrival_scv=_interarrival_scv(trace.arrival_s),
        window_s=window_s,
        dispersion_index=_dispersion_index(trace.arrival_s, window_s),
        distinct_arrival_times=len(np.unique(trace.arrival_s)),
        input=_lengths(trace.input_tokens),
        output=_lengths(trace.output_tokens),
        reuse=None if trace.block_ids is None else _reuse(trace, num_hottest),
    )


def _lengths(tokens: NDArray[np.int64]) -> LengthStatistics:
    p50, p90, p99 = np.quantile(tokens, (0.5, 0.9, 0.99)).tolist()
    return LengthStatistics(
        mean=float(tokens.mean()), p50=p50, p90=p90, p99=p99, largest=int(tokens.max())
    )


def _interarrival_scv(arrival_s: NDArray[np.float64]) -> float | None:
    gaps = np.diff(arrival_s)
    if len(gaps) == 0 or gaps.mean() == 0.0:
        return None
    return float(gaps.var() / gaps.mean() ** 2)


def _dispersion_index(arrival_s: NDArray[np.float64], window_s: float) -> float | None:
    elapsed = arrival_s - arrival_s[0]
    windows = int(elapsed[-1] / window_s)
    if windows < 2:
        return None
    window = (elapsed / window_s).astype(np.int64)
    counts = np.bincount(window[window < windows], minlength=windows)
    return float(counts.var() / counts.mean())


def _reuse(trace: Trace, num_hottest: int) -> ReuseStatistics:
    trie = block_trie(trace)
    # A vertex is a whole beginning, so the blocks seen before are the leading ones of each prompt.
    seen = trie.first_request[trie.path] < trie.request_of
    blocks = np.bincount(trie.request_of[seen], minlength=trace.num_requests)
    tokens = np.minimum(blocks * trace.block_tokens, trace.input_tokens - 1)
    intervals = _reuse_intervals_s(trace, trie)
    p50, p90 = np.quantile(intervals, (0.5, 0.9)).tolist() if len(intervals) else (None, None)
    return ReuseStatistics(
        token_share=float(tokens.sum() / trace.input_tokens.sum()),
        block_share=float(seen.mean()),
        interval_p50_s=p50,
        interval_p90_s=p90,
        roots=int((trie.parent < 0).sum()),
        hottest=_hottest(trace, num_hottest),
    )


def _reuse_intervals_s(trace: Trace, trie: BlockTrie) -> NDArray[np.float64]:
    # Stable: the uses of one vertex stay in order of arrival.
    order = np.argsort(trie.path, kind="stable")
    vertex = trie.path[order]
    used_s = trace.arrival_s[trie.request_of[order]]
    return np.diff(used_s)[np.diff(vertex) == 0]


def _hottest(trace: Trace, number: int) -> tuple[HotPrefix, ...]:
    # Whole blocks only, so that a depth is one that every prompt of the group really has.
    trie = block_trie(trace, whole_blocks_only=True)
    shared = shared_prefixes(trie, trace.block_tokens)
    own_tokens = shared.own_tokens
    ranked = np.argsort(-(shared.requests - 1) * own_tokens, kind="stable")[:number].tolist()
    assert trace.block_ids is not None
    assert trace.block_start is not None
    root_block = trace.block_ids[trace.block_start[shared.first_request]]
    return tuple(
        HotPrefix(
            root_block=int(root_block[prefix]),
            depth_tokens=int(shared.depth_tokens[prefix]),
            own_tokens=int(own_tokens[prefix]),
            requests=int(shared.requests[prefix]),
            share=float(shared.requests[prefix] / trace.num_requests),
        )
        for prefix in ranked
    )
