"""Figures of a window that only the full loop knows."""

import numpy as np

from edgegym.simulator.full import counts as full
from edgegym.simulator.histogram import histogram_quantile_s, histogram_quantile_tokens
from edgegym.simulator.state import TICKS_PER_S, Ints


class FullFigures:
    """The part of :class:`~edgegym.simulator.WindowStats` that is 0, or refused, in the fast loop.

    The attributes are those of the whole class.
    """

    ticks: int
    extra: Ints
    family_ttft: Ints
    family_end_to_end: Ints
    hit_depth_histogram: Ints
    family_counts: Ints

    def _slot_wait_ticks(self) -> int:
        """Return the parts of TTFT between slot and prefill."""
        return self.extra.item(full.STALL_TICKS) + self.extra.item(full.RESTORE_TICKS)

    @property
    def stall_sum_s(self) -> float:
        """Part of ``ttft_sum_s``: in the slot, until fetched state had come."""
        return self._extra_seconds(full.STALL_TICKS)

    @property
    def restore_sum_s(self) -> float:
        """Part of ``ttft_sum_s``: in the slot, until fetched state was unpacked."""
        return self._extra_seconds(full.RESTORE_TICKS)

    @property
    def fetches(self) -> int:
        """Fetches of prefix state begun for requests."""
        return self.extra.item(full.FETCHES)

    @property
    def fetches_lost(self) -> int:
        """Fetches whose end disappeared, so that the request computed instead."""
        return self.extra.item(full.FETCHES_LOST)

    @property
    def fetched_bytes(self) -> int:
        """State fetched for requests."""
        return self.extra.item(full.FETCHED_BYTES)

    @property
    def refresh_bytes(self) -> int:
        """State transferred because it had expired."""
        return self.extra.item(full.REFRESH_BYTES)

    @property
    def link_bytes(self) -> int:
        """Bytes over a shared link, compressed."""
        return self.extra.item(full.LINK_BYTES)

    @property
    def link_utilization(self) -> float:
        """Share of the time in which something flowed over a shared link."""
        return self.extra.item(full.LINK_BUSY_TICKS) / max(self.ticks, 1)

    @property
    def spilled_to_node(self) -> int:
        """First tokens of requests whose best node was closed, from another node."""
        return self.extra.item(full.SPILLED_TO_NODE)

    @property
    def spilled_to_origin(self) -> int:
        """First tokens of requests whose best node was closed, from the origin."""
        return self.extra.item(full.SPILLED_TO_ORIGIN)

    @property
    def spilled(self) -> int:
        """First tokens of requests whose best node was closed, however often they were sent."""
        return self.spilled_to_node + self.spilled_to_origin

    @property
    def redirected(self) -> int:
        """Times that a request found its node closed when it arrived there."""
        return self.extra.item(full.REDIRECTED)

    @property
    def rejected_by_admission(self) -> int:
        """Rejected requests whose best node was closed."""
        return self.extra.item(full.REJECTED_BY_ADMISSION)

    @property
    def interrupted(self) -> int:
        """Requests whose node failed after their first token."""
        return self.extra.item(full.INTERRUPTED)

    @property
    def redispatched(self) -> int:
        """Times that a request was sent again because its node failed before its first token."""
        return self.extra.item(full.REDISPATCHED)

    @property
    def failures(self) -> int:
        """Failures of nodes, backhaul and origin."""
        return self.extra.item(full.FAILURES)

    @property
    def origin_dispatches(self) -> int:
        """Times that a request was sent to the origin."""
        return self.extra.item(full.ORIGIN_DISPATCHES)

    @property
    def origin_first_tokens(self) -> int:
        """First tokens from the origin."""
        return self.extra.item(full.ORIGIN_FIRST_TOKENS)

    @property
    def origin_utilization(self) -> float:
        """Share of the origin's slot time in use; 0 without an origin."""
        capacity = self.extra.item(full.ORIGIN_CAPACITY_TICKS)
        return self.extra.item(full.ORIGIN_BUSY_TICKS) / max(capacity, 1)

    @property
    def output_tokens_sum(self) -> int:
        """Output tokens of the completed requests."""
        return self.extra.item(full.OUTPUT_TOKENS)

    def _extra_seconds(self, column: int) -> float:
        return self.extra.item(column) / TICKS_PER_S

    def _only_full(self, what: str) -> None:
        if not len(self.family_ttft):
            raise ValueError(f"this window has no {what}: the fast event loop does not keep them")

    def _of_family(self, histograms: Ints, family: int) -> Ints:
        """Return the histogram of a family."""
        if isinstance(family, bool) or not isinstance(family, int | np.integer):
            raise ValueError(f"family = {family!r}: must be the index of a family")
        if not 0 <= family < len(histograms):
            raise ValueError(f"family = {family}: must be one of 0..{len(histograms) - 1}")
        return histograms[family]

    def end_to_end_quantile_s(self, quantile: float, family: int | None = None) -> float:
        """Return a quantile of the completed requests' time from arrival to last token.

        Parameters
        ----------
        quantile : float
            In [0, 1].
        family : int, optional
            Of one family only.

        Returns
        -------
        float
            Seconds, within 1/64 (relative) from 1 ms to 4.6 h; NaN when none was completed.

        Raises
        ------
        ValueError
            If the quantile is outside [0, 1], or in the fast loop, which does not keep them.
        """
        self._only_full("end-to-end times")
        histograms = self.family_end_to_end
        chosen = histograms.sum(axis=0) if family is None else self._of_family(histograms, family)
        return histogram_quantile_s(chosen, quantile)

    def hit_depth_quantile_tokens(self, quantile: float) -> float:
        """Return a quantile of the prompt tokens that were not computed, over the first tokens.

        Parameters
        ----------
        quantile : float
            In [0, 1].

        Returns
        -------
        float
            Tokens, within 1/64 (relative); NaN without first tokens.

        Raises
        ------
        ValueError
            If the quantile is outside [0, 1], or in the fast loop, which does not keep them.
        """
        self._only_full("hit depths")
        return histogram_quantile_tokens(self.hit_depth_histogram, quantile)
