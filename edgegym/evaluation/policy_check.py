"""Whether a policy keeps the rules that ``compare`` and the environments rely on."""

import random
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.evaluation.check_report import CheckReport, Findings
from edgegym.evaluation.contestants import contestant
from edgegym.evaluation.episode import Decider, FunctionDecider, PredictDecider
from edgegym.world.resolve import resolve_scenario

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from edgegym.envs.placement import PlacementEnv
    from edgegym.world.scenario import Scenario


@dataclass
class _Trace:
    """One episode: what was seen and done."""

    observations: list[Any] = field(default_factory=list)
    masks: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    illegal: list[int] = field(default_factory=list)
    in_place: str | None = None
    seconds: float = 0.0


class _BadAction(Exception):
    """An action that is no action; the message says why."""


def check_policy(
    policy: Any,
    scenario: "str | os.PathLike[str] | Scenario" = "toy",
    seeds: Iterable[int] = (0, 1),
    epochs: int = 12,
    most_seconds: float = 1.0,
) -> CheckReport:
    """Check that a policy keeps the rules, by playing some short episodes.

    Parameters
    ----------
    policy : str, path-like, model, object with predict, or callable
        What :func:`edgegym.evaluation.compare` accepts.
    scenario : str, path-like or Scenario
        The world to play in.
    seeds : iterable of int
        Seeds of the episodes, two at least: one is played after the other with the state that it
        left, and both as a batch.
    epochs : int
        Steps of each episode.
    most_seconds : float
        What a decision may take on average.

    Returns
    -------
    CheckReport
        Rules ``action``, ``legality``, ``inputs``, ``randomness``, ``determinism``, ``reset``,
        ``batch``, ``speed``. No rule is broken; ``advice`` may still be worth reading.

    Raises
    ------
    CheckFailed
        If a rule is broken: an AssertionError whose message is the report, and says what to do.
    ValueError
        If an argument is wrong.
    Exception
        Whatever the policy itself raises when it decides on one observation.
    """
    from edgegym.envs.placement import PlacementEnv

    world = resolve_scenario(scenario)
    checked = tuple(seeds)
    if len(set(checked)) < 2:
        raise ValueError(f"seeds = {list(checked)}: must be at least two, all distinct")
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 2:
        raise ValueError(f"epochs = {epochs!r}: must be a whole number, at least 2")
    if not most_seconds > 0.0:
        raise ValueError(f"most_seconds = {most_seconds!r}: must be positive")
    item = contestant("policy", policy)
    env = PlacementEnv(world)
    found = Findings()
    subject = f"policy {item.source} in scenario '{world.name}', seeds {list(checked)}"
    before = _global_randomness()
    decider = item.decider(env)
    try:
        traces = [_played(env, decider, seed, epochs) for seed in checked]
    except _BadAction as error:
        found.add("action", str(error), "")
        return found.report(subject).checked()
    found.add("action", None, f"whole numbers within 0 … {env.actions.size - 1}")
    _check_legality(found, traces, masked=_is_masked(decider))
    _check_inputs(found, traces)
    changed = [name for name, state in _global_randomness().items() if before.get(name) != state]
    found.add(
        "randomness",
        f"the global random state of {', '.join(changed)} has changed: draw from a generator of "
        "the policy's own, numpy.random.default_rng(seed), kept in its state"
        if changed
        else None,
        "global random states are as they were",
    )
    again = _played(env, item.decider(env), checked[0], epochs)
    _check_same(
        found,
        "determinism",
        traces[0].actions,
        again.actions,
        "the same seed played again gives other actions; with deterministic=True a policy must be "
        "a function of observation and state: keep memory and random numbers in the state that "
        "predict takes and returns, not in the object",
        "the same seed gives the same actions",
    )
    if isinstance(decider, PredictDecider):
        _check_reset(found, env, decider, checked, traces, epochs)
        _check_batch(found, decider, traces)
    taken = sum(trace.seconds for trace in traces) / (len(traces) * epochs)
    found.add(
        "speed",
        f"{taken:.3g} s for a decision, more than {most_seconds:g} s: profile predict(), or allow "
        "more with most_seconds"
        if taken > most_seconds
        else None,
        f"{1000.0 * taken:.3g} ms for a decision",
    )
    return found.report(subject).checked()


def _is_masked(decider: Decider) -> bool:
    return isinstance(decider, FunctionDecider) or (
        isinstance(decider, PredictDecider) and decider.takes_masks
    )


def _played(env: "PlacementEnv", decider: Decider, seed: int, epochs: int) -> _Trace:
    decider.begin()
    return _steps(env, decider, seed, epochs)


def _steps(env: "PlacementEnv", decider: Decider, seed: int, epochs: int) -> _Trace:
    """Play without telling the decider that an episode begins."""
    trace = _Trace()
    observation, info = env.reset(seed=seed)
    for step in range(epochs):
        seen, mask = observation.copy(), info["action_mask"].copy()
        begin = time.perf_counter()
        action = decider.action(observation, info)
        trace.seconds += time.perf_counter() - begin
        if not np.array_equal(seen, observation):
            trace.in_place = "the observation"
        elif not np.array_equal(mask, info["action_mask"]):
            trace.in_place = "the action mask"
        number = _whole(action, env)
        if not mask[number]:
            trace.illegal.append(step)
        trace.observations.append(seen)
        trace.masks.append(mask)
        trace.actions.append(number)
        observation, _, _, _, info = env.step(number)
    return trace


