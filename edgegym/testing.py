"""Checkers for users: rules that a policy keeps, and what makes a scenario a sensible task.

>>> from edgegym.testing import check_policy, check_scenario
>>> report = check_policy("static", "toy")
>>> report.ok
True

Both return a :class:`CheckReport` (print it), and raise :class:`CheckFailed`, an AssertionError
that says what to do, where a rule is broken: one line of a test suite.
"""

from edgegym.evaluation.check_report import CheckFailed, CheckReport, Finding
from edgegym.evaluation.policy_check import check_policy
from edgegym.evaluation.scenario_check import check_scenario

__all__ = ["CheckFailed", "CheckReport", "Finding", "check_policy", "check_scenario"]
