"""The framework paper's figures, one module each, from this library's own numbers."""

from edgegym.figures.registry import FIGURES, GROUPS, chosen_figures
from edgegym.figures.spec import FULL, QUICK, Caption, Effort, Figure
from edgegym.figures.table import Table
from edgegym.figures.writing import Written, figure_files, write_figures

__all__ = [
    "FIGURES",
    "FULL",
    "GROUPS",
    "QUICK",
    "Caption",
    "Effort",
    "Figure",
    "Table",
    "Written",
    "chosen_figures",
    "figure_files",
    "write_figures",
]
