"""One step per request: the same world, its bits, its rules."""

import copy
import multiprocessing
import pickle

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3.common.env_checker
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.monitor import Monitor

from edgegym.envs.rendering import FleetRenderer
from edgegym.envs.routing import INFO_KEYWORDS, RoutingEnv
from edgegym.envs.routing_info import STEP_KEYS
from edgegym.interface.layout import clock_period_s
from edgegym.interface.routing_observation import TOTALS
from edgegym.policies import LeastPredicted
from edgegym.simulator import ArraySink, Fleet
from edgegym.simulator.asking import AskingFleet
from edgegym.simulator.columns import NEXT_REQUEST, SLOTS
from edgegym.world import preset, presets
from edgegym.world.draw import ScenarioDraw
from tests.envs.workers import route_drawn, route_episode
from tests.simulator.fleets import scenario as small_scenario
from tests.simulator.full.random_worlds import worlds
from tests.simulator.full.test_asking import assert_same_records
from tests.simulator.replays import write_requests

ENV_ID = "edgegym:EdgeGym/Routing-v0"
SHORT = {"initial.warmup_s": 1.0}
LRU = {"cache": {"kind": "lru", "budget_bytes": 2 * 10**9}}
ORIGIN = {"rtt_s": 0.1, "slots": 40, "prefill_linear_s": 1e-4, "tpot_s": 0.01}


def make(name="moving-hotspot", horizon_requests=30, candidates=12, **overrides):
    return RoutingEnv(
        name,
        overrides=SHORT | overrides,
        candidates=candidates,
        horizon_requests=horizon_requests,
    )


class Recorded(RoutingEnv):
    """An environment whose fleet keeps records."""

    def _new_fleet(self, setting, word):
        self.sink = ArraySink()
        return AskingFleet(
            setting.scenario, seed=word, tier_wait_s=setting.tier_wait_s, records=self.sink
        )


