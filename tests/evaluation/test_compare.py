"""``compare``: the same requests for all, the same bits wherever they are served."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.evaluation import Comparison, compare, plan_comparison
from edgegym.world import ScenarioError, preset
from tests.evaluation import players

SEEDS = (10_000, 10_001, 10_002)
POLICIES = {
    "static": "static",
    "uniform": "uniform",
    "chance": "random",
    "first": players.first_legal,
}


@pytest.fixture(scope="module")
def here() -> Comparison:
    return compare(POLICIES, "toy", SEEDS, workers=1, progress=False)


@pytest.fixture(scope="module")
def spawned() -> Comparison:
    return compare(POLICIES, "toy", reversed(SEEDS), workers=2, progress=False)


def test_workers_give_the_same_bits(here, spawned):
    assert spawned.seeds == SEEDS[::-1]
    assert (here.card.workers, spawned.card.workers) == (0, 2)
    order = {(row.policy, row.seed): row for row in spawned.per_seed}
    assert [order[row.policy, row.seed] for row in here.per_seed] == list(here.per_seed)
    for mine, theirs in zip(here.table, spawned.table, strict=True):
        assert (mine.policy, mine.coverage, mine.p99_ttft_s, mine.bytes_moved) == (
            theirs.policy,
            theirs.coverage,
            theirs.p99_ttft_s,
            theirs.bytes_moved,
        )
    assert not [remark for remark in spawned.remarks if "in this process" in remark]


def test_all_policies_meet_the_same_requests(here):
    for seed in SEEDS:
        assert len({row.arrivals for row in here.per_seed if row.seed == seed}) == 1
    assert len({row.arrivals for row in here.per_seed}) == len(SEEDS)


def test_an_episode_is_what_a_loop_by_hand_gives(here):
    env = PlacementEnv("toy")
    _, info = env.reset(seed=SEEDS[1])
    total, truncated = 0.0, False
    while not truncated:
        action = players.first_legal(None, info)
        _, reward, _, truncated, info = env.step(action)
        total += reward
    (row,) = (r for r in here.per_seed if (r.policy, r.seed) == ("first", SEEDS[1]))
    assert (row.hits, row.decided) == (info["episode_hits"], info["episode_decided"])
    assert row.coverage == info["episode_hits"] / info["episode_decided"]
    assert row.total_reward == total
    assert (row.moves, row.bytes_moved) == (info["episode_moves"], info["episode_bytes_moved"])
    assert row.mean_ttft_s == pytest.approx(info["episode_ttft_sum_s"] / row.first_tokens)
    assert row.illegal_actions == 0
    assert 0 < row.prefill_utilization <= row.max_prefill_utilization


def test_summaries_are_over_all_requests(here):
    for row in here.table:
        seeds = [seed for seed in here.per_seed if seed.policy == row.policy]
        assert row.seeds == len(seeds) == 3
        assert row.coverage == sum(s.hits for s in seeds) / sum(s.decided for s in seeds)
        assert row.mean_return == pytest.approx(np.mean([s.total_reward for s in seeds]))
        assert row.difference == row.coverage - here.table["static"].coverage
        assert row.p50_ttft_s <= row.p90_ttft_s <= row.p99_ttft_s
        low, high = min(s.p90_ttft_s for s in seeds), max(s.p90_ttft_s for s in seeds)
        assert low <= row.p90_ttft_s <= high
    assert here.table["uniform"].offloading_ratio > here.table["static"].offloading_ratio == 0
    assert here.table["static"].bytes_moved == 0 < here.table["first"].bytes_moved


def test_no_analytic_policy_makes_the_first_the_reference(here):
    assert here.reference == "static"
    assert here.table["static"].difference == 0
    assert here.table["static"].probability_of_improvement == 0.5
    assert here.table["uniform"].difference_interval.low > 0
    assert here.table["uniform"].probability_of_improvement == 1


def test_best_analytic_policy_is_the_reference_whatever_its_label():
    policies = {"static": "static", "a": "analytic_local", "b": "static_optimal"}
    short = {"control.horizon_epochs": 8}
    outcome = compare(policies, "toy", [1, 2], workers=1, progress=False, overrides=short)
    best = max("ab", key=lambda label: outcome.table[label].coverage)
    assert outcome.reference == best
    chosen = compare(
        policies, "toy", [1], reference="a", workers=1, progress=False, overrides=short
    )
    assert chosen.reference == "a"


def test_a_score_needs_both_ends():
    def clairvoyant(observation, info):
        return players.first_legal(observation, info)

    short = {"control.horizon_epochs": 8}
    policies = {"static": "static", "u": "uniform", "clairvoyant": clairvoyant}
    outcome = compare(policies, "toy", [1], workers=1, progress=False, overrides=short)
    assert outcome.table["static"].normalised_score == 0
    assert outcome.table["clairvoyant"].normalised_score == 1
    top = outcome.table["clairvoyant"].coverage
    assert outcome.table["u"].normalised_score == pytest.approx(outcome.table["u"].coverage / top)
    del policies["static"]
    outcome = compare(policies, "toy", [1], workers=1, progress=False, overrides=short)
    assert [row.normalised_score for row in outcome.table] == [None, None]
    assert "no intervals: one seed" in outcome.remarks


def test_predict_gets_masks_state_and_starts():
    recorder = players.Recorder()
    short = {"control.horizon_epochs": 3}
    compare({"r": recorder}, "toy", [7, 8], workers=1, progress=False, overrides=short)
    (env,) = recorder.bound
    assert isinstance(env, PlacementEnv)
    assert [call[1] for call in recorder.calls] == [None, 1, 2] * 2
    assert [call[2].tolist() for call in recorder.calls] == [[True], [False], [False]] * 2
    assert all(call[3] is True for call in recorder.calls)
    for call in recorder.calls:
        assert call[4]["action_masks"].dtype == np.bool_
        assert call[4]["action_masks"][-1]


def test_illegal_actions_are_counted_and_said():
    short = {"control.horizon_epochs": 4}
    outcome = compare(
        {"u": players.Unmasked()}, "toy", [1], workers=1, progress=False, overrides=short
    )
    assert outcome.table["u"].illegal_actions == 3
    assert any("illegal actions" in remark and "u" in remark for remark in outcome.remarks)


def test_default_seeds_are_the_evaluation_seeds():
    assert plan_comparison({"s": "static"}, "toy").seeds == preset("toy").evaluation_seeds


class Odd:
    """Neither a policy nor a function."""


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        ({}, {}, r"policies = \{\}: must be a mapping of at least one"),
        ("static", {}, r"policies = 'static': must be a mapping"),
        ({"": "static"}, {}, r"label '' must be text"),
        ({3: "static"}, {}, r"label 3 must be text"),
        ({"x": "statik"}, {}, r"policies\['x'\] = 'statik': neither a policy \(known: random, "),
        ({"x": Odd()}, {}, r"policies\['x'\] = .*Odd.*: must be a policy's name"),
        ({"x": Odd}, {}, r"policies\['x'\] = <class .*Odd'>: must be a policy's name"),
        ({"x": None}, {}, r"policies\['x'\] = None: must be"),
        ({"x": Path("nowhere.zip")}, {}, r"nowhere\.zip: there is no such model"),
        ({"s": "static"}, {"seeds": []}, r"seeds is empty"),
        ({"s": "static"}, {"seeds": [1, 1]}, r"seeds = \[1, 1\]: must be distinct"),
        ({"s": "static"}, {"seeds": [-1]}, r"seeds: -1 is not a whole number"),
        ({"s": "static"}, {"seeds": [0.5]}, r"seeds: 0\.5 is not a whole number"),
        ({"s": "static"}, {"reference": "t"}, r"reference = 't': .*compared policies \(s\)"),
        ({"s": "static"}, {"workers": 0}, r"workers = 0: must be at least 1"),
        ({"s": "static"}, {"workers": 1.5}, r"workers = 1\.5: must be a whole number"),
        ({"s": "static"}, {"overrides": {"nodes.count": 0}}, r"nodes\.count = 0"),
        ({"s": "static"}, {"scenario": "tyo"}, r"scenario = 'tyo': neither a preset"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_played(policies, options, message):
    with pytest.raises(ValueError, match=message):
        plan_comparison(policies, **({"scenario": "toy"} | options))


def test_scenario_errors_keep_their_type():
    with pytest.raises(ScenarioError):
        compare({"s": "static"}, "toy", overrides={"radio.xi": -1})


def test_what_cannot_travel_is_played_here_and_said():
    def local(observation, info):
        return players.never_move(observation, info)

    short = {"control.horizon_epochs": 2}
    policies = {"local": local, "recorder": players.Recorder()}
    recorder = policies["recorder"]
    # Both are kept here: one can't be pickled; the other can, so only its copies are asked.
    outcome = compare(policies, "toy", [1], workers=2, progress=False, overrides=short)
    (remark,) = (text for text in outcome.remarks if "in this process" in text)
    assert remark.startswith("'local' was played in this process")
    assert recorder.calls == []
    assert outcome.table["local"].coverage == outcome.table["recorder"].coverage


def test_an_error_in_a_worker_comes_with_its_traceback():
    policies = {"static": "static", "lost": players.fails_in_the_tenth_step}
    with pytest.raises(LookupError, match="no idea what to do") as caught:
        compare(policies, "toy", [1], workers=2, progress=False)
    (note,) = caught.value.__notes__
    assert "while 'lost' played seed 1" in note
    assert "players.py" in note


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_worker_that_dies_is_reported():
    policies = {"static": "static", "dies": players.dies}
    with pytest.raises(RuntimeError, match=r"exit code -9\) while 'dies' played seed 1"):
        compare(policies, "toy", [1], workers=2, progress=False)


UNGUARDED = """
import sys
print("the script runs")
from edgegym.evaluation import compare

