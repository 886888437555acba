"""Paired comparison of policies on the same requests, its statistics and its reports."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegym.evaluation.animation import animate
    from edgegym.evaluation.comparison import Comparison
    from edgegym.evaluation.queue_sweep import sweep_queue
    from edgegym.evaluation.results import PolicyResult, ResultTable, SeedResult
    from edgegym.evaluation.runner import ComparisonPlan, compare, plan_comparison
    from edgegym.evaluation.statistics import Interval

__all__ = [
    "Comparison",
    "ComparisonPlan",
    "Interval",
    "PolicyResult",
    "ResultTable",
    "SeedResult",
    "animate",
    "compare",
    "plan_comparison",
    "sweep_queue",
]

_HOMES = {
    "Comparison": "comparison",
    "ComparisonPlan": "runner",
    "Interval": "statistics",
    "PolicyResult": "results",
    "ResultTable": "results",
    "SeedResult": "results",
    "animate": "animation",
    "compare": "runner",
    "plan_comparison": "runner",
    "sweep_queue": "queue_sweep",
}


def __getattr__(name: str) -> Any:
    # Lazy, so that `from edgegym.evaluation import compare` in a worker stays cheap.
    if name not in _HOMES:
        raise AttributeError(f"module 'edgegym.evaluation' has no attribute '{name}'")
    return getattr(import_module(f"edgegym.evaluation.{_HOMES[name]}"), name)
