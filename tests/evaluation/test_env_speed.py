"""The environments that ``edgegym bench`` plays: the same steps that it counts."""

from importlib.util import find_spec

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.envs.vector import PlacementVectorEnv
from edgegym.evaluation import env_speed


def test_ours_plays_an_episode_of_legal_moves(monkeypatch):
    env = PlacementEnv(overrides={"control.horizon_epochs": 7})
    step, infos = env.step, []

    def watched(action):
        result = step(action)
        infos.append(result[4])
        return result

    monkeypatch.setattr(env, "step", watched)
    steps, requests = env_speed.play(env, np.random.default_rng(0))
    assert steps == env.epoch == 7
    # 3.5 requests/s at each of 25 nodes, five seconds a step.
    assert requests == pytest.approx(7 * 5 * 25 * 3.5, rel=0.1)
    assert infos[-1]["episode_illegal_actions"] == 0
    assert infos[-1]["episode_bytes_moved"] > 0


def test_as_one_they_play_the_steps_of_all():
    vector = PlacementVectorEnv(3)
    assert env_speed.play_vector(vector, 2, np.random.default_rng(0)) == 6
    vector.close()


@pytest.mark.skipif(find_spec("mobile_env") is None, reason="mobile-env is not installed")
def test_mobile_env_is_the_medium_one_and_says_nothing(capfd):
    env = env_speed.mobile_env()
    assert env is not None
    assert env.unwrapped.NUM_USERS == 15
    assert env.unwrapped.NUM_STATIONS == 7
    assert env.action_space.shape == (15,)
    env.unwrapped.EP_MAX_TIME = 9
    assert env_speed.play_mobile(env) == 9
    assert capfd.readouterr().out == ""


def test_without_mobile_env_its_rate_and_ratios_are_left_out(monkeypatch):
    monkeypatch.setattr(env_speed, "find_spec", lambda name: None)
    monkeypatch.setattr(env_speed, "NUM_ENVS", 2)
    measured = env_speed.measure_env_speed(1)
    assert measured.mobile_steps_per_s is measured.ratio is measured.vector_ratio is None
    assert measured.steps_per_s > 0
    assert measured.vector_steps_per_s > 0


def test_ratios_are_those_of_episodes_played_in_turn(monkeypatch):
    # Ours, 64 as one, mobile-env; three rounds.
    rates = iter([120.0, 640.0, 1.0, 60.0, 320.0, 2.0, 90.0, 640.0, 4.0])
    monkeypatch.setattr(env_speed, "_steps_per_s", lambda episode: next(rates))
    monkeypatch.setattr(env_speed, "mobile_env", lambda: object())
    monkeypatch.setattr(env_speed, "play", lambda env, rng: (120, 480))
    monkeypatch.setattr(env_speed, "play_vector", lambda env, steps, rng: 64 * steps)
    assert env_speed.measure_env_speed(3) == env_speed.EnvSpeed(
        steps_per_s=90.0,
        requests_per_step=4.0,
        vector_steps_per_s=640.0,
        mobile_steps_per_s=2.0,
        ratio=30.0,
        vector_ratio=160.0,
    )
