"""Seconds per output token: the ``tokens`` law, and the tables that the engine reads."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.compiling import inlined
from edgegym.simulator.state import Floats
from edgegym.world.hardware import Hardware, OccupancyDecode

if TYPE_CHECKING:
    from collections.abc import Sequence


def tpot_table(classes: "Sequence[Hardware]", most: int) -> NDArray[np.float64]:
    """Return the seconds per output token of each hardware class and number of sequences.

    Parameters
    ----------
    classes : sequence of Hardware
        C of them. Where the decode block states only an occupancy, a token takes no time.
    most : int
        Most sequences that run at once at a station.

    Returns
    -------
    ndarray, shape [C, most + 1]
        Seconds; 0 in the first column, without a sequence.
    """
    table = np.zeros((len(classes), most + 1))
    for row, hardware in zip(table, classes, strict=True):
        if not isinstance(hardware.decode, OccupancyDecode):
            row[1:] = hardware.decode.tpot(np.arange(1, most + 1))
    return table


@inlined
def decode_seconds(token_s: Floats, klass: int, active: int, output_tokens: float) -> float:
    """Return how long a request decodes after its first token (law ``tokens``).

    Each of the other tokens takes what a token takes with as many sequences as are active when the
    request takes its slot, itself included.
    """
    return max(output_tokens - 1.0, 0.0) * token_s[klass, active]