def mine(observation, info):
    return len(info["action_mask"]) - 1

short = {"control.horizon_epochs": 2}
outcome = compare({"static": "static", "mine": mine}, "toy", [1, 2], workers=2, overrides=short)
print(outcome)
"""


def _python(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], input=text, capture_output=True, text=True, check=False
    )


def test_a_script_without_a_guard_runs_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    finished = _python(str(script))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("the script runs") == 1
    assert "'mine' was played in this process" in finished.stdout.replace("\n", " ")
    assert "compare: 4 of 4 after" in finished.stderr


def test_code_from_standard_input_can_compare():
    finished = _python("-", text=UNGUARDED)
    assert finished.returncode == 0, finished.stderr
    assert "coverage" in finished.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to process groups")
def test_an_interrupt_stops_the_workers_at_once(tmp_path):
    code = """
        import sys
        from edgegym.evaluation import compare
        from tests.evaluation.players import leaves_a_mark
        try:
            compare({"a": leaves_a_mark, "b": "uniform"}, "moving-hotspot", range(500), workers=2,
                    progress=False, overrides={"control.horizon_epochs": 2000})
        except KeyboardInterrupt:
            print("stopped", flush=True)
            sys.exit(130)
    """
    mark = tmp_path / "mark"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"MARK_OF_THE_PLAYER": str(mark)},
    )
    _wait_until(mark.exists)
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (130, "stopped\n", "")
    assert time.monotonic() - begin < 10
    _wait_until(lambda: not _anyone_left(process.pid))


def _wait_until(happened) -> None:
    for _ in range(1200):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("did not happen within two minutes")


def _anyone_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_are_frozen(here):
    with pytest.raises(dataclasses.FrozenInstanceError):
        here.table[0].coverage = 1.0
    with pytest.raises(KeyError, match=r"no policy 'x' \(compared: static, "):
        here.table["x"]