def trace(env, seed, count, legal=True):
    """Step `count` random actions; return copies of everything that came back."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        choices = np.flatnonzero(env.action_masks()) if legal else np.arange(env.actions.size)
        observation, reward, terminated, truncated, info = env.step(int(rng.choice(choices)))
        mask = info.pop("action_mask")
        rows.append((observation.tobytes(), reward, terminated, truncated, info, mask.tobytes()))
    return rows


@pytest.mark.parametrize("name", presets())
def test_gymnasium_checker_has_nothing_to_say(name):
    check_env(gym.make(ENV_ID, scenario=name, overrides=SHORT, horizon_requests=20).unwrapped)


@pytest.mark.parametrize("name", presets())
def test_stable_baselines3_checker_has_nothing_to_say(name):
    env = gym.make(ENV_ID, scenario=name, overrides=SHORT, horizon_requests=20)
    stable_baselines3.common.env_checker.check_env(env.unwrapped, warn=True)


WORLDS = {
    "live": ("moving-hotspot", {}),
    "old reports": ("moving-hotspot", {"telemetry.period_s": 1.0}),
    "predicted": (
        "moving-hotspot",
        {"telemetry.period_s": 1.0, "telemetry.predict_on_route": True},
    ),
    "measured": ("stationary", {"routing": {"kind": "load_aware", "advertised_wait": "measured"}}),
    "margin": (
        "stationary",
        {"routing": {"kind": "load_aware", "margin": {"deviations": 1.0, "burst_s": 0.1}}},
    ),
    "classes": ("mixed-fleet", {}),
    "failures": ("node-failures", {"failures.nodes": {"mean_up_s": 20.0, "mean_down_s": 3.0}}),
    "origin": ("flash-crowd", {"origin": ORIGIN}),
    "engine": ("toolagent", {}),
    "lru": ("toolagent", LRU),
}


@pytest.mark.parametrize("name", WORLDS)
def test_least_predicted_is_the_router_load_aware(name):
    scenario, overrides = WORLDS[name]
    env = Recorded(scenario, overrides=SHORT | overrides, candidates=30)
    policy = LeastPredicted(env.layout)
    observation, info = env.reset(seed=4)
    for _ in range(1500):
        action, _ = policy.predict(observation, action_masks=info["action_mask"])
        observation, _, _, _, info = env.step(action)
    assert info["episode_illegal_actions"] == 0
    sink = ArraySink()
    fleet = Fleet(env.scenario, env.fleet.seed, records=sink)
    fleet.advance(1.0)
    window = fleet.advance(np.nextafter(env.fleet.now_s, 0.0) - 1.0)
    assert env.fleet.close_window() == window
    assert window.hits == info["episode_hits"]
    assert window.decided == info["episode_decided"]
    assert window.ttft_sum_s == pytest.approx(info["episode_ttft_sum_s"], rel=1e-12)
    assert_same_records(env.sink, sink)


def test_least_predicted_takes_legal_actions_only():
    link = {"rate_bytes_per_s": 1e11, "sharing": "shared"}
    env = make("stationary", 10**6, backhaul=link)
    policy = LeastPredicted(env.layout, fetch=True)
    observation, info = env.reset(seed=1)
    for _ in range(60):
        mask = info["action_mask"]
        action, _ = policy.predict(observation)
        assert mask[action]
        assert policy.predict(observation, action_masks=mask)[0] == action
        mask[action] = False
        other, _ = policy.predict(observation, action_masks=mask)
        assert mask[other]
        observation, *_, info = env.step(action)
    assert info["episode_fetches"] > 0


@pytest.mark.parametrize("kind", ["nearest", "load_aware"])
def test_fetching_whenever_possible_is_the_controller_always(kind):
    overrides = {
        "routing": {"kind": kind},
        "fetch.controller": "always",
        "backhaul": {"rate_bytes_per_s": 5e9, "sharing": "shared"},
    }
    env = make("stationary", 10**6, 30, **overrides)
    column = env.layout.column("ttft").start
    observation, info = env.reset(seed=2)
    for _ in range(400):
        mask = info["action_mask"]
        rows = env.layout.candidate_block(observation)[:, column]
        row = 0 if kind == "nearest" else int(np.where(mask[:-2:2], rows, 2.0).argmin())
        observation, _, _, _, info = env.step(2 * row + int(mask[2 * row + 1]))
    assert info["episode_fetches"] > 50
    fleet = Fleet(env.scenario, env.fleet.seed, full=True)
    fleet.advance(1.0)
    window = fleet.advance(np.nextafter(env.fleet.now_s, 0.0) - 1.0)
    assert env.fleet.close_window() == window


def test_the_router_alone_is_the_scenario_without_an_agent():
    env = make("scarce-backhaul", 10**6)
    env.reset(seed=1)
    for _ in range(300):
        *_, info = env.step_by_router()
    assert info["illegal_actions"] == 0
    fleet = Fleet(env.scenario, env.fleet.seed, full=True)
    fleet.advance(1.0)
    window = fleet.advance(np.nextafter(env.fleet.now_s, 0.0) - 1.0)
    assert env.episode_stats == window == env.episode_stats
    assert window.arrivals == 300 == info["episode_arrivals"]
    assert info["episode_elapsed_s"] == pytest.approx(env.fleet.now_s - 1.0)


def _brute_candidates(env):
    """Return the nodes that may take the pending request, nearest first, and their distances."""
    fleet = env.fleet
    world, state = fleet.world, fleet.state
    place = _pending(fleet)
    count = int(state.node_count[0])
    dx = np.abs(state.node_x[0, :count] - place[0])
    dy = np.abs(state.node_y[0, :count] - place[1])
    if world.periodic:
        dx, dy = np.minimum(dx, world.width_km - dx), np.minimum(dy, world.height_km - dy)
    return np.argsort(np.hypot(dx, dy), kind="stable"), np.hypot(dx, dy), place


def _pending(fleet):
    """Return where the request that is next was made, its type, and its length."""
    at = int(fleet.state.scalars[0, NEXT_REQUEST])
    state = fleet.state
    return (
        state.request_x_km[0, at],
        state.request_y_km[0, at],
        int(state.request_type[0, at]),
        int(state.full.lengths.input_tokens[0, at]),
    )


def test_observation_says_what_is_there():
    env = RoutingEnv("moving-hotspot", overrides=SHORT, candidates=8, observe_clock=True)
    scenario, world, layout = env.scenario, env.scenario.compile(), env.layout
    forest, radio = scenario.catalogue.forest, scenario.radio
    observation, info = env.reset(seed=3)
    rng = np.random.default_rng(0)
    fetched = rejected = 0
    for _ in range(200):
        state = env.fleet.state
        order, distance, (_, _, kind, tokens) = _brute_candidates(env)
        near = order[state.up[0][order]][:8]
        np.testing.assert_array_equal(env.candidates, near)
        item = scenario.request_types[kind]
        path = forest.path(item.path)

        def held(node, path=path, state=state):
            return forest.hit_depth(scenario.catalogue.profile_sets[state.profile[0, node]], path)

        hits = np.array([min(held(node), tokens - 1) for node in near])

        def between(path, low, high):
            return [name for name in path if low < forest.hit_depth({name}, path) <= high]

        best = max(held(node) for node in range(int(state.node_count[0])))
        decode = {
            feature.name: layout.decode(observation, feature.name)[..., 0]
            for feature in layout.features
            if feature.size == 1
        }
        radio_s = radio.base_s + radio.xi * distance[near] ** radio.alpha
        gpu = scenario.hardware.prefill
        new = tokens - hits
        prefill_s = gpu.linear_s * new + gpu.quadratic_s * new**2
        load = (state.active + state.queued + state.in_flight)[0, near]
        slots = state.slots[0, near, state.profile[0, near]]
        transfer_s = [
            sum(map(forest.vertex_bytes, between(path, hit, best)))
            / scenario.backhaul.rate_bytes_per_s
            for hit in hits
        ]
        fetch = min(best, tokens - 1) > hits
        short = tokens - np.maximum(min(best, tokens - 1), hits)
        landed_s = np.maximum(decode["wait"], transfer_s) + gpu.linear_s * short
        landed_s += gpu.quadratic_s * short**2
        everybody = (state.active + state.queued + state.in_flight)[0].sum()
        turn = 2.0 * np.pi * env.fleet.now_s / clock_period_s(scenario)
        np.testing.assert_allclose(
            layout.decode(observation, "clock"),
            [(1.0 + np.sin(turn)) / 2.0, (1.0 + np.cos(turn)) / 2.0],
            atol=1e-6,
        )
        for name, truth in {
            "transfer": np.where(fetch, transfer_s, 0.0),
            "fetch_ttft": np.where(fetch, radio_s + landed_s, 0.0),
            "load": everybody / state.node_work[0, :, SLOTS].sum(),
            "prefix_tokens": min(forest.hit_depth(path, path), tokens - 1),
            "rejected": info["episode_rejected"] / max(info["episode_decided"], 1),
            "link_rate": 1.0,
            "origin_up": 0.0,
            "present": np.ones(8),
            "radio": radio_s,
            "hit": hits,
            "prefill": prefill_s,
            "backlog": load / slots,
            "fetchable": np.maximum(min(best, tokens - 1) - hits, 0),
            "ttft": radio_s + prefill_s + decode["wait"],
        }.items():
            np.testing.assert_allclose(decode[name], truth, rtol=2e-5, atol=1e-5, err_msg=name)
        mask = env.action_masks()
        assert mask[:-2:2].all()
        np.testing.assert_array_equal(mask[1:-2:2], fetch)
        assert not mask[-2]
        assert mask[-1]
        family = layout.decode(observation, "family")
        assert family.argmax() == world.type_family[kind]
        assert family.sum() == 1.0
        assert decode["input_tokens"] == pytest.approx(tokens, rel=1e-5)
        assert decode["target"] == pytest.approx(world.type_target_s[kind], rel=1e-5)
        fetched += mask[1:-2:2].sum()
        observation, *_, info = env.step(int(rng.choice(np.flatnonzero(mask))))
        rejected = info["episode_rejected"]
    assert fetched > 100
    assert rejected > 3


@settings(max_examples=25)
@given(world=worlds(), seed=st.integers(0, 10**6), candidates=st.integers(1, 7))
def test_random_worlds_hold_together(world, seed, candidates):
    env = RoutingEnv(world, candidates=candidates, horizon_requests=40, rejection_weight=0.5)
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    total = dict.fromkeys(STEP_KEYS, 0)
    returned, truncated, illegal = 0.0, False, 0
    while not truncated:
        assert observation in env.observation_space
        for feature in env.layout.features:
            assert np.isfinite(env.layout.decode(observation, feature.name)).all()
        mask = info["action_mask"]
        np.testing.assert_array_equal(mask, env.action_masks())
        _check_mask(env, observation, mask)
        action = int(rng.integers(env.actions.size))
        illegal += not mask[action]
        observation, reward, terminated, truncated, info = env.step(action)
        assert info["illegal_actions"] == int(not mask[action])
        assert terminated is False
        assert reward == info["reward_service"] + info["reward_rejections"]
        returned += reward
        for key in STEP_KEYS:
            assert np.isfinite(info[key])
            total[key] += info[key]
    assert info["episode_arrivals"] == 40 == env.routed
    assert info["episode_illegal_actions"] == illegal
    for key in STEP_KEYS:
        assert info[f"episode_{key}"] == pytest.approx(total[key])
    assert returned == pytest.approx(info["episode_hits"] - 0.5 * info["episode_rejected"])
    stats = env.episode_stats
    for key in ("arrivals", "decided", "hits", "first_tokens", "rejected", "completed"):
        assert getattr(stats, key) == info[f"episode_{key}"]
    assert stats.origin_dispatches == info["episode_to_origin"]


def _check_mask(env, observation, mask):
    """Check legality against the fleet's own arrays, where these tell."""
    fleet, actions = env.fleet, env.actions
    state, nodes = fleet.state, env.candidates
    there = nodes >= 0
    np.testing.assert_array_equal(mask[: actions.origin : 2], there)
    assert state.up[0, nodes[there]].all()
    assert len(set(nodes[there].tolist())) == there.sum()
    assert not mask[1 : actions.origin : 2][~there].any()
    fetchable = env.layout.decode(observation, "fetchable")[:, 0] > 0.0
    np.testing.assert_array_equal(mask[1 : actions.origin : 2], fetchable)
    has_origin = env.scenario.origin is not None and state.up[0].any()
    assert not mask[actions.origin] or has_origin
    assert mask[actions.reject]


