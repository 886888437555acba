import copy
import pickle

import pytest
import torch

from edgegym.sb3.scorer import NodeScorer
from edgegym.sb3.trunk import ActorTrunk, CriticTrunk
from edgegym.threads import Crew

K, G, S, WIDTH, NODES = 5, 3, 4, 6, 7


@pytest.fixture
def network():
    torch.manual_seed(0)
    made = NodeScorer(K, G, S, up_column=2, width=WIDTH).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return made


def observations(batch):
    generator = torch.Generator().manual_seed(batch)
    drawn = torch.rand(batch, NODES * K + G, generator=generator, dtype=torch.float64)
    up = torch.rand(batch, NODES, generator=generator) < 0.7
    drawn[:, : NODES * K].view(batch, NODES, K)[:, :, 2] = up.double()
    return drawn


def by_autograd(network, observation):
    """The same layers on the concatenated features of every node, left to PyTorch."""
    rows = observation[:, : NODES * K].view(-1, NODES, K)
    fleet = observation[:, NODES * K :].unsqueeze(1).expand(-1, NODES, -1)
    weights = rows[:, :, 2:3] / rows[:, :, 2:3].sum(dim=1, keepdim=True).clamp(min=1.0)

    def first(node, fleet_layer):
        weight = torch.cat((node.weight, fleet_layer.weight), dim=1)
        return torch.relu(torch.cat((rows, fleet), dim=2) @ weight.t() + node.bias)

    codes = torch.relu(network.actor_hidden(first(network.actor_node, network.actor_fleet)))
    moves = network.actor_score(codes).flatten(start_dim=1)
    pooled = torch.relu(network.no_op_hidden((weights * codes).sum(dim=1)))
    seen = first(network.critic_node, network.critic_fleet)
    critic = torch.relu(network.critic_hidden((weights * seen).sum(dim=1)))
    return moves, network.no_op_score(pooled), network.critic_value(critic)


def gradients(network, outputs):
    generator = torch.Generator().manual_seed(5)
    loss = sum(
        (output * torch.rand(output.shape, generator=generator, dtype=output.dtype)).sum()
        for output in outputs
    )
    return torch.autograd.grad(loss, list(network.parameters()))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 128, 300])
def test_values_and_gradients_are_those_of_plain_layers(network, batch, threads):
    network.use_threads(threads)
    observation = observations(batch)
    mine, theirs = network.everything(observation), by_autograd(network, observation)
    for value, expected in zip(mine, theirs, strict=True):
        torch.testing.assert_close(value, expected)
    for (name, _), value, expected in zip(
        network.named_parameters(),
        gradients(network, mine),
        gradients(network, theirs),
        strict=True,
    ):
        torch.testing.assert_close(value, expected, msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_are_numerical_derivatives(network):
    rows, weights = observations(3)[:, : NODES * K].view(3, NODES, K), torch.rand(3, NODES).double()
    fleet = torch.rand(3, WIDTH, dtype=torch.float64, requires_grad=True)
    layers = (network.actor_node, network.actor_hidden, network.actor_score)
    parameters = [
        layers[0].weight,
        *(part for layer in layers[1:] for part in (layer.weight, layer.bias)),
    ]
    torch.autograd.gradcheck(
        lambda *inputs: ActorTrunk.apply(Crew(1), rows, weights, *inputs), (fleet, *parameters)
    )
    torch.autograd.gradcheck(
        lambda *inputs: CriticTrunk.apply(Crew(1), rows, weights, *inputs),
        (fleet, network.critic_node.weight),
    )


def test_bits_do_not_depend_on_the_number_of_threads(network):
    network, observation = network.float(), observations(500).float()
    results = []
    for threads in (1, 2, 3):
        network.use_threads(threads)
        outputs = network.everything(observation)
        results.append([*outputs, *gradients(network, outputs)])
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))


def test_two_forward_passes_keep_apart(network):
    """What one pass keeps for its gradients is not the other's."""
    first, second = observations(130), observations(140)
    alone = gradients(network, network.everything(first))
    outputs = network.everything(first)
    network.everything(second)
    assert all(map(torch.equal, gradients(network, outputs), alone))


def test_networks_with_threads_can_be_copied(network):
    network.use_threads(2)
    observation = observations(200)
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(copied.scores(observation), network.scores(observation))
