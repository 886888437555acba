"""The study of fallback nodes: numbers, picture, words."""

import numpy as np
import pytest

from edgegym.figures import QUICK, Table, chosen_figures
from edgegym.figures.fallback import course
from edgegym.figures.style import picture_png

(FIGURE,) = chosen_figures(["fallback"])


@pytest.fixture(scope="module")
def table() -> Table:
    return FIGURE.compute(QUICK, lambda _: None)


def test_it_is_a_study():
    assert FIGURE.study
    assert FIGURE in chosen_figures(["studies"])
    assert FIGURE not in chosen_figures(["all"])


def test_three_sweeps_of_two_networks(table):
    for name in ("nested", "families"):
        for swept in ("burst_scv", "telemetry_delay_s", "concentration"):
            rows = table.where(network=name, swept=swept)
            assert len(rows) == 3
            total = rows["fallback_share"] + rows["second_share"] + rows["third_share"]
            np.testing.assert_allclose(total, 1.0)
    assert (table["coverage"] >= table["coverage_of_stationary_mix"] - 1e-9).all()
    assert table.where(network="nested")["third_share"].max() < 0.2 + 1e-9


def test_what_the_caption_explains(table):
    def change(name, swept):
        shares = table.where(network=name, swept=swept)["fallback_share"]
        return shares[-1] - shares[0]

    assert change("nested", "burst_scv") > 0.1
    assert change("families", "burst_scv") > 0.05
    assert change("nested", "telemetry_delay_s") < -0.05
    assert change("families", "telemetry_delay_s") < 0.0
    assert change("nested", "concentration") > 0.05
    assert change("families", "concentration") < 0.0
    late, known = (table[f"fallback_slots_used_if_{name}"] for name in ("not", "burst_is_known"))
    assert (late < 0.5 * known).all()
    families = table.where(network="families")
    assert (families["slowest_fallback_prefill_s"] > families["target_s"]).all()


def test_picture_and_words_from_the_file(table):
    again = Table.from_csv(table.to_csv())
    assert picture_png(FIGURE, again, "a stamp").startswith(b"\x89PNG")
    caption = FIGURE.caption(again)
    assert "grows with burstiness and nothing else" in caption.here
    for text in (caption.paper, caption.here, caption.difference):
        assert text.endswith(".")
        assert "nan" not in text


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([0.0, 0.4, 0.8], "rises from 0.00 to 0.80"),
        ([0.3, 0.1, 0.0], "falls from 0.30 to 0.00"),
        ([0.1, 0.5, 0.2], "rises from 0.10 to 0.50 and falls to 0.20"),
        ([0.5, 0.1, 0.2], "falls from 0.50 to 0.10 and rises to 0.20"),
        ([0.2, 0.2, 0.21], "stays near 0.20"),
    ],
)
def test_courses_in_words(shares, words):
    assert course(np.array(shares)) == words
