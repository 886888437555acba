"""All figures by name, in the order in which they are shown."""

from collections.abc import Sequence

from edgegym.figures import (
    calibration,
    fallback,
    fetch,
    fig03,
    fig04,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    fig12,
    fleet,
    herding,
    origin,
    practice,
)
from edgegym.figures.spec import Figure

FIGURES: tuple[Figure, ...] = (
    fig03.FIGURE,
    fig04.FIGURE,
    fig05.FIGURE,
    fig06.FIGURE,
    fig07.FIGURE,
    fig08.FIGURE,
    fig09.FIGURE,
    fig10.FIGURE,
    fig11.FIGURE,
    fig12.FIGURE,
    fleet.FIGURE,
    fallback.FIGURE,
    herding.FIGURE,
    practice.FIGURE,
    fetch.FIGURE,
    origin.FIGURE,
    calibration.FIGURE,
)
"""The paper's figures (1 and 2 are sketches, 13 a diagram of an architecture), then the studies."""

GROUPS = {
    "all": tuple(figure for figure in FIGURES if not figure.study),
    "studies": tuple(figure for figure in FIGURES if figure.study),
}
"""Names that stand for several figures: all of the paper, and the studies beyond it."""


def chosen_figures(names: Sequence[str]) -> tuple[Figure, ...]:
    """Return figures by name, each once, in the order in which they are shown.

    Parameters
    ----------
    names : sequence of str
        Names of figures or of ``GROUPS``.

    Raises
    ------
    ValueError
        If there is no such figure, or none in the group; the message lists what there is.
    """
    groups = {name: members for name, members in GROUPS.items() if members}
    by_name = {figure.name: (figure,) for figure in FIGURES} | groups
    for name in names:
        if name not in by_name:
            raise ValueError(f"figure = '{name}': must be one of {', '.join(by_name)}")
    chosen = {figure.name for name in names for figure in by_name[name]}
    return tuple(figure for figure in FIGURES if figure.name in chosen)
