"""Saving models with their manifests, and loading them for any fleet that they fit."""

import os
import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule

from edgegym.files import atomic_path
from edgegym.interface.layout import ObservationLayout, placement_layout
from edgegym.sb3.manifest import Manifest, ModelError
from edgegym.sb3.scorer import NodeScorerPolicy
from edgegym.world.draw import ScenarioDraw, resolve_draw
from edgegym.world.scenario import Scenario

_PLACEMENT_ID = "EdgeGym/Placement-v0"
_HYPERPARAMETERS = (
    "n_envs",
    "n_steps",
    "batch_size",
    "n_epochs",
    "gamma",
    "gae_lambda",
    "learning_rate",
    "clip_range",
    "clip_range_vf",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "normalize_advantage",
    "target_kl",
)


def save_model(
    model: BaseAlgorithm,
    path: str | os.PathLike[str],
    *,
    total_steps: int | None = None,
) -> Path:
    """Save a model and its manifest; a kill at any moment leaves a pair that loads.

    Parameters
    ----------
    model : MaskablePPO
        With the edgegym environment it learned from.
    path : path-like
        The file, ``.zip``; the manifest lies beside it under the same name with ``.json``.
    total_steps : int, optional
        Steps that the training is to have; those it had if omitted.

    Returns
    -------
    pathlib.Path
        The model's file.

    Raises
    ------
    ModelError
        If the name doesn't end in ``.zip`` or the model has no edgegym environment.
    """
    file = Path(path)
    if file.suffix != ".zip":
        raise ModelError(f"{file}: the name of a saved model must end in .zip")
    manifest = _describe(model, total_steps)
    with atomic_path(file) as temporary:
        model.save(temporary)
        # The manifest first: a new model must never stand without one. Both are whole in any case.
        manifest.write(file)
    return file


def load_model(
    path: str | os.PathLike[str],
    scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw",
    *,
    observe_clock: bool = False,
) -> MaskablePPO:
    """Load a model for a scenario that it fits, whatever that one's number of nodes.

    Parameters
    ----------
    path : path-like
        A saved model (``.zip``), or a folder that has a ``model.zip``.
    scenario : str, path-like, Scenario or ScenarioDraw
        What the model is to decide in.
    observe_clock : bool
        Whether the environment observes the clock.

    Returns
    -------
    MaskablePPO
        Ready to predict, on the CPU. It has no environment.

    Raises
    ------
    ModelError
        If the file or its manifest is missing or damaged, or the model doesn't fit the scenario:
        another observation layout, or another number of nodes for a network that depends on it.
    ScenarioError
        If there is no such scenario.
    """
    file = model_file(path)
    manifest = Manifest.read(file)
    draw = resolve_draw(scenario)
    layout, name = placement_layout(draw, observe_clock), draw.layout_scenario.name
    manifest.check(layout, name)
    same_size = manifest.num_nodes == layout.num_nodes
    if not same_size and manifest.policy != NodeScorerPolicy.__name__:
        raise ModelError(
            f"{file}: a {manifest.policy} depends on the number of nodes, which is "
            f"{manifest.num_nodes} in the model and {layout.num_nodes} in scenario "
            f"'{name}'; a NodeScorerPolicy would not"
        )
    model = load_archive(file, {} if same_size else _spaces_of(layout))
    _check_sizes(file, model, layout)
    return model


def _check_sizes(file: Path, model: MaskablePPO, layout: ObservationLayout) -> None:
    """Refuse a model that is not the one its manifest describes."""
    shape, actions = model.observation_space.shape, getattr(model.action_space, "n", None)
    expected = (layout.size,), layout.num_nodes * layout.num_profiles + 1
    if (shape, actions) != expected:
        raise ModelError(
            f"{file}: the model has observations of shape {shape} and {actions} actions; "
            f"by its manifest it must have {expected[0]} and {expected[1]}"
        )


def load_archive(file: Path, replacements: dict[str, Any], env: Any = None) -> MaskablePPO:
    """Load a saved MaskablePPO.

    Parameters
    ----------
    file : pathlib.Path
        The ``.zip``.
    replacements : dict
        Attributes to use instead of the saved ones.
    env : VecEnv, optional
        The environment to go on learning from.

    Raises
    ------
    ModelError
        If the file is missing, or not a saved model.
    """
    try:
        return MaskablePPO.load(file, env=env, device="cpu", custom_objects=replacements)
    except FileNotFoundError:
        raise ModelError(f"{file}: there is no such model") from None
    except (
        zipfile.BadZipFile,
        EOFError,
        LookupError,
        RuntimeError,
        ValueError,
        TypeError,
        AttributeError,
        ImportError,
        AssertionError,
        OSError,
        pickle.UnpicklingError,
        zlib.error,
    ) as error:
        raise ModelError(f"{file}: not a model that MaskablePPO can load: {error}") from None


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the model that a path means: itself, or the ``model.zip`` of a folder.

    Raises
    ------
    ModelError
        If there is none.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "model.zip"
    if not file.is_file():
        raise ModelError(f"{file}: there is no such model")
    return file


def _spaces_of(layout: ObservationLayout) -> dict[str, Any]:
    """Return what a transferred model needs in place of its training environment's sizes."""
    return {
        "observation_space": spaces.Box(0.0, 1.0, shape=(layout.size,), dtype=np.float32),
        "action_space": spaces.Discrete(layout.num_nodes * layout.num_profiles + 1),
        "_last_obs": None,
        "_last_episode_starts": None,
    }


def _describe(model: BaseAlgorithm, total_steps: int | None) -> Manifest:
    env = model.get_env()
    if env is None or not (env.has_attr("layout") and env.has_attr("draw")):
        raise ModelError(
            "the model has no edgegym environment, so its manifest cannot be written: "
            "call model.set_env(env) first"
        )
    draw: ScenarioDraw = env.get_attr("draw")[0]
    spec = env.get_attr("spec")[0]
    return Manifest.describe(
        env_id=_PLACEMENT_ID if spec is None else spec.id,
        draw=draw,
        layout=env.get_attr("layout")[0],
        algorithm=type(model).__name__,
        policy=type(model.policy).__name__,
        hyperparameters=_hyperparameters(model),
        seed=model.seed,
        steps=model.num_timesteps,
        total_steps=model.num_timesteps if total_steps is None else total_steps,
    )


def _hyperparameters(model: BaseAlgorithm) -> dict[str, Any]:
    values = {name: getattr(model, name) for name in _HYPERPARAMETERS if hasattr(model, name)}
    values["policy_kwargs"] = model.policy_kwargs
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Return a hyperparameter as JSON can hold it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case FloatSchedule():
            return _plain(value.value_schedule)
        case ConstantSchedule():
            return value.val
        case LinearSchedule():
            return {"start": value.start, "end": value.end, "end_fraction": value.end_fraction}
        case _:
            return repr(value)
