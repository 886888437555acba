"""``edgegym trace``: look into a request trace, and build a scenario from one."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgegym.traces import (
    BuildOptions,
    BuildReport,
    TraceStatistics,
    build_from_trace,
    read_trace,
    trace_statistics,
    write_replaying_scenario,
)
from edgegym.traces.statistics import LengthStatistics, ReuseStatistics
from edgegym.world import Scenario

File = Annotated[
    Path,
    tyro.conf.Positional,
    tyro.conf.arg(help="A Mooncake or Azure trace, plain or gzipped.", metavar="FILE"),
]


def inspect(file: File, *, window_s: float = 10.0, hottest: int = 10) -> None:
    """Print what is in a request trace.

    Parameters
    ----------
    file
        A Mooncake or Azure trace, plain or gzipped.
    window_s
        Window of the index of dispersion, seconds.
    hottest
        How many shared prefixes to list.
    """
    trace = read_trace(file)
    statistics = trace_statistics(trace, window_s=window_s, num_hottest=hottest)
    console = Console(highlight=False)
    console.print(f"[bold]{escape(file.name)}[/bold] ({trace.source_format} trace)")
    console.print(_load_table(statistics))
    console.print(_length_table(statistics))
    if statistics.reuse is None:
        console.print(
            "Prefixes: this format has lengths but no prefixes, so reuse can't be measured. "
            "`edgegym trace scenario` needs --shared-prefix-tokens for it."
        )
        return
    console.print(_reuse_table(statistics.reuse))
    if statistics.reuse.hottest:
        console.print(_hottest_table(statistics.reuse))


def scenario(
    file: File,
    *,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    replay: bool = False,
    options: Annotated[BuildOptions, tyro.conf.arg(name="")] = BuildOptions(),  # noqa: B008 (frozen)
) -> None:
    """Build a scenario from a request trace.

    Parameters
    ----------
    file
        A Mooncake or Azure trace, plain or gzipped.
    output
        The scenario file to write, .yaml, .yml or .json; one that is there is replaced.
    replay
        Write a scenario that replays the trace's requests, in their order and with their own
        lengths. They go into a second file beside the first, named after it.
    options
        What is not measured from the trace.
    """
    write = _writer(output)
    build = build_from_trace(read_trace(file), options)
    report, written = build.report, [output]
    try:
        if replay:
            requests, report = write_replaying_scenario(build, output)
            written.append(requests)
        else:
            write(build.scenario, output)
    except OSError as error:
        raise ValueError(
            f"--output {output}: can't be written: {error.strerror or error}"
        ) from error
    _print_report(report, written)


def _writer(output: Path) -> Callable[[Scenario, Path], None]:
    """Choose how to write before the work is done, so that a wrong name costs no time."""
    if output.suffix in (".yaml", ".yml"):
        return Scenario.to_yaml
    if output.suffix == ".json":
        return Scenario.to_json
    raise ValueError(f"--output {output}: must end in .yaml, .yml or .json")


def _key_value_table(title: str, rows: dict[str, str]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for key, value in rows.items():
        table.add_row(key, value)
    return table


def _number(value: float | None, unit: str = "") -> str:
    return "not defined" if value is None else f"{value:,.4g}{unit}"


def _load_table(statistics: TraceStatistics) -> Table:
    rows = {
        "requests": f"{statistics.requests:,}",
        "duration": f"{statistics.duration_s:,.1f} s",
        "rate": f"{statistics.rate_per_s:.4g} requests/s",
        "inter-arrival SCV": f"{_number(statistics.interarrival_scv)} (1: Poisson)",
        "index of dispersion": (
            f"{_number(statistics.dispersion_index)} of counts in {statistics.window_s:g} s "
            "windows (1: Poisson)"
        ),
    }
    distinct = statistics.distinct_arrival_times
    if distinct < statistics.requests / 2:
        rows["note"] = (
            f"only {distinct:,} distinct timestamps: the recorder rounded them, and the "
            "inter-arrival SCV measures the rounding"
        )
    return _key_value_table("Load", rows)


def _length_table(statistics: TraceStatistics) -> Table:
    table = Table(title="Tokens", title_justify="left", box=None, pad_edge=False)
    for column in ("", "mean", "p50", "p90", "p99", "largest"):
        table.add_column(column, justify="right" if column else "left")

    def add(name: str, lengths: LengthStatistics) -> None:
        values = (lengths.mean, lengths.p50, lengths.p90, lengths.p99, lengths.largest)
        table.add_row(name, *(f"{value:,.0f}" for value in values))

    add("input", statistics.input)
    add("output", statistics.output)
    return table


def _reuse_table(reuse: ReuseStatistics) -> Table:
    return _key_value_table(
        "Reuse (an infinite prefix cache, in order of arrival)",
        {
            "prompt tokens held": f"{reuse.token_share:.1%}",
            "blocks seen before": f"{reuse.block_share:.1%}",
            "time since last use": (
                f"p50 {_number(reuse.interval_p50_s, ' s')}, "
                f"p90 {_number(reuse.interval_p90_s, ' s')}"
            ),
            "roots": f"{reuse.roots:,} distinct first blocks",
        },
    )


def _hottest_table(reuse: ReuseStatistics) -> Table:
    table = Table(
        title="Hottest prefixes, by the tokens that their own part saves",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for column in ("first block", "depth, tokens", "own tokens", "requests", "share of requests"):
        table.add_column(column, justify="right")
    for prefix in reuse.hottest:
        table.add_row(
            str(prefix.root_block),
            f"{prefix.depth_tokens:,}",
            f"{prefix.own_tokens:,}",
            f"{prefix.requests:,}",
            f"{prefix.share:.2%}",
        )
    return table


def _print_report(report: BuildReport, written: list[Path]) -> None:
    console = Console(highlight=False)
    counts = (
        f"{report.num_vertices} vertices, {report.num_types} request types in "
        f"{report.num_families} families, {report.num_profiles} profiles"
    )
    console.print(_key_value_table("", {"Scenario": counts} | report.choices()))
    table = Table(title="If a node held one profile and served all types", title_justify="left")
    for column in ("profile", "slots", "slot utilisation", "prefill utilisation"):
        table.add_column(column, justify="left" if column == "profile" else "right")
    for load in report.loads:
        table.add_row(
            load.profile,
            str(load.slots),
            f"{load.utilization:.2f}",
            f"{load.prefill_utilization:.2f}",
        )
    console.print(table)
    for warning in report.warnings():
        console.print(f"[yellow]Warning:[/yellow] {escape(warning)}")
    names = " and ".join(f"[bold]{escape(str(path))}[/bold]" for path in written)
    console.print(f"Wrote {names}")
