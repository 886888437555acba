"""Policies for tests that worker processes can import."""

import os
import signal
from pathlib import Path

import numpy as np


def first_legal(observation, info):
    """Take the first legal move."""
    return int(np.flatnonzero(info["action_mask"])[0])


def never_move(observation, info):
    """Move nothing."""
    return len(info["action_mask"]) - 1


def fails_in_the_tenth_step(observation, info):
    """Raise an error some way into the episode."""
    if info["episode_decided"] > 150:
        raise LookupError("no idea what to do")
    return never_move(observation, info)


def dies(observation, info):
    """Kill the process that plays."""
    os.kill(os.getpid(), signal.SIGKILL)


def leaves_a_mark(observation, info):
    """Create the file that the environment variable names, and move nothing."""
    Path(os.environ["MARK_OF_THE_PLAYER"]).touch()
    return never_move(observation, info)


class Recorder:
    """Writes down what it is asked."""

    def __init__(self) -> None:
        self.bound = []
        self.calls = []

    def bind(self, env) -> None:
        self.bound.append(env)

    def predict(self, observation, state=None, episode_start=None, deterministic=False, **more):
        self.calls.append((observation, state, episode_start.copy(), deterministic, more))
        count = 0 if state is None else state
        return np.int64(len(more["action_masks"]) - 1), count + 1


class Unmasked:
    """Always asks for the same move, which is illegal once it has been made."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return 1, None
