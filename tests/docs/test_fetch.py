"""The page about fetching: its tables are those of the study's file, its numbers are right."""

import math

import pytest

from edgegym.figures.fetch_runs import CONTENDERS, alone_s, filling_rate_per_s, spared_s
from edgegym.figures.table import Table
from tests.docs.pages import DOCS, swept_tables

TEXT = (DOCS / "fetch.md").read_text(encoding="utf-8")
STUDY = Table.from_csv((DOCS / "figures" / "fetch.csv").read_text(encoding="utf-8"))


def value(name, rate, column, digits):
    """Return a number of the study as the page writes it."""
    number = float(STUDY.where(controller=name, requests_per_s=rate)[column][0])
    return "—" if math.isnan(number) else f"{number:.{digits}f}".replace("-", "−")


def test_tables_are_those_of_the_study():
    (names, coverage), (fetching, transfers), (same, worth) = swept_tables(TEXT)
    assert names == list(CONTENDERS)
    assert fetching == same == names[1:]
    for (rate, *cells), (_, *flows), (_, *seconds) in zip(coverage, transfers, worth, strict=True):
        at = float(rate)
        assert cells == [value(name, at, "coverage", 2) for name in names]
        assert flows == [value(name, at, "transfers", 1) for name in fetching]
        assert seconds == [
            f"{value(name, at, 'saved_s', 2)} / {value(name, at, 'imposed_s', 2)}"
            for name in fetching
        ]


@pytest.mark.parametrize(
    "words",
    [
        f"takes {alone_s():.2f} s alone",
        f"spares {spared_s():.2f} s of prefill",
        f"at {filling_rate_per_s():.1f} requests/s",
        f"with more than {spared_s() / alone_s():.1f}, a fetch takes longer",
        f"{2**30 / 50e9 * 1e3:.1f} ms alone at 400 Gb/s",
        f"take {16 * 2**30 / 50e9 * 1e3:.0f} ms each",
    ],
)
def test_numbers_in_the_text(words):
    assert words in " ".join(TEXT.split())
