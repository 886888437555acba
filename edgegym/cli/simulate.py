"""``edgegym simulate``: let a fleet serve traffic, and say how it fared."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from edgegym.cli.arguments import (
    ScenarioArgument,
    SetArgument,
    make_folder_of,
    parsed_settings,
)
from edgegym.cli.errors import BadInput, checked_input
from edgegym.cli.interrupts import remembered_interrupts

if TYPE_CHECKING:
    from rich.table import Table

    from edgegym.evaluation.simulation import FamilyFigures, FleetFigures, Simulation
    from edgegym.simulator.record_files import NpzSink, ParquetSink
    from edgegym.world.scenario import Scenario

_GB = 1e9
_HOUR_S = 3600.0
_USUAL_S = 600.0


def simulate(
    *,
    scenario: ScenarioArgument = "moving-hotspot",
    router: Annotated[str | None, tyro.conf.arg(metavar="KIND")] = None,
    hours: Annotated[float | None, tyro.conf.arg(metavar="HOURS")] = None,
    seconds: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None,
    warmup_s: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None,
    seed: Annotated[tuple[int, ...], tyro.conf.arg(metavar="SEED ...")] = (0,),
    settings: SetArgument = (),
    records: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
    progress: bool = True,
) -> None:
    """Let a fleet serve traffic without anybody moving its profiles, and print how it fared.

    By family: coverage (share of requests within target), quantiles of the time to first token
    (TTFT) and of the whole request, hits, and who did not get to its best node. Example:

    edgegym simulate --scenario paper --router nearest --hours 1 --records requests.parquet

    Parameters
    ----------
    router
        The scenario's routing.kind, anew with default parameters; --set routing.NAME=VALUE gives
        others.
    hours
        Simulated time that is counted; 600 seconds if neither this nor --seconds is given.
    seconds
        The same in seconds.
    warmup_s
        Traffic before that, recorded but not counted; the scenario's initial.warmup_s without it.
    seed
        Seeds; each is a fleet of its own, and they are counted together.
    records
        File for one row a request, .parquet or .npz. It appears when all is done.
    as_json
        Print one JSON object instead of tables.
    progress
        Whether to show how far it is, on standard error.
    """
    from edgegym.evaluation.progress import progress_of
    from edgegym.evaluation.simulation import plan_simulation

    with checked_input():
        world = _scenario(scenario, router, settings)
        warm_s = world.initial.warmup_s if warmup_s is None else _checked_warmup_s(warmup_s)
        plan = plan_simulation(world, _span_s(hours, seconds), seed, warm_s)
        sink = None if records is None else _sink(records)
    parts = len(seed) * plan.pieces
    with (
        remembered_interrupts() as check,
        progress_of("simulate", parts, progress) as advance,
        nullcontext() if sink is None else sink,
    ):

        def report(words: str) -> None:
            check()
            advance(words)

        found = plan.run(sink, report)
    if as_json:
        print(found.to_json())
    else:
        _print(found)
        if sink is not None:
            print(f"Wrote {sink.path}")


def _scenario(scenario: str, router: str | None, settings: Any) -> "Scenario":
    from edgegym.world.compiled import ROUTER_KINDS
    from edgegym.world.resolve import resolve_scenario

    overrides = parsed_settings(settings)
    if router is not None:
        if router not in ROUTER_KINDS:
            raise BadInput(f"--router {router}: must be one of {', '.join(ROUTER_KINDS)}")
        if "routing.kind" in overrides or "routing" in overrides:
            raise BadInput("--router and --set routing.kind: give one of them")
        overrides = {"routing.kind": router, **overrides}
    return resolve_scenario(scenario, overrides)


def _span_s(hours: float | None, seconds: float | None) -> float:
    from edgegym.evaluation.simulation import LONGEST_S

    if hours is not None and seconds is not None:
        raise BadInput("--hours and --seconds: give one of them")
    if hours is not None:
        if not 0.0 < hours <= LONGEST_S / _HOUR_S:
            raise BadInput(
                f"--hours {hours:g}: must be positive and at most {LONGEST_S / _HOUR_S:.3g}"
            )
        return hours * _HOUR_S
    if seconds is None:
        return _USUAL_S
    if not 0.0 < seconds <= LONGEST_S:
        raise BadInput(f"--seconds {seconds:g}: must be positive and at most {LONGEST_S:g}")
    return seconds


def _checked_warmup_s(warmup_s: float) -> float:
    from edgegym.evaluation.simulation import LONGEST_S

    if not 0.0 <= warmup_s <= LONGEST_S:
        raise BadInput(f"--warmup-s {warmup_s:g}: must lie in 0..{LONGEST_S:g}")
    return warmup_s


def _sink(path: Path) -> "ParquetSink | NpzSink":
    from edgegym.simulator.record_files import sink_to

    try:
        sink = sink_to(path)
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else "must end in .parquet or .npz"
        raise BadInput(f"--records {path}: {reason}") from error
    make_folder_of(path, "--records")
    return sink


def _print(found: "Simulation") -> None:
    from edgegym.evaluation.terminal import output_console, seeds_text

    console = output_console()
    requests = found.total.requests
    console.print(
        f"Scenario {found.scenario}, router {found.router}: {requests:,} requests in "
        f"{found.seconds:,.0f} s of {seeds_text(found.seeds)}, simulated in {found.wall_s:.1f} s",
        markup=False,
    )
    console.print(_times(found.families))
    console.print(_paths(found.families))
    console.print(_fleet(found.fleet))
    for warning in found.warnings:
        console.print(f"Warning: {warning}", markup=False)


def _new_table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        if place == 0:
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    return table


def _times(rows: "tuple[FamilyFigures, ...]") -> "Table":
    quantiles = ("p50, s", "p90, s", "p99, s")
    table = _new_table(
        "family",
        "requests",
        "coverage",
        *(f"TTFT\n{name}" for name in quantiles),
        *(f"whole\n{name}" for name in quantiles),
    )
    for row in rows:
        cells = [_number(value, 3) for value in (*row.ttft_s, *row.end_to_end_s)]
        table.add_row(row.family, f"{row.requests:,}", _number(row.coverage, 4), *cells)
    return table


def _paths(rows: "tuple[FamilyFigures, ...]") -> "Table":
    table = _new_table(
        "family", "prompt\ntokens hit", "spilled", "rejected", "from the\norigin", "GB\nfetched"
    )
    for row in rows:
        table.add_row(
            row.family,
            _share(row.hit_token_share),
            f"{row.spilled:,}",
            f"{row.rejected:,}",
            f"{row.from_origin:,}",
            f"{row.fetched_bytes / _GB:,.1f}",
        )
    return table


def _fleet(fleet: "FleetFigures") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    parts = ("radio", "wait", "stall", "restore", "prefill")
    sums = " + ".join(_number(getattr(fleet, f"{name}_s"), 3) for name in parts)
    rows = [
        ("mean TTFT, s", _number(fleet.mean_ttft_s, 3)),
        (f"  = {' + '.join(parts)}", sums),
        (
            "nodes; slots and cached tokens of each",
            f"{fleet.nodes:,.6g}; {fleet.mean_slots:.1f}, {fleet.cached_tokens:,.0f}",
        ),
        (
            "slots in use: all, busiest node",
            f"{_share(fleet.utilization)}, {_share(fleet.most_utilization)}",
        ),
        (
            "prefill, GPU-s/s: mean, busiest node",
            f"{fleet.prefill_utilization:.3f}, {fleet.most_prefill_utilization:.3f}",
        ),
        (
            "GB moved, refreshed",
            f"{fleet.bytes_moved / _GB:,.1f}, {fleet.refresh_bytes / _GB:,.1f}",
        ),
    ]
    if fleet.link_utilization is not None:
        used = f"{fleet.link_bytes / _GB:,.1f}, {_share(fleet.link_utilization)}"
        rows.append(("GB over the shared link, time in use", used))
    if fleet.origin_utilization is not None:
        rows.append(("origin's slots in use", _share(fleet.origin_utilization)))
    if fleet.redirected:
        rows.append(("sent on by a closed node", f"{fleet.redirected:,}"))
    if fleet.failures:
        lost = f"{fleet.failures:,}, {fleet.redispatched:,}, {fleet.interrupted:,}"
        rows.append(("failures, requests sent again, interrupted", lost))
    for row in rows:
        table.add_row(*row)
    return table


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