def test_only_nodes_that_can_serve_are_candidates():
    document = preset("mixed-fleet").document()
    env = RoutingEnv(type(preset("toy")).from_document(document), candidates=25, overrides=SHORT)
    env.reset(seed=1)
    slots = env.fleet.state.slots[0]
    idle = np.flatnonzero(~(slots > 0).any(axis=1))
    assert len(idle)
    for _ in range(20):
        assert not np.isin(idle, env.candidates).any()
        env.step_by_router()


def test_a_cache_of_serving_engines_never_fetches():
    env = make("toolagent", 10**6, **LRU)
    _, info = env.reset(seed=0)
    for _ in range(100):
        assert not info["action_mask"][1 : env.actions.origin : 2].any()
        *_, info = env.step(0)
    hits = env.layout.decode(env.step(0)[0], "hit")
    assert hits.max() > 0.0


def test_admission_closes_candidates():
    rules = {"ewma_s": 1.0, "node": {"close_above": 0.6, "reopen_below": 0.3}, "spill": "reject"}
    env = make("flash-crowd", 10**6, 25, admission=rules)
    env.reset(seed=0)
    seen = set()
    for _ in range(2000):
        seen.add(int((env.candidates >= 0).sum()))
        env.step(0)
    assert min(seen) < 25


def test_nothing_is_fetched_while_the_link_is_down():
    outage = {"what": "backhaul", "begin_s": 1.5, "end_s": 1e6}
    env = make("moving-hotspot", failures={"outages": [outage]})
    observation, info = env.reset(seed=0)
    assert info["action_mask"][1 : env.actions.origin : 2].any()
    assert env.layout.decode(observation, "link_rate") == pytest.approx(1.0)
    while env.fleet.now_s < 1.6:
        observation, *_, info = env.step(0)
    assert not info["action_mask"][1 : env.actions.origin : 2].any()
    assert env.layout.decode(observation, "link_rate") == 0.0


