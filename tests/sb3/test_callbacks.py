import io
import re

import pytest
from rich.console import Console

from edgegym.sb3.callbacks import Checkpoints, EpisodeLog, TrainingProgress, latest_checkpoint


class Recorder:
    """A logger that remembers."""

    def __init__(self):
        self.values = {}

    def record(self, key, value):
        self.values[key] = value


def console_of(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, highlight=False)


def test_progress_prints_plain_lines_where_there_is_no_terminal(toy_model):
    console = console_of(terminal=False)
    toy_model.learn(160, callback=TrainingProgress(160, console, every_s=0.0))
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 80
    pattern = r"training: 160 of 160 steps, [\d,]+ steps/s, coverage [01]\.\d{3}, 0:00 left"
    assert re.fullmatch(pattern, lines[-1])
    assert "\x1b" not in console.file.getvalue()


def test_progress_is_quiet_between_its_lines(toy_model):
    console = console_of(terminal=False)
    progress = TrainingProgress(80, console, every_s=1e6)
    toy_model.learn(80, callback=progress)
    assert console.file.getvalue() == ""
    assert progress.steps_per_s > 0


def test_progress_takes_its_live_line_away(toy_model):
    console = console_of(terminal=True)
    progress = TrainingProgress(80, console)
    toy_model.learn(80, callback=progress)
    assert "training" in console.file.getvalue()
    assert not console._live_stack
    progress.stop()


def test_episode_log_sums_before_it_divides():
    log = EpisodeLog()
    recorder = Recorder()
    log.model = type("Model", (), {"logger": recorder, "num_timesteps": 0})()
    from edgegym.envs.info import INFO_KEYWORDS

    none = dict.fromkeys(INFO_KEYWORDS, 0)
    first = none | {"episode_hits": 1, "episode_decided": 10, "episode_moves": 4}
    second = none | {"episode_hits": 30, "episode_decided": 30, "episode_moves": 8}
    log.locals = {"infos": [first, none, second], "dones": [True, False, True]}
    log.on_step()
    log.on_rollout_end()
    assert recorder.values["episode/coverage"] == pytest.approx(31 / 40)
    assert recorder.values["episode/moves"] == 6
    assert "episode/mean_ttft_s" not in recorder.values
    recorder.values.clear()
    log.on_rollout_end()
    assert recorder.values == {}


def test_checkpoints_keep_the_newest_and_clean_up(toy_model, tmp_path):
    leftover = tmp_path / ".checkpoint-000000000016-abc.zip"
    leftover.touch()
    assert latest_checkpoint(tmp_path) is None
    toy_model.learn(48, callback=Checkpoints(tmp_path, 48, every_s=0.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-000000000048.json",
        "checkpoint-000000000048.zip",
    ]
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert found[1].steps == 48


def test_checkpoints_wait_their_time(toy_model, tmp_path):
    saved = []

    class Counting(Checkpoints):
        def _save(self):
            saved.append(self.model.num_timesteps)
            super()._save()

    toy_model.learn(48, callback=Counting(tmp_path, 48, every_s=1e6))
    assert saved == [48]
