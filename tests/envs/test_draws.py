"""Environments whose episodes play different scenarios, with different numbers of nodes."""

import copy
import multiprocessing
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from edgegym.envs.placement import PlacementEnv
from edgegym.envs.regional_mix import RegionalMixEnv
from edgegym.interface.layout import ObservationLayout
from edgegym.world import Choice, Integers, ScenarioDraw, ScenarioError, Uniform, preset
from tests.envs.test_vector import MODES, both, play_both
from tests.envs.workers import ENV_ID, run_drawn

SHORT = {"control.epoch_s": 1.0, "initial.warmup_s": 2.0}
RATE = "demand.rate_per_node"
FLEETS = ScenarioDraw(
    scenarios=("moving-hotspot", "stationary"),
    vary=(
        Uniform(path=RATE, low=2.0, high=5.0),
        Integers(path="nodes.count", low=3, high=31),
        Integers(path="control.moves_per_epoch", low=1, high=3),
        Integers(path="control.horizon_epochs", low=2, high=4),
    ),
).with_overrides(SHORT)
# With the full event loop among them.
LIST = ScenarioDraw(
    scenarios=("moving-hotspot", "node-failures", "mixed-fleet"), weights=(1.0, 1.0, 2.0)
).with_overrides(SHORT | {"control.horizon_epochs": 3})


