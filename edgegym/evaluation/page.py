"""A comparison as one self-contained HTML page."""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from edgegym.evaluation.chart import chart_png
from edgegym.evaluation.results import PolicyResult
from edgegym.evaluation.statistics import Interval
from edgegym.evaluation.terminal import number

if TYPE_CHECKING:
    from edgegym.evaluation.comparison import Comparison

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #2e3440; background: #fff;
       max-width: 70rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.lead { color: #4c566a; margin-top: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88rem; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #d8dee9;
         white-space: nowrap; }
th { vertical-align: bottom; } th:first-child, td:first-child { text-align: left; }
table.card td { text-align: left; white-space: normal; } table.card th { text-align: left; }
tr.better td { background: #e9f5ee; } tr.reference td { background: #eef1f6; }
img { max-width: 100%; height: auto; } ul.remarks { color: #9c3a22; }
pre { background: #f4f6fa; padding: 1rem; overflow-x: auto; font-size: .8rem; }
""".strip()

_HEADERS = (
    "policy",
    "what it is",
    "coverage<br>[95 %]",
    "difference to<br>reference [95 %]",
    "P(better)",
    "interquartile<br>mean",
    "score",
    "TTFT mean<br>s",
    "p50<br>s",
    "p90<br>s",
    "p99<br>s",
    "prefill<br>saved",
    "GB moved<br>per episode",
    "moves<br>per episode",
    "rejected",
    "illegal<br>actions",
    "slots<br>in use",
    "prefill<br>utilisation",
    "busiest<br>node",
)


def page_html(comparison: "Comparison") -> str:
    """Return a comparison as an HTML page that needs no other file.

    Parameters
    ----------
    comparison : Comparison
        What to show.

    Returns
    -------
    str
        The page: results, figure, experiment card, the whole scenario, results by seed.
    """
    name = escape(comparison.scenario.name)
    figure = base64.b64encode(chart_png(comparison)).decode("ascii")
    rows = (
        _row(_cells(row, comparison.reference), _row_class(row, comparison.reference))
        for row in comparison.table
    )
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in comparison.remarks)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>edgegym comparison: {name}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>Comparison on {name}</h1>
<p class="lead">{escape(comparison.headline)}</p>
<p>Every policy served the same requests. Differences are to
<strong>{escape(comparison.reference)}</strong>, paired by seed; a green row is better than it
with a 95&nbsp;% interval above zero. P(better) is the share of seeds with a higher coverage.
Prefill saved is the share of prefill time that held prefixes made unnecessary.</p>
<div class="scroll">
{_table(_HEADERS, rows)}
</div>
{f'<ul class="remarks">{remarks}</ul>' if remarks else ""}
<h2>Figure</h2>
<img alt="Coverage of each policy and its difference to the reference" \
src="data:image/png;base64,{figure}">
<h2>Experiment card</h2>
{_table((), _card_rows(comparison), "card")}
<h2>By seed</h2>
<div class="scroll">
{_seed_table(comparison)}
</div>
<h2>Scenario</h2>
<details><summary>The whole scenario, as YAML</summary>
<pre>{escape(_scenario_yaml(comparison))}</pre>
</details>
</body>
</html>
"""


def _table(headers: Sequence[str], rows: Iterable[str], kind: str = "results") -> str:
    head = "".join(f"<th>{header}</th>" for header in headers)
    head = f"<thead><tr>{head}</tr></thead>\n" if head else ""
    return f'<table class="{kind}">\n{head}<tbody>\n' + "\n".join(rows) + "\n</tbody>\n</table>"


def _row(cells: Iterable[str], kind: str = "") -> str:
    opening = f'<tr class="{kind}">' if kind else "<tr>"
    return opening + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _row_class(row: PolicyResult, reference: str) -> str:
    if row.policy == reference:
        return "reference"
    low = row.difference_interval.low
    return "better" if low is not None and low > 0 else ""


def _cells(row: PolicyResult, reference: str) -> list[str]:
    difference = number(row.difference, 4, sign=True) + _range(row.difference_interval, "+")
    return [
        escape(row.policy),
        escape(row.source),
        number(row.coverage, 4) + _range(row.coverage_interval),
        "reference" if row.policy == reference else difference,
        "–" if row.policy == reference else number(row.probability_of_improvement, 2),
        number(row.interquartile_mean, 4),
        number(row.normalised_score, 2),
        number(row.mean_ttft_s),
        number(row.p50_ttft_s),
        number(row.p90_ttft_s),
        number(row.p99_ttft_s),
        "–" if row.offloading_ratio is None else f"{row.offloading_ratio:.1%}",
        f"{row.bytes_moved / 1e9:.1f}",
        f"{row.moves:.1f}",
        str(row.rejected),
        str(row.illegal_actions),
        f"{row.utilization:.1%}",
        number(row.prefill_utilization, 2),
        number(row.max_prefill_utilization, 2),
    ]


def _range(interval: Interval, sign: str = "") -> str:
    if interval.low is None or interval.high is None:
        return f"<br>({escape(interval.method)})"
    return f"<br>[{interval.low:{sign}.4f}, {interval.high:{sign}.4f}]"


def _card_rows(comparison: "Comparison") -> list[str]:
    card = comparison.card
    versions = ", ".join(f"{package} {number}" for package, number in card.versions.items())
    playing = f"{card.workers} worker processes" if card.workers else "one process"
    entries = {
        "Scenario": f"{comparison.scenario.name}: {comparison.scenario.description}",
        "Seeds": ", ".join(map(str, comparison.seeds)),
        "Episode": card.episode,
        "Covered means": card.target,
        "Hardware": card.hardware,
        "Accuracy of the hardware figures": card.hardware_accuracy,
        "Prefill utilisation (mean, busiest node)": "; ".join(
            f"{row.policy} {row.prefill_utilization:.2f}, {row.max_prefill_utilization:.2f}"
            for row in comparison.table
        ),
        "Versions": versions,
        "Made": f"{card.created}, {card.seconds:g} s in {playing}, {card.machine}",
    }
    return [
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in entries.items()
    ]


def _seed_table(comparison: "Comparison") -> str:
    """Return coverage and p90 TTFT by seed, one column pair per policy."""
    by_seed = {(row.policy, row.seed): row for row in comparison.per_seed}
    policies = comparison.table.policies
    headers = [
        "seed",
        "requests",
        *(f"{escape(policy)}<br>coverage, p90 TTFT s" for policy in policies),
    ]
    rows = []
    for seed in comparison.seeds:
        results = [by_seed[policy, seed] for policy in policies]
        cells = [f"{number(row.coverage, 4)}, {number(row.p90_ttft_s)}" for row in results]
        rows.append(_row([str(seed), str(results[0].arrivals), *cells]))
    return _table(headers, rows)


def _scenario_yaml(comparison: "Comparison") -> str:
    import yaml

    return yaml.safe_dump(comparison.scenario.document(), sort_keys=False, allow_unicode=True)
