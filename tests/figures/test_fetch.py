"""The study of fetching: numbers, picture, words."""

import numpy as np
import pytest

from edgegym.figures import QUICK, Table, chosen_figures
from edgegym.figures.fetch_runs import (
    CONTENDERS,
    alone_s,
    fetch_scenario,
    filling_rate_per_s,
    spared_s,
)
from tests.figures.studies import check_picture_and_words

(FIGURE,) = chosen_figures(["fetch"])


@pytest.fixture(scope="module")
def table() -> Table:
    return FIGURE.compute(QUICK, lambda _: None)


def test_numbers_of_the_world_by_hand():
    """1 GiB at 25 Gb/s; 256 µs per token, 6.19 ns per pair; three of four documents elsewhere."""
    assert fetch_scenario("joint", 4.0).state_bytes == (2**30,) * 4
    assert alone_s() == pytest.approx(2**30 * 8 / 25e9)
    assert spared_s() == pytest.approx(0.000256 * 8192 + 6.19e-9 * 8192**2)
    assert filling_rate_per_s() == pytest.approx(25e9 / (8 * 2**30 * 0.75))


def test_what_the_caption_says(table):
    """`always` and `independent` saturate the link, `joint` does not."""
    most = table["requests_per_s"].max()
    rows = {name: table.where(controller=name, requests_per_s=most) for name in CONTENDERS}
    coverage = {name: row["coverage"][0] for name, row in rows.items()}
    transfers = {name: row["transfers"][0] for name, row in rows.items()}
    break_even = spared_s() / alone_s()
    assert transfers["always"] > transfers["independent"] > 2 * break_even
    assert transfers["joint"] < break_even
    assert transfers["joint, half the target"] < 0.5 * break_even
    assert coverage["always"] < 0.05
    assert coverage["independent"] < coverage["never"]
    assert coverage["joint"] > coverage["never"] - 0.05
    assert coverage["joint, half the target"] > coverage["joint"] + 0.1
    independent, joint = rows["independent"], rows["joint"]
    assert independent["saved_s"][0] < 0.0 < joint["saved_s"][0]
    assert independent["imposed_s"][0] > 4.0 * joint["imposed_s"][0]


def test_all_agree_on_an_idle_link(table):
    least = table["requests_per_s"].min()
    for name in ("always", "independent", "joint"):
        row = table.where(controller=name, requests_per_s=least)
        assert row["coverage"][0] > 0.95
        assert 0.0 < row["link_busy_share"][0] < 0.5
    assert np.isnan(table.where(controller="never")["saved_s"]).all()


def test_picture_and_words_from_the_file(table):
    check_picture_and_words(FIGURE, table)
