"""What can be compared: policies by name, saved models, models, policy objects, functions."""

import inspect
import io
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from edgegym.evaluation.episode import Decider, FunctionDecider, PredictDecider

if TYPE_CHECKING:
    from edgegym.envs.placement import PlacementEnv
    from edgegym.world.scenario import Scenario

_MODEL_NAME = "model.zip"


class Contestant(Protocol):
    """A way to make a policy in any process."""

    @property
    def source(self) -> str:
        """What was given: the policy's name, the model's path, or a description."""
        ...

    def decider(self, env: "PlacementEnv") -> Decider:
        """Return the policy for an environment.

        Raises
        ------
        ValueError
            If it cannot play there.
        """
        ...


@dataclass(frozen=True)
class NamedPolicy:
    """A policy of ``edgegym.policies``."""

    source: str
    """Its name."""

    def decider(self, env: "PlacementEnv") -> Decider:
        """Make the policy for the environment's scenario."""
        from edgegym.policies import make_policy

        return _predicting(make_policy(self.source, env.scenario), env)


@dataclass(frozen=True)
class SavedModel:
    """A model of ``edgegym.sb3.save_model``, with its manifest beside it."""

    path: Path
    """The model's file, or a folder with a ``model.zip``."""

    @property
    def source(self) -> str:
        """The path as text."""
        return str(self.path)

    def decider(self, env: "PlacementEnv") -> Decider:
        """Load the model; a ``ModelError`` says why it does not fit."""
        from edgegym.sb3 import load_model

        model = load_model(self.path, env.scenario, observe_clock=env.observe_clock)
        return _predicting(model, env)


@dataclass(frozen=True)
class ModelObject:
    """A Stable-Baselines3 model of this process, in the form of its saved files."""

    algorithm: type
    """The model's class."""
    archive: bytes
    """The saved model."""
    manifest: bytes | None
    """The manifest; None if the model has no edgegym environment that could be described."""

    @property
    def source(self) -> str:
        """The algorithm's name."""
        return f"{self.algorithm.__name__} model"

    @classmethod
    def of(cls, model: Any) -> "ModelObject":
        """Take a copy of a model."""
        from sb3_contrib import MaskablePPO

        env = model.get_env()
        if isinstance(model, MaskablePPO) and env is not None and env.has_attr("layout"):
            from edgegym.sb3 import save_model
            from edgegym.sb3.manifest import manifest_path

            with tempfile.TemporaryDirectory() as folder:
                file = save_model(model, Path(folder) / _MODEL_NAME)
                return cls(type(model), file.read_bytes(), manifest_path(file).read_bytes())
        buffer = io.BytesIO()
        model.save(buffer)
        return cls(type(model), buffer.getvalue(), None)

    def decider(self, env: "PlacementEnv") -> Decider:
        """Load the copy; an error says why the model does not fit."""
        if self.manifest is None:
            model = self.algorithm.load(io.BytesIO(self.archive), device="cpu")
            _check_spaces(model, env, self.source)
            return _predicting(model, env)
        from edgegym.sb3.manifest import manifest_path

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / _MODEL_NAME
            file.write_bytes(self.archive)
            manifest_path(file).write_bytes(self.manifest)
            return SavedModel(file).decider(env)


@dataclass(frozen=True)
class PolicyObject:
    """Any object with ``predict`` as of Stable-Baselines3."""

    policy: Any
    """The object."""

    @property
    def source(self) -> str:
        """Its class."""
        return f"{type(self.policy).__qualname__} object"

    def decider(self, env: "PlacementEnv") -> Decider:
        """Ask the object itself."""
        return _predicting(self.policy, env)


@dataclass(frozen=True)
class Function:
    """A callable ``f(observation, info) -> action``."""

    function: Callable[[Any, dict[str, Any]], Any]
    """The callable."""

    @property
    def source(self) -> str:
        """Its name."""
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"function {name}"

    def decider(self, env: "PlacementEnv") -> Decider:
        """Ask the function itself."""
        _bind(self.function, env)
        return FunctionDecider(self.function)


def contestant(label: str, value: Any) -> Contestant:
    """Return what a value of ``compare``'s mapping stands for.

    Parameters
    ----------
    label : str
        Its key, for the error message.
    value : str, path-like, Stable-Baselines3 model, object with predict, or callable
        The policy.

    Returns
    -------
    Contestant
        Not yet checked against a scenario.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(value, str | os.PathLike):
        return _named_or_saved(label, value)
    base = sys.modules.get("stable_baselines3.common.base_class")
    if base is not None and isinstance(value, base.BaseAlgorithm):
        return ModelObject.of(value)
    if not isinstance(value, type):
        if callable(getattr(value, "predict", None)):
            return PolicyObject(value)
        if callable(value):
            return Function(value)
    raise ValueError(
        f"policies['{label}'] = {value!r}: must be a policy's name, a model or its path, a "
        "function of observation and info, or an object with predict()"
    )


def world_of_contestant(item: Contestant, scenario: "Scenario") -> "Scenario":
    """Return the world in which a contestant plays.

    Parameters
    ----------
    item : Contestant
        Who.
    scenario : Scenario
        The world of the comparison.

    Returns
    -------
    Scenario
        The same but for named policies that need other caches and another router.

    Raises
    ------
    ScenarioError
        If the world can't be changed so.
    """
    if isinstance(item, NamedPolicy):
        from edgegym.policies import world_of

        return world_of(item.source, scenario)
    return scenario


def _named_or_saved(label: str, value: "str | os.PathLike[str]") -> Contestant:
    from edgegym.policies import policies

    if isinstance(value, str) and value in policies():
        return NamedPolicy(value)
    path = Path(value)
    if path.suffix == ".zip" or path.is_dir():
        return SavedModel(path)
    raise ValueError(
        f"policies['{label}'] = '{value}': neither a policy (known: {', '.join(policies())}) nor "
        "a saved model (.zip, or a folder that has one)"
    )


def _predicting(policy: Any, env: "PlacementEnv") -> Decider:
    _bind(policy, env)
    return PredictDecider(policy, _takes_masks(policy))


def _bind(policy: Any, env: "PlacementEnv") -> None:
    """Show the environment to a policy that needs to know the world."""
    if callable(bind := getattr(policy, "bind", None)):
        bind(env)


def _takes_masks(policy: Any) -> bool:
    parameters = inspect.signature(policy.predict).parameters.values()
    return any(
        parameter.name == "action_masks" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in parameters
    )


def _check_spaces(model: Any, env: "PlacementEnv", source: str) -> None:
    for name in ("observation_space", "action_space"):
        mine, theirs = getattr(model, name), getattr(env, name)
        if mine != theirs:
            raise ValueError(
                f"{source}: its {name} is {mine}, that of scenario '{env.scenario.name}' is "
                f"{theirs}"
            )