def test_an_idle_link_advertises_its_whole_rate():
    link = {"rate_bytes_per_s": 4e9, "sharing": "shared", "access_bytes_per_s": 1e9}
    env = make("stationary", backhaul=link)
    observation, _ = env.reset(seed=0)
    assert env.layout.decode(observation, "link_rate") == pytest.approx(1.0)


def test_load_is_that_of_the_nodes_that_are_up():
    env = make("node-failures", **{"failures.nodes": {"mean_up_s": 3.0, "mean_down_s": 2.0}})
    observation, _ = env.reset(seed=0)
    for _ in range(40):
        state = env.fleet.state
        up = state.up[0]
        requests = (state.active + state.queued + state.in_flight)[0, up].sum()
        load = env.layout.decode(observation, "load")
        assert load == pytest.approx(requests / state.node_work[0, up, SLOTS].sum(), rel=1e-5)
        observation, *_ = env.step_by_router()
    assert not up.all()


def test_the_origin_and_nobody():
    env = make("moving-hotspot", 10**6, origin=ORIGIN)
    _, info = env.reset(seed=0)
    assert info["action_mask"][-2]
    *_, info = env.step(env.actions.origin)
    assert (info["to_origin"], info["rejected"]) == (1, 0)
    _, reward, *_, info = env.step(env.actions.reject)
    assert (info["to_origin"], info["rejected"]) == (0, 1)
    assert info["reward_rejections"] == -0.1
    assert reward == pytest.approx(info["hits"] - 0.1)


