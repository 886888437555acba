"""Scenarios that change from episode to episode: domain randomisation."""

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from edgegym.world.block import Block, Quantity
from edgegym.world.errors import ScenarioError, scenario_error
from edgegym.world.overrides import undoes
from edgegym.world.presets import presets
from edgegym.world.resolve import resolve_scenario
from edgegym.world.scenario import Scenario
from edgegym.world.variation import Variation
from edgegym.world.yaml import load_yaml

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, kw_only=True)
class DrawnScenario:
    """What one episode plays.

    Attributes
    ----------
    scenario : Scenario
        The world.
    index : int
        Which of the scenarios of the draw it comes from.
    values : tuple
        What the fields of its ``vary`` were given, in order.
    numbers : dict
        The same as finite numbers: ``scenario``, and ``scenario.PATH`` for each varied field.
        Empty where nothing is drawn.
    """

    scenario: Scenario
    index: int
    values: tuple[Any, ...]
    numbers: dict[str, int | float]


class ScenarioDraw(Block):
    """Which scenario an episode plays: one of several, with some fields drawn anew.

    Immutable. All scenarios have the same profiles and families, so that observations and actions
    mean the same in each; numbers of nodes may differ, and observations are padded to the largest.

    Raises
    ------
    ScenarioError
        If a scenario or a drawn value is refused, or scenarios differ in what must be alike; the
        message names the field.
    """

    scenarios: tuple[Scenario, ...] = Field(min_length=1)
    """The scenarios: names of presets, files, or Scenario objects."""
    weights: tuple[Quantity, ...] | None = None
    """How likely each is, relative to the others; all alike if omitted."""
    vary: tuple[Variation, ...] = ()
    """Fields that are drawn anew for every episode, in whichever scenario."""
    reference: Scenario | None = None
    """The scenario that gives the scales of all observations; the first one if omitted."""

    def __init__(self, **document: Any) -> None:
        try:
            super().__init__(**document)
        except ValidationError as error:
            raise scenario_error(error, document) from None

    @field_validator("scenarios", mode="before")
    @classmethod
    def _resolved(cls, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return tuple(map(_resolved, given))
        raise ValueError("must be a list of names, files or Scenario objects")

    @field_validator("reference", mode="before")
    @classmethod
    def _resolved_reference(cls, given: Any) -> Any:
        return None if given is None else _resolved(given)

    @field_validator("vary")
    @classmethod
    def _distinct(cls, laws: tuple[Variation, ...]) -> tuple[Variation, ...]:
        paths = [law.path for law in laws]
        for path in paths:
            if paths.count(path) > 1:
                raise ValueError(f"path '{path}' stands twice; vary each field once")
        for earlier, later in itertools.combinations(paths, 2):
            if undoes(later, earlier):
                raise ValueError(
                    f"path '{later}' undoes '{earlier}', which is drawn before it; draw it first, "
                    "or vary one of both"
                )
        return laws

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.weights is not None and len(self.weights) != len(self.scenarios):
            raise ValueError(
                f"weights: {len(self.weights)} for {len(self.scenarios)} scenarios; give one each"
            )
        kind = self.scenarios[0].objective.kind
        for what, scenario in self.probes():
            _check_alike(self.layout_scenario, what, scenario)
            if scenario.objective.kind != kind:
                raise ScenarioError(
                    f"{what}: objective.kind is '{scenario.objective.kind}' instead of '{kind}'; "
                    "rewards of one environment mean the same in all its scenarios"
                )
        return self

    @property
    def layout_scenario(self) -> Scenario:
        """The scenario that gives the scales of observations: ``reference``, or the first one."""
        return self.scenarios[0] if self.reference is None else self.reference

    @property
    def is_fixed(self) -> bool:
        """Whether all episodes play the same scenario."""
        return len(self.scenarios) == 1 and not self.vary

    @cached_property
    def max_nodes(self) -> int:
        """Most nodes that an episode can have."""
        return max(
            self._overridden(scenario, self._largest(scenario)).max_nodes
            for scenario in self.scenarios
        )

    @cached_property
    def _cumulative_weights(self) -> Any:
        weights = np.ones(len(self.scenarios)) if self.weights is None else np.array(self.weights)
        cumulated = np.cumsum(weights)
        return cumulated / cumulated[-1]

    def probes(self) -> list[tuple[str, Scenario]]:
        """Return every scenario, as it is and with each extreme of each field, with its name.

        Raises
        ------
        ScenarioError
            If one cannot be.
        """
        found = []
        for i, scenario in enumerate(self.scenarios):
            name = f"scenarios[{i}] ('{scenario.name}')"
            found.append((name, scenario))
            for law in self.vary:
                for value in law.probes:
                    what = f"{name} with {law.path} = {value!r}"
                    try:
                        found.append((what, scenario.with_overrides({law.path: value})))
                    except ScenarioError as error:
                        raise ScenarioError(f"{what}: {error}") from None
        return found

    def _largest(self, scenario: Scenario) -> tuple[Any, ...]:
        """Return the values that make the most nodes: the largest fleet has the most of each."""

        def nodes(law: Variation, value: Any) -> int:
            return scenario.with_overrides({law.path: value}).max_nodes

        return tuple(
            max(law.probes, key=lambda value, law=law: nodes(law, value)) for law in self.vary
        )

    def _overridden(self, scenario: Scenario, values: tuple[Any, ...]) -> Scenario:
        return scenario.with_overrides(
            {law.path: value for law, value in zip(self.vary, values, strict=True)}
        )

    def sample(self, generator: "Generator") -> DrawnScenario:
        """Draw what an episode plays.

        Parameters
        ----------
        generator : numpy.random.Generator
            Whatever is drawn, the next draw finds it in a state that depends on nothing else.

        Raises
        ------
        ScenarioError
            If values that are fine by themselves make no scenario together.
        """
        part = float(generator.random())
        index = int(np.searchsorted(self._cumulative_weights, part, side="right"))
        return self.drawn(index, tuple(law.draw(generator) for law in self.vary))

    @property
    def first(self) -> DrawnScenario:
        """What stands before anything is drawn: the first scenario, as large as it can be."""
        # By itself it may have more nodes than any that is drawn.
        values = self._largest(self.scenarios[0])
        scenario = self._overridden(self.scenarios[0], values)
        return DrawnScenario(scenario=scenario, index=0, values=values, numbers={})

    def drawn(self, index: int, values: tuple[Any, ...]) -> DrawnScenario:
        """Return a draw that is known.

        Parameters
        ----------
        index : int
            Which of the scenarios.
        values : tuple
            Values of the varied fields.

        Raises
        ------
        ScenarioError
            If there is no such scenario, the values are more or fewer than the varied fields, or
            they make no scenario.
        """
        if not 0 <= index < len(self.scenarios) or len(values) != len(self.vary):
            raise ScenarioError(
                f"scenario {index} with values {values!r} is not of this draw, which has "
                f"{len(self.scenarios)} scenarios and {len(self.vary)} varied fields"
            )
        scenario = self._overridden(self.scenarios[index], values)
        if self.is_fixed:
            return DrawnScenario(scenario=scenario, index=index, values=values, numbers={})
        if scenario.max_nodes > self.max_nodes:
            raise ScenarioError(
                f"drawn scenario has up to {scenario.max_nodes} nodes, but this draw was found to "
                f"have at most {self.max_nodes}: vary fewer fields of nodes and region at once"
            )
        numbers = {
            f"scenario.{law.path}": law.number(value)
            for law, value in zip(self.vary, values, strict=True)
        }
        return DrawnScenario(
            scenario=scenario,
            index=index,
            values=values,
            numbers={"scenario": index, **numbers},
        )

    def with_overrides(self, overrides: dict[str, Any] | None) -> "ScenarioDraw":
        """Return a copy with some fields of all its scenarios changed.

        Raises
        ------
        ScenarioError
            As of :meth:`Scenario.with_overrides`; or if what is drawn would undo it.
        """
        if not overrides:
            return self
        for law in self.vary:
            for path in overrides:
                if path == law.path:
                    raise ScenarioError(f"override '{path}': this field is drawn in every episode")
                if isinstance(path, str) and undoes(law.path, path):
                    raise ScenarioError(
                        f"override '{path}': it would be undone by '{law.path}', which is drawn in "
                        "every episode"
                    )
        changed = (scenario.with_overrides(overrides) for scenario in self.scenarios)
        reference = None if self.reference is None else self.reference.with_overrides(overrides)
        return self._changed(scenarios=tuple(changed), reference=reference)

    def _changed(self, **changes: Any) -> "ScenarioDraw":
        """Return a copy with other fields, checked as if it was made anew."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return ScenarioDraw(**fields | changes)

    def document(self) -> dict[str, Any]:
        """Return the draw as plain JSON data; ``ScenarioDraw(**document)`` is its inverse."""
        return {
            "scenarios": [scenario.document() for scenario in self.scenarios],
            "weights": None if self.weights is None else list(self.weights),
            "vary": [law.model_dump(mode="json") for law in self.vary],
            "reference": None if self.reference is None else self.reference.document(),
        }

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "ScenarioDraw":
        """Read a draw from a YAML file; files that it names are sought from its folder.

        Raises
        ------
        ScenarioError
            Naming the file and the field.
        """
        source = f"scenario file {path}"
        try:
            document = load_yaml(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ScenarioError(f"{source}: {error.strerror}") from None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise ScenarioError(f"{source}: {error}") from None
        if not isinstance(document, dict):
            raise ScenarioError(f"{source}: must be a mapping, got {type(document).__name__}")
        folder = Path(path).parent
        if isinstance(document.get("scenarios"), list):
            document["scenarios"] = [_beside(folder, one) for one in document["scenarios"]]
        if "reference" in document:
            document["reference"] = _beside(folder, document["reference"])
        try:
            return cls(**{str(key): value for key, value in document.items()})
        except ScenarioError as error:
            raise ScenarioError(f"{source}: {error}") from None


def _resolved(given: Any) -> Any:
    return Scenario.from_document(given) if isinstance(given, dict) else resolve_scenario(given)


def _beside(folder: Path, written: Any) -> Any:
    """Return a name as it is, and a file as seen from the folder."""
    named = isinstance(written, str) and written not in presets()
    return str(folder / written) if named else written


def _check_alike(reference: Scenario, what: str, scenario: Scenario) -> None:
    """Refuse a scenario whose observations or actions would mean something else."""
    pairs = (
        ("profiles", reference.profile_names, scenario.profile_names),
        ("families of request_types", reference.family_names, scenario.family_names),
    )
    for field, here, there in pairs:
        if here != there:
            differing = next(
                f"{there_name!r} instead of {here_name!r}"
                for here_name, there_name in itertools.zip_longest(here, there)
                if here_name != there_name
            )
            raise ScenarioError(
                f"{what}: {field} differ from those of '{reference.name}' ({differing}); scenarios "
                "of one environment have the same ones in the same order, so that observations "
                "and actions mean the same"
            )


def resolve_draw(
    scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw",
    overrides: dict[str, Any] | None = None,
) -> ScenarioDraw:
    """Return the draw that an environment's argument stands for.

    Parameters
    ----------
    scenario : str, path-like, Scenario or ScenarioDraw
        What :func:`resolve_scenario` takes, which is drawn every time; a draw; or the YAML file of
        a draw, which has ``scenarios``.
    overrides : dict, optional
        Changes of all scenarios by dotted path.

    Raises
    ------
    ScenarioError
        If there is no such scenario, or the result is not valid.
    """
    if isinstance(scenario, ScenarioDraw):
        return scenario.with_overrides(overrides)
    if isinstance(scenario, str | os.PathLike) and _is_draw_file(scenario):
        return ScenarioDraw.from_yaml(scenario).with_overrides(overrides)
    return ScenarioDraw(scenarios=(resolve_scenario(scenario, overrides),))


def _is_draw_file(written: str | os.PathLike[str]) -> bool:
    path = Path(written)
    if path.suffix.lower() not in {".yaml", ".yml"} or not path.is_file():
        return False
    try:
        document = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False  # whoever reads it as a scenario says what is wrong
    return isinstance(document, Mapping) and "scenarios" in document
