"""What happens beside learning: progress, logs, checkpoints, a clean stop."""

import signal
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from stable_baselines3.common.callbacks import BaseCallback

from edgegym.envs.info import INFO_KEYWORDS
from edgegym.sb3.manifest import Manifest, ModelError, manifest_path
from edgegym.sb3.models import save_model
from edgegym.sb3.scorer import NodeScorerPolicy

_CHECKPOINT = "checkpoint-"


class EpisodeLog(BaseCallback):
    """Logs the episodes that ended in each rollout: ``episode/…`` in TensorBoard.

    Means of every ``episode_*`` value of ``info``, and ``coverage`` (hits over decided requests)
    and ``mean_ttft_s`` as ratios of sums.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ended: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True):
            if done:
                self._ended.append(info)
        return True

    def _on_rollout_end(self) -> None:
        if not self._ended:
            return
        sums = {key: sum(info[key] for info in self._ended) for key in INFO_KEYWORDS}
        for key, total in sums.items():
            name = key.removeprefix("episode_")
            self.logger.record(f"episode/{name}", total / len(self._ended))
        if sums["episode_decided"]:
            self.logger.record("episode/coverage", sums["episode_hits"] / sums["episode_decided"])
        if sums["episode_first_tokens"]:
            self.logger.record(
                "episode/mean_ttft_s", sums["episode_ttft_sum_s"] / sums["episode_first_tokens"]
            )
        self._ended.clear()


class LearningThreads(BaseCallback):
    """Lets a node scorer learn on several threads.

    They are its own: PyTorch's are set to one meanwhile, as they would meet after each of hundreds
    of small operations. The weights do not depend on the number.

    Parameters
    ----------
    num_threads : int
        While learning; collecting takes one, beside those of the environments.
    """

    def __init__(self, num_threads: int) -> None:
        super().__init__()
        self._num_threads = num_threads
        self._before = 1

    def _on_training_start(self) -> None:
        self._before = torch.get_num_threads()
        torch.set_num_threads(1)
        policy = self.model.policy
        if isinstance(policy, NodeScorerPolicy):
            policy.scorer.use_threads(self._num_threads)

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        torch.set_num_threads(self._before)


class TrainingProgress(BaseCallback):
    """Shows steps, speed, recent coverage and the time left.

    A live line on a terminal; elsewhere a plain line every `every_s` seconds.

    Parameters
    ----------
    total_steps : int
        Steps at which training ends.
    console : rich.console.Console
        Where to show it.
    every_s : float
        Seconds between plain lines.

    Attributes
    ----------
    steps_per_s : float
        Environment steps per second of this session, learning included.
    """

    def __init__(self, total_steps: int, console: Console, every_s: float = 10.0) -> None:
        super().__init__()
        self.steps_per_s = 0.0
        self._total_steps = total_steps
        self._console = console
        self._every_s = every_s
        self._began_s = 0.0
        self._began_at = 0
        self._shown_s = 0.0
        self._hits = 0
        self._decided = 0
        self._recent: deque[tuple[int, int]] = deque(maxlen=3)
        self._bar: Progress | None = None

    def _on_training_start(self) -> None:
        self._began_s = self._shown_s = time.perf_counter()
        self._began_at = self.model.num_timesteps
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("training"),
                BarColumn(),
                TextColumn("{task.description}"),
                console=self._console,
                transient=True,
            )
            self._bar.add_task("starting", total=self._total_steps, completed=self._began_at)
            self._bar.start()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            self._hits += info["hits"]
            self._decided += info["decided"]
        now_s = time.perf_counter()
        if now_s - self._shown_s >= (0.2 if self._bar else self._every_s):
            self._shown_s = now_s
            self._show(now_s)
        return True

    def _on_rollout_end(self) -> None:
        self._recent.append((self._hits, self._decided))
        self._hits = self._decided = 0

    def _on_training_end(self) -> None:
        self._measure(time.perf_counter())
        self.stop()

    def stop(self) -> None:
        """Take the live line off the terminal; also after an error."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _measure(self, now_s: float) -> None:
        self.steps_per_s = (self.model.num_timesteps - self._began_at) / (now_s - self._began_s)

    def _show(self, now_s: float) -> None:
        self._measure(now_s)
        text = self._text()
        if self._bar is not None:
            steps = self.model.num_timesteps
            self._bar.update(self._bar.task_ids[0], completed=steps, description=text)
        else:
            self._console.print(f"training: {text}", highlight=False)

    def _text(self) -> str:
        steps = self.model.num_timesteps
        parts = [f"{steps:,} of {self._total_steps:,} steps", f"{self.steps_per_s:,.0f} steps/s"]
        hits, decided = (
            (sum(column) for column in zip(*self._recent, strict=True))
            if (self._recent)
            else (self._hits, self._decided)
        )
        if decided:
            parts.append(f"coverage {hits / decided:.3f}")
        if self.steps_per_s > 0.0:
            left_s = max(0.0, self._total_steps - steps) / self.steps_per_s
            parts.append(f"{int(left_s) // 60}:{int(left_s) % 60:02d} left")
        return ", ".join(parts)


