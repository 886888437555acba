"""A rule for routing observations: go where the first token is predicted first."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.interface.routing import RoutingActions, RoutingLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Above every observed number: what can't be chosen.
_NEVER = np.float32(2.0)


class LeastPredicted:
    """Takes the legal action with the least predicted time to the first token.

    Among candidates that compute, and the origin, this is what the router ``load_aware`` does, as
    long as its choice is among the candidates and ``fetch.controller`` is ``never``. It rejects a
    request only where nobody can take it. It remembers nothing and draws nothing.

    Parameters
    ----------
    layout : RoutingLayout
        Of the observations, ``env.unwrapped.layout``.
    fetch : bool
        Whether it considers fetches as well.

    Raises
    ------
    TypeError
        If the layout is that of another environment.
    """

    def __init__(self, layout: RoutingLayout, fetch: bool = False) -> None:
        if not isinstance(layout, RoutingLayout):
            raise TypeError(
                f"layout is {layout!r}: it must be the RoutingLayout of the environment"
            )
        self.layout = layout
        self.fetch = fetch
        self._actions = RoutingActions(num_candidates=layout.num_candidates)
        self._present, self._ttft = layout.column("present").start, layout.column("ttft").start
        self._fetchable = layout.column("fetchable").start
        self._fetch_ttft = layout.column("fetch_ttft").start
        self._origin_up = layout.column("origin_up").start
        self._origin_ttft = layout.column("origin_ttft").start

    def predict(
        self,
        observation: "NDArray[Any]",
        state: tuple[Any, ...] | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: "NDArray[np.bool_] | None" = None,
    ) -> tuple[Any, tuple[Any, ...] | None]:
        """Decide on one observation or on a batch.

        Parameters
        ----------
        observation : ndarray, shape [C·K + G] or [B, C·K + G]
        state, episode_start, deterministic
            As Stable-Baselines3 has them; without effect.
        action_masks : ndarray of bool, shape [2·C + 2] or [B, 2·C + 2], optional
            Legal actions; without it legality is read off the observation, which says the same.

        Returns
        -------
        action : int64 or ndarray of int64, shape [B]
        state
            As it was given.

        Raises
        ------
        ValueError
            If the observation or the mask has another shape.
        """
        del episode_start, deterministic
        observed = np.asarray(observation)
        rows = self.layout.candidate_block(observed)
        shared = self.layout.global_block(observed)
        seconds = np.full((*observed.shape[:-1], self._actions.size), _NEVER, dtype=np.float32)
        last = self._actions.origin
        here = rows[..., self._present] > 0.0
        seconds[..., 0:last:2] = np.where(here, rows[..., self._ttft], _NEVER)
        if self.fetch:
            there = rows[..., self._fetchable] > 0.0
            seconds[..., 1:last:2] = np.where(there, rows[..., self._fetch_ttft], _NEVER)
        up = shared[..., self._origin_up] > 0.0
        seconds[..., last] = np.where(up, shared[..., self._origin_ttft], _NEVER)
        if action_masks is not None:
            masks = np.asarray(action_masks)
            if masks.shape != seconds.shape:
                raise ValueError(
                    f"action_masks has shape {masks.shape}: the observations need {seconds.shape}"
                )
            seconds[masks == 0] = _NEVER
        action = seconds.argmin(axis=-1)
        nobody = seconds.min(axis=-1) == _NEVER
        return np.where(nobody, self._actions.reject, action)[()], state
