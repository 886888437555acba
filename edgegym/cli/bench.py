"""``edgegym bench``: measure the speed of this installation."""

import sys
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from edgegym.evaluation.speed import Speed

_NOT_INSTALLED = "skipped: not installed (extra 'bench')"


def bench(
    *, quick: bool = False, as_json: Annotated[bool, tyro.conf.arg(name="json")] = False
) -> None:
    """Measure the speed of this installation, on one core: medians of several runs.

    The first time, kernels are compiled before anything is measured.

    Parameters
    ----------
    quick
        Shorter runs, less exact: some 30 seconds.
    as_json
        Print one JSON object instead of a table.
    """
    from edgegym.evaluation.speed import FULL, QUICK, measure_speed

    def report(words: str) -> None:
        print(f"bench: {words} ...", file=sys.stderr, flush=True)

    speed = measure_speed(QUICK if quick else FULL, report)
    if as_json:
        print(speed.to_json())
    else:
        _print_table(speed)


def _print_table(speed: "Speed") -> None:
    from rich import box
    from rich.table import Table

    from edgegym.evaluation.terminal import output_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measured on one core")
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    million = "million requests/s"
    rows = [
        ("one node, 9 slots, 82 % load", f"{speed.mmc_requests_per_s / 1e6:.2f}", million),
        *(
            (f"fleet of {int(nodes):,} nodes, same load each", f"{rate / 1e6:.2f}", million)
            for nodes, rate in speed.fleet_requests_per_s.items()
        ),
        *(
            (f"the same of {int(nodes):,} nodes, full loop", f"{rate / 1e6:.2f}", million)
            for nodes, rate in speed.full_requests_per_s.items()
        ),
        ("200 nodes with engines", f"{speed.engine_requests_per_s / 1e6:.2f}", million),
        ("200 nodes with radix caches", f"{speed.lru_requests_per_s / 1e6:.2f}", million),
        *(
            (f"one node, {name}", *_peer_cells(speed.mmc_requests_per_s, rate))
            for name, rate in speed.peer_requests_per_s.items()
        ),
        (
            f"environment, 25 nodes, {speed.env_requests_per_step:.0f} requests a step",
            f"{speed.env_steps_per_s:,.0f}",
            "steps/s",
        ),
        ("64 of it as one, on all cores", f"{speed.vector_steps_per_s:,.0f}", "steps/s"),
        ("mobile-env, 15 users, 7 stations", *_mobile_env_cells(speed)),
        ("MaskablePPO learning from them", *_training_cells(speed.training_steps_per_s)),
        ("equilibrium, 3 tiers, 2 types", f"{speed.equilibrium_ms:.2f}", "ms"),
        ("equilibrium, 12 tiers, 8 types", f"{speed.equilibrium_12x8_ms:.1f}", "ms"),
        ("equilibrium, 40 tiers, 40 types", f"{speed.equilibrium_40x40_ms:.0f}", "ms"),
        (
            "coverage of 12 tiers, 8 types by scipy's quad",
            f"{speed.quad_ratio:.0f}",
            "times as long",
        ),
        ("import edgegym", f"{speed.import_s:.2f}", "s"),
        ("new process to its first step", f"{speed.first_step_s:.2f}", "s"),
    ]
    for row in rows:
        table.add_row(*row)
    console = output_console()
    console.print(table)
    if speed.cpp_ratio is None:
        console.print("Compared with C++: not measured, there is no g++ here.")
    else:
        console.print(f"Compared with its C++ twin: {speed.cpp_ratio:.2f} times as fast.")


def _mobile_env_cells(speed: "Speed") -> tuple[str, str]:
    """Return the cells of mobile-env's rate and the factors to ours."""
    if speed.mobile_env_steps_per_s is None:
        return "–", _NOT_INSTALLED
    factors = f"1/{speed.mobile_env_ratio:.0f} and 1/{speed.mobile_env_vector_ratio:.0f}"
    return f"{speed.mobile_env_steps_per_s:,.0f}", f"steps/s ({factors}; other work)"


def _training_cells(steps_per_s: float | None) -> tuple[str, str]:
    """Return the cells of the rate of training."""
    if steps_per_s is None:
        return "–", "skipped: not installed (extra 'sb3')"
    return f"{steps_per_s:,.0f}", "steps/s"


def _peer_cells(ours: float, rate: float | None) -> tuple[str, str]:
    """Return the cells of another simulator's rate and the factor to ours."""
    if rate is None:
        return "–", _NOT_INSTALLED
    return f"{rate / 1e6:.3f}", f"million requests/s (1/{ours / rate:.0f})"
