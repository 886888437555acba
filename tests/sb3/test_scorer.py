import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

import edgegym
from edgegym.interface.layout import ObservationLayout
from edgegym.sb3 import EdgeVecEnv, NodeScorerPolicy, scorer_kwargs
from edgegym.sb3.decisions import choose, log_probs


@pytest.fixture(scope="module")
def layout():
    return ObservationLayout.from_scenario(edgegym.preset("moving-hotspot"))


def make_policy(layout, **options):
    return NodeScorerPolicy(
        spaces.Box(0.0, 1.0, (layout.size,), np.float32),
        spaces.Discrete(layout.num_nodes * layout.num_profiles + 1),
        lambda _: 1e-3,
        **scorer_kwargs(layout),
        **options,
    )


@pytest.fixture
def policy(layout):
    """A policy whose output layers are no longer zero."""
    torch.manual_seed(0)
    made = make_policy(layout)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return made


def observations(layout, batch, seed=0):
    generator = np.random.default_rng(seed)
    drawn = generator.random((batch, layout.size), dtype=np.float32)
    layout.node_block(drawn)[..., layout.column("up")] = 1.0
    return torch.from_numpy(drawn)


def masks(policy, batch, seed=0):
    generator = np.random.default_rng(seed)
    drawn = generator.random((batch, int(policy.action_space.n))) < 0.2
    drawn[:, -1] = True
    return drawn


def test_shapes(policy, layout):
    actions, values, log_prob = policy(observations(layout, 3), action_masks=masks(policy, 3))
    assert actions.shape == (3,)
    assert values.shape == (3, 1)
    assert log_prob.shape == (3,)
    assert policy.predict_values(observations(layout, 3)).shape == (3, 1)


def test_weights_do_not_depend_on_the_number_of_nodes(layout):
    small, large = make_policy(layout), make_policy(layout.with_num_nodes(100))
    large.load_state_dict(small.state_dict())
    assert [p.shape for p in small.parameters()] == [p.shape for p in large.parameters()]


def test_exchanging_nodes_exchanges_their_scores_and_nothing_else(policy, layout):
    observation = observations(layout, 2)
    order = np.random.default_rng(1).permutation(layout.num_nodes)
    permuted = observation.clone()
    layout.node_block(permuted.numpy())[:] = layout.node_block(observation.numpy())[:, order]
    with torch.no_grad():
        logits, values = policy.scorer(observation)
        permuted_logits, permuted_values = policy.scorer(permuted)
    scores = logits[:, :-1].view(2, layout.num_nodes, layout.num_profiles)
    permuted_scores = permuted_logits[:, :-1].view_as(scores)
    torch.testing.assert_close(permuted_scores, scores[:, order])
    torch.testing.assert_close(permuted_logits[:, -1], logits[:, -1])
    torch.testing.assert_close(permuted_values, values)
    assert scores.std(dim=1).min() > 1e-3


def test_padding_nodes_change_nothing(policy, layout):
    padded_layout = layout.with_num_nodes(40)
    padded_policy = make_policy(padded_layout)
    padded_policy.load_state_dict(policy.state_dict())
    observation = observations(layout, 2).numpy()
    padded = np.zeros((2, padded_layout.size), dtype=np.float32)
    padded_layout.node_block(padded)[:, :25] = layout.node_block(observation)
    padded_layout.global_block(padded)[:] = layout.global_block(observation)
    with torch.no_grad():
        logits, values = policy.scorer(torch.from_numpy(observation))
        padded_logits, padded_values = padded_policy.scorer(torch.from_numpy(padded))
    torch.testing.assert_close(padded_logits[:, : 25 * layout.num_profiles], logits[:, :-1])
    torch.testing.assert_close(padded_logits[:, -1], logits[:, -1])
    torch.testing.assert_close(padded_values, values)


def test_scores_see_the_fleet(policy, layout):
    observation = observations(layout, 1)
    changed = observation.clone()
    layout.global_block(changed.numpy())[:] = 0.0
    with torch.no_grad():
        before, after = policy.scorer.scores(observation), policy.scorer.scores(changed)
    assert (before - after).abs().min() > 1e-4


