"""Figures as files: whole, resumable, and a page that shows what is up to date."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from edgegym.figures import FULL, QUICK, Caption, Figure, Table, chosen_figures, write_figures
from edgegym.figures import writing as module
from edgegym.figures.page import page_text

ROOT = Path(__file__).parents[2]


def toy_figure(name: str, calls: list[str], fails: bool = False, study: bool = False) -> Figure:
    """Return a figure that notes when it is computed."""

    def compute(effort, report):
        calls.append(name)
        report("half way")
        if fails:
            raise KeyboardInterrupt
        return Table({"time_s": [0.0, 1.0], "share": [0.5, effort.points / 100.0]})

    def draw(canvas, table):
        canvas.subplots().plot(table["time_s"], table["share"])

    def caption(table):
        return Caption("A question?", f"It ends at {table['share'][-1]}.", "None.")

    return Figure(name, f"Toy {name}", compute, draw, caption, study=study)


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def toys(calls, monkeypatch) -> tuple[Figure, Figure]:
    figures = (toy_figure("one", calls), toy_figure("two", calls, study=True))
    monkeypatch.setattr(module, "FIGURES", figures)
    return figures


def write(figures, folder, **options):
    return write_figures(figures, folder, page=folder / "figures.md", effort=QUICK, **options)


def test_files_and_page_of_each_figure(toys, calls, tmp_path):
    words: list[str] = []
    written = write(toys, tmp_path, report=words.append)
    assert [figure.name for figure in written.made] == ["one", "two"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "one.csv", "one.png", "two.csv", "two.png", "figures.md",
    }  # fmt: skip
    assert words == ["one, 1 of 2", "one, 1 of 2: half way", "two, 2 of 2", "two, 2 of 2: half way"]
    assert (tmp_path / "one.csv").read_text() == "time_s,share\n0,0.5\n1,0.09\n"
    page = written.page.read_text()
    assert "**Here.** It ends at 0.09." in page
    assert "**Answer.** It ends at 0.09." in page
    assert "![Toy one](one.png)" in page
    assert "fitted" in page
    assert "--quick" in page


def test_what_is_up_to_date_is_kept(toys, calls, tmp_path):
    write(toys, tmp_path)
    before = (tmp_path / "one.png").read_bytes()
    written = write(toys, tmp_path)
    assert calls == ["one", "two"]
    assert written.made == ()
    assert written.kept == toys
    assert (tmp_path / "one.png").read_bytes() == before


def test_force_makes_it_again(toys, calls, tmp_path):
    write(toys, tmp_path)
    assert write(toys, tmp_path, force=True).kept == ()
    assert calls == ["one", "two"] * 2


@pytest.mark.parametrize("name", ["one.csv", "one.png"])
@pytest.mark.parametrize("damage", ["lost", "changed"])
def test_a_damaged_figure_is_made_again(toys, calls, tmp_path, name, damage):
    write(toys, tmp_path)
    path = tmp_path / name
    before = path.read_bytes()
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(before[:-2] + b"7\n" if name == "one.csv" else b"no picture")
    assert [figure.name for figure in write(toys, tmp_path).made] == ["one"]
    assert path.read_bytes() == before


def test_another_effort_or_other_sources_make_it_again(toys, calls, tmp_path, monkeypatch):
    write(toys, tmp_path)
    write_figures(toys[:1], tmp_path, page=tmp_path / "figures.md", effort=FULL)
    assert calls == ["one", "two", "one"]
    page = (tmp_path / "figures.md").read_text()
    # The other one was drawn with less effort: it does not stand beside this one.
    assert "Toy two" not in page
    assert "--quick" not in page
    monkeypatch.setattr(module, "_source_hash", lambda: "other")
    write_figures(toys[:1], tmp_path, page=tmp_path / "figures.md", effort=FULL)
    assert calls[3:] == ["one"]


def test_an_interrupted_run_goes_on_where_it_was(calls, tmp_path, monkeypatch):
    good, bad = toy_figure("one", calls), toy_figure("two", calls, fails=True)
    monkeypatch.setattr(module, "FIGURES", (good, bad))
    with pytest.raises(KeyboardInterrupt):
        write((good, bad), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"one.csv", "one.png"}
    mended = toy_figure("two", calls)
    monkeypatch.setattr(module, "FIGURES", (good, mended))
    written = write((good, mended), tmp_path)
    assert written.kept == (good,)
    assert calls == ["one", "two", "two"]


def test_one_figure_later_joins_the_page(toys, calls, tmp_path):
    write(toys[1:], tmp_path)
    assert "Toy one" not in (tmp_path / "figures.md").read_text()
    write(toys[:1], tmp_path)
    page = (tmp_path / "figures.md").read_text()
    assert page.index("Toy one") < page.index("Toy two")


def test_a_page_elsewhere_finds_the_pictures(toys, tmp_path):
    page = tmp_path / "docs" / "shown.md"
    write_figures(toys, tmp_path / "docs" / "pictures", page=page, effort=QUICK)
    links = re.findall(r"\]\(([^)]+)\)", page.read_text())
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_page_of_the_documentation_shows_its_own_numbers():
    folder = ROOT / "docs" / "figures"
    figures = chosen_figures(["all"])
    tables = {
        figure: Table.from_csv((folder / f"{figure.name}.csv").read_text()) for figure in figures
    }
    page = (ROOT / "docs" / "figures.md").read_text()
    for section in page_text(tables, "figures/", exact=True).split("\n## "):
        assert section.strip() in page
    for figure in figures:
        assert (folder / f"{figure.name}.png").stat().st_size < 150_000


def test_folders_may_be_text(toys, tmp_path):
    out = str(tmp_path / "out")
    assert write_figures(toys, out, page=f"{out}/page.md").page == Path(out) / "page.md"


@pytest.mark.parametrize(
    ("field", "value"),
    [("points", 1), ("samples", "many"), ("requests", 0.5), ("mix_step", 0.0)],
)
def test_wrong_efforts_are_named(field, value):
    with pytest.raises(ValueError, match=rf"^{field} is .*must be"):
        replace(QUICK, **{field: value})