def test_illegal_actions_leave_it_to_the_router():
    env = make("moving-hotspot")
    env.reset(seed=0)
    twin = env.fork()
    *_, info = env.step(env.actions.origin)
    twin.step_by_router()
    assert info["illegal_actions"] == 1
    assert env.fleet.close_window() == twin.fleet.close_window()


def test_seeds_and_the_world_are_those_of_placement():
    from edgegym.envs.placement import PlacementEnv

    runs = []
    for seed in (3, 3, 4):
        env = make()
        first, _ = env.reset(seed=seed)
        runs.append((first.tobytes(), trace(env, 0, 4), env.reset()[0].tobytes()))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]
    placement = PlacementEnv("moving-hotspot", overrides=SHORT)
    placement.reset(seed=3)
    env.reset(seed=3)
    for field in ("node_x", "node_y", "profile", "request_time_s"):
        np.testing.assert_array_equal(
            getattr(env.fleet.state, field), getattr(placement.fleet.state, field)
        )


@pytest.mark.parametrize("way", ["state", "fork", "deepcopy", "pickle"])
def test_copies_continue_identically(way):
    env = RoutingEnv(
        "node-failures", overrides=SHORT, candidates=5, rejection_weight=0.3, observe_clock=True
    )
    env.reset(seed=11)
    trace(env, 0, 30, legal=False)
    if way == "state":
        twin = RoutingEnv(
            "node-failures", overrides=SHORT, candidates=5, rejection_weight=0.3, observe_clock=True
        )
        twin.set_state(env.get_state())
    elif way == "fork":
        twin = env.fork()
    elif way == "deepcopy":
        twin = copy.deepcopy(env)
    else:
        twin = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(twin.action_masks(), env.action_masks())
    np.testing.assert_array_equal(twin.candidates, env.candidates)
    assert trace(env, 1, 30) == trace(twin, 1, 30)
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])
    assert trace(env, 2, 5) == trace(twin, 2, 5)