@pytest.mark.parametrize("legal_moves", [1, 7, 200])
def test_starts_undecided_whatever_the_number_of_moves(layout, legal_moves):
    policy = make_policy(layout)
    legal = np.zeros((1, 201), dtype=bool)
    legal[0, :legal_moves] = legal[0, -1] = True
    observation = observations(layout, 1)
    with torch.no_grad():
        probabilities = policy.get_distribution(observation, legal).distribution.probs[0]
        assert torch.equal(policy.predict_values(observation), torch.zeros(1, 1))
    assert probabilities[-1] == pytest.approx(0.5)
    expected = np.where(legal[0, :-1], 0.5 / legal_moves, 0.0)
    np.testing.assert_allclose(probabilities[:-1].numpy(), expected, rtol=1e-5)


def test_probabilities_are_those_of_two_decisions(policy, layout):
    observation, legal = observations(layout, 3), masks(policy, 3)
    with torch.no_grad():
        scores = policy.scorer.scores(observation)
        probabilities = policy.get_distribution(observation, legal).distribution.probs
        unmasked = policy.get_distribution(observation).distribution.probs
    torch.testing.assert_close(probabilities[:, -1], torch.sigmoid(scores[:, -1]))
    torch.testing.assert_close(unmasked[:, -1], torch.sigmoid(scores[:, -1]))
    worth = torch.where(torch.from_numpy(legal[:, :-1]), scores[:, :-1].exp(), 0.0)
    moves = worth / worth.sum(dim=1, keepdim=True) * torch.sigmoid(-scores[:, -1:])
    torch.testing.assert_close(probabilities[:, :-1], moves)


def test_deterministic_moves_if_that_is_likelier_than_not(policy, layout):
    observation, legal = observations(layout, 1), np.ones((1, 201), dtype=bool)
    best = policy.scorer.scores(observation)[0, :-1].argmax()
    bias = policy.scorer.no_op_score.bias
    with torch.no_grad():
        bias -= policy.scorer.scores(observation)[0, -1]
        for shift, expected in ((-0.2, best), (0.4, 200)):
            bias += shift
            # Either way the no-op is the likeliest of all 201 actions.
            probabilities = policy.get_distribution(observation, legal).distribution.probs[0]
            assert probabilities.argmax() == 200
            assert policy(observation, True, action_masks=legal)[0] == expected
            assert (
                policy.predict(observation.numpy(), deterministic=True, action_masks=legal)[0]
                == expected
            )


@pytest.mark.parametrize("deterministic", [True, False])
def test_masked_actions_are_never_chosen(policy, layout, deterministic):
    observation = observations(layout, 200)
    legal = masks(policy, 200)
    rows = np.arange(200)
    actions, _, log_prob = policy(observation, deterministic, action_masks=legal)
    assert legal[rows, actions].all()
    assert torch.isfinite(log_prob).all()
    predicted, _ = policy.predict(
        observation.numpy(), deterministic=deterministic, action_masks=legal
    )
    assert legal[rows, predicted].all()


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("scale", [1e4, 1e8, 1e15])
def test_masked_actions_are_never_chosen_whatever_their_scores(scale, deterministic):
    torch.manual_seed(3)
    rows = np.arange(500)
    legal = np.random.default_rng(0).random((500, 21)) < 0.3
    legal[:, -1] = True
    legal[:20, :-1] = False
    moves, no_op = scale * torch.randn(500, 20), scale * torch.randn(500, 1)
    of_all = log_probs(moves, no_op, legal)
    assert legal[rows, choose(of_all, deterministic)].all()
    assert not of_all.exp()[~torch.from_numpy(legal)].any()


@pytest.mark.parametrize("drawn", [0.0, 1.0 - 2.0**-24])
def test_actions_without_a_chance_are_not_chosen_at_the_ends_of_a_draw(drawn, monkeypatch):
    """Where rounding decides: the least and the largest number that can be drawn."""
    monkeypatch.setattr(torch, "rand_like", lambda like: torch.full_like(like, drawn))
    legal = np.random.default_rng(0).random((500, 21)) < 0.3
    legal[:, [0, 7]] = False, True
    of_all = log_probs(torch.randn(500, 20), torch.full((500, 1), -200.0), legal)
    assert (of_all.exp().gather(1, choose(of_all, False).unsqueeze(1)) > 0.0).all()


def test_a_fleet_of_which_no_node_is_up(policy, layout):
    observation = observations(layout, 2)
    layout.node_block(observation.numpy())[0, :, layout.column("up")] = 0.0
    legal = np.zeros((2, 201), dtype=bool)
    legal[:, -1] = legal[1, :7] = True
    actions, values, log_prob = policy(observation, action_masks=legal)
    assert actions[0] == 200
    assert torch.isfinite(values).all()
    assert torch.isfinite(log_prob).all()


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("broken", ["observation", "weight"])
def test_scores_that_are_no_numbers_are_refused(policy, layout, broken, deterministic):
    observation = observations(layout, 2)
    if broken == "observation":
        observation[1, 0] = torch.nan
    else:
        with torch.no_grad():
            policy.scorer.actor_score.weight[0] = torch.inf
    with pytest.raises(ValueError, match="scores are not finite"):
        policy(observation, deterministic, action_masks=masks(policy, 2))
    with pytest.raises(ValueError, match="scores are not finite"):
        policy.predict(observation.numpy(), deterministic=deterministic)


