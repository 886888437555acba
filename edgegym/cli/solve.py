"""``edgegym solve``: the analytic model of a scenario's long-run means."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
import tyro

from edgegym.cli.arguments import ScenarioArgument, SetArgument, chosen_scenario
from edgegym.cli.errors import BadInput, checked_input

if TYPE_CHECKING:
    from rich.console import Console

    from edgegym.analytic import Equilibrium, Performance, TieredNetwork
    from edgegym.world.scenario import Scenario

Routing = Literal["load_aware", "queue_unaware", "nearest"]
Search = Literal["exchange", "spsa", "grid", "bayesian"]

_ROUTING_OF_KIND: dict[str, Routing] = {
    "load_aware": "load_aware",
    "prefix_aware": "queue_unaware",
    "nearest": "nearest",
}
"""The analytic routing for each ``routing.kind`` of a scenario."""

_GB = 1e9
_LONGEST_TARGET_S = 1e12
_QUANTILES = (0.5, 0.9)


def solve(
    *,
    scenario: ScenarioArgument = "paper",
    routing: Annotated[
        Routing | None, tyro.conf.arg(metavar="{" + ",".join(get_args(Routing)) + "}")
    ] = None,
    target_s: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None,
    optimize: bool = False,
    budget_gb: Annotated[float | None, tyro.conf.arg(metavar="GB")] = None,
    method: Annotated[
        Search | None, tyro.conf.arg(metavar="{" + ",".join(get_args(Search)) + "}")
    ] = None,
    settings: SetArgument = (),
) -> None:
    """Solve the analytic model of a scenario's long-run means, and print it tier by tier.

    A tier is the set of nodes that hold one profile. The mix of profiles is the scenario's
    initial.mix. Example:

    edgegym solve --scenario paper --set demand.request_intensity=4 --optimize

    Parameters
    ----------
    routing
        How a request finds its node; as the scenario's routing.kind without it.
    target_s
        TTFT target; the scenario's objective.ttft_target_s without it.
    optimize
        Search the mix of profiles with the highest coverage, and solve that too.
    budget_gb
        With --optimize: most state per node that the mix may hold on average; no limit without it.
    method
        With --optimize: how to search; exchange without it. grid solves all mixes in twentieths,
        bayesian needs the extra "tune".
    """
    from edgegym.evaluation.terminal import output_console

    with checked_input():
        world = chosen_scenario(scenario, settings)
        network = world.tiered_network()
        target = world.objective.ttft_target_s if target_s is None else target_s
        if not 0 < target <= _LONGEST_TARGET_S:
            raise BadInput(
                f"--target-s {target_s}: must be a positive number of seconds, "
                f"at most {_LONGEST_TARGET_S:g}"
            )
        if routing is None:
            routing = _ROUTING_OF_KIND[world.routing.kind]
        if optimize and routing != "load_aware":
            raise BadInput(
                f"--optimize: searches with --routing load_aware only, not with {routing}"
            )
        budget_bytes = _checked_budget(budget_gb, optimize, world)
        if method is not None and not optimize:
            raise BadInput("--method: only with --optimize")
    console = output_console()
    console.print(
        f"Scenario {world.name}: {network.density_per_km2:g} nodes/km², "
        f"{network.request_intensity:.4g} requests/s/km², {routing} routing, target {target:g} s",
        markup=False,
    )
    if any(item.ttft_target_s is not None for item in world.request_types):
        console.print("Targets of single request types are not part of the analytic model.")
    _solve_and_print(console, world, network, routing, target)
    if optimize:
        _optimize_and_print(console, world, network, target, budget_bytes, method or "exchange")


def _checked_budget(budget_gb: float | None, optimize: bool, world: "Scenario") -> float | None:
    if budget_gb is None:
        return None
    if not optimize:
        raise BadInput("--budget-gb: only with --optimize")
    least = min(world.state_bytes)
    if not (np.isfinite(budget_gb) and budget_gb * _GB >= least):
        raise BadInput(
            f"--budget-gb {budget_gb}: must be at least the state of the smallest profile, "
            f"{least / _GB:.3g} GB"
        )
    return budget_gb * _GB


def _solve_and_print(
    console: "Console", world: "Scenario", network: "TieredNetwork", routing: Any, target: float
) -> None:
    from edgegym.analytic import evaluate, solve_equilibrium

    equilibrium = solve_equilibrium(network, policy=routing)
    console.print(_tier_table(world, network, equilibrium))
    if not equilibrium.stable:
        console.print(
            "Overload: an unstable tier gets more than it can serve; its waits grow without bound."
        )
    elif not equilibrium.converged:
        console.print(f"Not converged: the residual is {equilibrium.residual:.2g}.")
    performance = evaluate(network, equilibrium, ttft_target_s=target)
    console.print(_performance_table(performance))


def _optimize_and_print(
    console: "Console",
    world: "Scenario",
    network: "TieredNetwork",
    target: float,
    budget_bytes: float | None,
    method: Search,
) -> None:
    from edgegym.analytic import optimize_placement

    with checked_input(), console.status("Searching") as status:
        found = optimize_placement(
            network,
            ttft_target_s=target,
            budget_bytes=budget_bytes,
            method=method,
            report=status.update,
        )
    mix = ", ".join(
        f"{name} {share:.3f}"
        for name, share in zip(world.profile_names, found.probabilities, strict=True)
        if share > 0
    )
    ending = "" if found.converged else " (the search has not converged)"
    console.print(f"Best mix, {found.evaluations} evaluations{ending}: {mix}", markup=False)
    better = dataclasses.replace(network, profile_probabilities=found.probabilities)
    _solve_and_print(console, world, better, "load_aware", target)


def _tier_table(world: "Scenario", network: "TieredNetwork", equilibrium: "Equilibrium") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("profile", overflow="fold")
    headers = (
        "share of\nnodes",
        "slots",
        "state,\nGB",
        "share of\nrequests",
        "requests/s\nper node",
        "slots\nin use",
        "prefill,\nGPU-s/s",
        "wait,\ns",
    )
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    served = equilibrium.association @ network.type_probabilities
    weighted = equilibrium.association * network.type_probabilities
    for tier, name in enumerate(world.profile_names):
        arrivals = equilibrium.arrival_rate_per_node[tier]
        wait, stable = equilibrium.mean_wait_s[tier], equilibrium.stable_tiers[tier]
        # Prefill seconds per request that the tier serves, times its rate.
        prefill = (
            float(weighted[tier] @ network.prefill_s[tier]) / served[tier] if arrivals else 0.0
        )
        table.add_row(
            name,
            f"{network.profile_probabilities[tier]:.3f}",
            str(network.concurrency[tier]),
            f"{world.state_bytes[tier] / _GB:.2f}",
            f"{served[tier]:.3f}",
            f"{arrivals:.3f}",
            f"{equilibrium.utilization[tier]:.1%}",
            f"{arrivals * prefill:.2f}",
            f"{wait:.4f}" if stable else "unstable",
        )
    return table


def _performance_table(performance: "Performance") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_row("coverage: share of requests within target", f"{performance.coverage:.4f}")
    table.add_row("the same without queueing", f"{performance.coverage_no_queue:.4f}")
    table.add_row("mean TTFT, s", _seconds(performance.mean_ttft_s))
    for quantile in _QUANTILES:
        value = performance.quantile(quantile)
        table.add_row(f"{quantile:.0%} quantile of TTFT, s", _seconds(value))
    table.add_row("prefill saved by held prefixes", f"{performance.offloading_ratio:.1%}")
    table.add_row("mean distance to the serving node, km", f"{performance.mean_distance_km:.3f}")
    return table


def _seconds(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else "unbounded"
