"""Worlds that work by name."""

from collections.abc import Callable
from functools import cache

from edgegym.world.catalogue import Profile, RequestType
from edgegym.world.demand import Demand, Diurnal, Drift, FlashCrowd, Hotspot
from edgegym.world.errors import ScenarioError
from edgegym.world.forest import Vertex
from edgegym.world.nodes import Nodes
from edgegym.world.operations import (
    Control,
    Initial,
    Migration,
    Objective,
    Radio,
    Region,
)
from edgegym.world.preset_fleets import mixed_fleet, node_failures, scarce_backhaul, toolagent
from edgegym.world.preset_parts import FAMILIES, FITTED, GIB, paper_hardware, urban
from edgegym.world.scenario import Scenario
from edgegym.world.serving import DeterministicService, ExponentialService
from edgegym.world.transport import Backhaul


def _paper() -> Scenario:
    return Scenario(
        name="paper",
        description=(
            "Two request types and three profiles of the load-association paper. Its parameter "
            "table is not published in the text: these values were fitted to the results that it "
            "prints. Poisson fleets of 25 nodes on average, exponential service as in the theory."
        ),
        region=Region(width_km=5.0, height_km=5.0),
        nodes=Nodes(density_per_km2=1.0),
        forest=(
            Vertex(name="root", depth_tokens=256, bytes=4 * GIB),
            Vertex(name="short_prefix", parent="root", depth_tokens=768, bytes=GIB),
            Vertex(name="long_prefix", parent="root", depth_tokens=3072, bytes=2 * GIB),
        ),
        request_types=(
            RequestType(
                name="short",
                path="short_prefix",
                input_tokens=1024,
                output_tokens=20,
                family="short",
                share=0.4,
            ),
            RequestType(
                name="long",
                path="long_prefix",
                input_tokens=4096,
                output_tokens=20,
                family="long",
                share=0.6,
            ),
        ),
        profiles=(
            Profile(name="uncached"),
            Profile(name="shallow", vertices=("root",)),
            Profile(name="deep", vertices=("short_prefix", "long_prefix")),
        ),
        hardware=paper_hardware(),
        radio=Radio(xi=0.36, alpha=2.0),
        demand=Demand(request_intensity=3.0),
        migration=Migration(budget_bytes_per_s=0.6 * GIB, burst_bytes=9 * GIB),
        backhaul=Backhaul(rate_bytes_per_s=0.25 * GIB),
        service=ExponentialService(),
        initial=Initial(mix={"uncached": 0.4, "shallow": 0.4, "deep": 0.2}),
        objective=Objective(ttft_target_s=0.8),
    )


def _toy() -> Scenario:
    return Scenario(
        name="toy",
        description=(
            "Two nodes, two prompts of 4096 tokens, and room for one 3072-token prefix on each "
            "node. A prompt meets the 0.8 s target only where its prefix is held (0.28 s of "
            "prefill instead of 1.26 s), so the best placement holds one prefix on each node and "
            "serves nearly everything in time; two nodes with the same prefix serve half; none, "
            "nothing. An agent that does not find this has a fault. " + FITTED
        ),
        region=Region(width_km=1.0, height_km=1.0),
        nodes=Nodes(count=2),
        forest=(
            Vertex(name="prefix_a", depth_tokens=3072, bytes=7 * GIB),
            Vertex(name="prefix_b", depth_tokens=3072, bytes=7 * GIB),
        ),
        request_types=tuple(
            RequestType(
                name=f"prompt_{letter}",
                path=f"prefix_{letter}",
                input_tokens=4096,
                output_tokens=20,
                family=letter,
                share=0.5,
            )
            for letter in "ab"
        ),
        profiles=(
            Profile(name="none"),
            Profile(name="hold_a", vertices=("prefix_a",)),
            Profile(name="hold_b", vertices=("prefix_b",)),
        ),
        hardware=paper_hardware(),
        radio=Radio(xi=0.1, alpha=2.0),
        demand=Demand(rate_per_node=2.0),
        migration=Migration(budget_bytes_per_s=1.0 * GIB, burst_bytes=14 * GIB),
        backhaul=Backhaul(rate_bytes_per_s=1.0 * GIB),
        service=DeterministicService(),
        initial=Initial(mix={"none": 1.0}, warmup_s=5.0),
        control=Control(epoch_s=5.0, horizon_epochs=20),
        objective=Objective(ttft_target_s=0.8),
    )


def _stationary() -> Scenario:
    return urban(
        "stationary",
        "Nothing changes: six prompt families with Zipf popularity, uniform in space. What is left "
        "to do is to reach the right mix, and to put the right profiles where the random places "
        "of the nodes ask for them. An agent should at least equal the analytic policy here.",
    )


def _popularity_drift() -> Scenario:
    return urban(
        "popularity-drift",
        "Each family passes through all popularity ranks once in ten minutes, everywhere at once. "
        "The right mix changes faster than the budget allows to follow blindly: an agent has to "
        "foresee which families rise.",
        Drift(families=FAMILIES, zipf_exponent=1.0, period_s=600.0),
    )


def _moving_hotspot() -> Scenario:
    return urban(
        "moving-hotspot",
        "The families' users wander: each family gathers around a centre that circles the region "
        "once in ten minutes from a random start. The mix never changes, the places do: an agent "
        "has to move state ahead of the crowd. Controllers that know only the mix cannot.",
        Hotspot(
            families=FAMILIES, concentration=0.8, sigma_km=0.7, orbit_radius_km=1.5, period_s=600.0
        ),
    )


def _flash_crowd() -> Scenario:
    return urban(
        "flash-crowd",
        "Every two minutes one family draws a crowd of as many requests again as the whole region "
        "has, in one place, for 40 seconds. Reaction time counts, and so does not spending the "
        "budget before it is needed.",
        FlashCrowd(
            families=FAMILIES, interval_s=120.0, duration_s=40.0, magnitude=1.0, sigma_km=0.7
        ),
    )


def _diurnal_load() -> Scenario:
    return urban(
        "diurnal-load",
        "Load swings by 60 % around its mean in ten minutes. At the peak the slots are scarce and "
        "persistent state costs concurrency; in the trough it is free.",
        Diurnal(amplitude=0.6, period_s=600.0),
    )


_BUILDERS: dict[str, Callable[[], Scenario]] = {
    "paper": _paper,
    "toy": _toy,
    "stationary": _stationary,
    "popularity-drift": _popularity_drift,
    "moving-hotspot": _moving_hotspot,
    "flash-crowd": _flash_crowd,
    "diurnal-load": _diurnal_load,
    "mixed-fleet": mixed_fleet,
    "node-failures": node_failures,
    "scarce-backhaul": scarce_backhaul,
    "toolagent": toolagent,
}


def presets() -> tuple[str, ...]:
    """Return the names of the built-in scenarios; each works without further arguments."""
    return tuple(_BUILDERS)


@cache
def preset(name: str) -> Scenario:
    """Return a built-in scenario.

    Parameters
    ----------
    name : str
        One of :func:`presets`.

    Raises
    ------
    ScenarioError
        If there is no such preset; the message lists them.
    """
    if name not in _BUILDERS:
        raise ScenarioError(f"scenario = '{name}': no such preset (known: {', '.join(_BUILDERS)})")
    return _BUILDERS[name]()
