"""The policy that stands for serving engines of today."""

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.evaluation import compare
from edgegym.policies import make_policy, policies, world_of
from edgegym.world import preset


def test_its_world_differs_in_caches_and_routing_alone():
    scenario = preset("moving-hotspot")
    world = world_of("lru", scenario)
    mean_state = round(float(scenario.initial_mix @ np.array(scenario.state_bytes)))
    assert world.cache.model_dump() == {"kind": "lru", "budget_bytes": mean_state}
    assert world.routing.kind == "cache_aware"
    assert world.routing.model_dump()["candidates_per_profile"] == 1
    back = world.with_overrides(
        {"cache": {"kind": "profiles"}, "routing": scenario.routing.model_dump()}
    )
    assert back == scenario
    assert world_of("lru", world) is world


def test_where_nothing_is_placed_at_the_start_the_budget_is_that_of_a_mean_profile():
    scenario = preset("toy")
    assert scenario.initial_mix @ np.array(scenario.state_bytes) == 0
    budget = world_of("lru", scenario).cache.model_dump()["budget_bytes"]
    assert budget == round(float(np.mean(scenario.state_bytes)))


def test_other_policies_play_in_the_world_as_it_is():
    scenario = preset("toy")
    for name in policies():
        assert (world_of(name, scenario) is scenario) == (name != "lru")


def test_only_the_no_op_is_legal_and_the_observation_says_so():
    env = PlacementEnv(world_of("lru", preset("toy")))
    policy = make_policy("random", env.scenario)
    observation, info = env.reset(seed=3)
    state = None
    for _ in range(5):
        assert info["action_mask"].tolist() == [False] * (len(info["action_mask"]) - 1) + [True]
        action, state = policy.predict(observation, state)  # legality from the observation
        assert action == len(info["action_mask"]) - 1
        observation, _, _, _, info = env.step(action)
        assert env.observation_space.contains(observation)
    assert info["episode_moves"] == info["episode_illegal_actions"] == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_compare_gives_it_its_own_world_and_the_same_requests(workers):
    scenario = preset("stationary").with_overrides({"control.horizon_epochs": 4})
    result = compare(
        {"static": "static", "lru": "lru"}, scenario, seeds=[1, 2], progress=False, workers=workers
    )
    static, lru = ([row for row in result.per_seed if row.policy == n] for n in ("static", "lru"))
    assert [row.arrivals for row in lru] == [row.arrivals for row in static]
    assert [row.moves for row in lru] == [0, 0]
    assert [row.coverage for row in lru] != [row.coverage for row in static]
    assert any("'lru' plays in the same world with other caches" in text for text in result.remarks)
