"""Tables of committed results: nothing is played while the site is built."""

import json
import re
from pathlib import Path
from typing import Any

import edgegym
from docs_pages.markdown import code, table

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
"""One file for each preset that has results, as ``Comparison.to_json`` writes it."""


def results_section(name: str, folder: Path = RESULTS) -> str:
    """Return the section with a preset's results; "" if none are committed."""
    file = folder / f"{name}.json"
    parts = []
    if file.is_file():
        parts.append(comparison_table(json.loads(file.read_text(encoding="utf-8"))))
    if demo := demo_table(name):
        parts.append(demo)
    return "\n\n".join(["## Results", *parts]) if parts else ""


def comparison_table(document: dict[str, Any]) -> str:
    """Return the table of a comparison, and how it came about.

    Parameters
    ----------
    document : dict
        As ``Comparison.document`` returns it.
    """
    seeds, card = document["seeds"], document["card"]
    rows = [
        (
            code(row["policy"]),
            _shown(row["coverage"], "{:.3f}"),
            _difference(row, document["reference"]),
            _shown(row["mean_ttft_s"], "{:.2f} s"),
            _shown(row["p90_ttft_s"], "{:.2f} s"),
            f"{row['bytes_moved'] / 1e9:.0f} GB",
        )
        for row in document["policies"]
    ]
    head = (
        "policy",
        "coverage",
        "difference, 95 % interval",
        "mean TTFT",
        "p90 TTFT",
        "moved per episode",
    )
    if scored := any(row["normalised_score"] is not None for row in document["policies"]):
        head = (*head, "score")
        rows = [
            (*cells, _shown(row["normalised_score"], "{:.2f}"))
            for cells, row in zip(rows, document["policies"], strict=True)
        ]
    return (
        f"{len(seeds)} evaluation seeds ({seeds[0]} … {seeds[-1]}), {card['episode']}. "
        f"Coverage: {card['target']}.\n\n"
        + table(head, rows)
        + ("\nScore: 0 is `static`, 1 is `clairvoyant`.\n" if scored else "")
        + f"\n`{compare_command(document)}` plays this again.\n"
    )


def compare_command(document: dict[str, Any]) -> str:
    """Return the command that plays a comparison of a preset again."""
    scenario, seeds = document["scenario"], document["seeds"]
    names = " ".join(row["policy"] for row in document["policies"])
    command = f"edgegym compare --scenario {scenario['name']} --policy {names}"
    preset = edgegym.preset(scenario["name"])
    if len(seeds) < len(preset.evaluation_seeds):
        command += f" --seeds {len(seeds)}"
    epochs = scenario["control"]["horizon_epochs"]
    if epochs != preset.control.horizon_epochs:
        command += f" --set control.horizon_epochs={epochs}"
    return command


def coverage_overview(folder: Path = RESULTS) -> str:
    """Return the coverage of every policy in every preset that has results."""
    documents = [
        json.loads(file.read_text(encoding="utf-8"))
        for name in edgegym.presets()
        if (file := folder / f"{name}.json").is_file()
    ]
    if not documents:
        return ""
    names = list(dict.fromkeys(row["policy"] for d in documents for row in d["policies"]))
    rows = []
    for document in documents:
        name = document["scenario"]["name"]
        coverage = {row["policy"]: row["coverage"] for row in document["policies"]}
        shown = (_shown(coverage.get(policy), "{:.3f}") for policy in names)
        rows.append((f"[{name}]({name}.md#results)", *shown))
    return table(("preset", *map(code, names)), rows)


def _difference(row: dict[str, Any], reference: str) -> str:
    if row["policy"] == reference:
        return "reference"
    interval = row["difference_interval"]
    bounds = ", ".join(_shown(interval[bound], "{:+.3f}") for bound in ("low", "high"))
    return f"{_shown(row['difference'], '{:+.3f}')} [{bounds}]"


def _shown(value: float | None, form: str) -> str:
    """Return a number in a form, with a real minus sign; a dash where there is none."""
    return "–" if value is None else form.format(value).replace("-", "−")


def demo_table(name: str) -> str:
    """Return the README's table of what ``make demo`` prints, for the scenario that it is of."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^What `make demo` prints \(([\w-]+),[^|]*\n\n(?:\|.*\n)+", readme, re.M)
    if found is None or found.group(1) != name:
        return ""
    return "### With a trained agent\n\n" + found.group(0)
