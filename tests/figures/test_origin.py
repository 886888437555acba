"""The study of edge and origin: numbers, picture, words."""

import math

import numpy as np
import pytest

from edgegym.figures import QUICK, Table, chosen_figures
from edgegym.figures.origin_runs import CONTENDERS, PATHS, crossing_tokens, idle_s
from tests.figures.studies import check_picture_and_words

(FIGURE,) = chosen_figures(["origin"])

# 2112 tokens, 2048 of them held; L4: 33.5 ms at least and attention to the held tokens, 34.6 ms a
# token; H100: 23.5 µs a new token, 10.7 ms a token in batches of 32; round trips of 0.1 s.
EDGE_S = 0.0335 + 6.19e-9 * (2112**2 - 2048**2)
COLD_S = 2.56e-4 * 2112 + 6.19e-9 * 2112**2
ORIGIN_S = 0.1 + 2.35e-5 * 64 + 6.63e-10 * 64**2
LONG_S = 2.35e-5 * 64 + 6.63e-10 * 64**2 + 399 * 0.0107
REQUESTS_PER_S = 12 * np.array([0.5, 4.0, 10.0])
COUNTED_S = 60.0


@pytest.fixture(scope="module")
def table() -> Table:
    return FIGURE.compute(QUICK, lambda _: None)


def test_times_of_requests_alone_by_hand():
    assert idle_s("edge, prefix held", 1, 0.02) == pytest.approx(0.02 + EDGE_S)
    assert idle_s("edge, prefix not held", 9, 0.0) == pytest.approx(COLD_S + 8 * 0.0346)
    assert idle_s("origin", 9, 0.02) == pytest.approx(0.02 + ORIGIN_S + 8 * 0.0107)
    assert idle_s("origin, new connection", 1, 0.0) == pytest.approx(ORIGIN_S + 0.2)
    gains_s = {"origin": ORIGIN_S - EDGE_S, "origin, new connection": 0.2 + ORIGIN_S - EDGE_S}
    for path, gain_s in gains_s.items():
        crossing = crossing_tokens("edge, prefix held", path)
        assert crossing == pytest.approx(1.0 + gain_s / (0.0346 - 0.0107))
        at_both = [idle_s(where, crossing, 0.0) for where in ("edge, prefix held", path)]
        assert at_both[0] == pytest.approx(at_both[1])


def test_simulated_points_are_on_the_formula(table):
    for path in PATHS:
        rows = table.where(part="idle", case=path)
        simulated = np.isfinite(rows["simulated_s"])
        assert simulated.sum() >= 3
        np.testing.assert_allclose(
            rows["simulated_s"][simulated], rows["formula_s"][simulated], rtol=1e-9
        )


def test_what_the_caption_says(table):
    loaded = table.where(part="load")
    least, middle, most = rates = loaded.distinct("requests_per_s_and_node")
    assert REQUESTS_PER_S.tolist() == [12 * rate for rate in rates]

    def at(case, rate, column):
        return loaded.value(column, case=case, requests_per_s_and_node=rate)

    assert set(loaded["case"]) == set(CONTENDERS)
    assert at("edge alone", middle, "coverage") > 0.95
    assert at("edge alone", most, "coverage") < 0.05
    assert at("least predicted TTFT", most, "coverage") > 0.8
    assert at("least predicted TTFT", middle, "origin_share") < 0.01
    for case in ("spill to neighbours", "spill to the origin"):
        assert at(case, most, "origin_share") > at("least predicted TTFT", most, "origin_share")
        assert at(case, most, "coverage") < at("least predicted TTFT", most, "coverage")
    long_s = {case: at(case, middle, "long_p99_s") for case in CONTENDERS}
    assert long_s["output cap"] == pytest.approx(0.3 + LONG_S, rel=0.05)
    assert long_s["least predicted TTFT"] > 6.0 * long_s["output cap"]
    assert at("output cap", least, "short_p99_s") < at("least predicted TTFT", least, "short_p99_s")


def test_shares_and_loads_by_littles_law(table):
    """A capped edge sends a quarter away; each holds a slot of 128 for its decode time."""
    for rate, requests_per_s in zip((0.5, 4.0), REQUESTS_PER_S, strict=False):
        row = table.where(part="load", case="output cap", requests_per_s_and_node=rate)
        count, long_per_s = requests_per_s * COUNTED_S, 0.25 * requests_per_s
        assert row["origin_share"][0] == pytest.approx(0.25, abs=4 * math.sqrt(0.1875 / count))
        error = LONG_S * math.sqrt(long_per_s / COUNTED_S) / 128
        assert row["origin_load"][0] == pytest.approx(long_per_s * LONG_S / 128, abs=4 * error)
        # Those that open a connection are late: 0.3 of the long answers.
        error = math.sqrt(0.075 * 0.925 / count)
        assert row["coverage"][0] == pytest.approx(1.0 - 0.075, abs=4 * error)


def test_picture_and_words_from_the_file(table):
    check_picture_and_words(FIGURE, table)
