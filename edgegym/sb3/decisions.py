"""Two decisions make an action: whether to move, and which legal move."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

# Added to a score, it leaves nothing of it; exp() of it is exactly 0, and no NaN can arise.
_MASKED_LOGIT = -1e30
_LOG_HALF = math.log(0.5)

Masks = NDArray[np.bool_] | torch.Tensor | None


def log_decisions(
    moves: torch.Tensor, no_op: torch.Tensor, masks: Masks
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the log-probabilities of the two decisions.

    With no-op score g and move scores m: P(no-op) = σ(g), P(move a) = σ(−g) softmax(m)_a over the
    legal moves.

    Returns
    -------
    which : Tensor, shape [B, N·S]
        Of each move, given that there is one.
    moving, staying : Tensor, shape [B, 1]
        Of a move, and of the no-op.
    """
    if masks is not None:
        legal = torch.as_tensor(masks, dtype=moves.dtype, device=moves.device)
        # Sums instead of masked_fill, which copies all scores and takes longer to go backwards.
        penalty = (legal.view(len(moves), -1) - 1.0).mul_(-_MASKED_LOGIT)
        moves = moves + penalty[:, :-1]
        # Where no move is legal the softmax makes all of them equally likely: so never move.
        no_op = no_op + (penalty[:, -1:] - penalty[:, :-1].amax(dim=1, keepdim=True))
    return (
        torch.log_softmax(moves, dim=1),
        nn.functional.logsigmoid(-no_op),
        nn.functional.logsigmoid(no_op),
    )


def log_probs(moves: torch.Tensor, no_op: torch.Tensor, masks: Masks) -> torch.Tensor:
    """Return the log-probabilities of all actions, ``[B, N·S + 1]``."""
    which, moving, staying = log_decisions(moves, no_op, masks)
    return torch.cat((which + moving, staying), dim=1)


def chances(log_probs: torch.Tensor) -> torch.Tensor:
    """Return the probabilities of normalised log-probabilities, ``[B, A]``.

    As ``exp()`` does, which takes ten times as long for each masked action (an underflow).
    """
    return torch.softmax(log_probs, dim=1)


def choose(log_probs: torch.Tensor, deterministic: bool) -> torch.Tensor:
    """Return actions, ``[B]``: sampled, or the likelier of moving or not and the likeliest move.

    Raises
    ------
    ValueError
        If a chance is NaN: the network's scores are not finite.
    """
    if torch.isnan(log_probs).any():
        raise ValueError(
            "the network's scores are not finite, so no action can be chosen: its observations "
            "are NaN, or learning has diverged; a smaller learning_rate or max_grad_norm may help"
        )
    if deterministic:
        # Not the likeliest action: that would do nothing while hundreds of moves share 90 %.
        no_op = log_probs.shape[1] - 1
        best_move = log_probs[:, :-1].argmax(dim=1)
        return torch.where(log_probs[:, -1] >= _LOG_HALF, no_op, best_move)
    # The first action at which the cumulated chance exceeds a uniform share of it: one random
    # number for each row, and an action without a chance is never the first.
    cumulated = chances(log_probs).cumsum(dim=1)
    share = torch.rand_like(cumulated[:, -1:]) * cumulated[:, -1:]
    # The share may be rounded up to the whole; the no-op, always legal, is the last.
    return (cumulated <= share).sum(dim=1).clamp(max=log_probs.shape[1] - 1)
