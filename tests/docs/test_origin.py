"""The page about the origin: its tables are those of the study's file, its numbers are right."""

import pytest

from edgegym.figures.origin_runs import CONTENDERS, crossing_tokens, idle_s
from edgegym.figures.table import Table
from tests.docs.pages import DOCS, swept_tables

TEXT = (DOCS / "origin.md").read_text(encoding="utf-8")
STUDY = Table.from_csv((DOCS / "figures" / "origin.csv").read_text(encoding="utf-8"))
EDGE, FAR, NEW = "edge, prefix held", "origin", "origin, new connection"


def value(name, rate, column, digits):
    """Return a number of the study as the page writes it."""
    number = STUDY.value(column, part="load", case=name, requests_per_s_and_node=rate)
    return f"{number:.{digits}f}"


def test_tables_are_those_of_the_study():
    (names, coverage), (sharing, shares), (same, late) = swept_tables(TEXT)
    assert names == same == list(CONTENDERS)
    assert sharing == names[1:-1]
    for (rate, *cells), (_, *parts), (_, *seconds) in zip(coverage, shares, late, strict=True):
        at = float(rate)
        assert cells == [value(name, at, "coverage", 2) for name in names]
        assert parts == [value(name, at, "origin_share", 2) for name in sharing]
        assert seconds == [
            f"{value(name, at, 'short_p99_s', 2)} / {value(name, at, 'long_p99_s', 1)}"
            for name in names
        ]


@pytest.mark.parametrize(
    "words",
    [
        f"ahead by {idle_s(FAR, 1, 0) - idle_s(EDGE, 1, 0):.3f} s at the first token",
        f"{idle_s(NEW, 1, 0) - idle_s(EDGE, 1, 0):.3f} s on a new connection",
        f"ahead up to {crossing_tokens(EDGE, FAR):.1f} tokens",
        f"or {crossing_tokens(EDGE, NEW):.1f} on a new connection",
        f"loses {1e3 * (34.6e-3 - 10.7e-3):.1f} ms with each token after it",
        f"at 400: {idle_s(EDGE, 400, 0):.1f} s against {idle_s(FAR, 400, 0):.1f} s",
        f"{1e3 * (idle_s(EDGE, 2, 0) - idle_s(EDGE, 1, 0)):.1f} ms a token alone on the L4",
        f"{1e3 * (idle_s(FAR, 2, 0) - idle_s(FAR, 1, 0)):.1f} ms on an H100",
    ],
)
def test_numbers_in_the_text(words):
    assert words in " ".join(TEXT.split())