def _whole(action: Any, env: "PlacementEnv") -> int:
    """Return an action as a number, or say why it is none."""
    array = np.asarray(action)
    most = env.actions.size - 1
    if array.shape != ():
        raise _BadAction(
            f"{action!r} has shape {array.shape}: return a single number for a single observation"
        )
    if array.dtype.kind not in "iu":
        raise _BadAction(
            f"{action!r} is of type {array.dtype}: return an integer, node * S + profile, or "
            f"{most} to move nothing"
        )
    if not 0 <= array <= most:
        raise _BadAction(f"{action!r}: must be from 0 to {most}")
    return int(array)


def _check_legality(found: Findings, traces: list[_Trace], masked: bool) -> None:
    steps = sum(len(trace.actions) for trace in traces)
    illegal = sum(len(trace.illegal) for trace in traces)
    wrong = None
    if illegal and masked:
        wrong = (
            f"{illegal} of {steps} actions were illegal though the mask was given: choose among "
            "the actions whose mask is True"
        )
    elif illegal:
        wrong = (
            f"{illegal} of {steps} actions were illegal, which run the epoch without a move: give "
            "predict an argument action_masks and choose among those that are True"
        )
    found.add("legality", wrong, f"all {steps} legal", "broken" if masked else "advice")


def _check_inputs(found: Findings, traces: list[_Trace]) -> None:
    changed = next((trace.in_place for trace in traces if trace.in_place), None)
    found.add(
        "inputs",
        f"{changed} was changed in place: work on a copy" if changed else None,
        "observations and masks are as they were",
    )


def _check_same(
    found: Findings,
    rule: str,
    expected: list[int],
    actions: list[int],
    wrong: str,
    fine: str,
) -> None:
    differs = next(
        (k for k, (a, b) in enumerate(zip(expected, actions, strict=True)) if a != b), None
    )
    found.add(
        rule,
        None
        if differs is None
        else f"{wrong} (step {differs}: {expected[differs]}, then {actions[differs]})",
        fine,
    )


def _check_reset(
    found: Findings,
    env: "PlacementEnv",
    decider: PredictDecider,
    seeds: tuple[int, ...],
    traces: list[_Trace],
    epochs: int,
) -> None:
    """Play the second seed with the state that the first one left, and ``episode_start``."""
    fresh = PredictDecider(decider.policy, decider.takes_masks)
    _steps(env, fresh, seeds[0], epochs)
    fresh.start()
    _check_same(
        found,
        "reset",
        traces[1].actions,
        _steps(env, fresh, seeds[1], epochs).actions,
        "after another episode, with its state and episode_start=True, the policy acts otherwise "
        "than with state=None: forget the rows whose episode_start is True",
        "episode_start=True forgets the last episode",
    )


def _check_batch(found: Findings, decider: PredictDecider, traces: list[_Trace]) -> None:
    """Decide on the first two episodes at once."""
    policy = decider.policy
    if hasattr(policy, "bind"):
        found.add("batch", None, "not checked: the policy is bound to one environment")
        return
    pair, state = traces[:2], None
    start = np.ones(2, dtype=np.bool_)
    together: list[NDArray[Any]] = []
    for step in range(len(pair[0].actions)):
        masks = {"action_masks": np.stack([trace.masks[step] for trace in pair])}
        try:
            actions, state = policy.predict(
                np.stack([trace.observations[step] for trace in pair]),
                state=state,
                episode_start=start,
                deterministic=True,
                **(masks if decider.takes_masks else {}),
            )
        except Exception as error:
            found.add(
                "batch",
                f"predict fails on two observations at once ({type(error).__name__}: {error}): "
                "accept [B, D] as well as [D], or compare only",
                "",
            )
            return
        if np.shape(actions) != (2,):
            found.add(
                "batch",
                f"two observations gave actions of shape {np.shape(actions)}: return one for each "
                "row, shape (2,)",
                "",
            )
            return
        together.append(np.asarray(actions))
        start = np.zeros(2, dtype=np.bool_)
    flat = [int(action) for row in zip(*together, strict=True) for action in row]
    alone = [action for trace in pair for action in trace.actions]
    _check_same(
        found,
        "batch",
        alone,
        flat,
        "two observations at once give other actions than one by one: rows must not mix",
        "a batch gives what its rows give",
    )


def _global_randomness() -> dict[str, Any]:
    """Return the states of the global random generators, by their modules."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - it is looked at, not used
    states: dict[str, Any] = {
        "random": random.getstate(),
        "numpy.random": (name, np.asarray(keys).tobytes(), *rest),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.random.get_rng_state().numpy().tobytes()
    return states
