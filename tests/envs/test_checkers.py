"""What the checkers of other libraries say of every environment in every preset: nothing.

Runs by itself as well: in an environment with the Gymnasium that ``ray[rllib]`` wants.
"""

import warnings

import gymnasium as gym
import pytest
import stable_baselines3.common.env_checker
from gymnasium.utils.env_checker import check_env

import edgegym
from edgegym.envs.multi_agent import parallel_env

with warnings.catch_warnings():
    # Where pygame is installed, PettingZoo's checkers import a game that warns of itself.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test

SHORT = {"control.horizon_epochs": 3, "control.epoch_s": 1.0, "initial.warmup_s": 2.0}
ENVIRONMENTS = sorted(name for name in gym.registry if name.startswith("EdgeGym/"))
ABSENT = "ignore:No agents present but not all possible_agents:UserWarning"


def with_lacking_agents(name: str):
    """Presets with a random number of nodes have possible agents that an episode may lack."""
    scenario = edgegym.preset(name)
    lacking = scenario.nodes.fixed_count(scenario.region.area_km2) is None
    return pytest.param(name, marks=pytest.mark.filterwarnings(ABSENT) if lacking else [])


@pytest.fixture(params=edgegym.presets())
def preset(request) -> str:
    return request.param


@pytest.fixture(params=ENVIRONMENTS)
def env(request, preset):
    made = gym.make(f"edgegym:{request.param}", scenario=preset, overrides=SHORT)
    yield made
    made.close()


def test_gymnasium_has_nothing_to_say(env):
    check_env(env.unwrapped)


def test_stable_baselines3_has_nothing_to_say(env):
    stable_baselines3.common.env_checker.check_env(env.unwrapped, warn=True)


@pytest.mark.parametrize("name", [with_lacking_agents(name) for name in edgegym.presets()])
def test_pettingzoo_has_nothing_to_say(name):
    parallel_api_test(parallel_env(scenario=name, overrides=SHORT), num_cycles=8)
    parallel_seed_test(lambda: parallel_env(scenario=name, overrides=SHORT), num_cycles=8)
