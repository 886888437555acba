"""Gymnasium environments for placing and migrating prompt-prefix state on wireless edge GPUs.

``import edgegym`` registers the environments and loads little else; everything public is imported
when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edgegym.registration import register

if TYPE_CHECKING:
    from edgegym.world import Scenario, ScenarioError, preset, presets

__version__ = "0.1.0"

__all__ = ["Scenario", "ScenarioError", "__version__", "preset", "presets", "register"]

_LAZY = {"Scenario", "ScenarioError", "preset", "presets"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module("edgegym.world"), name)
    raise AttributeError(f"module 'edgegym' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)


register()