def test_only_the_no_op_is_left(policy, layout):
    legal = np.zeros(int(policy.action_space.n), dtype=bool)
    legal[-1] = True
    action, _ = policy.predict(observations(layout, 1)[0].numpy(), action_masks=legal)
    assert action == policy.action_space.n - 1


def test_agrees_with_the_distribution_of_sb3_contrib(policy, layout):
    observation, legal = observations(layout, 4), masks(policy, 4)
    with torch.no_grad():
        actions, values, log_prob = policy(observation, action_masks=legal)
        same_values, same_log_prob, entropy = policy.evaluate_actions(
            observation, actions, torch.from_numpy(legal).float()
        )
        distribution = policy.get_distribution(observation, legal)
    torch.testing.assert_close(same_values, values)
    torch.testing.assert_close(same_log_prob, log_prob)
    torch.testing.assert_close(distribution.log_prob(actions), log_prob)
    torch.testing.assert_close(distribution.entropy(), entropy)


def test_samples_follow_the_probabilities(layout):
    torch.manual_seed(1)
    few = layout.with_num_nodes(2)
    policy = make_policy(few)
    observation = observations(few, 1)
    legal = np.array([[True, False] * 8 + [True]])
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        probabilities = policy.get_distribution(observation, legal).distribution.probs[0]
        batch = observation.expand(20_000, -1)
        actions = policy(batch, action_masks=np.repeat(legal, 20_000, axis=0))[0]
    frequency = torch.bincount(actions, minlength=len(probabilities)) / 20_000
    tolerance = 5 * torch.sqrt(probabilities * (1 - probabilities) / 20_000) + 1e-9
    assert ((frequency - probabilities).abs() <= tolerance).all()


def test_gradients_reach_every_weight(policy, layout):
    observation = observations(layout, 8)
    values, log_prob, entropy = policy.evaluate_actions(
        observation, torch.arange(8), masks(policy, 8) | (np.arange(201) < 8)
    )
    (values.mean() + log_prob.mean() + entropy.mean()).backward()
    for name, parameter in policy.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_kwargs_of_environments_however_wrapped(layout):
    import gymnasium

    def make():
        return gymnasium.make("edgegym:EdgeGym/Placement-v0", scenario="toy")

    env = make()
    expected = scorer_kwargs(env.unwrapped.layout)
    assert expected["node_features"] == env.unwrapped.layout.node_features
    assert scorer_kwargs(env) == scorer_kwargs(env.unwrapped) == expected
    assert scorer_kwargs(DummyVecEnv([make])) == expected
    vector = EdgeVecEnv.make("edgegym:EdgeGym/Placement-v0", 2, scenario="toy")
    assert scorer_kwargs(vector) == expected
    vector.close()


def test_kwargs_of_a_foreign_environment_are_refused():
    import gymnasium

    with pytest.raises(TypeError, match="no observation layout"):
        scorer_kwargs(gymnasium.make("CartPole-v1"))


@pytest.mark.parametrize(
    ("length", "actions", "reason"),
    [
        (1068, 201, "observations have 1068 columns"),
        (1067, 200, "there are 200 actions: 25 nodes with 8 profiles and a no-op make 201"),
    ],
)
def test_wrong_spaces_are_refused(layout, length, actions, reason):
    assert layout.size == 1067
    with pytest.raises(ValueError, match=reason):
        NodeScorerPolicy(
            spaces.Box(0.0, 1.0, (length,), np.float32),
            spaces.Discrete(actions),
            lambda _: 1e-3,
            **scorer_kwargs(layout),
        )


def test_policy_alone_saves_and_loads(policy, layout, tmp_path):
    policy.save(tmp_path / "policy.pt")
    loaded = NodeScorerPolicy.load(tmp_path / "policy.pt", device="cpu")
    assert isinstance(loaded.scorer, nn.Module)
    observation = observations(layout, 2)
    with torch.no_grad():
        assert torch.equal(policy.scorer.scores(observation), loaded.scorer.scores(observation))
