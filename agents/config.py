"""What a training run is: one frozen description, read from a YAML file."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from edgegym.files import write_text
from edgegym.world.block import Block
from edgegym.world.draw import ScenarioDraw, resolve_draw
from edgegym.world.scenario import Scenario
from edgegym.world.yaml import load_yaml


class ConfigError(ValueError):
    """A training configuration was refused: the message names the field, the value and the rule."""


class Hyperparameters(Block):
    """What MaskablePPO and the node scorer are given."""

    n_steps: int = Field(default=32, ge=1)
    """Steps of each environment between two updates."""
    batch_size: int = Field(default=512, ge=2)
    """Steps in each gradient step."""
    n_epochs: int = Field(default=5, ge=1)
    """Passes over each rollout."""
    gamma: float = Field(default=0.95, gt=0, le=1)
    """Discount."""
    gae_lambda: float = Field(default=0.9, ge=0, le=1)
    """Trade of bias against variance in the advantages."""
    learning_rate: float = Field(default=3e-3, gt=0)
    """Of Adam, at the start."""
    final_learning_rate: float | None = Field(default=None, gt=0)
    """Of Adam at the end, reached linearly; constant if omitted."""
    clip_range: float = Field(default=0.2, gt=0)
    """Clipping of the probability ratio."""
    ent_coef: float = Field(default=0.003, ge=0)
    """Weight of the entropy bonus."""
    vf_coef: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    max_grad_norm: float = Field(default=0.5, gt=0)
    """Clipping of the gradient."""
    width: int = Field(default=64, ge=1)
    """Units of the scorer's hidden layers."""


class TrainingConfig(Block):
    """One training run. Immutable; lossless to and from YAML."""

    env_id: Literal["EdgeGym/Placement-v0"] = "EdgeGym/Placement-v0"
    """The environment."""
    scenario: str = Field(min_length=1)
    """A preset's name, or the path of a scenario file; or of the file of a draw of scenarios."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Changes of the scenario by dotted path."""
    reward_baseline: float | None = Field(default=None, ge=0, le=1)
    """Coverage to measure the coverage reward against, for less noise: see ``agents.reward``. The
    scenario's reward as it is if omitted."""
    algorithm: Literal["MaskablePPO"] = "MaskablePPO"
    """The learning algorithm; its policy is the node scorer."""
    hyperparameters: Hyperparameters = Hyperparameters()
    """What it is given."""
    num_envs: int = Field(default=64, ge=1)
    """Environments that are stepped together."""
    total_steps: int = Field(default=300_000, ge=1)
    """Environment steps to learn from; rounded up to whole rollouts."""
    seed: int = Field(default=0, ge=0, lt=2**32 - 2**16)
    """Seeds the model and, counting up, the environments."""

    def __init__(self, **document: Any) -> None:
        try:
            super().__init__(**document)
        except ValidationError as error:
            raise _config_error(error) from None

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "TrainingConfig":
        """Read a configuration; errors name the file and the field."""
        try:
            document = load_yaml(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"config file {path}: {error.strerror}") from None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"config file {path}: {error}") from None
        if not isinstance(document, dict):
            raise ConfigError(
                f"config file {path}: must be a mapping, got {type(document).__name__}"
            )
        if "scenario" not in document and "request_types" in document:
            raise ConfigError(
                f"config file {path}: is a scenario, but a training configuration is expected, "
                f"such as those in configs/; one may have 'scenario: {path}'"
            )
        try:
            return cls(**{str(key): value for key, value in document.items()})
        except ConfigError as error:
            raise ConfigError(f"config file {path}: {error}") from None

    def to_yaml(self, path: str | os.PathLike[str]) -> None:
        """Write the configuration, whole or not at all."""
        document = self.model_dump(mode="json", exclude_none=True)
        write_text(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))

    def with_settings(self, settings: Iterable[str]) -> "TrainingConfig":
        """Return a copy with some fields changed.

        Parameters
        ----------
        settings : iterable of str
            ``path=value`` each, the value in YAML: ``total_steps=50_000``,
            ``hyperparameters.gamma=0.99``, ``overrides.demand.rate_per_node=4``.

        Raises
        ------
        ConfigError
            If one is no such assignment, or the result is not valid.
        """
        document = self.model_dump(mode="json")
        for path, value in map(parse_setting, settings):
            block, _, rest = path.partition(".")
            if rest and isinstance(document.get(block), dict):
                document[block][rest] = value
            else:
                document[path] = value
        return TrainingConfig(**document)

    def draw(self) -> ScenarioDraw:
        """Return which scenarios episodes of training play, overrides applied.

        Raises
        ------
        ScenarioError
            If there is no such scenario, or an override does not fit it.
        """
        return resolve_draw(self.scenario, self.overrides)

    def resolve(self) -> Scenario:
        """Return the scenario, overrides applied; of a draw the one that gives the scales.

        Raises
        ------
        ScenarioError
            If there is no such scenario, or an override does not fit it.
        """
        return self.draw().layout_scenario


def parse_setting(text: str) -> tuple[str, Any]:
    """Return path and value of ``path=value``; the value is YAML.

    Raises
    ------
    ConfigError
        If there is no ``=``, no path, or the value is not YAML.
    """
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"--set {text}: must be path=value, such as total_steps=50000")
    try:
        return path.strip(), load_yaml(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {text}: the value is not YAML: {error}") from None


def _config_error(error: ValidationError) -> ConfigError:
    lines = []
    for item in error.errors(include_url=False):
        path = ".".join(map(str, item["loc"]))
        if item["type"] == "extra_forbidden":
            lines.append(f"{path}: unknown key; remove it or correct its spelling")
        elif item["type"] == "missing":
            lines.append(f"{path}: missing, but required")
        else:
            lines.append(f"{path} = {item['input']!r}: {item['msg']}")
    return ConfigError("\n".join(lines))
