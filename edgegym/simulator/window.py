"""What happened in a window of time."""

from dataclasses import dataclass, field

import numpy as np

from edgegym.simulator.columns import (
    ARRIVALS,
    BUSY_TICKS,
    BYTES_MOVED,
    CAPACITY_TICKS,
    COLD_PREFILL_TICKS,
    COMPLETED,
    DECIDED,
    FAMILY_ARRIVALS,
    FAMILY_DECIDED,
    FAMILY_HITS,
    FIRST_TOKENS,
    GOODPUT_TOKENS,
    HIT_TOKENS,
    HITS,
    MOVES_STARTED,
    PREFILL_TICKS,
    PREFILL_TIME_TICKS,
    RADIO_TICKS,
    REJECTED,
    WAIT_TICKS,
)
from edgegym.simulator.full.counts import FIRST_INPUT_TOKENS, NUM_EXTRA, NUM_FAMILY
from edgegym.simulator.full.figures import FullFigures
from edgegym.simulator.histogram import histogram_quantile_s
from edgegym.simulator.state import HISTOGRAM_BINS, TICKS_PER_S, FleetState, Floats, Ints

# What the fast loop does not count.
_NO_EXTRA = np.zeros(NUM_EXTRA, dtype=np.int64)
_NO_HISTOGRAMS = np.zeros((0, HISTOGRAM_BINS), dtype=np.int64)
_NO_HISTOGRAM = np.zeros(HISTOGRAM_BINS, dtype=np.int64)
_NO_FAMILIES = np.zeros((0, NUM_FAMILY), dtype=np.int64)
_NO_VERTICES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class WindowStats(FullFigures):
    """Statistics of one window; windows of the same fleet add up with ``+``.

    Counts and times are kept as integers (times in ticks of 2^-30 s, about 1 ns, up to 8.6e9 s), so
    the sum over any partition of a span is the same to the bit. Every request is counted in the
    window in which the thing happens: its arrival, its decision (first token by the deadline, or
    the deadline), its first token, its completion (slot end).

    Attributes
    ----------
    ticks : int
        Length of the window in ticks.
    counters : ndarray
        ``[NUM_COUNTERS]``, columns as in :mod:`edgegym.simulator.columns`.
    families : ndarray
        ``[3, F]`` arrivals, decided, hits.
    ttft_histogram : ndarray
        ``[HISTOGRAM_BINS]`` TTFT of the first tokens.
    busy_ticks, capacity_ticks, prefill_ticks : ndarray
        ``[N]`` slot time in use, slot time there was, prefill of the first tokens.
    nearest_demand : ndarray
        ``[N, F]`` requests by their nearest up node and family.
    extra : ndarray
        ``[NUM_EXTRA]``, columns as in :mod:`edgegym.simulator.full.counts`; 0 in the fast loop.
    family_ttft, family_end_to_end : ndarray
        ``[F, HISTOGRAM_BINS]`` TTFT of the first tokens and end-to-end times of the completed
        requests by family; ``[0, HISTOGRAM_BINS]`` in the fast loop, which does not keep them.
    hit_depth_histogram : ndarray
        ``[HISTOGRAM_BINS]`` hit tokens of the first tokens; zeros in the fast loop.
    family_counts : ndarray
        ``[F, NUM_FAMILY]``, columns as in :mod:`edgegym.simulator.full.counts`; ``[0, NUM_FAMILY]``
        in the fast loop.
    hit_vertices : ndarray
        ``[D + 1]`` first tokens by how many vertices of their prefix were not computed, D being the
        longest path of a request type; ``[0]`` in the fast loop. What counts is what the station
        really held when the request took its slot, or fetched for it.
    """

    ticks: int
    counters: Ints
    families: Ints
    ttft_histogram: Ints
    busy_ticks: Ints
    capacity_ticks: Ints
    prefill_ticks: Ints
    nearest_demand: Ints
    extra: Ints = field(default_factory=lambda: _NO_EXTRA)
    family_ttft: Ints = field(default_factory=lambda: _NO_HISTOGRAMS)
    family_end_to_end: Ints = field(default_factory=lambda: _NO_HISTOGRAMS)
    hit_depth_histogram: Ints = field(default_factory=lambda: _NO_HISTOGRAM)
    family_counts: Ints = field(default_factory=lambda: _NO_FAMILIES)
    hit_vertices: Ints = field(default_factory=lambda: _NO_VERTICES)

    @classmethod
    def of_window(cls, state: FleetState, b: int, ticks: int) -> "WindowStats":
        """Copy the counters of the window that an advance has just closed.

        Parameters
        ----------
        state : FleetState
            State of B fleets.
        b : int
            Which fleet.
        ticks : int
            Length of the window in ticks.

        Returns
        -------
        WindowStats
            Independent of the state.
        """
        extras = () if state.full is None else [array[b].copy() for array in state.full.counts]
        nodes = state.node_x.shape[1]
        return cls(
            ticks,
            state.counters[b].copy(),
            state.family_counters[b].copy(),
            state.histogram[b].copy(),
            state.node_work[b, :nodes, BUSY_TICKS].copy(),
            state.node_work[b, :nodes, CAPACITY_TICKS].copy(),
            state.node_work[b, :nodes, PREFILL_TIME_TICKS].copy(),
            state.window_nearest_demand[b].copy(),
            *extras,
        )

    def __add__(self, other: "WindowStats") -> "WindowStats":
        """Return the statistics of both windows together."""
        if not isinstance(other, WindowStats):
            return NotImplemented
        if (len(self.hit_vertices) > 0) != (len(other.hit_vertices) > 0):
            raise ValueError(
                "windows of a fleet on the full event loop and of one on the fast loop don't add "
                "up: the fast one counts less; make both with Fleet(..., full=True)"
            )
        return WindowStats(
            self.ticks + other.ticks,
            self.counters + other.counters,
            self.families + other.families,
            self.ttft_histogram + other.ttft_histogram,
            self.busy_ticks + other.busy_ticks,
            self.capacity_ticks + other.capacity_ticks,
            self.prefill_ticks + other.prefill_ticks,
            self.nearest_demand + other.nearest_demand,
            self.extra + other.extra,
            self.family_ttft + other.family_ttft,
            self.family_end_to_end + other.family_end_to_end,
            self.hit_depth_histogram + other.hit_depth_histogram,
            self.family_counts + other.family_counts,
            self.hit_vertices + other.hit_vertices,
        )

    def __eq__(self, other: object) -> bool:
        """Return whether all counts and times are the same to the bit."""
        if not isinstance(other, WindowStats):
            return NotImplemented
        return self.ticks == other.ticks and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in self.__dataclass_fields__
            if name != "ticks"
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return the main figures."""
        return (
            f"WindowStats(seconds={self.seconds:g}, arrivals={self.arrivals}, "
            f"decided={self.decided}, hits={self.hits}, first_tokens={self.first_tokens}, "
            f"completed={self.completed}, rejected={self.rejected})"
        )

    def _count(self, column: int) -> int:
        return self.counters.item(column)

    def _seconds(self, column: int) -> float:
        return self.counters.item(column) / TICKS_PER_S

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return self.ticks / TICKS_PER_S

    @property
    def arrivals(self) -> int:
        """Requests made."""
        return self._count(ARRIVALS)

    @property
    def decided(self) -> int:
        """Requests whose target was met, missed, or that were rejected."""
        return self._count(DECIDED)

    @property
    def hits(self) -> int:
        """Requests whose first token came within their target."""
        return self._count(HITS)

    @property
    def first_tokens(self) -> int:
        """Requests that got their first token."""
        return self._count(FIRST_TOKENS)

    @property
    def completed(self) -> int:
        """Requests that left their slot."""
        return self._count(COMPLETED)

    @property
    def rejected(self) -> int:
        """Requests that no node could take."""
        return self._count(REJECTED)

    @property
    def family_arrivals(self) -> Ints:
        """Requests made, by family, ``[F]``."""
        return self.families[FAMILY_ARRIVALS]

    @property
    def family_decided(self) -> Ints:
        """Decided requests by family, ``[F]``."""
        return self.families[FAMILY_DECIDED]

    @property
    def family_hits(self) -> Ints:
        """Requests within target by family, ``[F]``."""
        return self.families[FAMILY_HITS]

    @property
    def ttft_sum_s(self) -> float:
        """Sum of TTFT over the first tokens: the sum of its parts."""
        ticks = self._count(RADIO_TICKS) + self._count(WAIT_TICKS) + self._count(PREFILL_TICKS)
        return (ticks + self._slot_wait_ticks()) / TICKS_PER_S

    @property
    def radio_sum_s(self) -> float:
        """Radio part of ``ttft_sum_s``."""
        return self._seconds(RADIO_TICKS)

    @property
    def wait_sum_s(self) -> float:
        """Queueing part of ``ttft_sum_s``: for a slot, and in it for the prefill server."""
        return self._seconds(WAIT_TICKS)

    @property
    def prefill_sum_s(self) -> float:
        """Prefill part of ``ttft_sum_s``."""
        return self._seconds(PREFILL_TICKS)

    @property
    def cold_prefill_sum_s(self) -> float:
        """Prefill that the same requests would have cost without any hit."""
        return self._seconds(COLD_PREFILL_TICKS)

    @property
    def saved_prefill_sum_s(self) -> float:
        """Prefill that hits saved."""
        return (self._count(COLD_PREFILL_TICKS) - self._count(PREFILL_TICKS)) / TICKS_PER_S

    @property
    def hit_tokens_sum(self) -> int:
        """Input tokens that were found in a node's memory."""
        return self._count(HIT_TOKENS)

    @property
    def goodput_tokens_sum(self) -> int:
        """Output tokens of the requests within target."""
        return self._count(GOODPUT_TOKENS)

    @property
    def bytes_moved(self) -> int:
        """Bytes charged for moves, counted in the window that follows their start."""
        return self._count(BYTES_MOVED)

    @property
    def moves_started(self) -> int:
        """Moves started just before the window."""
        return self._count(MOVES_STARTED)

    @property
    def coverage(self) -> float:
        """Share of decided requests within target; NaN when none was decided."""
        return self.hits / self.decided if self.decided else float("nan")

    @property
    def mean_ttft_s(self) -> float:
        """Mean TTFT of the first tokens; NaN when there was none."""
        return self.ttft_sum_s / self.first_tokens if self.first_tokens else float("nan")

    @property
    def hit_token_share(self) -> float:
        """Share of the prompt tokens that were not computed; NaN without first tokens.

        Raises
        ------
        ValueError
            In the fast loop, which does not add up prompt tokens.
        """
        self._only_full("prompt tokens")
        tokens = self.extra.item(FIRST_INPUT_TOKENS)
        return self.hit_tokens_sum / tokens if tokens else float("nan")

    @property
    def mean_slots(self) -> Floats:
        """Sequences that could run at once (c), mean over the window, ``[N]``."""
        return self.capacity_ticks / max(self.ticks, 1)

    @property
    def utilization(self) -> Floats:
        """Share of slot time in use, ``[N]``; above 1 while a node drains, 0 for padding nodes."""
        return self.busy_ticks / np.maximum(self.capacity_ticks, 1)

    @property
    def prefill_utilization(self) -> Floats:
        """GPU-seconds of prefill per second, ``[N]``: above 1 a real GPU could not have kept up."""
        return self.prefill_ticks / max(self.ticks, 1)

    @property
    def utilization_deviation(self) -> float:
        """Standard deviation of ``utilization`` between the nodes that had slots; NaN without."""
        return self._deviation(self.utilization)

    @property
    def prefill_utilization_deviation(self) -> float:
        """The same of ``prefill_utilization``."""
        return self._deviation(self.prefill_utilization)

    def _deviation(self, figures: Floats) -> float:
        served = self.capacity_ticks > 0
        return float(figures[served].std()) if served.any() else float("nan")

    def ttft_quantile_s(self, quantile: float, family: int | None = None) -> float:
        """Return a TTFT quantile of the first tokens.

        Parameters
        ----------
        quantile : float
            In [0, 1].
        family : int, optional
            Of one family only.

        Returns
        -------
        float
            Seconds, within 1/64 (relative) from 1 ms to 4.6 h; NaN without first tokens.

        Raises
        ------
        ValueError
            If the quantile is outside [0, 1], there is no such family, or one is given in the fast
            loop, which does not tell them apart.
        """
        if family is None:
            return histogram_quantile_s(self.ttft_histogram, quantile)
        self._only_full("TTFT by family")
        return histogram_quantile_s(self._of_family(self.family_ttft, family), quantile)
