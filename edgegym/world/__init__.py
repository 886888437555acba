"""The nouns of edgegym: frozen, validated data and the closed forms that belong to one noun."""

from edgegym.world.errors import ScenarioError
from edgegym.world.presets import preset, presets
from edgegym.world.resolve import resolve_scenario
from edgegym.world.scenario import Scenario

__all__ = ["Scenario", "ScenarioError", "preset", "presets", "resolve_scenario"]
