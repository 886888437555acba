"""From a trace to a scenario."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles import CandidateProfile
from edgegym.traces.blocks import (
    forest_block,
    migration_block,
    service_block,
    type_blocks,
    type_names,
)
from edgegym.traces.content import TraceContent, trace_content
from edgegym.traces.grouping import TypeGroups
from edgegym.traces.options import BuildOptions
from edgegym.traces.replay import ReplayRequests, TraceBuild
from edgegym.traces.report import BuildReport, Load
from edgegym.traces.target import IdleTtft
from edgegym.traces.trace import Trace, TraceError
from edgegym.world.hardware import Hardware, prefill_s
from edgegym.world.scenario import Scenario

_RADIO = {"xi": 0.36, "alpha": 2.0, "base_s": 0.0}
# Sites of a city centre; at 1 node per km², as in `paper`, the way to a holder costs more than the
# prefill that most hits of a fast GPU save.
_NODES_PER_KM2 = 4.0
_BACKHAUL_BYTES_PER_S = 1.25e9
_EPOCH_S = 10.0
_EPOCHS_PER_MOVE = 2.0


def scenario_from_trace(
    trace: Trace, options: BuildOptions | None = None
) -> tuple[Scenario, BuildReport]:
    """Build a scenario with the prefixes, request types, mean lengths and mean rate of a trace.

    The scenario of :func:`build_from_trace`, with the same errors; its requests come as a Poisson
    process, the order of the trace is not in it.

    Parameters
    ----------
    trace : Trace
        What ``read_trace`` returned.
    options : BuildOptions, optional
        What the user decides.

    Returns
    -------
    tuple of Scenario and BuildReport
        The report says what was measured, chosen, assumed and dropped; so does the scenario's
        description.
    """
    build = build_from_trace(trace, options)
    return build.scenario, build.report


def build_from_trace(trace: Trace, options: BuildOptions | None = None) -> TraceBuild:
    """Build a scenario whose prefixes, request types, lengths and rate come from a trace.

    * Requests whose own KV (prompt plus output) exceeds the memory of a node are dropped.
    * Forest: prefixes that at least two prompts share, chosen by saved prefill time for the memory
      and the vertices they take (``select_prefixes``), at most three quarters of ``types``; all of
      them with ``whole_forest``.
    * Request types: requests with the same deepest chosen prefix, split by prompt length
      (``group_types``); families by subtree (``group_families``), plus ``rest`` for requests
      without a chosen prefix.
    * Profiles: filled by value per byte to a half, then a quarter, then an eighth of the usable
      memory, for all types together and for each family in rounds, without duplicates and dominated
      ones (``edgegym.profiles.make_profiles``), plus an empty one.
    * A running sequence takes the KV of the mean prompt plus output, rounded up to whole bytes.

    Popularity is stationary: each type keeps its share of the trace, or of the window that is used.
    The requests themselves, in their order, are kept beside the scenario for a replay.

    Parameters
    ----------
    trace : Trace
        What ``read_trace`` returned.
    options : BuildOptions, optional
        What the user decides.

    Returns
    -------
    TraceBuild
        Scenario, report, and the requests, each with its type. The report says what was measured,
        chosen, assumed and dropped; so does the scenario's description.

    Raises
    ------
    TraceError
        If the trace has no prefixes and none are assumed, prefixes are assumed for a trace that has
        its own, no request lies in the window or fits into the memory, or nothing can be reused.
    ScenarioError
        If the hardware preset is unknown.
    """
    options = options or BuildOptions()
    content = trace_content(trace, options)
    rate = _rate_per_node(content, options)
    side_km = options.side_km or (options.nodes / _NODES_PER_KM2) ** 0.5
    report = _report(trace, content, options, rate, side_km)
    scenario = Scenario(name=_scenario_name(trace), **_document(content, options, report, side_km))
    used, types = content.used, content.types
    requests = ReplayRequests(
        type_names=tuple(type_names(content.forest, types)),
        arrival_s=used.arrival_s - used.arrival_s[0],
        type_index=types.of_request,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
    )
    return TraceBuild(scenario, report, requests)


def _rate_per_node(content: TraceContent, options: BuildOptions) -> float:
    rate = options.rate_per_node or content.window.rate_per_s / options.nodes
    if rate <= 0:
        raise TraceError.at(
            content.window.path,
            None,
            "the requests came at one instant, so there is no rate to measure; give rate_per_node",
        )
    return rate


def _report(
    trace: Trace, content: TraceContent, options: BuildOptions, rate: float, side_km: float
) -> BuildReport:
    """Return what was measured, chosen, assumed and dropped."""
    forest, shared, used = content.forest, content.shared, content.used
    types, profiles, hardware = content.types, content.profiles, content.hardware
    idle = _idle_ttft(types, profiles, hardware, options.nodes / side_km**2)
    target_s = options.ttft_target_s or idle.most_telling_target_s()
    window = content.window
    return BuildReport(
        source=Path(trace.path).name,
        source_format=trace.source_format,
        options=options,
        requests=trace.num_requests,
        window_requests=window.num_requests,
        dropped_share=1.0 - used.num_requests / window.num_requests,
        measured_rate_per_s=window.rate_per_s,
        rate_per_node=rate,
        ttft_target_s=target_s,
        idle_attainment=idle.attainment(target_s),
        num_vertices=forest.num_vertices,
        num_types=len(types.share),
        num_families=int(content.family.max()) + 1 + content.has_rest,
        num_profiles=len(profiles),
        runtime_bytes=content.runtime_bytes,
        prefix_share=float((forest.deepest >= 0).mean()),
        shared_token_share=_hit_share(shared.deepest, shared.depth_tokens, used),
        chosen_token_share=_hit_share(forest.deepest, forest.depth_tokens, used),
        loads=_loads(types, profiles, hardware, rate),
    )


def _document(
    content: TraceContent, options: BuildOptions, report: BuildReport, side_km: float
) -> dict[str, Any]:
    """Return the blocks of the scenario."""
    types, profiles = content.types, content.profiles
    return {
        "description": report.description(),
        "region": {"width_km": side_km, "height_km": side_km, "periodic": True},
        "nodes": {"count": options.nodes},
        "forest": forest_block(content.forest),
        "request_types": type_blocks(content.forest, types, content.family),
        "profiles": [profile.as_profile() for profile in profiles],
        "hardware": {"preset": options.hardware},
        "radio": _RADIO,
        "demand": {"rate_per_node": report.rate_per_node},
        "migration": migration_block(profiles, _EPOCHS_PER_MOVE * _EPOCH_S),
        "backhaul": {"rate_bytes_per_s": _BACKHAUL_BYTES_PER_S},
        "service": service_block(options.service, types.output_scv),
        # The hottest prefixes on every node: what an operator does who does not place at all.
        "initial": {"mix": {profiles[1].name: 1.0}, "warmup_s": 60.0},
        "control": {"epoch_s": _EPOCH_S, "horizon_epochs": 120},
        "objective": {"kind": "coverage", "ttft_target_s": report.ttft_target_s},
    }


def _hit_share(deepest: NDArray[np.int64], depth: NDArray[np.int64], trace: Trace) -> float:
    hits = np.append(depth, 0)[deepest]
    return float(hits.sum() / trace.input_tokens.sum())


def _idle_ttft(
    types: TypeGroups,
    profiles: Sequence[CandidateProfile],
    hardware: Hardware,
    density_per_km2: float,
) -> IdleTtft:
    best_hit = np.max([profile.hit_tokens for profile in profiles], axis=0)
    return IdleTtft(
        share=types.share,
        cold_prefill_s=prefill_s(hardware.prefill, types.input_tokens, 0),
        best_prefill_s=prefill_s(hardware.prefill, types.input_tokens, best_hit),
        density_per_km2=density_per_km2,
        holder_share=1.0 / (len(profiles) - 1),
        radio_xi=_RADIO["xi"],
        radio_alpha=_RADIO["alpha"],
    )


def _loads(
    types: TypeGroups,
    profiles: Sequence[CandidateProfile],
    hardware: Hardware,
    rate_per_node: float,
) -> tuple[Load, ...]:
    decode_s = hardware.decode.seconds(types.output_tokens.astype(np.float64))
    loads = []
    for profile in profiles:
        compute_s = prefill_s(hardware.prefill, types.input_tokens, profile.hit_tokens)
        slots = profile.concurrency
        loads.append(
            Load(
                profile=profile.name,
                slots=slots,
                utilization=rate_per_node * float(types.share @ (compute_s + decode_s)) / slots,
                prefill_utilization=rate_per_node * float(types.share @ compute_s),
            )
        )
    return tuple(loads)


def _scenario_name(trace: Trace) -> str:
    stem = Path(trace.path).name.split(".")[0]
    return "trace-" + (re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "unnamed")
