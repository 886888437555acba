"""What several built-in worlds share."""

from edgegym.world.catalogue import Profile, RequestType
from edgegym.world.demand import Demand, Modulation
from edgegym.world.forest import Vertex
from edgegym.world.hardware import Hardware, OccupancyDecode, Prefill
from edgegym.world.nodes import NodeClass, Nodes
from edgegym.world.operations import Control, Initial, Migration, Objective, Radio, Region
from edgegym.world.routing import Failures
from edgegym.world.scenario import Scenario
from edgegym.world.serving import ExponentialService
from edgegym.world.transport import Backhaul

GIB = 2**30
"""Bytes."""
FITTED = "Nodes as in 'paper': their figures are fitted to a publication, not measured."
"""What descriptions say of the nodes of the publication."""
FAMILIES = tuple(f"family_{number}" for number in range(1, 7))
"""Names of the prompt families with a prefix of their own."""


def paper_hardware() -> Hardware:
    """Return the fitted node: 16 GiB, 1 GiB for each running sequence."""
    return Hardware(
        memory_bytes=16 * GIB,
        kv_bytes_per_token=GIB // 1024,
        runtime_bytes_per_sequence=GIB,
        prefill=Prefill(linear_s=2.5e-4, quadratic_s=1.4e-8),
        decode=OccupancyDecode(occupancy_s=0.58),
    )


def urban(
    name: str,
    description: str,
    *modulations: Modulation,
    classes: tuple[NodeClass, ...] = (),
    failures: Failures | None = None,
) -> Scenario:
    """Return 25 nodes and six prompt families; only what is given here differs."""
    zipf = [1.0 / rank for rank in range(1, 7)]
    long_share = 0.6
    return Scenario(
        name=name,
        description=f"{description} {FITTED}",
        region=Region(width_km=5.0, height_km=5.0),
        nodes=Nodes(count=25, classes=classes),
        forest=(
            Vertex(name="root", depth_tokens=256, bytes=4 * GIB),
            *(
                Vertex(name=family, parent="root", depth_tokens=3072, bytes=3 * GIB)
                for family in FAMILIES
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
            *(
                Profile(name=f"deep_{number}", vertices=(family,))
                for number, family in enumerate(FAMILIES, 1)
            ),
        ),
        hardware=paper_hardware(),
        radio=Radio(xi=0.36, alpha=2.0),
        demand=Demand(rate_per_node=3.5, modulations=modulations),
        migration=Migration(budget_bytes_per_s=0.6 * GIB, burst_bytes=9 * GIB),
        backhaul=Backhaul(rate_bytes_per_s=0.25 * GIB),
        service=ExponentialService(),
        failures=failures,
        initial=Initial(
            mix={"none": 0.2, "shallow": 0.2} | {f"deep_{number}": 0.1 for number in range(1, 7)}
        ),
        control=Control(epoch_s=5.0, horizon_epochs=120),
        objective=Objective(ttft_target_s=0.8),
    )
