"""Small models on the two-node world."""

import gymnasium
import pytest
import torch
from sb3_contrib import MaskablePPO

import edgegym
from edgegym.sb3 import EdgeVecEnv, NodeScorerPolicy, scorer_kwargs


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def toy():
    return edgegym.preset("toy")


def make_toy_env(**options):
    return gymnasium.make("edgegym:EdgeGym/Placement-v0", scenario="toy", **options)


@pytest.fixture
def toy_model():
    env = EdgeVecEnv.make("edgegym:EdgeGym/Placement-v0", 2, scenario="toy", num_threads=1)
    model = MaskablePPO(
        NodeScorerPolicy,
        env,
        n_steps=8,
        batch_size=8,
        n_epochs=1,
        policy_kwargs=scorer_kwargs(env, width=8),
        seed=3,
        device="cpu",
    )
    yield model
    env.close()
