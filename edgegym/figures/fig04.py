"""Fig. 4: the association law (Theorem 1) against Monte Carlo."""

from typing import Any

import numpy as np

from edgegym.analytic import association_law, sample_association, solve_equilibrium
from edgegym.analytic.quadrature import FINE_NODES
from edgegym.figures.scenario import paper_network, profile_names, type_names
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREY, ORANGE
from edgegym.figures.table import Table
from edgegym.figures.words import percent, small

_SEED = 1
_PAPER_ERROR = 1e-3


def compute(effort: Effort, report: Report) -> Table:
    """Return association probabilities of every type and profile, by formula and by sampling."""
    net = paper_network()
    wait_s = solve_equilibrium(net).assumed_wait_s
    theory = association_law(net, wait_s).probability
    sizes = (effort.samples // 10, effort.samples)
    sampled = []
    for size in sizes:
        report(f"{size:,} samples")
        sampled.append(sample_association(net, size, _SEED, wait_s))
    finer = association_law(net, wait_s, nodes=2 * FINE_NODES).probability
    names = profile_names()
    pairs = [(q, s) for q in range(net.num_types) for s in range(net.num_profiles)]
    columns: dict[str, Any] = {
        "request_type": [type_names()[q] for q, _ in pairs],
        "profile": [names[s] for _, s in pairs],
        "association_theory": [theory[s, q] for q, s in pairs],
        "quadrature_error": [abs(finer[s, q] - theory[s, q]) for q, s in pairs],
    }
    for size, sample, label in zip(sizes, sampled, ("few", "many"), strict=True):
        probability, error = sample.probability, sample.standard_error
        columns[f"association_{label}_samples"] = [probability[s, q] for q, s in pairs]
        columns[f"standard_error_{label}_samples"] = [error[s, q] for q, s in pairs]
        columns[f"{label}_samples"] = [size] * len(pairs)
    return Table(columns)


def draw(canvas: Any, table: Table) -> None:
    """Draw grouped bars, and the errors beside them."""
    bars, errors = canvas.subplots(1, 2, width_ratios=(1.15, 1))
    kinds = (
        ("association_theory", "Theorem 1", BLUE),
        ("association_few_samples", f"{table['few_samples'][0]:,.0f} samples", ORANGE),
        ("association_many_samples", f"{table['many_samples'][0]:,.0f} samples", GREY),
    )
    places = np.arange(len(table))
    labels = [
        f"{kind}\n{profile}"
        for kind, profile in zip(table["request_type"], table["profile"], strict=True)
    ]
    for offset, (column, label, colour) in enumerate(kinds):
        bars.bar(places + 0.27 * (offset - 1), table[column], 0.25, color=colour, label=label)
        if column != "association_theory":
            gap = np.abs(table[column] - table["association_theory"])
            errors.bar(places + 0.27 * (offset - 1.5), 1e3 * gap, 0.25, color=colour)
    bars.set_ylabel("probability that the profile serves the type")
    bars.legend(loc="upper left")
    errors.axhline(1e3 * _PAPER_ERROR, color="black", linewidth=0.8, linestyle=":")
    errors.annotate(
        "the paper's bound",
        (len(table) - 0.5, 1e3 * _PAPER_ERROR),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    errors.set_ylabel("difference to Theorem 1, in 1/1000")
    for axes in (bars, errors):
        axes.set_xticks(places, labels, fontsize=7.5)
        axes.grid(axis="x", visible=False)


def caption(table: Table) -> Caption:
    """Compare the errors of both sample sizes with what sampling alone explains."""
    theory = table["association_theory"]
    few, many = table["few_samples"][0], table["many_samples"][0]
    few_gap, many_gap = (
        np.abs(table[f"association_{label}_samples"] - theory).max() for label in ("few", "many")
    )
    few_error, many_error = (
        table[f"standard_error_{label}_samples"].max() for label in ("few", "many")
    )
    deep_long = table.value("association_theory", request_type="long", profile="deep")
    deep_short = table.value("association_theory", request_type="short", profile="deep")
    return Caption(
        paper=(
            "Bars of theory and 200,000 samples that can't be told apart, with a largest error "
            "below 0.001. Long requests strongly prefer the deep profile; short ones spread over "
            "shallow and uncached nodes."
        ),
        here=(
            f"At the waits of the equilibrium for 3 requests/s/km², {few:,.0f} samples differ from "
            f"Theorem 1 by at most {small(few_gap)} and {many:,.0f} samples by {small(many_gap)}. "
            f"{percent(deep_long)} of the long requests and {percent(deep_short)} of the short "
            "ones go to a deep node, although deep nodes are one in five."
        ),
        difference=(
            f"Sampling noise alone: the largest standard error is {small(few_error)} with "
            f"{few:,.0f} samples and {small(many_error)} with {many:,.0f}, so that a largest error "
            "below 0.001 with 200,000 samples is luck of the seed as much as accuracy. Twice as "
            f"many quadrature points change the formula by {table['quadrature_error'].max():.0e}."
        ),
    )


FIGURE = Figure(
    name="fig04",
    title="Fig. 4: association probabilities, theory and Monte Carlo",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.8, 4.0),
)
