"""The files that a comparison is written to."""

import csv
import html.parser
import json
import math

import pytest

from edgegym.evaluation import compare
from edgegym.world import Scenario
from tests.evaluation import players

SHORT = {"control.horizon_epochs": 6, "name": "toy <b>"}


@pytest.fixture(scope="module")
def comparison():
    policies = {"static": "static", "uniform": "uniform", "f & <g>": players.first_legal}
    return compare(policies, "toy", [1, 2, 3], workers=1, progress=False, overrides=SHORT)


def _strict(text: str):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_holds_everything(comparison, tmp_path):
    comparison.to_json(tmp_path / "c.json")
    document = _strict((tmp_path / "c.json").read_text())
    assert Scenario(**document["scenario"]) == comparison.scenario
    assert document["seeds"] == [1, 2, 3]
    assert document["reference"] == "static"
    for row, read in zip(comparison.table, document["policies"], strict=True):
        assert read["coverage"] == row.coverage
        assert read["difference_interval"]["low"] == row.difference_interval.low
    assert len(document["per_seed"]) == 9
    assert document["per_seed"][4]["hits"] == comparison.per_seed[4].hits
    assert {"python", "edgegym", "numpy"} <= set(document["card"]["versions"])
    assert "no measurement" in document["card"]["hardware_accuracy"]


def test_csv_has_a_row_per_policy(comparison, tmp_path):
    comparison.to_csv(tmp_path / "c.csv")
    with (tmp_path / "c.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["static", "uniform", "f & <g>"]
    for row, result in zip(rows, comparison.table, strict=True):
        assert float(row["coverage"]) == result.coverage
        assert float(row["difference_interval_high"]) == result.difference_interval.high
        assert row["normalised_score"] == ""


def test_nothing_decided_is_none_and_not_nan(tmp_path):
    quiet = {
        "demand.rate_per_node": 1e-9,
        "control.horizon_epochs": 1,
        "evaluation_seeds": [1, 2],
    }
    outcome = compare({"s": "static"}, "toy", workers=1, progress=False, overrides=quiet)
    row = outcome.table["s"]
    assert (row.coverage, row.mean_ttft_s, row.p90_ttft_s, row.difference) == (None,) * 4
    assert "–" in str(outcome)
    assert any("a seed decided no request" in remark for remark in outcome.remarks)
    for write, name in [
        (outcome.to_json, "q.json"),
        (outcome.to_csv, "q.csv"),
        (outcome.to_png, "q.png"),
        (outcome.to_html, "q.html"),
    ]:
        write(tmp_path / name)
    _strict((tmp_path / "q.json").read_text())


def test_table_fits_a_hundred_columns(comparison):
    text = str(comparison)
    assert max(map(len, text.splitlines())) <= 100
    assert "coverage" in str(comparison.table)
    assert f"{comparison.table['uniform'].coverage:.4f}" in text
    interval = comparison.table["uniform"].difference_interval
    assert f"[{interval.low:+.4f}, {interval.high:+.4f}]" in text


def test_print_shows_what_str_holds(comparison, capsys):
    comparison.print()
    shown = capsys.readouterr().out
    assert f"{comparison.table['uniform'].coverage:.4f}" in shown
    assert "Scenario toy <b>" in shown


def test_png_is_readable_and_leaves_no_figure(comparison, tmp_path):
    from matplotlib.image import imread

    comparison.to_png(tmp_path / "c.png")
    height, width, _ = imread(tmp_path / "c.png").shape
    assert width == 1500
    assert height >= 400


class _Tags(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects addresses."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_one_self_contained_page(comparison, tmp_path):
    comparison.to_html(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert [address.partition(",")[0] for address in tags.addresses] == ["data:image/png;base64"]
    assert "script" not in tags.seen
    assert "b" not in tags.seen, "names are text, not markup"
    assert "f &amp; &lt;g&gt;" in page
    assert "Accuracy of the hardware figures" in page
    highest = max(row.max_prefill_utilization for row in comparison.table)
    assert highest > 1, "or the next line tests nothing"
    assert f"{highest:.2f} GPU-seconds per second" in page


@pytest.mark.parametrize("kind", ["json", "csv", "png", "html"])
def test_a_failed_write_leaves_nothing(comparison, kind, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        getattr(comparison, f"to_{kind}")(tmp_path / f"c.{kind}")
    assert list(tmp_path.iterdir()) == []


def test_a_hardware_preset_says_how_far_to_trust_it():
    from edgegym.evaluation.card import experiment_card
    from edgegym.world import preset

    scenario = preset("stationary").with_overrides({"hardware.preset": "llama-3.1-8b@h100"})
    card = experiment_card(scenario, workers=2, seconds=1.25)
    assert "roofline estimate" in card.hardware_accuracy
    assert "llama-3.1-8b@h100" in card.hardware
    assert math.isfinite(card.seconds)


def test_the_card_of_a_mixed_fleet_names_all_its_classes():
    from edgegym.evaluation.card import experiment_card
    from edgegym.world import preset

    classes = [
        {"name": "old", "share": 0.75},
        {"name": "new", "share": 0.15, "hardware": {"preset": "llama-3.1-8b@h100"}},
        {"name": "mast", "share": 0.1, "gpu": False},
    ]
    scenario = preset("stationary").with_overrides({"nodes.classes": classes})
    card = experiment_card(scenario, workers=2, seconds=1.0)
    assert card.hardware.startswith("75% old: own figures: ")
    assert "; 15% new: llama-3.1-8b@h100: " in card.hardware
    assert card.hardware.endswith("; 10% mast: no GPU")
    assert "no measurement of a real node" in card.hardware_accuracy
    assert "roofline estimate" in card.hardware_accuracy
