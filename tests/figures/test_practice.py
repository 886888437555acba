"""The study of practice: worlds, numbers, picture, words."""

from pathlib import Path

import numpy as np
import pytest

from edgegym.figures import QUICK, Table, chosen_figures
from edgegym.figures.practice import best
from edgegym.figures.practice_worlds import TRACES_VARIABLE, practice_worlds
from edgegym.figures.style import picture_png
from edgegym.world.compiled import ROUTER_KINDS

DATA = Path(__file__).parents[3] / "shared" / "data"
(FIGURE,) = chosen_figures(["practice"])


@pytest.fixture(scope="module")
def table() -> Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(TRACES_VARIABLE, raising=False)
        return FIGURE.compute(QUICK, lambda _: None)


def test_every_router_with_both_caches(table):
    assert table.distinct("world") == ["toolagent"]
    for cache in ("profiles", "lru"):
        assert table.where(cache=cache)["router"].tolist() == list(ROUTER_KINDS)
    # The same requests for all.
    assert len(set(table["requests"])) == 1
    for share in ("coverage", "hit_token_share", "prefill_utilization"):
        assert ((table[share] > 0) & (table[share] < 1)).all()
    assert (table["ttft_p99_s"] > table["ttft_p50_s"]).all()


def test_looking_at_prefixes_spares_more_than_not_looking(table):
    hits = {name: table.value("hit_token_share", cache="lru", router=name) for name in ROUTER_KINDS}
    assert hits["prefix_aware"] > hits["nearest"]
    assert hits["lmetric"] > hits["least_loaded"]


def test_picture_and_words_from_the_file(table):
    again = Table.from_csv(table.to_csv())
    assert picture_png(FIGURE, again, "a stamp").startswith(b"\x89PNG")
    caption = FIGURE.caption(again)
    router, coverage = best(again, "toolagent", "lru")
    assert router in caption.here
    assert f"{coverage:.2f}" in caption.here
    assert "are missing" in caption.here
    for text in (caption.paper, caption.here, caption.difference):
        assert text.endswith(".")
        assert "nan" not in text


def test_both_caches_leave_as_much_memory_to_requests(monkeypatch):
    monkeypatch.delenv(TRACES_VARIABLE, raising=False)
    with practice_worlds(10.0) as worlds:
        (world,) = worlds.values()
    placed = world.profiles
    mean_slots = placed.initial_mix @ np.array(placed.concurrency)
    assert world.lru.concurrency[0] == pytest.approx(mean_slots, abs=1.0)
    assert world.lru.with_overrides({"cache": {"kind": "profiles"}}) != placed  # another router
    assert world.scenario("lru", "preble").routing.kind == "preble"


def test_a_folder_without_the_traces_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(TRACES_VARIABLE, str(tmp_path))
    with (
        pytest.raises(ValueError, match=r"there is no mooncake_conversation\.jsonl\.gz"),
        practice_worlds(10.0),
    ):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no traces in {DATA}")
def test_recordings_are_replayed_with_all_their_prefixes(monkeypatch):
    monkeypatch.setenv(TRACES_VARIABLE, str(DATA))
    with practice_worlds(10.0) as worlds:
        assert list(worlds) == ["toolagent", "conversation", "synthetic"]
        for name, vertices in (("conversation", 3918), ("synthetic", 413)):
            assert len(worlds[name].lru.forest) == vertices
            assert worlds[name].counted_s > 800.0
