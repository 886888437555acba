"""An episode as an animated picture."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgegym.evaluation.contestants import contestant
from edgegym.evaluation.episode import Decider
from edgegym.evaluation.progress import progress_of
from edgegym.files import atomic_path

if TYPE_CHECKING:
    from edgegym.envs.placement import PlacementEnv
    from edgegym.world.scenario import Scenario

_FRAME_MS = 200
_LAST_FRAME_MS = 2000
_COLOURS = 256


@dataclass(frozen=True)
class Animation:
    """A checked animation, ready to be made: see :func:`plan_animation`."""

    env: "PlacementEnv"
    """Draws itself."""
    decider: Decider
    """The policy."""
    seed: int
    """Seed of the episode."""
    epochs: int
    """Epochs to show."""

    def write(self, path: str | os.PathLike[str], progress: bool = True) -> Path:
        """Play the epochs and write a GIF, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file.
        progress : bool
            Whether to show on standard error how far it is.

        Returns
        -------
        pathlib.Path
            The file.
        """
        try:
            frames = self._frames(progress)
        finally:
            self.env.close()
        durations = [_FRAME_MS] * (len(frames) - 1) + [_LAST_FRAME_MS]
        with atomic_path(path) as temporary:
            frames[0].save(
                temporary,
                format="GIF",
                save_all=True,
                append_images=frames[1:],
                duration=durations,
                loop=0,
            )
        return Path(path)

    def _frames(self, progress: bool) -> list[Any]:
        env = self.env
        observation, info = env.reset(seed=self.seed)
        self.decider.begin()
        frames = [_picture(env)]
        with progress_of("animate", self.epochs, progress) as advance:
            while env.epoch < self.epochs:
                shown = env.epoch
                action = self.decider.action(observation, info)
                observation, _, _, _, info = env.step(action)
                if env.epoch > shown:
                    frames.append(_picture(env))
                    advance(f"epoch {env.epoch}")
        return frames


def plan_animation(
    policy: Any,
    scenario: "str | os.PathLike[str] | Scenario",
    seed: int,
    epochs: int | None = None,
    overrides: dict[str, Any] | None = None,
    observe_clock: bool = False,
) -> Animation:
    """Check the arguments of an animation without playing anything.

    Parameters and errors are those of :func:`animate`.

    Returns
    -------
    Animation
        To be written.
    """
    from edgegym.envs.placement import PlacementEnv

    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed = {seed!r}: must be a whole number of at least 0")
    env = PlacementEnv(scenario, overrides, observe_clock=observe_clock, render_mode="rgb_array")
    horizon = env.scenario.control.horizon_epochs
    if epochs is not None and not 1 <= epochs <= horizon:
        raise ValueError(f"epochs = {epochs}: must lie in 1..{horizon}, the scenario's horizon")
    decider = contestant("policy", policy).decider(env)
    return Animation(env, decider, seed, horizon if epochs is None else epochs)


def animate(
    policy: Any,
    scenario: "str | os.PathLike[str] | Scenario",
    seed: int,
    path: str | os.PathLike[str],
    epochs: int | None = None,
    overrides: dict[str, Any] | None = None,
    observe_clock: bool = False,
    progress: bool = True,
) -> Path:
    """Write a GIF of a policy at work, whole or not at all.

    Parameters
    ----------
    policy : str, path-like, model, callable or object
        As a value of :func:`edgegym.evaluation.compare`.
    scenario : str, path-like or Scenario
        The world.
    seed : int
        Seed of the episode.
    path : path-like
        The file, ``.gif``.
    epochs : int, optional
        How many epochs to show, one picture each, after the picture of the start; by default all.
    overrides : dict, optional
        Changes of the scenario by dotted path.
    observe_clock : bool
        Whether the environment observes the clock.
    progress : bool
        Whether to show on standard error how far it is.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If an argument is wrong or the policy does not fit the scenario.
    """
    if Path(path).suffix.lower() != ".gif":
        raise ValueError(f"path = '{path}': the name of an animation must end in .gif")
    plan = plan_animation(policy, scenario, seed, epochs, overrides, observe_clock)
    return plan.write(path, progress)


def _picture(env: "PlacementEnv") -> Any:
    from PIL import Image

    # A palette at once: true-colour pictures of a long episode would fill the memory.
    pixels = env.render()
    assert pixels is not None, "made with render_mode rgb_array"
    return Image.fromarray(pixels).quantize(_COLOURS, dither=Image.Dither.NONE)
