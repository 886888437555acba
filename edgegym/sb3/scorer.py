"""A policy network that all nodes share: it does not care how many there are."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from edgegym.interface.layout import ObservationLayout
from edgegym.sb3.decisions import Masks, chances, choose, log_decisions, log_probs
from edgegym.sb3.memory import keep_freed_memory
from edgegym.sb3.trunk import ActorTrunk, CriticTrunk
from edgegym.threads import Crew


class NodeScorer(nn.Module):
    """Scores every (node, profile) pair, the no-op, and the state of the fleet.

    Parameters
    ----------
    node_features, global_features, num_profiles : int
        K, G and S of the observation layout.
    up_column : int
        Column of the node block that says whether the node serves; padding nodes have 0 there and
        do not count in the means over nodes.
    width : int
        Units of each hidden layer.

    Notes
    -----
    Per node, an encoder sees the node's features and the fleet's. Its first layer is split: the
    fleet's part is computed once and added to every node's, which equals a layer on the
    concatenation. The actor scores the profiles of each node from its code alone, so exchanging two
    nodes exchanges their scores. No-op and value see the mean code of the nodes that are up.

    Two decisions make an action: whether to move, and which legal move. The no-op's score is the
    log-odds of the first; the scores of the moves, normalised among themselves, are the second. So
    the chance of a move does not grow with the number of nodes.
    """

    def __init__(
        self,
        node_features: int,
        global_features: int,
        num_profiles: int,
        up_column: int,
        width: int,
    ) -> None:
        super().__init__()
        self._node_features = node_features
        self._global_features = global_features
        self._up_column = up_column
        self._crew = Crew(1)
        self.actor_node = nn.Linear(node_features, width)
        self.actor_fleet = nn.Linear(global_features, width, bias=False)
        self.actor_hidden = nn.Linear(width, width)
        self.actor_score = nn.Linear(width, num_profiles)
        self.no_op_hidden = nn.Linear(width, width)
        self.no_op_score = nn.Linear(width, 1)
        self.critic_node = nn.Linear(node_features, width)
        self.critic_fleet = nn.Linear(global_features, width, bias=False)
        self.critic_hidden = nn.Linear(width, width)
        self.critic_value = nn.Linear(width, 1)
        self._initialise()

    def use_threads(self, threads: int) -> None:
        """Learn on some threads of this process; results do not depend on how many."""
        self._crew.close()
        self._crew = Crew(threads)

    def _initialise(self) -> None:
        outputs = (self.actor_score, self.no_op_score, self.critic_value)
        for layer in self.children():
            assert isinstance(layer, nn.Linear)
            if layer in outputs:
                # Start undecided: move or not, all moves equally likely, no value known.
                nn.init.zeros_(layer.weight)
            else:
                nn.init.orthogonal_(layer.weight, gain=float(np.sqrt(2)))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def _split(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return node rows ``[B, N, K]``, global block ``[B, G]`` and mean weights ``[B, N]``."""
        batch, length = observation.shape
        split = length - self._global_features
        # Contiguous here, or else each layer that reads them would make a copy of its own.
        rows = observation[:, :split].contiguous().view(batch, -1, self._node_features)
        up = rows[:, :, self._up_column]
        weights = up / up.sum(dim=1, keepdim=True).clamp(min=1.0)
        return rows, observation[:, split:], weights

    def scores(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the scores of all actions, ``[B, N·S + 1]``, of observations ``[B, N·K + G]``."""
        return torch.cat(self._scores(*self._split(observation)), dim=1)

    def values(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the value of the fleet's state, ``[B, 1]``."""
        rows, fleet, weights = self._split(observation)
        return self._values(rows, fleet, weights)

    def decisions(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores of the moves, ``[B, N·S]``, and of the no-op, ``[B, 1]``."""
        return self._scores(*self._split(observation))

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return :meth:`scores` and :meth:`values`."""
        moves, no_op, values = self.everything(observation)
        return torch.cat((moves, no_op), dim=1), values

    def everything(
        self, observation: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return both :meth:`decisions`, and :meth:`values`."""
        parts = self._split(observation)
        return *self._scores(*parts), self._values(*parts)

    def _scores(
        self, rows: torch.Tensor, fleet: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        moves, mean = ActorTrunk.apply(
            self._crew,
            rows,
            weights,
            torch.addmm(self.actor_node.bias, fleet, self.actor_fleet.weight.t()),
            self.actor_node.weight,
            self.actor_hidden.weight,
            self.actor_hidden.bias,
            self.actor_score.weight,
            self.actor_score.bias,
        )
        return moves, self.no_op_score(torch.relu_(self.no_op_hidden(mean)))

    def _values(
        self, rows: torch.Tensor, fleet: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        mean = CriticTrunk.apply(
            self._crew,
            rows,
            weights,
            torch.addmm(self.critic_node.bias, fleet, self.critic_fleet.weight.t()),
            self.critic_node.weight,
        )
        return self.critic_value(torch.relu_(self.critic_hidden(mean)))


class NodeScorerPolicy(MaskableActorCriticPolicy):
    """Actor and critic of MaskablePPO with one network shared by all nodes.

    It decides whether to move, and which move, as :class:`NodeScorer` explains. Deterministic, it
    takes the likelier answer to each. The weights depend on the layout's K, G and S alone. The
    number of nodes follows from the observation's length, so a model that was trained on one fleet
    runs on a larger one: see :func:`edgegym.sb3.load_model`.

    Parameters
    ----------
    observation_space : gymnasium.spaces.Box
        Flat observations, ``N·K + G`` long.
    action_space : gymnasium.spaces.Discrete
        ``N·S + 1`` actions, the last of which is the no-op.
    lr_schedule : callable
        Learning rate by remaining progress.
    node_features, global_features, num_profiles, up_column : int
        Sizes of the layout: :func:`scorer_kwargs` gives them.
    width : int
        Units of each hidden layer.
    optimizer_class, optimizer_kwargs
        As in Stable-Baselines3.

    Raises
    ------
    ValueError
        If the spaces do not have these sizes.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        *,
        node_features: int,
        global_features: int,
        num_profiles: int,
        up_column: int,
        width: int = 64,
        optimizer_class: type[torch.optim.Optimizer] = torch.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        _check_spaces(observation_space, action_space, node_features, global_features, num_profiles)
        # The base class calls _build before it returns, which needs these.
        self._sizes = {
            "node_features": node_features,
            "global_features": global_features,
            "num_profiles": num_profiles,
            "up_column": up_column,
            "width": width,
        }
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            normalize_images=False,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
        )

    def _build(self, lr_schedule: Schedule) -> None:
        self.scorer = NodeScorer(**self._sizes)
        if self.optimizer_class is torch.optim.Adam:
            # One pass over all weights instead of a dozen operations on each of them.
            self.optimizer_kwargs = {"fused": True, **self.optimizer_kwargs}
        keep_freed_memory()
        self.optimizer = self.optimizer_class(
            self.parameters(),
            lr=lr_schedule(1),  # pyright: ignore[reportCallIssue]
            **self.optimizer_kwargs,
        )

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
            **self._sizes,
        }

    def forward(
        self,
        obs: torch.Tensor,
        deterministic: bool = False,
        action_masks: Masks = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Choose actions.

        Parameters
        ----------
        obs : Tensor, shape [B, N·K + G]
        deterministic : bool
            The likelier of moving or not, and the likeliest move, instead of a sample.
        action_masks : array or Tensor of bool, shape [B, N·S + 1], optional
            Legal actions; all if omitted.

        Returns
        -------
        actions : Tensor of int64, shape [B]
        values : Tensor, shape [B, 1]
        log_prob : Tensor, shape [B]
        """
        moves, no_op, values = self.scorer.everything(obs.float())
        of_all = log_probs(moves, no_op, action_masks)
        actions = choose(of_all, deterministic)
        return actions, values, of_all.gather(1, actions.unsqueeze(1)).squeeze(1)

    def evaluate_actions(
        self,
        obs: torch.Tensor,
        actions: torch.Tensor,
        action_masks: Masks = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return values ``[B, 1]``, log-probabilities ``[B]`` and entropies ``[B]`` of actions."""
        moves, no_op, values = self.scorer.everything(obs.float())
        which, moving, staying = log_decisions(moves, no_op, action_masks)
        actions = actions.long().reshape(-1, 1)
        last = which.shape[1] - 1
        move = which.gather(1, actions.clamp(max=last)) + moving
        chosen = torch.where(actions > last, staying, move).squeeze(1)
        # Of the first decision, and of the second where it comes to that. A masked move has
        # probability exactly 0, so its term is -0.
        second = -(chances(which) * which).sum(dim=1, keepdim=True)
        p_move = moving.exp()
        entropy = p_move * (second - moving) - staying.exp() * staying
        return values, chosen, entropy.squeeze(1)

    def get_distribution(self, obs: Any, action_masks: Any = None) -> MaskableDistribution:
        """Return the distribution of actions, for code that wants SB3-contrib's object."""
        logits = log_probs(*self.scorer.decisions(obs.float()), action_masks)
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution

    def _predict(
        self,
        observation: Any,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> torch.Tensor:
        decisions = self.scorer.decisions(observation.float())
        return choose(log_probs(*decisions, action_masks), deterministic)

    def predict_values(self, obs: Any) -> torch.Tensor:
        """Return the values of observations, ``[B, 1]``."""
        return self.scorer.values(obs.float())


def scorer_kwargs(env: Any, *, width: int = 64) -> dict[str, int]:
    """Return the ``policy_kwargs`` of :class:`NodeScorerPolicy` for an environment.

    Parameters
    ----------
    env : gymnasium.Env, VecEnv or ObservationLayout
        An edgegym environment, wrapped or not, a vector of them, or their layout.
    width : int
        Units of each hidden layer.

    Returns
    -------
    dict
        ``node_features``, ``global_features``, ``num_profiles``, ``up_column`` and ``width``.

    Raises
    ------
    TypeError
        If the environment has no observation layout.
    ValueError
        If the width is no whole number of at least 1.
    """
    layout = _layout(env)
    if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
        raise ValueError(f"width is {width!r}: must be a whole number of at least 1")
    return {
        "node_features": layout.node_features,
        "global_features": layout.global_features,
        "num_profiles": layout.num_profiles,
        "up_column": layout.column("up").start,
        "width": int(width),
    }


def _layout(env: Any) -> ObservationLayout:
    """Find the layout of an environment, however it is wrapped."""
    from stable_baselines3.common.vec_env import VecEnv

    if isinstance(env, ObservationLayout):
        return env
    try:
        layout = env.get_attr("layout")[0] if isinstance(env, VecEnv) else env.unwrapped.layout
    except (AttributeError, IndexError):
        layout = None
    if not isinstance(layout, ObservationLayout):
        raise TypeError(
            f"{env!r} has no observation layout: NodeScorerPolicy needs an edgegym environment "
            "such as EdgeGym/Placement-v0"
        )
    return layout


def _check_spaces(
    observation_space: spaces.Space,
    action_space: spaces.Space,
    node_features: int,
    global_features: int,
    num_profiles: int,
) -> None:
    """Refuse spaces that do not have N·K + G columns and N·S + 1 actions for one N."""
    if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
        raise ValueError(f"observation space is {observation_space}: it must be a flat Box")
    if not isinstance(action_space, spaces.Discrete):
        raise ValueError(f"action space is {action_space}: it must be Discrete")
    length = observation_space.shape[0]
    nodes, rest = divmod(length - global_features, node_features)
    if rest or nodes < 1:
        raise ValueError(
            f"observations have {length} columns: not a whole number of nodes with "
            f"{node_features} features and {global_features} for the fleet"
        )
    if int(action_space.n) != nodes * num_profiles + 1:
        raise ValueError(
            f"there are {int(action_space.n)} actions: {nodes} nodes with {num_profiles} profiles "
            f"and a no-op make {nodes * num_profiles + 1}"
        )
