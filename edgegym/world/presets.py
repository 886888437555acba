"""Worlds that work by name."""

from collections.abc import Callable
from functools import cache

from edgegym.world.catalogue import Profile, RequestType
from edgegym.world.demand import Demand, Diurnal, Drift, FlashCrowd, Hotspot, Modulation
from edgegym.world.errors import ScenarioError
from edgegym.world.forest import Vertex
from edgegym.world.hardware import Hardware, OccupancyDecode, Prefill
from edgegym.world.nodes import Nodes
from edgegym.world.operations import (
    Control,
    Initial,
    Migration,
    Objective,
    Radio,
    Region,
)
from edgegym.world.scenario import Scenario
from edgegym.world.serving import DeterministicService, ExponentialService
from edgegym.world.transport import Backhaul

_GIB = 2**30
_FITTED = "Nodes as in 'paper': their figures are fitted to a publication, not measured."
_FAMILIES = tuple(f"family_{number}" for number in range(1, 7))


def _paper_hardware() -> Hardware:
    """Return the fitted node: 16 GiB, 1 GiB for each running sequence."""
    return Hardware(
        memory_bytes=16 * _GIB,
        kv_bytes_per_token=_GIB // 1024,
        runtime_bytes_per_sequence=_GIB,
        prefill=Prefill(linear_s=2.5e-4, quadratic_s=1.4e-8),
        decode=OccupancyDecode(occupancy_s=0.58),
    )


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
            Vertex(name="root", depth_tokens=256, bytes=4 * _GIB),
            Vertex(name="short_prefix", parent="root", depth_tokens=768, bytes=_GIB),
            Vertex(name="long_prefix", parent="root", depth_tokens=3072, bytes=2 * _GIB),
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
        hardware=_paper_hardware(),
        radio=Radio(xi=0.36, alpha=2.0),
        demand=Demand(request_intensity=3.0),
        migration=Migration(budget_bytes_per_s=0.6 * _GIB, burst_bytes=9 * _GIB),
        backhaul=Backhaul(rate_bytes_per_s=0.25 * _GIB),
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
            "nothing. An agent that does not find this has a fault. " + _FITTED
        ),
        region=Region(width_km=1.0, height_km=1.0),
        nodes=Nodes(count=2),
        forest=(
            Vertex(name="prefix_a", depth_tokens=3072, bytes=7 * _GIB),
            Vertex(name="prefix_b", depth_tokens=3072, bytes=7 * _GIB),
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
        hardware=_paper_hardware(),
        radio=Radio(xi=0.1, alpha=2.0),
        demand=Demand(rate_per_node=2.0),
        migration=Migration(budget_bytes_per_s=1.0 * _GIB, burst_bytes=14 * _GIB),
        backhaul=Backhaul(rate_bytes_per_s=1.0 * _GIB),
        service=DeterministicService(),
        initial=Initial(mix={"none": 1.0}, warmup_s=5.0),
        control=Control(epoch_s=5.0, horizon_epochs=20),
        objective=Objective(ttft_target_s=0.8),
    )


def _urban(name: str, description: str, *modulations: Modulation) -> Scenario:
    """Return 25 nodes and six prompt families; only what modulates the demand differs."""
    zipf = [1.0 / rank for rank in range(1, 7)]
    long_share = 0.6
    return Scenario(
        name=name,
        description=f"{description} {_FITTED}",
        region=Region(width_km=5.0, height_km=5.0),
        nodes=Nodes(count=25),
        forest=(
            Vertex(name="root", depth_tokens=256, bytes=4 * _GIB),
            *(
                Vertex(name=family, parent="root", depth_tokens=3072, bytes=3 * _GIB)
                for family in _FAMILIES
            ),
        ),
        request_types=(
            *(
                RequestType(
                    name=f"long_{family}",
                    path=family,
                    input_tokens=4096,
                    output_tokens=20,
                    family=family,
                    share=long_share * weight / sum(zipf),
                )
                for family, weight in zip(_FAMILIES, zipf, strict=True)
            ),
            RequestType(
                name="short",
                path="root",
                input_tokens=1024,
                output_tokens=20,
                family="general",
                share=1.0 - long_share,
            ),
        ),
        profiles=(
            Profile(name="none"),
            Profile(name="shallow", vertices=("root",)),
            *(
                Profile(name=f"deep_{number}", vertices=(family,))
                for number, family in enumerate(_FAMILIES, 1)
            ),
        ),
        hardware=_paper_hardware(),
        radio=Radio(xi=0.36, alpha=2.0),
        demand=Demand(rate_per_node=3.5, modulations=modulations),
        migration=Migration(budget_bytes_per_s=0.6 * _GIB, burst_bytes=9 * _GIB),
        backhaul=Backhaul(rate_bytes_per_s=0.25 * _GIB),
        service=ExponentialService(),
        initial=Initial(
            mix={"none": 0.2, "shallow": 0.2} | {f"deep_{number}": 0.1 for number in range(1, 7)}
        ),
        control=Control(epoch_s=5.0, horizon_epochs=120),
        objective=Objective(ttft_target_s=0.8),
    )


def _stationary() -> Scenario:
    return _urban(
        "stationary",
        "Nothing changes: six prompt families with Zipf popularity, uniform in space. What is left "
        "to do is to reach the right mix, and to put the right profiles where the random places "
        "of the nodes ask for them. An agent should at least equal the analytic policy here.",
    )


def _popularity_drift() -> Scenario:
    return _urban(
        "popularity-drift",
        "Each family passes through all popularity ranks once in ten minutes, everywhere at once. "
        "The right mix changes faster than the budget allows to follow blindly: an agent has to "
        "foresee which families rise.",
        Drift(families=_FAMILIES, zipf_exponent=1.0, period_s=600.0),
    )


def _moving_hotspot() -> Scenario:
    return _urban(
        "moving-hotspot",
        "The families' users wander: each family gathers around a centre that circles the region "
        "once in ten minutes from a random start. The mix never changes, the places do: an agent "
        "has to move state ahead of the crowd. Controllers that know only the mix cannot.",
        Hotspot(
            families=_FAMILIES, concentration=0.8, sigma_km=0.7, orbit_radius_km=1.5, period_s=600.0
        ),
    )


def _flash_crowd() -> Scenario:
    return _urban(
        "flash-crowd",
        "Every two minutes one family draws a crowd of as many requests again as the whole region "
        "has, in one place, for 40 seconds. Reaction time counts, and so does not spending the "
        "budget before it is needed.",
        FlashCrowd(
            families=_FAMILIES, interval_s=120.0, duration_s=40.0, magnitude=1.0, sigma_km=0.7
        ),
    )


def _diurnal_load() -> Scenario:
    return _urban(
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