def play(env, seed, count, choose=None):
    """Return all bits of some steps, across the ends of episodes."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        action = env.action_space.sample() if choose is None else choose(env, rng)
        observation, reward, _, truncated, info = env.step(action)
        mask = info.pop("action_mask", np.zeros(0)).tobytes()
        rows.append((observation.tobytes(), reward, truncated, info, mask))
        if truncated:
            observation, info = env.reset()
            info.pop("action_mask", None)
            rows.append((observation.tobytes(), info))
    return rows


def legal(env, rng):
    return int(rng.choice(np.flatnonzero(env.action_masks())))


# Random numbers of nodes, in areas smaller than the scenario's own.
AREAS = ScenarioDraw(
    scenarios=("paper",),
    vary=(
        Uniform(path="region.width_km", low=1.5, high=3.0),
        Uniform(path="control.epoch_s", low=0.5, high=2.0),
    ),
).with_overrides({"initial.warmup_s": 1.0, "control.horizon_epochs": 3})


@pytest.mark.parametrize("draw", [FLEETS, LIST, AREAS])
@pytest.mark.parametrize("mode", MODES)
def test_the_vector_environment_has_the_bits_of_single_ones(mode, draw):
    play_both(*both(mode, 3, draw), steps=12)


def test_one_scenario_in_a_draw_is_that_scenario():
    plain = PlacementEnv("toy", overrides=SHORT)
    drawn = PlacementEnv(ScenarioDraw(scenarios=("toy",)), overrides=SHORT)
    for env in (plain, drawn):
        env.reset(seed=4)
    assert play(plain, 0, 5, legal) == play(drawn, 0, 5, legal)
    assert "scenario" not in plain.step(0)[4]


def test_a_scenario_plays_in_a_draw_as_by_itself():
    """What is drawn changes nothing else: same nodes and requests, for the same episode seed."""
    env = PlacementEnv(LIST)
    alone = {one.name: PlacementEnv(one) for one in LIST.scenarios}
    for seed in range(4):
        _, info = env.reset(seed=seed)
        name = env.scenario.name
        assert LIST.scenarios[info["scenario"]].name == name
        alone[name].reset(seed=seed)
        mine = env.step(env.actions.no_op)[4]
        theirs = alone[name].step(alone[name].actions.no_op)[4]
        assert {key: mine[key] for key in theirs if key != "action_mask"} == {
            key: value for key, value in theirs.items() if key != "action_mask"
        }


def test_same_seed_same_scenarios_whatever_is_done_and_wherever():
    runs = []
    for choose in (None, legal):
        env = PlacementEnv(FLEETS)
        env.action_space.seed(5)
        drawn = []
        _, info = env.reset(seed=7)
        for _ in range(3):
            drawn.append({key: info[key] for key in info if key.startswith("scenario")})
            play(env, 1, 1, choose)
            _, info = env.reset()
        runs.append(drawn)
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1]
    assert set(runs[0][0]) == {"scenario"} | {f"scenario.{law.path}" for law in FLEETS.vary}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(run_drawn, (FLEETS, 7)) == run_drawn(FLEETS, 7)


def test_info_tells_what_is_played():
    env = PlacementEnv(FLEETS)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        *_, info = env.step(env.actions.no_op)
        assert info["scenario.nodes.count"] == env.scenario.nodes.count
        assert info[f"scenario.{RATE}"] == env.scenario.demand.rate_per_node
        assert env.scenario.name == FLEETS.scenarios[info["scenario"]].name
        scalars = [value for key, value in info.items() if key != "action_mask"]
        assert np.isfinite(scalars).all()


def test_observations_have_one_scale_and_are_padded():
    env = PlacementEnv(FLEETS)
    base = ObservationLayout.from_scenario(FLEETS.scenarios[0])
    assert env.layout == base.with_num_nodes(31)
    assert env.layout.hash == base.hash
    counts = set()
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        count = env.scenario.nodes.count
        counts.add(count)
        assert observation in env.observation_space
        np.testing.assert_array_equal(info["action_mask"], env.action_masks())
        legal_moves = env.fleet.legal_moves().ravel()
        np.testing.assert_array_equal(info["action_mask"][: len(legal_moves)], legal_moves)
        assert not info["action_mask"][len(legal_moves) : -1].any()
        assert info["action_mask"][-1]
        assert not env.layout.node_block(observation)[count:].any()
        demand = env.layout.decode(observation, "demand")
        np.testing.assert_allclose(demand, env.demand_per_s, rtol=1e-5)
        # Over the requests/s that the reference would have with as many nodes.
        usual = FLEETS.scenarios[0].compile()
        share = demand.sum(axis=0) / (usual.mean_rate_per_s * count / usual.mean_nodes)
        np.testing.assert_allclose(env.layout.decode(observation, "family_demand"), share, 1e-5)
    assert len(counts) > 2


def test_a_reference_gives_the_scales():
    busy = preset("moving-hotspot").with_overrides({RATE: 4.5, "nodes.count": 9})
    draw = ScenarioDraw(scenarios=(busy,), reference="moving-hotspot").with_overrides(SHORT)
    env = PlacementEnv(draw)
    assert env.scenario.demand.rate_per_node == 4.5
    assert env.layout.hash == ObservationLayout.from_scenario(preset("moving-hotspot")).hash
    assert env.layout.num_nodes == 9
    play_both(*both(AutoresetMode.NEXT_STEP, 2, draw), steps=3)


def test_an_illegal_move_of_a_padding_node_does_nothing():
    env = PlacementEnv(FLEETS)
    env.reset(seed=2)
    assert env.scenario.nodes.count < 31
    twin = env.fork()
    one, other = env.step(env.actions.encode(30, 1)), twin.step(twin.actions.no_op)
    np.testing.assert_array_equal(one[0], other[0])
    assert one[4]["illegal_actions"] == 1


@pytest.mark.parametrize("draw", [FLEETS, LIST])
@pytest.mark.parametrize("way", ["state", "fork", "deepcopy", "pickle"])
def test_copies_continue_identically(way, draw):
    env = PlacementEnv(draw)
    env.reset(seed=11)
    play(env, 0, 1, legal)
    if way == "state":
        twin = PlacementEnv(draw)
        twin.reset(seed=3)
        assert twin.scenario != env.scenario
        twin.set_state(env.get_state())
    elif way == "fork":
        twin = env.fork()
    elif way == "deepcopy":
        twin = copy.deepcopy(env)
    else:
        twin = pickle.loads(pickle.dumps(env))
    assert twin.scenario == env.scenario
    assert play(env, 1, 8, legal) == play(twin, 1, 8, legal)


def test_a_state_of_another_draw_is_refused_and_changes_nothing():
    env, other = PlacementEnv(FLEETS), PlacementEnv(LIST)
    for one in (env, other):
        one.reset(seed=0)
    before = env.fork()
    with pytest.raises(ValueError, match=r"state is of a scenario|is not of this draw"):
        env.set_state(other.get_state())
    assert play(env, 0, 4, legal) == play(before, 0, 4, legal)


def test_a_state_before_the_first_reset():
    env, fresh = PlacementEnv(LIST), PlacementEnv(LIST)
    env.reset(seed=3)
    env.set_state(fresh.get_state())
    assert env.scenario is LIST.scenarios[0]
    np.testing.assert_array_equal(env.reset()[0], fresh.reset()[0])


def test_gymnasium_checker_has_nothing_to_say():
    env = gym.make(ENV_ID, scenario=FLEETS)
    check_env(env.unwrapped)
    env.close()
    env = gym.make("edgegym:EdgeGym/RegionalMix-v0", scenario=FLEETS)
    check_env(env.unwrapped)
    env.close()


def test_regions_of_areas_of_other_sizes():
    draw = ScenarioDraw(
        scenarios=("moving-hotspot",),
        vary=(
            Uniform(path="region.width_km", low=3.0, high=9.0),
            Integers(path="nodes.count", low=3, high=31),
        ),
    ).with_overrides(SHORT | {"control.horizon_epochs": 2})
    env = RegionalMixEnv(draw)
    widths = set()
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        assert observation in env.observation_space
        assert env.regions.width_km == env.scenario.region.width_km
        widths.add(env.regions.width_km)
        nodes = env.layout.decode(observation, "nodes").sum()
        assert nodes == pytest.approx(env.scenario.nodes.count, rel=1e-5)
    assert len(widths) == 3
    env.action_space.seed(0)
    twin = copy.deepcopy(env)
    assert play(env, 0, 6) == play(twin, 0, 6)


def test_the_picture_follows_the_scenario():
    env = PlacementEnv(LIST, render_mode="rgb_array")
    pictures = {}
    for seed in range(6):
        env.reset(seed=seed)
        pictures[env.scenario.name] = env.render()[:60, 560:].tobytes()
    assert len(set(pictures.values())) == len(pictures) == 3
    env.close()


def test_waits_that_do_not_exist_are_refused_when_it_is_made():
    laws = (Choice(path=RATE, options=(3.5, 500.0)),)
    draw = ScenarioDraw(scenarios=("moving-hotspot",), vary=laws)
    with pytest.raises(ScenarioError, match=r"demand.rate_per_node = 500 has no stable"):
        PlacementEnv(draw, overrides={"routing.advertised_wait": "tier"})
