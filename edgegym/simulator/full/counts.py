"""What the full loop counts beside the columns of :mod:`edgegym.simulator.columns`."""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.accounting import ticks
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.histogram import histogram_bin, tokens_bin
from edgegym.simulator.state import HISTOGRAM_BINS, Ints

# Columns of `extra`: one window. Times in ticks.
STALL_TICKS = 0  # of the first tokens
RESTORE_TICKS = 1  # of the first tokens
FETCHES = 2  # fetches begun for requests
FETCHED_BYTES = 3  # of state, as they arrive
FETCHES_LOST = 4  # their end disappeared and the request computed instead
REFRESH_BYTES = 5  # of expired vertices, charged when their transfer starts
LINK_BYTES = 6  # over the shared link, compressed
LINK_BUSY_TICKS = 7  # time in which something flowed over it
SPILLED_TO_NODE = 8  # first tokens of requests whose best node was closed, from another node
SPILLED_TO_ORIGIN = 9  # the same, from the origin
REDIRECTED = 10  # times that a request found its node closed on arrival
REJECTED_BY_ADMISSION = 11  # part of REJECTED
INTERRUPTED = 12  # requests whose station failed after their first token
REDISPATCHED = 13  # times that a request was sent again because its station failed
ORIGIN_DISPATCHES = 14  # times that a request was sent to the origin
ORIGIN_FIRST_TOKENS = 15  # first tokens from there
FAILURES = 16  # nodes, backhaul, origin
OUTPUT_TOKENS = 17  # of the completed requests
FIRST_INPUT_TOKENS = 18  # prompt tokens of the first tokens
ORIGIN_BUSY_TICKS = 19  # slot time in use at the origin
ORIGIN_CAPACITY_TICKS = 20  # slot time there was
NUM_EXTRA = 21

# Columns of `families`: one window.
FAMILY_FIRST_TOKENS = 0
FAMILY_INPUT_TOKENS = 1  # of the first tokens
FAMILY_HIT_TOKENS = 2  # of the first tokens
FAMILY_ORIGIN = 3  # first tokens from the origin
FAMILY_FETCHED_BYTES = 4  # for the first tokens
FAMILY_SPILLED = 5  # first tokens of requests whose best node was closed
FAMILY_REJECTED = 6
NUM_FAMILY = 7


class Counts(NamedTuple):
    """Window counters of B fleets with F families; in a kernel the same without the first axis."""

    extra: Ints  # [B, NUM_EXTRA]
    ttft: Ints  # [B, F, HISTOGRAM_BINS] of the first tokens
    end_to_end: Ints  # [B, F, HISTOGRAM_BINS] of the completed requests
    hit_depth: Ints  # [B, HISTOGRAM_BINS] hit tokens of the first tokens
    families: Ints  # [B, F, NUM_FAMILY]
    hit_vertices: Ints  # [B, D + 1] first tokens by how many vertices of their path were spared


def allocate_counts(num_families: int, longest_path: int, batch: int = 1) -> Counts:
    """Return counters at zero.

    Parameters
    ----------
    num_families : int
        F.
    longest_path : int
        Vertices of the longest path, D.
    batch : int
        Number of fleets, B.
    """
    return Counts(
        np.zeros((batch, NUM_EXTRA), dtype=np.int64),
        np.zeros((batch, num_families, HISTOGRAM_BINS), dtype=np.int64),
        np.zeros((batch, num_families, HISTOGRAM_BINS), dtype=np.int64),
        np.zeros((batch, HISTOGRAM_BINS), dtype=np.int64),
        np.zeros((batch, num_families, NUM_FAMILY), dtype=np.int64),
        np.zeros((batch, longest_path + 1), dtype=np.int64),
    )


@helper
def open_counts(counts: Counts) -> None:
    """Set all counters to zero, where a window opens."""
    counts.extra[:] = 0
    counts.ttft[:] = 0
    counts.end_to_end[:] = 0
    counts.hit_depth[:] = 0
    counts.families[:] = 0
    counts.hit_vertices[:] = 0


@inlined
def count(counts: Counts, column: int, amount: int) -> None:
    """Add to an extra counter."""
    counts.extra[column] += amount


@inlined
def count_of_family(counts: Counts, family: int, column: int, amount: int) -> None:
    """Add to a counter of a family."""
    counts.families[family, column] += amount


@helper
def count_first(
    counts: Counts,
    family: int,
    ttft_s: float,
    input_tokens: int,
    hit_tokens: int,
    hit_vertices: int,
    stall_s: float,
    restore_s: float,
    at_origin: bool,
) -> None:
    """Count a first token, in the window that holds it."""
    counts.ttft[family, histogram_bin(ttft_s)] += 1
    counts.hit_depth[tokens_bin(hit_tokens)] += 1
    counts.hit_vertices[hit_vertices] += 1
    counts.extra[FIRST_INPUT_TOKENS] += input_tokens
    counts.families[family, FAMILY_FIRST_TOKENS] += 1
    counts.families[family, FAMILY_INPUT_TOKENS] += input_tokens
    counts.families[family, FAMILY_HIT_TOKENS] += hit_tokens
    counts.extra[STALL_TICKS] += ticks(stall_s)
    counts.extra[RESTORE_TICKS] += ticks(restore_s)
    if at_origin:
        counts.extra[ORIGIN_FIRST_TOKENS] += 1
        counts.families[family, FAMILY_ORIGIN] += 1


@helper
def count_completed(counts: Counts, family: int, end_to_end_s: float, output_tokens: int) -> None:
    """Count a completed request, in the window that holds its end."""
    counts.end_to_end[family, histogram_bin(end_to_end_s)] += 1
    counts.extra[OUTPUT_TOKENS] += output_tokens
