"""Capacity in many small pools: the slots and the memory that fragmentation costs."""

import math
from collections.abc import Sequence, Sized
from dataclasses import asdict, dataclass

from edgegym.analytic.planning.poisson import MOST_LOAD, poisson_quantile
from edgegym.world.network import checked_number, checked_whole

_MOST_POOLS = 10**9
_MOST_BYTES = 10**18


def pool_slots(load: float, pools: int, quantile: float = 0.999) -> int:
    """Return the slots that a load needs when it is split evenly over separate pools.

    Requests in progress are Poisson, of mean ``load / pools`` in each pool, and every pool is sized
    for its own quantile: ``pools * q(Poisson(load / pools))``.

    Parameters
    ----------
    load : float
        Mean number of requests in progress, all pools together, from 0 to 1e12.
    pools : int
        Number of pools n.
    quantile : float, optional
        Share of the time for which a pool's slots are enough.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    mean = checked_number("load", load, 0.0, MOST_LOAD)
    count = checked_whole("pools", pools, 1, _MOST_POOLS)
    return count * poisson_quantile(mean / count, quantile)


@dataclass(frozen=True, kw_only=True)
class FragmentationRow:
    """What a load takes when it is split over so many pools, one at each site."""

    pools: int
    """Number of pools, and of sites."""
    slots: int
    """Slots, all pools together."""
    slots_ratio: float
    """Slots over those of a single pool; NaN when a single pool needs none (no load)."""
    runtime_bytes: int
    """Memory of the slots."""
    weight_bytes: int
    """Weights: every model once at every site."""
    memory_bytes: int
    """Both together."""
    memory_ratio: float
    """Memory over that of a single pool; NaN when a single pool needs none."""
    gpus: int | None
    """GPUs that hold it, whole ones at every site; None without the size of one."""


@dataclass(frozen=True)
class FragmentationTable:
    """Rows for growing numbers of pools. ``str()`` gives it as plain text."""

    load: float
    """Mean number of requests in progress."""
    quantile: float
    """Share of the time for which a pool's slots are enough."""
    rows: tuple[FragmentationRow, ...]
    """In the order asked for."""

    def as_dicts(self) -> list[dict[str, float | int | None]]:
        """Return the rows as plain dictionaries."""
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        """Return the table as aligned text, memory in GiB."""
        heads = ["pools", "slots", "ratio", "slots GiB", "weights GiB", "GiB", "ratio", "GPUs"]
        lines = [heads] + [
            [
                str(row.pools),
                str(row.slots),
                f"{row.slots_ratio:.3f}",
                f"{row.runtime_bytes / 2**30:.1f}",
                f"{row.weight_bytes / 2**30:.1f}",
                f"{row.memory_bytes / 2**30:.1f}",
                f"{row.memory_ratio:.3f}",
                "-" if row.gpus is None else str(row.gpus),
            ]
            for row in self.rows
        ]
        widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )


def fragmentation_table(
    load: float,
    pools: Sequence[int],
    *,
    runtime_bytes: int,
    model_weight_bytes: Sequence[int] = (),
    gpu_bytes: int | None = None,
    quantile: float = 0.999,
) -> FragmentationTable:
    """Return what the same load takes in slots, memory and GPUs when it is split over more pools.

    The slots of a site serve all its models; every site holds each model's weights once.

    Parameters
    ----------
    load : float
        Mean number of requests in progress, all pools together.
    pools : sequence of int
        Numbers of pools to compare.
    runtime_bytes : int
        Memory of one slot.
    model_weight_bytes : sequence of int, optional
        Weights of each model that every site must offer.
    gpu_bytes : int, optional
        Memory of one GPU. With it GPUs are counted by memory alone: whole GPUs at every site for
        its slots and one copy of the weights, which may lie across several of them.
    quantile : float, optional
        Share of the time for which a pool's slots are enough.

    Returns
    -------
    FragmentationTable
        A row for each number of pools; ratios are to one pool.

    Raises
    ------
    ValueError
        If a number is out of range or no number of pools is given.
    """
    slot_bytes = checked_whole("runtime_bytes", runtime_bytes, 1, _MOST_BYTES)
    for name, values in (("pools", pools), ("model_weight_bytes", model_weight_bytes)):
        if not isinstance(values, Sized) or isinstance(values, str | bytes):
            raise ValueError(f"{name} is {values!r}: must be a sequence of whole numbers")
    site_weights = sum(
        checked_whole(f"model_weight_bytes[{model}]", size, 0, _MOST_BYTES)
        for model, size in enumerate(model_weight_bytes)
    )
    gpu = None if gpu_bytes is None else checked_whole("gpu_bytes", gpu_bytes, 1, _MOST_BYTES)
    if len(pools) == 0:
        raise ValueError(f"pools is {pools!r}: must have at least one number")
    single_slots = pool_slots(load, 1, quantile)
    single_bytes = single_slots * slot_bytes + site_weights
    rows = []
    for place, given in enumerate(pools):
        count = checked_whole(f"pools[{place}]", given, 1, _MOST_POOLS)
        slots = pool_slots(load, count, quantile)
        memory = slots * slot_bytes + count * site_weights
        rows.append(
            FragmentationRow(
                pools=count,
                slots=slots,
                slots_ratio=slots / single_slots if single_slots else math.nan,
                runtime_bytes=slots * slot_bytes,
                weight_bytes=count * site_weights,
                memory_bytes=memory,
                memory_ratio=memory / single_bytes if single_bytes else math.nan,
                gpus=None if gpu is None else count * -(-(memory // count) // gpu),
            )
        )
    return FragmentationTable(float(load), float(quantile), tuple(rows))
