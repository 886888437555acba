"""All mixes of a lattice: the reproducible global benchmark for few profiles."""

from dataclasses import dataclass

from edgegym.analytic.placement.lattice import Lattice
from edgegym.analytic.placement.search import Search
from edgegym.world.network import checked_number, checked_whole

_LEAST_STEP = 1e-6
_MOST = 10**9


@dataclass(frozen=True)
class SimplexGrid:
    """Solve every allowed mix whose shares are multiples of a step.

    Floors are rounded up to the lattice and caps down.

    Parameters
    ----------
    step : float
        One over a whole number, from 1e-6 to 1.
    most : int
        Most mixes that it agrees to solve.

    Raises
    ------
    ValueError
        If a setting breaks its rule; from the search, if the lattice has more mixes than `most`,
        or none that the constraints allow.
    """

    step: float = 0.05
    most: int = 100_000

    def __post_init__(self) -> None:
        step = checked_number("step", self.step, _LEAST_STEP, 1.0)
        if abs(round(1 / step) * step - 1) > 1e-9:
            raise ValueError(f"step is {step:g}: must be one over a whole number, such as 0.05")
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "most", checked_whole("most", self.most, 1, _MOST))

    def search(self, search: Search) -> bool:
        """Assess every mix, each from the waits of the one before."""
        lattice = Lattice.within(search.constraints, self.step)
        if lattice is None:
            raise ValueError(
                f"step is {self.step:g}: must be smaller, since no mix of shares in multiples of "
                "it satisfies the constraints"
            )
        count = lattice.size_without_budget()
        if count > self.most:
            raise ValueError(
                f"step is {self.step:g}: the grid has {count} mixes of {search.size} profiles; "
                f"must be at most {self.most} (most): choose a larger step or another method"
            )
        search.total = count if not lattice.weight.any() else sum(1 for _ in lattice.mixes())
        wait = search.wait
        for mix in lattice.mixes():
            _, wait = search.assess(mix, wait)
        return True
