"""``edgegym render``: animate a policy at work."""

from pathlib import Path
from typing import Annotated

import tyro

from edgegym.cli.arguments import (
    ScenarioArgument,
    SetArgument,
    checked_policy,
    chosen_scenario,
    make_folder_of,
    output_file,
)
from edgegym.cli.errors import BadInput, checked_input


def render(
    *,
    scenario: ScenarioArgument = "moving-hotspot",
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE.gif")],
    policy: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    model: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    seed: Annotated[int | None, tyro.conf.arg(metavar="SEED")] = None,
    epochs: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    settings: SetArgument = (),
    observe_clock: bool = False,
    progress: bool = True,
) -> None:
    """Animate a policy at work, as a GIF with one picture per epoch.

    Example: edgegym render --scenario moving-hotspot --policy analytic --epochs 60 -o fleet.gif

    Parameters
    ----------
    output
        The file to write.
    policy
        A built-in policy; analytic_local if neither this nor a model is given.
    model
        A saved model (.zip), or a folder that has a model.zip.
    seed
        Seed of the episode; the scenario's first evaluation seed without it.
    epochs
        How many epochs to show; the whole episode without it.
    observe_clock
        Whether the environment observes the clock, for models that were trained so.
    progress
        Whether to show how far it is, on standard error.
    """
    from edgegym.evaluation.animation import plan_animation

    with checked_input():
        if policy is not None and model is not None:
            raise BadInput("--policy and --model: give one of them")
        output_file(output, ".gif")
        world = chosen_scenario(scenario, settings)
        animation = plan_animation(
            model or checked_policy("analytic_local" if policy is None else policy),
            world,
            seed=world.evaluation_seeds[0] if seed is None else seed,
            epochs=epochs,
            observe_clock=observe_clock,
        )
        make_folder_of(output)
    animation.write(output, progress)
    print(f"Wrote {output}")
