import json
import zipfile
from importlib.metadata import version

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO

import edgegym
from edgegym.envs.placement import PlacementEnv
from edgegym.interface.layout import ObservationLayout
from edgegym.sb3 import (
    EdgeVecEnv,
    Manifest,
    ModelError,
    NodeScorerPolicy,
    load_model,
    save_model,
    scorer_kwargs,
)
from edgegym.world import Integers, ScenarioDraw, ScenarioError


@pytest.fixture
def saved(toy_model, tmp_path):
    return save_model(toy_model, tmp_path / "model.zip", total_steps=1000)


def rewrite(saved, **changes):
    """Change fields of the manifest beside a model; None removes one."""
    path = saved.with_suffix(".json")
    document = json.loads(path.read_text()) | changes
    kept = {key: value for key, value in document.items() if value is not None}
    path.write_text(json.dumps(kept))


def stir(model):
    """Make the outputs depend on the observation."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        # Prefer some move to doing nothing.
        model.policy.scorer.no_op_score.bias.fill_(-10.0)


def test_manifest_says_what_the_model_is(saved, toy_model, toy):
    manifest = Manifest.read(saved)
    layout = ObservationLayout.from_scenario(toy)
    assert manifest.env_id == "EdgeGym/Placement-v0"
    assert manifest.scenario_name == "toy"
    assert edgegym.Scenario.from_document(manifest.scenario) == toy
    assert manifest.layout_hash == layout.hash
    assert ObservationLayout.from_dict(manifest.layout) == layout
    assert (manifest.node_features, manifest.global_features) == (
        layout.node_features,
        layout.global_features,
    )
    assert (manifest.num_profiles, manifest.num_nodes) == (3, 2)
    assert (manifest.algorithm, manifest.policy) == ("MaskablePPO", "NodeScorerPolicy")
    assert (manifest.seed, manifest.steps, manifest.total_steps) == (3, 0, 1000)
    assert manifest.versions["torch"] == version("torch")
    assert manifest.versions.keys() >= {"edgegym", "python", "numpy", "gymnasium", "sb3-contrib"}
    assert manifest.hyperparameters["gamma"] == 0.99
    assert manifest.hyperparameters["n_envs"] == 2
    assert manifest.hyperparameters["clip_range"] == 0.2
    assert manifest.hyperparameters["policy_kwargs"]["width"] == 8


def test_loads_the_same_weights_with_and_without_us(saved, toy_model):
    stir(toy_model)
    save_model(toy_model, saved)
    for loaded in (load_model(saved, "toy"), MaskablePPO.load(saved, device="cpu")):
        for mine, theirs in zip(
            toy_model.policy.parameters(), loaded.policy.parameters(), strict=True
        ):
            assert torch.equal(mine, theirs)


def test_a_folder_means_the_model_in_it(saved):
    assert load_model(saved.parent, "toy").num_timesteps == 0


def test_transfers_to_more_nodes(saved, toy_model):
    stir(toy_model)
    save_model(toy_model, saved)
    world = edgegym.preset("toy").with_overrides({"nodes.count": 100})
    model = load_model(saved, world)
    again = load_model(saved, world)
    assert model.action_space.n == 301
    env = PlacementEnv(world)
    observation, info = env.reset(seed=0)
    chosen = set()
    for _ in range(5):
        action, _ = model.predict(observation, deterministic=True, action_masks=info["action_mask"])
        assert info["action_mask"][action]
        same, _ = again.predict(observation, deterministic=True, action_masks=info["action_mask"])
        assert action == same
        chosen.add(int(action))
        observation, _, _, _, info = env.step(action)
    assert chosen - {300}


def test_transferred_scores_are_those_of_the_same_network(saved, toy_model):
    stir(toy_model)
    save_model(toy_model, saved)
    layout = toy_model.env.get_attr("layout")[0]
    model = load_model(saved, edgegym.preset("toy").with_overrides({"nodes.count": 4}))
    small = np.random.default_rng(0).random((1, layout.size), dtype=np.float32)
    layout.node_block(small)[..., layout.column("up")] = 1.0
    rows = layout.node_block(small)
    large_layout = layout.with_num_nodes(4)
    large = np.empty((1, large_layout.size), dtype=np.float32)
    large_layout.node_block(large)[:] = np.concatenate((rows, rows), axis=1)
    large_layout.global_block(large)[:] = layout.global_block(small)
    with torch.no_grad():
        scores = toy_model.policy.scorer.scores(torch.from_numpy(small))
        doubled = model.policy.scorer.scores(torch.from_numpy(large))
    torch.testing.assert_close(doubled[:, :6], scores[:, :6])
    torch.testing.assert_close(doubled[:, 6:12], scores[:, :6])
    torch.testing.assert_close(doubled[:, -1], scores[:, -1])


def test_an_mlp_does_not_transfer(toy_model, tmp_path):
    model = MaskablePPO("MlpPolicy", toy_model.env, n_steps=8, batch_size=8, device="cpu")
    path = save_model(model, tmp_path / "mlp.zip")
    load_model(path, "toy")
    with pytest.raises(ModelError, match="depends on the number of nodes, which is 2 in the model"):
        load_model(path, edgegym.preset("toy").with_overrides({"nodes.count": 4}))


def test_another_world_is_refused_with_the_reasons(saved):
    with pytest.raises(ModelError) as caught:
        load_model(saved, "moving-hotspot")
    text = str(caught.value)
    assert "trained on 'toy'" in text
    assert "node_features (K) is 17 in the model, 42 there" in text
    assert "num_profiles (S) is 3 in the model, 8 there" in text
    assert "layout hash is" in text


def test_another_normaliser_is_refused_with_the_reason(saved):
    world = edgegym.preset("toy").with_overrides({"demand.rate_per_node": 4.0})
    with pytest.raises(ModelError, match=r"feature 'demand': scale is .* in the model, .* there"):
        load_model(saved, world)


def test_a_clock_is_refused_with_the_reason(saved):
    with pytest.raises(ModelError, match="feature 'clock' does not exist in the model"):
        load_model(saved, "toy", observe_clock=True)


def test_missing_model(tmp_path):
    with pytest.raises(ModelError, match=r"nothing\.zip: there is no such model"):
        load_model(tmp_path / "nothing.zip", "toy")


def test_missing_scenario(saved):
    with pytest.raises(ScenarioError, match="no-such-world"):
        load_model(saved, "no-such-world")


def test_missing_manifest(saved):
    saved.with_suffix(".json").unlink()
    with pytest.raises(ModelError, match=r"no manifest \(model.json is missing"):
        load_model(saved, "toy")


def test_manifest_that_is_no_json(saved):
    saved.with_suffix(".json").write_text('{"format": 1, "crea')
    with pytest.raises(ModelError, match=r"model\.json: cannot be read as a manifest"):
        load_model(saved, "toy")


def test_manifest_of_a_later_format(saved):
    rewrite(saved, format=2)
    with pytest.raises(ModelError, match="format is 2; this edgegym reads format 1"):
        load_model(saved, "toy")


def test_manifest_with_a_missing_field(saved):
    rewrite(saved, layout_hash=None)
    with pytest.raises(ModelError, match=r"model\.json: layout_hash: Field required"):
        load_model(saved, "toy")


@pytest.mark.parametrize("contents", [b"", b"no archive at all", None])
def test_damaged_model(saved, contents):
    if contents is None:
        with zipfile.ZipFile(saved, "w") as archive:
            archive.writestr("something", "else")
    else:
        saved.write_bytes(contents)
    with pytest.raises(ModelError, match=r"model\.zip: not a model"):
        load_model(saved, "toy")


def test_save_refuses_a_foreign_model_and_a_wrong_name(toy_model, tmp_path):
    with pytest.raises(ModelError, match=r"must end in \.zip"):
        save_model(toy_model, tmp_path / "model")
    foreign = MaskablePPO("MlpPolicy", "CartPole-v1", device="cpu", n_steps=8, batch_size=8)
    with pytest.raises(ModelError, match="no edgegym environment"):
        save_model(foreign, tmp_path / "foreign.zip")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_model(saved, toy_model, monkeypatch):
    before = saved.read_bytes(), saved.with_suffix(".json").read_bytes()

    def broken(_, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(MaskablePPO, "save", broken)
    with pytest.raises(OSError, match="disk full"):
        save_model(toy_model, saved)
    assert (saved.read_bytes(), saved.with_suffix(".json").read_bytes()) == before
    assert sorted(path.name for path in saved.parent.iterdir()) == ["model.json", "model.zip"]


def test_a_model_of_drawn_scenarios_fits_their_reference(tmp_path, toy):
    law = Integers(path="nodes.count", low=2, high=4)
    draw = ScenarioDraw(scenarios=("toy",), vary=(law,))
    env = EdgeVecEnv.make("edgegym:EdgeGym/Placement-v0", 2, scenario=draw, num_threads=1)
    model = MaskablePPO(
        NodeScorerPolicy,
        env,
        n_steps=4,
        batch_size=8,
        n_epochs=1,
        policy_kwargs=scorer_kwargs(env, width=8),
        seed=3,
        device="cpu",
    )
    model.learn(8)
    path = save_model(model, tmp_path / "model.zip")
    env.close()
    manifest = Manifest.read(path)
    assert ScenarioDraw(**manifest.draw) == draw
    assert edgegym.Scenario.from_document(manifest.scenario) == toy
    assert manifest.num_nodes == 4
    # One observation with two nodes and two rows of padding, and the same without.
    loaded = load_model(path, "toy")
    small, large = PlacementEnv("toy"), PlacementEnv(draw)
    for seed in range(20):
        observation, info = large.reset(seed=seed)
        if large.scenario.nodes.count == 2:
            break
    same, _ = small.reset(seed=seed)
    layout = large.layout
    np.testing.assert_array_equal(layout.node_block(observation)[:2], small.layout.node_block(same))
    stir(model)
    loaded.policy.load_state_dict(model.policy.state_dict())
    chosen, _ = model.predict(observation, deterministic=True, action_masks=info["action_mask"])
    alone, _ = loaded.predict(same, deterministic=True, action_masks=small.action_masks())
    assert chosen == alone < small.actions.no_op
    # And with the padding of this or another draw.
    more = ScenarioDraw(scenarios=("toy",), vary=(Integers(path="nodes.count", low=2, high=6),))
    for padded in (draw, more):
        fitting, env = load_model(path, padded), PlacementEnv(padded)
        fitting.policy.load_state_dict(model.policy.state_dict())
        observation, info = env.reset(seed=1)
        action, _ = fitting.predict(
            observation, deterministic=True, action_masks=info["action_mask"]
        )
        assert info["action_mask"][action]
