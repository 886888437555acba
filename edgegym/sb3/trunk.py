"""The layers that every node passes, forwards and backwards, on several threads.

Nearly all of a gradient step is spent here. PyTorch's own threads meet after every operation, which
costs as much as they save where operations take a tenth of a millisecond; these meet once each way.
A batch is cut into pieces of a fixed size whose sums are added in order, so that results do not
depend on the number of threads.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch.autograd.function import once_differentiable

from edgegym.threads import Crew

# Observations: the layers of so many, of 25 nodes each, stay in a core's own cache.
_PIECE = 128

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")


class ActorTrunk(torch.autograd.Function):
    """Scores of the moves, and mean code of the nodes.

    ``apply(crew, rows, weights, fleet, node_weight, hidden_weight, hidden_bias, score_weight,
    score_bias)`` with rows ``[B, N, K]``, weights of the mean ``[B, N]`` and the fleet's part of
    the first layer ``[B, width]`` returns scores ``[B, N·S]`` and mean codes ``[B, width]``. Rows
    and weights get no gradients.
    """

    @staticmethod
    def forward(ctx: Any, crew: Crew, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores and mean codes."""
        rows, weights, fleet, node, hidden, hidden_bias, score, score_bias = inputs

        def piece(parts: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            rows, weights, fleet = parts
            first = _first_codes(rows, fleet, node)
            codes = torch.addmm(hidden_bias, first, hidden.t()).relu_()
            scores = torch.addmm(score_bias, codes, score.t())
            return scores.view(len(rows), -1), _mean(codes, weights), first, codes

        parts = _pieces(rows, weights, fleet)
        done = _of_each(crew, piece, parts)
        ctx.crew, ctx.parts, ctx.codes = crew, parts, [item[2:] for item in done]
        ctx.save_for_backward(hidden, score)
        return _joined(item[0] for item in done), _joined(item[1] for item in done)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - by the decorator
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of fleet, weights and biases."""
        hidden, score = ctx.saved_tensors

        def piece(item: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
            (rows, weights, _), (first, codes), (of_scores, of_mean) = item
            of_scores = of_scores.reshape(len(codes), -1)
            of_codes = _of_mean(of_mean, weights).addmm_(of_scores, score)
            _through_relu(of_codes, codes)
            of_first = _through_relu(torch.mm(of_codes, hidden), first)
            return (
                _of_fleet(of_first, rows),
                _of_node(of_first, rows),
                torch.mm(of_codes.t(), first),
                of_codes.sum(dim=0),
                torch.mm(of_scores.t(), codes),
                of_scores.sum(dim=0),
            )

        items = list(zip(ctx.parts, ctx.codes, _pieces(*gradients), strict=True))
        fleet, *sums = zip(*_of_each(ctx.crew, piece, items), strict=True)
        return None, None, None, _joined(fleet), *map(_sum, sums)


class CriticTrunk(torch.autograd.Function):
    """Mean first code of the nodes, as the critic sees them.

    ``apply(crew, rows, weights, fleet, node_weight)``, arguments as of :class:`ActorTrunk`, returns
    ``[B, width]``.
    """

    @staticmethod
    def forward(ctx: Any, crew: Crew, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the mean codes."""
        rows, weights, fleet, node = inputs

        def piece(parts: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            rows, weights, fleet = parts
            first = _first_codes(rows, fleet, node)
            return _mean(first, weights), first

        parts = _pieces(rows, weights, fleet)
        done = _of_each(crew, piece, parts)
        ctx.crew, ctx.parts, ctx.codes = crew, parts, [item[1] for item in done]
        return _joined(item[0] for item in done)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - by the decorator
        ctx: Any, *gradients: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of fleet and weight."""

        def piece(item: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
            (rows, weights, _), first, (of_mean,) = item
            of_first = _through_relu(_of_mean(of_mean, weights), first)
            return _of_fleet(of_first, rows), _of_node(of_first, rows)

        items = list(zip(ctx.parts, ctx.codes, _pieces(*gradients), strict=True))
        fleet, node = zip(*_of_each(ctx.crew, piece, items), strict=True)
        return None, None, None, _joined(fleet), _sum(node)


def _of_each(
    crew: Crew, function: Callable[[_Piece], _Result], pieces: Sequence[_Piece]
) -> list[_Result]:
    """Return what a function returns for each piece, in their order."""
    results: dict[int, _Result] = {}

    def work(i: int) -> None:
        # Whether gradients are recorded is each thread's own matter.
        with torch.no_grad():
            results[i] = function(pieces[i])

    crew.each(work, range(len(pieces)))
    return [results[i] for i in range(len(pieces))]


def _pieces(*tensors: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    """Return the pieces of a batch, each with its part of every tensor."""
    return list(zip(*(tensor.split(_PIECE) for tensor in tensors), strict=True))


def _joined(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.cat(list(parts))


def _sum(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _first_codes(rows: torch.Tensor, fleet: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    """Return the first codes of all nodes of a piece, ``[B·N, width]``."""
    first = torch.mm(rows.flatten(end_dim=1), node.t())
    _by_node(first, rows).add_(fleet.unsqueeze(1)).relu_()
    return first


def _by_node(codes: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return codes ``[B·N, width]`` as ``[B, N, width]``."""
    return codes.view(like.shape[0], like.shape[1], -1)


def _mean(codes: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted means over nodes, ``[B, width]``."""
    return torch.bmm(weights.unsqueeze(1), _by_node(codes, weights)).squeeze(1)


def _of_mean(gradient: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return what the gradient of the means is to each node's code, ``[B·N, width]``."""
    return (weights.unsqueeze(2) * gradient.unsqueeze(1)).flatten(end_dim=1)


def _through_relu(gradient: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Set a gradient to 0 where the code is, in place, and return it."""
    return torch.ops.aten.threshold_backward.grad_input(gradient, codes, 0, grad_input=gradient)


def _of_fleet(of_first: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return _by_node(of_first, rows).sum(dim=1)


def _of_node(of_first: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.mm(of_first.t(), rows.flatten(end_dim=1))
