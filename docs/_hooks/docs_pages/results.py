"""Tables of committed results: nothing is played while the site is built."""

import json
import re
from pathlib import Path
from typing import Any

import edgegym
from docs_pages.markdown import code, number, table

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
"""One file for each preset that has results, as ``Comparison.to_json`` writes it."""


def results_section(name: str, folder: Path = RESULTS) -> str:
    """Return the section with a preset's results; "" if none are committed."""
    parts = []
    if (file := folder / f"{name}.json").is_file():
        document = _read(file)
        parts += [comparison_table(document), again(compare_command(document))]
    if (file := folder / "learned" / f"{name}.json").is_file():
        table_again = again(f"python -m agents tables --kind learned --only {name}")
        parts += ["### With a trained agent", comparison_table(_read(file)), table_again]
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
        + "".join(f"\n{remark[0].upper()}{remark[1:]}.\n" for remark in _training(document))
    )


def again(command: str) -> str:
    """Return the sentence that names the command behind a table."""
    return f"`{command}` plays this again."


def larger_tables(folder: Path = RESULTS) -> str:
    """Return the tables of agents on larger fleets than they were trained on."""
    documents = [_read(file) for file in (folder / "larger").glob("*.json")]
    documents.sort(key=lambda d: (d["scenario"]["name"], d["scenario"]["nodes"]["count"]))
    parts = []
    for document in documents:
        world = document["scenario"]
        sides = " × ".join(number(world["region"][side]) for side in ("width_km", "height_km"))
        parts.append(
            f"## {world['name']}, {world['nodes']['count']} nodes on {sides} km\n\n"
            + comparison_table(document)
        )
    return "\n".join(parts)


def _training(document: dict[str, Any]) -> list[str]:
    """Return what a comparison says about the training of an agent in it."""
    return [text for text in document["remarks"] if text.startswith("'learned' is ")]


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


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
        _read(file) for name in edgegym.presets() if (file := folder / f"{name}.json").is_file()
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
    return "### The demo\n\n" + found.group(0)
