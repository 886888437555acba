"""What a saved model was made of and for, as JSON beside it."""

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgegym.files import write_text
from edgegym.interface.layout import ObservationLayout
from edgegym.world.block import Block
from edgegym.world.draw import ScenarioDraw

_FORMAT = 1
_PACKAGES = (
    "edgegym",
    "gymnasium",
    "numpy",
    "sb3-contrib",
    "stable-baselines3",
    "torch",
)


class ModelError(ValueError):
    """A saved model cannot be used: the message names the file and the reason."""


class Manifest(Block):
    """Where a model comes from, and which environments it fits.

    Immutable. Lossless to and from JSON.
    """

    format: int = _FORMAT
    """Version of this file's format."""
    created: str
    """Time of writing, ISO 8601, UTC."""
    versions: dict[str, str]
    """Versions of Python and of the packages that made the model."""
    env_id: str
    """The environment that it was trained on."""
    scenario_name: str
    """Name of the scenario."""
    scenario: dict[str, Any]
    """The whole scenario, overrides applied; of a draw the one that gives the scales."""
    draw: dict[str, Any] | None = None
    """The whole draw of scenarios, see ``ScenarioDraw.document``, if training had one."""
    layout: dict[str, Any]
    """The observation layout, see ``ObservationLayout.to_dict``."""
    layout_hash: str
    """Its hash; models and environments with the same one speak of the same features."""
    node_features: int
    """K, features of each node."""
    global_features: int
    """G, features of the fleet."""
    num_profiles: int
    """S."""
    num_nodes: int
    """N, the most nodes an episode of training had."""
    algorithm: str
    """Name of the learning algorithm."""
    policy: str
    """Name of the policy class."""
    hyperparameters: dict[str, Any]
    """What the algorithm was given."""
    seed: int | None
    """Seed of model and training environments."""
    steps: int
    """Environment steps that the model has learned from."""
    total_steps: int
    """Environment steps that the training was to have."""

    @classmethod
    def describe(
        cls,
        *,
        env_id: str,
        draw: ScenarioDraw,
        layout: ObservationLayout,
        algorithm: str,
        policy: str,
        hyperparameters: dict[str, Any],
        seed: int | None,
        steps: int,
        total_steps: int,
    ) -> "Manifest":
        """Return the manifest of a model of this process, with its versions and the time.

        Parameters
        ----------
        env_id : str
        draw : ScenarioDraw
            Of the training environments.
        layout : ObservationLayout
            Of the training environments.
        algorithm, policy : str
            Names of their classes.
        hyperparameters : dict
            JSON values.
        seed : int or None
        steps, total_steps : int
            Learned from so far, and planned.
        """
        return cls(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions={"python": platform.python_version()}
            | {package: version(package) for package in _PACKAGES},
            env_id=env_id,
            scenario_name=draw.layout_scenario.name,
            scenario=draw.layout_scenario.document(),
            draw=None if draw.is_fixed else draw.document(),
            layout=layout.to_dict(),
            layout_hash=layout.hash,
            node_features=layout.node_features,
            global_features=layout.global_features,
            num_profiles=layout.num_profiles,
            num_nodes=layout.num_nodes,
            algorithm=algorithm,
            policy=policy,
            hyperparameters=hyperparameters,
            seed=seed,
            steps=steps,
            total_steps=total_steps,
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Manifest":
        """Read the manifest of a model.

        Parameters
        ----------
        path : path-like
            The manifest, or the model that it lies beside.

        Raises
        ------
        ModelError
            If it is missing, no JSON, of another format or not complete.
        """
        file = manifest_path(path)
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ModelError(
                f"{path}: the model has no manifest ({file.name} is missing beside it), so nobody "
                "can tell which scenarios it fits; save models with edgegym.sb3.save_model"
            ) from None
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ModelError(f"{file}: cannot be read as a manifest: {error}") from None
        found = document.get("format") if isinstance(document, dict) else None
        if found != _FORMAT:
            raise ModelError(f"{file}: format is {found!r}; this edgegym reads format {_FORMAT}")
        try:
            return cls(**document)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ModelError(f"{file}: {where}: {first['msg']}") from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the manifest of the model at `path` beside it, whole or not at all."""
        text = json.dumps(self.model_dump(mode="json"), indent=2, ensure_ascii=False)
        write_text(manifest_path(path), text + "\n")

    def check(self, layout: ObservationLayout, scenario_name: str) -> None:
        """Refuse a layout that the model cannot read.

        Parameters
        ----------
        layout : ObservationLayout
            Of the environment to use the model in.
        scenario_name : str
            Its scenario's name, for the message.

        Raises
        ------
        ModelError
            With every difference; the number of nodes is none. Or if the manifest's own layout is
            damaged.
        """
        reasons = []
        for symbol, name in (("K", "node_features"), ("S", "num_profiles")):
            mine, theirs = getattr(self, name), getattr(layout, name)
            if mine != theirs:
                reasons.append(f"{name} ({symbol}) is {mine} in the model, {theirs} there")
        if self.layout_hash != layout.hash:
            reasons.append(f"layout hash is {self.layout_hash} in the model, {layout.hash} there")
            reasons.extend(_layout_differences(self._read_layout().to_dict(), layout.to_dict()))
        if reasons:
            raise ModelError(
                f"the model (trained on '{self.scenario_name}') does not fit scenario "
                f"'{scenario_name}':\n  " + "\n  ".join(reasons)
            )

    def _read_layout(self) -> ObservationLayout:
        try:
            return ObservationLayout.from_dict(self.layout)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(
                f"the manifest's layout cannot be read: {type(error).__name__}: {error}"
            ) from None


def manifest_path(path: str | os.PathLike[str]) -> Path:
    """Return where the manifest of the model at `path` lies: ``model.zip`` → ``model.json``."""
    return Path(path).with_suffix(".json")


def _layout_differences(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Say which features of two layouts differ, and in what."""
    there = {feature["name"]: feature for feature in theirs["features"]}
    lines = []
    for feature in mine["features"]:
        name = feature["name"]
        other = there.pop(name, None)
        if other is None:
            lines.append(f"feature '{name}' exists only in the model")
            continue
        lines.extend(
            f"feature '{name}': {key} is {feature[key]} in the model, {other[key]} there"
            for key in ("size", "unit", "scale")
            if feature[key] != other[key]
        )
    lines.extend(f"feature '{name}' does not exist in the model" for name in there)
    return lines
