"""The page on routers: its code runs, it names all rules and columns, its links lead on."""

import re
from pathlib import Path

import pytest

from edgegym.simulator.full import routing_columns
from edgegym.world.compiled import ROUTER_KINDS

PAGE = Path(__file__).parents[2] / "docs" / "routers.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_code_of_the_page_runs_from_top_to_bottom(capsys):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.S))
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    lines = capsys.readouterr().out.splitlines()
    coverage = {line.split()[0]: float(line.split()[2]) for line in lines if "coverage" in line}
    assert set(coverage) == {"load_aware", "lmetric", "nearest", "weighted"}
    assert coverage["load_aware"] == max(coverage.values())
    spilled = [line for line in lines if "rejected" in line]
    assert [int(line.split()[1]) > 0 for line in spilled] == [False, True]
    assert [int(line.split()[3]) > 0 for line in spilled] == [True, False]


def test_all_rules_are_there():
    rows = re.findall(r"^\| `(\w+)`", TEXT.split("## The rules")[1].split("## ")[0], flags=re.M)
    assert rows == list(ROUTER_KINDS)


def test_all_columns_are_there():
    table = TEXT.split("| column | |")[1].split("\n\n")[0]
    named = {getattr(routing_columns, name) for name in re.findall(r"`([A-Z_0-9]+)`", table)}
    assert named == set(range(routing_columns.NUM_FEATURES))


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([\w./-]+)\)", TEXT))))
def test_links_lead_to_files(target):
    assert (PAGE.parent / target).is_file()
