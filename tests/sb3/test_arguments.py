"""Wrong models and environments: named and refused."""

import json
import zipfile

import gymnasium
import pytest

import edgegym
from edgegym.sb3 import EdgeVecEnv, ModelError, load_model, save_model, scorer_kwargs
from tests.sb3.conftest import make_toy_env


@pytest.fixture
def saved(toy_model, tmp_path):
    return save_model(toy_model, tmp_path / "model.zip")


def rewrite(saved, **changes):
    path = saved.with_suffix(".json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_features": 9}, r"node_features \(K\) is 9 in the model"),
        ({"num_profiles": 9}, r"num_profiles \(S\) is 9 in the model"),
        ({"layout_hash": "0" * 16}, "layout hash is 0000000000000000 in the model"),
        ({"layout_hash": "0" * 16, "layout": {}}, "manifest's layout cannot be read"),
        (
            {"layout_hash": "0" * 16, "layout": {"features": [{"name": "up"}]}},
            "layout cannot be read",
        ),
        ({"layout_hash": "0" * 16, "layout": {"features": 5}}, "layout cannot be read"),
        ({"num_nodes": "many"}, "num_nodes"),
    ],
)
def test_manifests(saved, changes, message):
    rewrite(saved, **changes)
    with pytest.raises(ModelError, match=message):
        load_model(saved, "toy")


def test_a_manifest_of_another_number_of_nodes(saved):
    rewrite(saved, num_nodes=4)
    scenario = edgegym.preset("toy").with_overrides({"nodes.count": 4})
    with pytest.raises(ModelError, match=r"observations of shape \(41,\) and 7 actions; by its"):
        load_model(saved, scenario)


@pytest.mark.parametrize("text", ["[]", "5", "null", '{"format": 1}', "\x00"])
def test_manifests_that_are_none(saved, text):
    saved.with_suffix(".json").write_text(text)
    with pytest.raises(ModelError, match=r"model\.json"):
        load_model(saved, "toy")


@pytest.mark.parametrize("member", ["data", "policy.pth", "pytorch_variables.pth"])
@pytest.mark.parametrize("contents", [b"", b"{}", b"[1]", b"garbage"])
def test_archives_with_a_damaged_member(saved, member, contents):
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[member] = contents
    with zipfile.ZipFile(saved, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ModelError, match=r"model\.zip: not a model"):
        load_model(saved, "toy")


def test_an_archive_cut_short(saved):
    saved.write_bytes(saved.read_bytes()[:2000])
    with pytest.raises(ModelError, match=r"model\.zip: not a model"):
        load_model(saved, "toy")


@pytest.mark.parametrize("env", [None, 5, "toy"])
def test_scorer_kwargs_of_no_environment(env):
    with pytest.raises(TypeError, match="has no observation layout"):
        scorer_kwargs(env)
    with pytest.raises(TypeError, match="has no observation layout"):
        scorer_kwargs(gymnasium.make("CartPole-v1"))


@pytest.mark.parametrize("width", [0, 1.5, True, "8", None])
def test_widths(width):
    env = make_toy_env()
    with pytest.raises(ValueError, match=r"width is .*: must be a whole number"):
        scorer_kwargs(env, width=width)


@pytest.mark.parametrize("num_threads", [0, 1.5, True, "2"])
def test_threads(num_threads):
    with pytest.raises(ValueError, match=r"num_threads is .*: it must be at least 1"):
        EdgeVecEnv.make("edgegym:EdgeGym/Placement-v0", 2, num_threads=num_threads)
