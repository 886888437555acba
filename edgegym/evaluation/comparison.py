"""The outcome of ``compare`` and the files it can be written to."""

import csv
import io
import json
import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from edgegym.evaluation.card import ExperimentCard
from edgegym.evaluation.results import PolicyResult, ResultTable, SeedResult
from edgegym.evaluation.terminal import output_console, plain_text, result_table, seeds_text
from edgegym.files import atomic_path, write_text

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

_JSON_FORMAT = 1


@dataclass(frozen=True)
class Comparison:
    """Policies on the same requests: results, and how they came about."""

    scenario: "Scenario"
    """The world, overrides applied."""
    seeds: tuple[int, ...]
    """Seeds of the episodes, the same for all policies."""
    table: ResultTable
    """Results by policy, in the order given; printed as a readable table."""
    per_seed: tuple[SeedResult, ...]
    """Results by policy and seed."""
    card: ExperimentCard
    """Versions, hardware figures and the like."""
    remarks: tuple[str, ...] = ()
    """What a reader should know: policies that could not run in workers, missing intervals, …"""

    @property
    def reference(self) -> str:
        """Label of the policy that differences are to."""
        return self.table.reference

    @property
    def headline(self) -> str:
        """One line above the table: world, seeds, episode and target."""
        return (
            f"Scenario {self.scenario.name}, {seeds_text(self.seeds)}, {self.card.episode}. "
            f"Coverage: {self.card.target}."
        )

    def __str__(self) -> str:
        remarks = [f"Note: {remark}" for remark in self.remarks]
        return plain_text(self.headline, result_table(self.table), *remarks)

    def print(self) -> None:
        """Print the table, in colour on a terminal."""
        console = output_console()
        console.print(self.headline, markup=False)
        console.print(result_table(self.table))
        for remark in self.remarks:
            console.print(f"Note: {remark}", markup=False)

    def document(self) -> dict[str, Any]:
        """Return everything as plain mappings, lists and finite numbers."""
        return {
            "format": _JSON_FORMAT,
            "seeds": list(self.seeds),
            "reference": self.reference,
            "policies": [asdict(row) for row in self.table],
            "per_seed": [asdict(row) for row in self.per_seed],
            "remarks": list(self.remarks),
            "card": asdict(self.card),
            "scenario": self.scenario.document(),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything as strict JSON (no NaN), whole or not at all."""
        text = json.dumps(self.document(), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(path, text + "\n")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table, one row per policy, whole or not at all; empty where there is no value.

        Columns are the fields of :class:`PolicyResult`; an interval takes three: ``_low``,
        ``_high`` and ``_method``.
        """
        rows = [_flat(row) for row in self.table]
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(path, buffer.getvalue())

    def to_png(self, path: str | os.PathLike[str]) -> None:
        """Write one figure, coverage and paired differences, whole or not at all."""
        from edgegym.evaluation.chart import chart_png

        with atomic_path(path) as temporary:
            temporary.write_bytes(chart_png(self))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained page with table, figure and card, whole or not at all."""
        from edgegym.evaluation.page import page_html

        write_text(path, page_html(self))


def _flat(row: PolicyResult) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if field.name.endswith("_interval"):
            flat |= {
                f"{field.name}_{part.name}": getattr(value, part.name) for part in fields(value)
            }
        else:
            flat[field.name] = value
    return flat
