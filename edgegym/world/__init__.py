"""The nouns of edgegym: frozen, validated data and the closed forms that belong to one noun."""

from edgegym.world.draw import ScenarioDraw
from edgegym.world.errors import ScenarioError
from edgegym.world.presets import preset, presets
from edgegym.world.resolve import resolve_scenario
from edgegym.world.scenario import Scenario
from edgegym.world.variation import Choice, Integers, LogUniform, Uniform

__all__ = [
    "Choice",
    "Integers",
    "LogUniform",
    "Scenario",
    "ScenarioDraw",
    "ScenarioError",
    "Uniform",
    "preset",
    "presets",
    "resolve_scenario",
]
