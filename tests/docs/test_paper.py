"""The page that maps the paper's equations: its code runs, its names exist, its links lead on."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "paper.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_from_top_to_bottom(capsys):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.S))
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("coverage 0.684, ")
    longer_waits = float(last.removeprefix("coverage ").removesuffix(" with longer waits"))
    assert 0.6 < longer_waits < 0.684


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(edgegym\.[\w.]+)`", TEXT))))
def test_names_exist(name):
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            annotations = getattr(found, "__annotations__", {})
            assert hasattr(found, part) or part in annotations, name
            found = getattr(found, part, None)
        return
    raise AssertionError(name)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([\w./-]+)\)", TEXT))))
def test_links_lead_to_files(target):
    assert (PAGE.parent / target).is_file()
