"""What a figure is: numbers, a picture of them, and words about them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgegym.figures.table import Table
from edgegym.world.network import checked_number, checked_whole

Report = Callable[[str], None]
"""Called with a few words now and then during long work."""


@dataclass(frozen=True)
class Effort:
    """How exact the figures are.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    points: int
    """Points along a swept axis, besides those that must be there."""
    samples: int
    """Monte-Carlo samples of a request's candidates; a tenth of them stands beside."""
    requests: int
    """Requests of an event simulation."""
    mix_step: float
    """Distance of neighbouring mixes in a grid of mixes."""

    def __post_init__(self) -> None:
        checked_whole("points", self.points, 2, 10**6)
        checked_whole("samples", self.samples, 10, 10**12)
        checked_whole("requests", self.requests, 1, 10**12)
        checked_number("mix_step", self.mix_step, 0.0, 1.0, strict=True)


FULL = Effort(points=61, samples=2_000_000, requests=10_000_000, mix_step=0.05)
"""The figures as they are meant."""

QUICK = Effort(points=9, samples=50_000, requests=100_000, mix_step=0.1)
"""For a first look, and for tests."""


@dataclass(frozen=True)
class Caption:
    """The words under a figure; their numbers come from its table."""

    paper: str
    """What the paper shows or prints; for a study, what question it answers."""
    here: str
    """What this library gets."""
    difference: str
    """Why the two differ where they do, or what limits the result."""


@dataclass(frozen=True)
class Figure:
    """A figure that can be made from nothing.

    Numbers, picture and words are three steps, so that each can be tested and the picture and the
    words can be made again from the CSV file.
    """

    name: str
    """Name on the command line and of the files."""
    title: str
    """Heading, a few words."""
    compute: Callable[[Effort, Report], Table]
    """Returns the numbers; interruptible, the same for the same effort."""
    draw: Callable[[Any, Table], None]
    """Draws them onto an empty ``matplotlib.figure.Figure``."""
    caption: Callable[[Table], Caption]
    """Describes them."""
    size_in: tuple[float, float] = (7.2, 4.0)
    """Width and height of the picture, inches."""
    study: bool = False
    """Whether this is a study of ours rather than a figure of the paper."""
    fitted: bool = True
    """Whether it rests on the fitted values of the ``paper`` preset."""
