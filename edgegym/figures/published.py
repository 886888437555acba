"""The coverages that the framework paper prints, to compare with and to mark in the figures."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A printed value; the figures hold it at a row of its own."""

    figure: str
    """Name of the figure."""
    figure_axis: str
    """Column of the figure's table that holds `at`."""
    at: float
    """Where along the axis."""
    column: str
    """Column of the figure's table with our value."""
    value: float
    """What the paper prints."""


_LOAD, _DENSITY = "request_intensity_per_s_km2", "density_per_km2"

PUBLISHED = (
    Published("fig08", _LOAD, 3.0, "coverage_load_aware", 0.69),
    Published("fig08", _LOAD, 4.0, "coverage_load_aware", 0.63),
    Published("fig08", _LOAD, 3.0, "coverage_queue_unaware", 0.55),
    Published("fig08", _LOAD, 4.0, "coverage_queue_unaware", 0.23),
    Published("fig08", _LOAD, 3.0, "coverage_nearest", 0.52),
    Published("fig08", _LOAD, 4.0, "coverage_nearest", 0.52),
    Published("fig12", _DENSITY, 0.5, "coverage_load_aware", 0.48),
    Published("fig12", _DENSITY, 3.0, "coverage_load_aware", 0.94),
    Published("fig12", _DENSITY, 3.0, "coverage_nearest", 0.52),
)
"""All of them (approximate in the paper's text)."""


def published(figure: str) -> tuple[Published, ...]:
    """Return the values printed for a figure."""
    return tuple(value for value in PUBLISHED if value.figure == figure)