class Checkpoints(BaseCallback):
    """Saves the model and its manifest every few seconds, between two rollouts.

    Only the newest checkpoint is kept, and an older one is removed only after the newer one is
    whole: a kill at any moment leaves one that loads.

    Parameters
    ----------
    folder : pathlib.Path
        Where they lie, as ``checkpoint-000000020480.zip`` and ``.json``.
    total_steps : int
        For the manifests.
    every_s : float
        Least seconds between two of them.
    """

    def __init__(self, folder: Path, total_steps: int, every_s: float = 20.0) -> None:
        super().__init__()
        self._folder = folder
        self._total_steps = total_steps
        self._every_s = every_s
        self._saved_s = 0.0
        self._saved_at = -1

    def _on_training_start(self) -> None:
        self._saved_s = time.perf_counter()
        self._saved_at = self.model.num_timesteps
        # What a killed process may have left unfinished.
        for path in self._folder.glob(f".{_CHECKPOINT}*"):
            path.unlink()

    def _on_rollout_start(self) -> None:
        # Here the last rollout is learned, so steps, weights and optimizer belong together.
        if time.perf_counter() - self._saved_s >= self._every_s:
            self._save()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._save()

    def _save(self) -> None:
        steps = self.model.num_timesteps
        if steps > self._saved_at:
            path = self._folder / f"{_CHECKPOINT}{steps:012d}.zip"
            save_model(self.model, path, total_steps=self._total_steps)
            self._saved_at = steps
            self._remove_before(path)
        self._saved_s = time.perf_counter()

    def _remove_before(self, newest: Path) -> None:
        for path in self._folder.glob(f"{_CHECKPOINT}*.zip"):
            if path < newest:
                path.unlink()
                manifest_path(path).unlink(missing_ok=True)


def latest_checkpoint(folder: Path) -> tuple[Path, Manifest] | None:
    """Return the newest checkpoint of a training run and its manifest; None if there is none.

    Parameters
    ----------
    folder : pathlib.Path
        As given to :class:`Checkpoints`.
    """
    for path in sorted(folder.glob(f"{_CHECKPOINT}*.zip"), reverse=True):
        try:
            return path, Manifest.read(path)
        except ModelError:
            continue
    return None


class StopOnInterrupt(BaseCallback):
    """Lets Ctrl-C end training between two steps instead of in the middle of one.

    A context manager around ``model.learn``; list it before :class:`Checkpoints`. The steps of the
    rollout that was not learned from are given back, so that the saved count is true. A second
    Ctrl-C is Python's usual one.

    Attributes
    ----------
    stopped : bool
        Whether training was ended by it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stopped = False
        self._requested = False
        self._learned_steps = 0
        self._previous: Any = None

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _request(self, _signal: int, _frame: FrameType | None) -> None:
        self._requested = True
        signal.signal(signal.SIGINT, self._previous)

    def _on_rollout_start(self) -> None:
        self._learned_steps = self.model.num_timesteps

    def _on_step(self) -> bool:
        self.stopped = self._requested
        return not self.stopped

    def _on_training_end(self) -> None:
        if self.stopped:
            self.model.num_timesteps = self._learned_steps
