"""Colours of profiles and families that colour-blind readers can tell apart."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario

# Okabe and Ito, "Color universal design", 2008; without black.
_HUES = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#F0E442")
_GREYS = ("#E6E6E6", "#A3A3A3", "#6B6B6B")
# Beyond the hues, colours repeat with a dot in the middle.
_DOTS = ("none", "white", "black", "#E6E6E6")


@dataclass(frozen=True, kw_only=True)
class Palette:
    """Colours of a scenario's profiles and families.

    A hue means a family: a profile that serves a family best has its colour, all others are grey.

    Attributes
    ----------
    profile_color, profile_dot : tuple of str
        Of each of the S profiles; the dot tells profiles of one colour apart ("none": no dot).
    family_rgb : ndarray, shape [F, 3]
        Of each family, 0 to 1: the colour of the profile that serves it best, white if none does.
    """

    profile_color: tuple[str, ...]
    profile_dot: tuple[str, ...]
    family_rgb: "NDArray[np.float64]"


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5))
    return red, green, blue


def best_profiles(scenario: "Scenario") -> list[int | None]:
    """Return for each family the profile with most hit tokens, the smallest of equals.

    None for a family without anything reusable.
    """
    world = scenario.compile()
    best: list[int | None] = []
    for family in range(world.num_families):
        share = np.where(world.type_family == family, world.type_share_in_family, 0.0)
        tokens = world.hit_tokens[: world.num_profiles] @ share
        order = np.lexsort((world.holding_bytes[: world.num_profiles], -tokens))
        best.append(int(order[0]) if tokens[order[0]] > 0.0 else None)
    return best


def make_palette(scenario: "Scenario") -> Palette:
    """Choose the colours of a scenario."""
    best = best_profiles(scenario)
    colors: list[str] = []
    dots: list[str] = []
    hues = greys = 0
    for profile in range(len(scenario.profiles)):
        if profile in best:
            colors.append(_HUES[hues % len(_HUES)])
            dots.append(_DOTS[hues // len(_HUES) % len(_DOTS)])
            hues += 1
        else:
            colors.append(_GREYS[greys % len(_GREYS)])
            dots.append(_DOTS[greys // len(_GREYS) % len(_DOTS)])
            greys += 1
    family_rgb = [(1.0, 1.0, 1.0) if home is None else _rgb(colors[home]) for home in best]
    return Palette(
        profile_color=tuple(colors),
        profile_dot=tuple(dots),
        family_rgb=np.array(family_rgb),
    )
