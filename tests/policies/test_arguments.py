"""Wrong arguments of policies: named and refused."""

import numpy as np
import pytest

from edgegym.policies import make_policy
from edgegym.world import preset
from tests.policies.observations import make_observation

SCENARIO = preset("toy")
OBSERVATION = make_observation(SCENARIO, [0, 1])
MASK = np.ones(7, dtype=bool)


@pytest.fixture(scope="module", params=["random", "analytic"])
def policy(request):
    return make_policy(request.param, SCENARIO)


@pytest.mark.parametrize("name", [None, "x", [], 5])
def test_names(name):
    with pytest.raises(ValueError, match=r"policy is .*: it must be one of random"):
        make_policy(name, SCENARIO)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "3", None, 2**64])
def test_seeds(seed):
    with pytest.raises(ValueError, match=r"seed is .*: it must be an integer"):
        make_policy("random", SCENARIO, seed)


@pytest.mark.parametrize(
    "observation",
    ["x", None, [[1], [2, 3]], OBSERVATION[:-1], OBSERVATION * np.nan, OBSERVATION - 2],
)
def test_observations(policy, observation):
    with pytest.raises(ValueError, match=r"^observation (is|has) "):
        policy.predict(observation)


@pytest.mark.parametrize("mask", ["x", MASK[:-1], MASK * np.nan, MASK * 2])
def test_masks(policy, mask):
    with pytest.raises(ValueError, match=r"^action_masks "):
        policy.predict(OBSERVATION, action_masks=mask)


@pytest.mark.parametrize("start", ["x", [None], [True, False]])
def test_episode_starts(policy, start):
    with pytest.raises(ValueError, match=r"^episode_start "):
        policy.predict(OBSERVATION, episode_start=start)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: "x",
        lambda state: 5,
        lambda state: (),
        lambda state: (None,) * len(state),
        lambda state: (*state, OBSERVATION),
        lambda state: (state[0].astype(float), *state[1:]),
        lambda state: (state[0], -state[1], *state[2:]),
        lambda state: (state[0], np.array(3), *state[2:]),
    ],
)
def test_states(policy, spoil):
    _, state = policy.predict(OBSERVATION)
    with pytest.raises(ValueError, match=r"^state"):
        policy.predict(OBSERVATION, spoil(state))


def test_memory_that_is_not_finite():
    policy = make_policy("analytic", SCENARIO)
    _, state = policy.predict(OBSERVATION)
    with pytest.raises(ValueError, match=r"state\[2\] is .*nan.*must be finite"):
        policy.predict(OBSERVATION, (*state[:2], state[2] * np.nan, *state[3:]))
