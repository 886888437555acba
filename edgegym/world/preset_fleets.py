"""Built-in worlds with what real fleets have: mixed GPUs, failures, one link, serving engines."""

from edgegym.world.catalogue import Profile, RequestType
from edgegym.world.demand import Demand, Drift, Hotspot
from edgegym.world.forest import Vertex
from edgegym.world.hardware import Hardware, OccupancyDecode, Prefill
from edgegym.world.nodes import NodeClass, Nodes
from edgegym.world.operations import Control, Initial, Migration, Objective, Radio, Region
from edgegym.world.preset_parts import FAMILIES, GIB, urban
from edgegym.world.routing import Failures, Spell
from edgegym.world.scenario import Scenario
from edgegym.world.serving import EngineService
from edgegym.world.transport import Backhaul, Fetch

_BLOCK_TOKENS = 512
_ESTIMATED = "GPU figures are roofline estimates, not measurements."


def mixed_fleet() -> Scenario:
    """Return 25 nodes of three classes, under popularity drift."""
    small = Hardware(
        memory_bytes=12 * GIB,
        kv_bytes_per_token=GIB // 1024,
        runtime_bytes_per_sequence=GIB,
        prefill=Prefill(linear_s=3.5e-4, quadratic_s=2e-8),
        decode=OccupancyDecode(occupancy_s=0.8),
    )
    large = Hardware(
        memory_bytes=32 * GIB,
        kv_bytes_per_token=GIB // 1024,
        runtime_bytes_per_sequence=GIB,
        prefill=Prefill(linear_s=1.5e-4, quadratic_s=0.8e-8),
        decode=OccupancyDecode(occupancy_s=0.45),
    )
    return urban(
        "mixed-fleet",
        "No operator's nodes are all alike: of 25 nodes, 8 have a small slow GPU, 8 that of the "
        "other worlds, 4 a large fast one, and 5 are access points without any. A family's prefix "
        "costs a small node more than half of its slots and a large one a quarter, so the same "
        "profile is worth different things on different nodes, while popularity drifts through "
        "all ranks in ten minutes. An agent that looks at the mix alone can't tell where.",
        Drift(families=FAMILIES, zipf_exponent=1.0, period_s=600.0),
        classes=(
            NodeClass(name="small", share=0.32, hardware=small),
            NodeClass(name="medium", share=0.32),
            NodeClass(name="large", share=0.16, hardware=large),
            NodeClass(name="access", share=0.2, gpu=False),
        ),
    )


def node_failures() -> Scenario:
    """Return the stationary world with nodes that fail and come back empty."""
    return urban(
        "node-failures",
        "Each node fails once in ten minutes on average, for half a minute, and comes back empty: "
        "somewhere in the region state is lost every 25 seconds. Demand is stationary, so all "
        "there is to do is to bring state back: which prefix first, where neighbours can cover, "
        "and with a budget left for the next failure.",
        failures=Failures(nodes=Spell(mean_up_s=600.0, mean_down_s=30.0)),
    )


