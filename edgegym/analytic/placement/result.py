"""What a placement search returns, whatever its method."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.equilibrium import Equilibrium

FloatArray = NDArray[np.float64]


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
        Whether the search ended by its own rule (no screened exchange helps, the grid is complete,
        the iterate rests) rather than at a limit on its length.
    equilibrium : Equilibrium
        Of the mix; ``stable`` is False if no mix in reach carries the load.
    history : float64 [K, 2]
        Evaluations and score at each improvement. The score is the coverage at the search's
        accuracy; below 0 for mixes that do not carry the load.
    """

    probabilities: FloatArray
    coverage: float
    evaluations: int
    converged: bool
    equilibrium: Equilibrium
    history: FloatArray