@pytest.mark.parametrize("method", ["spawn"])
def test_worker_processes_get_the_same_bits(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply(route_episode, (5,))
    assert there == route_episode(5)


def test_the_horizon_truncates_and_stepping_on_goes_on():
    env = make("toy", 4)
    env.reset(seed=0)
    ends = [env.step_by_router()[3] for _ in range(6)]
    assert ends == [False] * 3 + [True] * 3
    env.reset()
    assert env.routed == 0
    assert not env.step_by_router()[3]
    control, rate = env.scenario.control, env.scenario.compile().mean_rate_per_s
    usual = RoutingEnv("toy").horizon_requests
    assert usual == round(control.horizon_epochs * control.epoch_s * rate)


def crowded_or_not():
    """Return a draw of two scenarios, of which only the second has an origin."""
    plain = preset("moving-hotspot").with_overrides(SHORT)
    return ScenarioDraw(
        scenarios=(plain, plain.with_overrides({"demand.rate_per_node": 6.0, "origin": ORIGIN})),
        vary=({"kind": "uniform", "path": "telemetry.period_s", "low": 0.1, "high": 1.0},),
    )


def test_episodes_of_a_draw_play_what_was_drawn():
    draw = crowded_or_not()
    env = RoutingEnv(draw, candidates=5)
    usual, seen = {}, set()
    env.reset(seed=3)
    for _ in range(8):
        _, info = env.reset()
        assert env.scenario.telemetry.period_s == info["scenario.telemetry.period_s"]
        assert 0.1 <= info["scenario.telemetry.period_s"] <= 1.0
        assert info["action_mask"][env.actions.origin] == (info["scenario"] == 1)
        assert env.fleet.world is env.scenario.compile()
        usual[info["scenario"]] = env.horizon_requests
        seen.add(info["scenario.telemetry.period_s"])
        *_, info = env.step(0)
        assert "scenario" in info
    assert usual[1] / usual[0] == pytest.approx(6.0 / draw.scenarios[0].demand.rate_per_node)
    assert len(seen) == 8
    again = RoutingEnv(draw, candidates=5)
    first, info = again.reset(seed=3)
    assert route_drawn(draw, 3) == (first.tobytes(), info["scenario"])


@pytest.mark.parametrize("way", ["state", "fork", "pickle"])
def test_copies_of_a_drawn_episode_continue_identically(way):
    draw = crowded_or_not()
    env = RoutingEnv(draw, candidates=5, horizon_requests=40)
    env.reset(seed=3)
    while env.reset()[1]["scenario"] != 1:
        pass
    trace(env, 0, 20, legal=False)
    if way == "state":
        twin = RoutingEnv(draw, candidates=5, horizon_requests=40)
        twin.set_state(env.get_state())
    else:
        twin = env.fork() if way == "fork" else pickle.loads(pickle.dumps(env))
    assert twin.scenario == env.scenario
    assert trace(env, 1, 20) == trace(twin, 1, 20)
    for _ in range(2):
        np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])
        assert trace(env, 2, 5) == trace(twin, 2, 5)


def test_a_trace_that_is_not_repeated_ends_the_episode(tmp_path):
    path = write_requests(tmp_path / "six.csv", [(100 * k, "chat", 900, 3) for k in range(6)])
    chat = small_scenario().request_types[0].model_dump(exclude_none=True)
    env = RoutingEnv(
        small_scenario(
            request_types=[chat | {"share": 1.0}],
            demand={
                "rate_per_node": 0.002,
                "modulations": [{"kind": "trace", "path": str(path), "repeat": False}],
            },
        ),
        overrides={"initial.warmup_s": 0.0},
        candidates=3,
        horizon_requests=100,
    )
    env.reset(seed=0)
    for number in range(1, 7):
        observation, _, terminated, truncated, info = env.step(0)
        assert terminated is False
        assert truncated == (number == 6)
        assert observation in env.observation_space
    # Nobody is left: all that came has been decided and finished.
    assert info["episode_arrivals"] == info["episode_decided"] == info["episode_completed"] == 6
    assert np.flatnonzero(info["action_mask"]).tolist() == [env.actions.reject]
    assert (env.candidates == -1).all()
    twin = env.fork()
    for ended in (env, twin):
        observation, reward, _, truncated, info = ended.step(ended.actions.reject)
        assert truncated
        assert reward == 0.0
        assert (info["arrivals"], info["rejected"], info["episode_arrivals"]) == (0, 0, 6)
    env.reset()
    assert env.step(0)[4]["episode_arrivals"] == 1


@pytest.mark.parametrize("kind", ["squashed_ttft", "goodput"])
def test_other_rewards(kind):
    env = RoutingEnv("stationary", overrides=SHORT, reward=kind)
    env.reset(seed=0)
    earned = 0.0
    for _ in range(200):
        _, reward, *_, info = env.step_by_router()
        earned += reward
    if kind == "goodput":
        world = env.scenario.compile()
        mean = float(world.type_share @ world.output_tokens)
        assert earned == pytest.approx(info["episode_goodput_tokens_sum"] / mean)
    else:
        assert 0.0 < earned < info["episode_first_tokens"]
    own = RoutingEnv("stationary", overrides=SHORT, reward=lambda step: float(step.completed))
    own.reset(seed=0)
    *_, info = own.step_by_router()
    assert info["reward_service"] == info["completed"]


