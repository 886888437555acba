"""The page about records: its code runs, and it names every column."""

import re
from pathlib import Path

from edgegym.simulator.records import record_columns
from edgegym.world import preset

PAGE = Path(__file__).parents[2] / "docs" / "records.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_from_top_to_bottom(capsys):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.S))
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    shown = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ requests, mean TTFT [\d.]+ s", shown[0])
    assert any(line.startswith("all: bias ") for line in shown)
    assert "nan" not in " ".join(shown)


def test_every_column_is_explained():
    for column in record_columns(preset("toy")):
        assert f"`{column.name}`" in TEXT, column.name
