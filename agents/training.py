"""Trains a model and keeps it: logs, checkpoints, resumption."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import LinearSchedule
from torch.utils.tensorboard import SummaryWriter

from agents.config import ConfigError, TrainingConfig
from agents.reward import BaselinedCoverage
from agents.seeds import session_seed
from edgegym.files import make_folder
from edgegym.sb3 import EdgeVecEnv, Manifest, NodeScorerPolicy, save_model, scorer_kwargs
from edgegym.sb3.callbacks import (
    Checkpoints,
    EpisodeLog,
    LearningThreads,
    StopOnInterrupt,
    TrainingProgress,
    latest_checkpoint,
)
from edgegym.sb3.models import load_archive
from edgegym.threads import checked_threads
from edgegym.world.scenario import Scenario

CONFIG_FILE = "config.yaml"
MODEL_FILE = "model.zip"
LOG_FOLDER = "tensorboard"


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """How a training session went.

    Attributes
    ----------
    model_path : pathlib.Path
        The saved model.
    steps : int
        Steps that it has learned from, earlier sessions included.
    steps_per_s : float
        Speed of this session, learning included; 0 if there was nothing left to do.
    finished : bool
        False if Ctrl-C ended it early.
    """

    model_path: Path
    steps: int
    steps_per_s: float
    finished: bool


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads below 1.

    Raises
    ------
    ConfigError
        Naming it.
    """
    if threads is not None and threads < 1:
        raise ConfigError(f"--threads {threads}: must be at least 1")


def check_checkpoint_s(checkpoint_s: float) -> None:
    """Refuse a time between checkpoints that is not a positive number.

    Raises
    ------
    ConfigError
        Naming it.
    """
    if not (math.isfinite(checkpoint_s) and checkpoint_s > 0):
        raise ConfigError(
            f"--checkpoint-s {checkpoint_s:g}: must be a positive, finite number of seconds"
        )


def prepare_folder(folder: Path) -> None:
    """Make the folder of results, before any work is done for them.

    Raises
    ------
    ConfigError
        If it can't be made or written to.
    """
    try:
        make_folder(folder)
    except OSError as error:
        raise ConfigError(f"-o {folder}: {error.strerror or error}") from error


def train(
    config: TrainingConfig,
    folder: Path,
    console: Console,
    *,
    threads: int | None = None,
    checkpoint_s: float = 20.0,
) -> TrainingResult:
    """Train, or go on training, in a run's folder.

    Leaves ``config.yaml``, ``model.zip`` with its manifest ``model.json``, the newest checkpoint
    and TensorBoard events. The same configuration, thread count and machine give the same weights,
    bit for bit, unless the run was interrupted.

    Parameters
    ----------
    config : TrainingConfig
    folder : pathlib.Path
        Of the run. If it has a checkpoint, training continues from it: weights, optimizer state,
        step count and logs; the episodes are new ones.
    console : rich.console.Console
        For progress.
    threads : int, optional
        Threads for environments and for learning; the available cores, at most 4, if omitted.
    checkpoint_s : float
        Seconds between checkpoints.

    Raises
    ------
    ConfigError
        If a training seed is kept for evaluation, or the folder can't be written to.
    ScenarioError
        If the configured scenario is refused.
    """
    draw = config.draw()
    scenario = draw.layout_scenario
    found = latest_checkpoint(folder)
    steps = 0 if found is None else found[1].steps
    seed = session_seed(config.seed, steps, config.num_envs, scenario.evaluation_seeds)
    reward = _reward(config, scenario)
    threads = checked_threads(threads)
    prepare_folder(folder)
    config.to_yaml(folder / CONFIG_FILE)
    env = EdgeVecEnv.make(
        f"edgegym:{config.env_id}",
        config.num_envs,
        scenario=draw,
        reward=reward,
        num_threads=threads,
    )
    try:
        if found is None:
            model = _new_model(config, env, seed)
        else:
            console.print(f"going on from step {steps:,} of {config.total_steps:,}", markup=False)
            model = _saved_model(found, env, scenario, seed)
        log = Logger(str(folder / LOG_FOLDER), [_EventLog(folder / LOG_FOLDER, steps)])
        model.set_logger(log)
        progress = TrainingProgress(config.total_steps, console)
        with StopOnInterrupt() as interrupt:
            callbacks = [
                interrupt,
                LearningThreads(threads),
                EpisodeLog(),
                progress,
                Checkpoints(folder, config.total_steps, checkpoint_s),
            ]
            try:
                if steps < config.total_steps:
                    left = config.total_steps - steps
                    model.learn(left, callback=callbacks, reset_num_timesteps=steps == 0)
            finally:
                progress.stop()
                log.close()
        path = save_model(model, folder / MODEL_FILE, total_steps=config.total_steps)
        return TrainingResult(
            model_path=path,
            steps=model.num_timesteps,
            steps_per_s=progress.steps_per_s,
            finished=not interrupt.stopped,
        )
    finally:
        env.close()


def _reward(config: TrainingConfig, scenario: Scenario) -> BaselinedCoverage | None:
    if config.reward_baseline is None:
        return None
    if scenario.objective.kind != "coverage":
        raise ConfigError(
            f"reward_baseline = {config.reward_baseline}: it goes with the objective 'coverage', "
            f"but that of scenario '{scenario.name}' is '{scenario.objective.kind}'"
        )
    return BaselinedCoverage.of(scenario, config.reward_baseline)


def _saved_model(
    checkpoint: tuple[Path, Manifest], env: EdgeVecEnv, scenario: Scenario, seed: int
) -> MaskablePPO:
    path, manifest = checkpoint
    manifest.check(env.get_attr("layout")[0], scenario.name)
    model = load_archive(path, {}, env)
    # Loading seeds everything as at the start, which would repeat the first episodes.
    model.set_random_seed(seed)
    return model


def _new_model(config: TrainingConfig, env: EdgeVecEnv, seed: int) -> MaskablePPO:
    options: dict[str, Any] = config.hyperparameters.model_dump()
    width = options.pop("width")
    start, end = options["learning_rate"], options.pop("final_learning_rate")
    if end is not None:
        options["learning_rate"] = LinearSchedule(start, end, 1.0)
    return MaskablePPO(
        NodeScorerPolicy,
        env,
        policy_kwargs=scorer_kwargs(env, width=width),
        seed=seed,
        device="cpu",
        **options,
    )


class _EventLog(TensorBoardOutputFormat):
    """TensorBoard events; those after `steps`, of a session that was killed, are void."""

    def __init__(self, folder: Path, steps: int) -> None:
        # Not the base class's: that opens a file without saying where this session begins.
        self.writer = SummaryWriter(str(folder), purge_step=steps + 1 if steps else None)
        self._is_closed = False


def read_run(folder: Path) -> TrainingConfig:
    """Return the configuration of an existing run.

    Raises
    ------
    ConfigError
        If the folder is none of a run.
    """
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{folder}: not the folder of a training run (no {CONFIG_FILE})")
    return TrainingConfig.from_yaml(folder / CONFIG_FILE)
