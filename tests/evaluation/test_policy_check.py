"""Each rule of ``check_policy`` can be broken, and the message says what to do."""

import pickle
import random

import numpy as np
import pytest

from edgegym.policies.basic import RandomPolicy
from edgegym.testing import CheckFailed, check_policy
from edgegym.world import preset

TOY = preset("toy")
NO_OP = 6
RULES = ["action", "legality", "inputs", "randomness", "determinism", "reset", "batch", "speed"]


class Plain:
    """A policy that keeps all rules; its subclasses break one each."""

    def __init__(self) -> None:
        self.calls = 0

    def predict(
        self, observation, state=None, episode_start=None, deterministic=True, action_masks=None
    ):
        rows = np.atleast_2d(observation)
        self.calls += 1
        count = np.zeros(len(rows), dtype=np.int64) if state is None else state[0].copy()
        if episode_start is not None:
            count[np.asarray(episode_start)] = 0
        masks = np.atleast_2d(action_masks) if action_masks is not None else None
        actions = self.act(rows, count, masks)
        return (actions[0] if np.ndim(observation) == 1 else actions), (count + 1,)

    def act(self, rows, count, masks):
        return np.full(len(rows), NO_OP)


class Unmasked:
    """Knows no masks."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return np.zeros(observation.shape[:-1], dtype=np.int64), state


class Fractional(Plain):
    def act(self, rows, count, masks):
        return np.full(len(rows), 6.0)


class TooLarge(Plain):
    def act(self, rows, count, masks):
        return np.full(len(rows), 7)


class Shaped(Plain):
    def predict(self, observation, *args, **kwargs):
        action, state = super().predict(observation, *args, **kwargs)
        return np.atleast_1d(action), state


class Illegal(Plain):
    def act(self, rows, count, masks):
        return np.zeros(len(rows), dtype=np.int64)  # the profile that node 0 has


class Vandal(Plain):
    def act(self, rows, count, masks):
        masks[:] = True
        return super().act(rows, count, masks)


class Scribbler(Plain):
    def act(self, rows, count, masks):
        rows[:] = 0.5
        return super().act(rows, count, masks)


class GlobalNumpy(Plain):
    def act(self, rows, count, masks):
        np.random.random()  # noqa: NPY002 - that is the mistake
        return super().act(rows, count, masks)


class GlobalPython(Plain):
    def act(self, rows, count, masks):
        random.random()
        return super().act(rows, count, masks)


def legal_moves(masks, k):
    """Return the k-th legal action of each row, cyclically."""
    return np.array(
        [np.flatnonzero(mask)[n % mask.sum()] for mask, n in zip(masks, k, strict=True)]
    )


class Remembers(Plain):
    """Counts its calls in the object, not in the state."""

    def act(self, rows, count, masks):
        return legal_moves(masks, np.full(len(rows), self.calls))


class NeverForgets(Plain):
    def predict(
        self, observation, state=None, episode_start=None, deterministic=True, action_masks=None
    ):
        return super().predict(observation, state, None, deterministic, action_masks)

    def act(self, rows, count, masks):
        return legal_moves(masks, count)


class Single(Plain):
    def act(self, rows, count, masks):
        if len(rows) > 1:
            raise IndexError("one at a time")
        return super().act(rows, count, masks)


class OneForAll(Plain):
    def act(self, rows, count, masks):
        return super().act(rows, count, masks)[:1]


class Mixes(Plain):
    def act(self, rows, count, masks):
        return legal_moves(masks, np.full(len(rows), len(rows)))


class Forgetful(Plain):
    """Right as :class:`NeverForgets` is wrong."""

    def act(self, rows, count, masks):
        return legal_moves(masks, count)


@pytest.mark.parametrize("policy", [Plain(), Forgetful(), RandomPolicy(TOY), "analytic_local"])
def test_good_policies_pass(policy):
    report = check_policy(policy, TOY, epochs=5)
    assert report.ok
    assert not report.advice
    assert [finding.rule for finding in report.findings] == RULES


def test_functions_and_bound_policies_pass():
    report = check_policy(lambda _, info: info["action_mask"].argmax(), TOY, epochs=3)
    assert [finding.rule for finding in report.findings] == [*RULES[:5], "speed"]
    assert "bound to one" in check_policy("greedy_lookahead", TOY, epochs=3)["batch"].message


@pytest.mark.parametrize(
    ("policy", "rule", "words"),
    [
        (Fractional(), "action", "of type float64: return an integer"),
        (TooLarge(), "action", "must be from 0 to 6"),
        (Illegal(), "legality", "illegal though the mask was given"),
        (Vandal(), "inputs", "the action mask was changed in place"),
        (Scribbler(), "inputs", "the observation was changed in place"),
        (GlobalNumpy(), "randomness", r"state of numpy\.random has changed"),
        (GlobalPython(), "randomness", "state of random has changed"),
        (Remembers(), "determinism", "keep memory and random numbers in the state"),
        (NeverForgets(), "reset", "forget the rows whose episode_start is True"),
        (Single(), "batch", "IndexError: one at a time"),
        (OneForAll(), "batch", r"return one for each row, shape \(2,\)"),
        (Mixes(), "batch", "rows must not mix"),
        (lambda *_: [NO_OP], "action", r"has shape \(1,\): return a single number"),
    ],
)
def test_each_rule_can_be_broken(policy, rule, words):
    with pytest.raises(CheckFailed, match=words) as caught:
        check_policy(policy, TOY, epochs=5)
    assert rule in [finding.rule for finding in caught.value.report.broken]
    assert f"broken: {rule}" in str(caught.value) or rule == "determinism"


def test_a_slow_policy_is_told_so():
    with pytest.raises(CheckFailed, match="more than 1e-09 s: profile predict"):
        check_policy(Plain(), TOY, epochs=2, most_seconds=1e-9)


def test_without_masks_illegal_actions_are_advised_against():
    report = check_policy(Unmasked(), TOY, epochs=3)
    assert report.ok
    assert "argument action_masks" in report["legality"].message
    assert [finding.rule for finding in report.advice] == ["legality"]


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="seeds"):
        check_policy(Plain(), TOY, seeds=[1])
    with pytest.raises(ValueError, match="epochs"):
        check_policy(Plain(), TOY, epochs=1)
    with pytest.raises(ValueError, match="most_seconds"):
        check_policy(Plain(), TOY, most_seconds=0.0)
    with pytest.raises(ValueError, match="policies"):
        check_policy("nobody", TOY)


def test_a_failure_travels_between_processes():
    with pytest.raises(CheckFailed) as caught:
        check_policy(TooLarge(), TOY, epochs=2)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.report["action"].level == "broken"
    with pytest.raises(KeyError):
        copy.report["speed"]