def test_monitor_logs_the_episode():
    env = Monitor(
        gym.make(ENV_ID, overrides=SHORT, horizon_requests=50), info_keywords=INFO_KEYWORDS
    )
    env.reset(seed=0)
    for _ in range(50):
        *_, info = env.step(0)
    assert info["episode"]["episode_arrivals"] == 50


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_sync_vector_environment_in_each_autoreset_mode(mode):
    env = gym.make_vec(
        ENV_ID,
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        scenario="toy",
        overrides=SHORT,
        horizon_requests=4,
    )
    observations, info = env.reset(seed=[1, 2])
    for step in range(1, 10):
        actions = np.array([np.flatnonzero(mask)[0] for mask in info["action_mask"]])
        observations, _, _, truncated, info = env.step(actions)
        assert observations in env.observation_space
        if truncated.all() and mode == gym.vector.AutoresetMode.DISABLED:
            _, info = env.reset(options={"reset_mask": truncated})
        assert truncated.all() == (step in {4, 9 if mode.value == "NextStep" else 8})
    env.close()


def test_it_draws_itself():
    env = RoutingEnv("toy", overrides=SHORT | {"control.epoch_s": 0.5}, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(30):
        env.step_by_router()
    assert env.epoch > 2
    frame = env.render()
    assert frame.shape == (540, 960, 3)
    assert frame.std() > 0
    env.close()


def test_the_charts_get_what_each_epoch_decided(monkeypatch):
    epochs, totals = [], []
    monkeypatch.setattr(FleetRenderer, "record", lambda *arguments: epochs.append(arguments[2]))
    env = make("moving-hotspot", **{"control.epoch_s": 0.5})
    env.render_mode = "rgb_array"
    env.reset(seed=0)
    while len(epochs) < 4:
        before = len(epochs)
        *_, info = env.step_by_router()
        if len(epochs) > before:
            totals.append((info["episode_hits"], info["episode_decided"]))
    env.close()
    drawn = np.cumsum([(epoch["hits"], epoch["decided"]) for epoch in epochs], axis=0)
    assert drawn.tolist() == [list(total) for total in totals]
    assert 0 < drawn[-1, 0] < drawn[-1, 1]


def test_before_reset_every_use_says_so():
    env = make("toy")
    for use in (lambda: env.step(0), lambda: env.fleet, env.action_masks, env.step_by_router):
        with pytest.raises(ResetNeeded, match="call reset"):
            use()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": 0}, "candidates is 0"),
        ({"horizon_requests": -1}, "horizon_requests is -1"),
        ({"rejection_weight": float("nan")}, "rejection_weight is nan"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RoutingEnv("toy", **arguments)


def test_bad_types_are_named():
    with pytest.raises(TypeError, match=r"candidates is 2\.5"):
        RoutingEnv("toy", candidates=2.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="rejection_weight is '1'"):
        RoutingEnv("toy", rejection_weight="1")  # pyright: ignore[reportArgumentType]
    env = make("toy")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="it must lie in 0"):
        env.step(env.actions.size)
    with pytest.raises(TypeError, match="one integer"):
        env.step(0.5)
    with pytest.raises(ValueError, match="state has no np_random"):
        env.set_state({})


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("routed", "3"),
        ("routed", -1),
        ("totals", [0]),
        ("totals", None),
        ("totals", [0.5] * len(TOTALS)),
        ("totals_s", "now"),
        ("totals_s", float("nan")),
        ("episode", {}),
        ("episode", None),
        ("np_random", {}),
        ("fleet", 3),
    ],
)
def test_a_state_that_is_refused_changes_nothing(part, value):
    env, twin = make("toy"), make("toy")
    for one in (env, twin):
        one.reset(seed=0)
        trace(one, 0, 3)
    with pytest.raises((ValueError, TypeError), match=r"state|RNG"):
        env.set_state(env.get_state() | {part: value})
    assert trace(env, 1, 3) == trace(twin, 1, 3)


def test_docstring_example_runs(capsys):
    source = RoutingEnv.__doc__.split("```python")[1].split("```")[0]
    exec("\n".join(line[4:] for line in source.splitlines()), {})
    assert 0.0 < float(capsys.readouterr().out) <= 1.0


def test_a_masked_learner_trains():
    from sb3_contrib import MaskablePPO

    env = gym.make(ENV_ID, overrides=SHORT, horizon_requests=64)
    model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0)
    model.learn(256)
    observation, info = env.reset(seed=1)
    action, _ = model.predict(observation, action_masks=info["action_mask"])
    assert info["action_mask"][action]
