"""Freed memory is kept for the next gradient step."""

import torch

# Just below the largest block by which the C library of Linux raises its thresholds (32 MiB).
_BLOCK_BYTES = 31 * 2**20


def keep_freed_memory() -> None:
    """Make the C library of Linux keep what is freed instead of handing it back each time.

    A gradient step takes and frees tensors of some megabytes. By default that memory returns to the
    system at once and is fetched again page by page, which takes as long as the arithmetic. The
    library raises its limits once a larger block was taken and freed (the "dynamic mmap threshold"
    of ``mallopt(3)``), so one is. It is never written to and costs nothing; libraries of other
    systems do not care.
    """
    torch.empty(_BLOCK_BYTES, dtype=torch.uint8)