def scarce_backhaul() -> Scenario:
    """Return L4 nodes whose moves and fetches share one link."""
    zipf = [1.0 / rank for rank in range(1, 7)]
    long_share = 0.6
    return Scenario(
        name="scarce-backhaul",
        description=(
            "Llama-3.1-8B on L4: slow to compute, so prefixes are worth moving, and all moves and "
            "fetches share one link of 10 Gb/s. A prefix of 5120 tokens is 0.6 GB: half a second "
            "alone, as against 1.5 s of prefill, but only two of the 21 long requests that come "
            "each second could fetch theirs. What an agent moves ahead of the wandering crowds is "
            "fetched no more, and what it moves in vain delays those who fetch. " + _ESTIMATED
        ),
        region=Region(width_km=5.0, height_km=5.0),
        nodes=Nodes(count=25),
        forest=(
            Vertex(name="root", depth_tokens=512),
            *(Vertex(name=family, parent="root", depth_tokens=5120) for family in FAMILIES),
        ),
        request_types=(
            *(
                RequestType(
                    name=f"long_{family}",
                    path=family,
                    input_tokens=6144,
                    output_tokens=20,
                    family=family,
                    share=long_share * weight / sum(zipf),
                )
                for family, weight in zip(FAMILIES, zipf, strict=True)
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
            *(Profile(name=f"deep_{n}", vertices=(name,)) for n, name in enumerate(FAMILIES, 1)),
        ),
        hardware=Hardware.model_validate({"preset": "llama-3.1-8b@l4"}),
        radio=Radio(xi=0.36, alpha=2.0),
        demand=Demand(
            rate_per_node=1.4,
            modulations=(
                Hotspot(
                    families=FAMILIES,
                    concentration=0.8,
                    sigma_km=0.7,
                    orbit_radius_km=1.5,
                    period_s=600.0,
                ),
            ),
        ),
        migration=Migration(budget_bytes_per_s=2e8, burst_bytes=2_000_000_000),
        backhaul=Backhaul(rate_bytes_per_s=1.25e9, sharing="shared"),
        fetch=Fetch(controller="joint"),
        service=EngineService(),
        initial=Initial(
            mix={"none": 0.2, "shallow": 0.2} | {f"deep_{number}": 0.1 for number in range(1, 7)}
        ),
        control=Control(epoch_s=5.0, horizon_epochs=120),
        objective=Objective(ttft_target_s=1.5),
    )


def toolagent() -> Scenario:
    """Return agents with three system prompts and the contexts of their tools, on L40S."""
    # Blocks and shares of the three most frequent prefixes of a published agent trace.
    agents = {"assistant": (1, 0.49), "researcher": (12, 0.37), "planner": (5, 0.14)}
    contexts = {"a": 2.0 / 3.0, "b": 1.0 / 3.0}
    forest, types = [], []
    for agent, (blocks, share) in agents.items():
        depth = blocks * _BLOCK_TOKENS
        forest.append(Vertex(name=agent, depth_tokens=depth))
        for letter, part in contexts.items():
            name = f"{agent}_{letter}"
            forest.append(Vertex(name=name, parent=agent, depth_tokens=depth + 4096))
            types.append(
                RequestType(
                    name=name,
                    path=name,
                    input_tokens=depth + 5120,
                    output_tokens=180,
                    family=name,
                    share=share * part,
                )
            )
    names = [item.name for item in types]
    roots = tuple(agents)
    return Scenario(
        name="toolagent",
        description=(
            "Tool-using agents, Llama-3.1-8B on L40S with chunked prefill: three system prompts of "
            "512, 6144 and 2560 tokens that draw 49, 37 and 14 % of the requests, as the roots of "
            "a published agent trace do. Below each, two tool contexts of 4096 tokens (an "
            "assumption), each with users around a wandering centre. The roots are cheap and "
            "belong everywhere; a node that held all contexts too would lose a sixth of its slots "
            "to long outputs, and one that has only the roots can't keep up with its prefills. "
            + _ESTIMATED
        ),
        region=Region(width_km=5.0, height_km=5.0),
        nodes=Nodes(count=25),
        forest=tuple(forest),
        request_types=tuple(types),
        profiles=(
            Profile(name="none"),
            Profile(name="roots", vertices=roots),
            *(Profile(name=f"roots_{name}", vertices=(*roots, name)) for name in names),
            *(
                Profile(name=f"roots_{agent}_ab", vertices=(*roots, f"{agent}_a", f"{agent}_b"))
                for agent in agents
            ),
            Profile(name="everything", vertices=tuple(names)),
        ),
        hardware=Hardware.model_validate({"preset": "llama-3.1-8b@l40s"}),
        radio=Radio(xi=0.36, alpha=2.0),
        demand=Demand(
            rate_per_node=1.5,
            modulations=(
                Hotspot(concentration=0.8, sigma_km=0.7, orbit_radius_km=1.5, period_s=600.0),
            ),
        ),
        migration=Migration(budget_bytes_per_s=2e8, burst_bytes=5_000_000_000),
        backhaul=Backhaul(rate_bytes_per_s=6.25e8),
        service=EngineService(schedule="chunked", step_tokens=2048),
        initial=Initial(mix={"none": 0.2, "roots": 0.8}),
        control=Control(epoch_s=5.0, horizon_epochs=120),
        objective=Objective(ttft_target_s=1.0),
    )
