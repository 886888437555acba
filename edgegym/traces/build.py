"""From a trace to a scenario."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles import LEVELS, CandidateProfile
from edgegym.traces.blocks import (
    forest_block,
    migration_block,
    service_block,
    type_blocks,
    type_names,
)
from edgegym.traces.grouping import TypeGroups, group_families, group_types
from edgegym.traces.options import BuildOptions
from edgegym.traces.profiles import trace_demand, trace_profiles
from edgegym.traces.replay import ReplayRequests, TraceBuild
from edgegym.traces.report import BuildReport, Load
from edgegym.traces.selection import SelectionLimits, all_prefixes, select_prefixes
from edgegym.traces.target import IdleTtft
from edgegym.traces.trace import Trace, TraceError
from edgegym.traces.trie import SharedPrefixes, block_trie, shared_prefixes
from edgegym.world.hardware import Hardware, prefill_s
from edgegym.world.hardware_presets import hardware_figures
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
    hardware = Hardware.model_validate({"preset": hardware_figures(options.hardware).name})
    _check_prefixes(trace, options)
    window = _window(trace, options)
    fitting = _fitting(window, hardware, options)
    used = window.subset(fitting)
    shared = _shared(used, options)
    limits = _limits(options, hardware)
    if options.whole_forest:
        forest = all_prefixes(shared)
    else:
        forest = select_prefixes(shared, used.input_tokens, hardware.prefill, limits)
    if forest.num_vertices == 0:
        raise TraceError.at(
            trace.path,
            None,
            f"no prefix that two prompts share fits into {LEVELS[0]:.0%} of a node's usable memory "
            "and saves prefill time; there is nothing to place",
        )
    cold_s = prefill_s(hardware.prefill, used.input_tokens, 0)
    most_types = max(options.types, len(np.unique(forest.deepest)))
    types = group_types(forest, used.input_tokens, used.output_tokens, cold_s, most_types)
    has_rest = bool((types.vertex < 0).any())
    family = group_families(forest, types, options.families - has_rest)
    runtime_bytes = _runtime_bytes(types, hardware)
    profiles = trace_profiles(
        trace_demand(forest, types, hardware),
        family,
        usable_bytes=hardware.usable_bytes,
        runtime_bytes=runtime_bytes,
        number=options.profiles,
    )
    if len(profiles) < 2:
        raise TraceError.at(
            trace.path,
            None,
            f"no prefix fits beside one running sequence ({runtime_bytes / 1e9:.3g} GB) into the "
            f"{hardware.usable_bytes / 1e9:.3g} GB that a node of {options.hardware} has for both",
        )
    rate = options.rate_per_node or window.rate_per_s / options.nodes
    if rate <= 0:
        raise TraceError.at(
            trace.path,
            None,
            "the requests came at one instant, so there is no rate to measure; give rate_per_node",
        )
    side_km = options.side_km or (options.nodes / _NODES_PER_KM2) ** 0.5
    idle = _idle_ttft(types, profiles, hardware, options.nodes / side_km**2)
    target_s = options.ttft_target_s or idle.most_telling_target_s()
    report = BuildReport(
        source=Path(trace.path).name,
        source_format=trace.source_format,
        options=options,
        requests=trace.num_requests,
        window_requests=window.num_requests,
        dropped_share=float(1.0 - fitting.mean()),
        measured_rate_per_s=window.rate_per_s,
        rate_per_node=rate,
        ttft_target_s=target_s,
        idle_attainment=idle.attainment(target_s),
        num_vertices=forest.num_vertices,
        num_types=len(types.share),
        num_families=int(family.max()) + 1 + has_rest,
        num_profiles=len(profiles),
        runtime_bytes=runtime_bytes,
        prefix_share=float((forest.deepest >= 0).mean()),
        shared_token_share=_hit_share(shared.deepest, shared.depth_tokens, used),
        chosen_token_share=_hit_share(forest.deepest, forest.depth_tokens, used),
        loads=_loads(types, profiles, hardware, rate),
    )
    scenario = Scenario(
        name=_scenario_name(trace),
        description=report.description(),
        region={"width_km": side_km, "height_km": side_km, "periodic": True},
        nodes={"count": options.nodes},
        forest=forest_block(forest),
        request_types=type_blocks(forest, types, family),
        profiles=[profile.as_profile() for profile in profiles],
        hardware={"preset": options.hardware},
        radio=_RADIO,
        demand={"rate_per_node": rate},
        migration=migration_block(profiles, _EPOCHS_PER_MOVE * _EPOCH_S),
        backhaul={"rate_bytes_per_s": _BACKHAUL_BYTES_PER_S},
        service=service_block(types.output_scv),
        # The hottest prefixes on every node: what an operator does who does not place at all.
        initial={"mix": {profiles[1].name: 1.0}, "warmup_s": 60.0},
        control={"epoch_s": _EPOCH_S, "horizon_epochs": 120},
        objective={"kind": "coverage", "ttft_target_s": target_s},
    )
    requests = ReplayRequests(
        type_names=tuple(type_names(forest, types)),
        arrival_s=used.arrival_s - used.arrival_s[0],
        type_index=types.of_request,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
    )
    return TraceBuild(scenario, report, requests)


def _check_prefixes(trace: Trace, options: BuildOptions) -> None:
    assumed = options.shared_prefix_tokens
    if trace.block_ids is None and assumed is None:
        raise TraceError.at(
            trace.path,
            None,
            f"{trace.source_format} traces have lengths but no prefixes, so the file does not say "
            "what requests could reuse; state an assumption with shared_prefix_tokens "
            "(--shared-prefix-tokens N): all prompts longer than N tokens begin with the same N",
        )
    if trace.block_ids is not None and assumed is not None:
        raise TraceError.at(
            trace.path,
            None,
            f"shared_prefix_tokens = {assumed}: only for traces without prefixes; this "
            f"{trace.source_format} trace has its own",
        )
    if assumed is not None and assumed >= trace.input_tokens.max():
        raise TraceError.at(
            trace.path,
            None,
            f"shared_prefix_tokens = {assumed}: no prompt is longer (the longest has "
            f"{int(trace.input_tokens.max())} tokens), so none could begin with it",
        )


def _window(trace: Trace, options: BuildOptions) -> Trace:
    stop_s = math.inf if options.window_s is None else options.start_s + options.window_s
    inside = (trace.arrival_s >= options.start_s) & (trace.arrival_s < stop_s)
    if not inside.any():
        raise TraceError.at(
            trace.path,
            None,
            f"no request between start_s = {options.start_s:g} and {stop_s:g} s; the trace lasts "
            f"{trace.duration_s:g} s",
        )
    return trace.subset(inside)


def _fitting(trace: Trace, hardware: Hardware, options: BuildOptions) -> NDArray[np.bool_]:
    needed = hardware.kv_bytes_per_token * (trace.input_tokens + trace.output_tokens)
    fitting = needed <= hardware.usable_bytes
    if not fitting.any():
        raise TraceError.at(
            trace.path,
            None,
            f"no request fits: the smallest needs {int(needed.min()) / 1e9:.3g} GB of KV, a node "
            f"of {options.hardware} has {hardware.usable_bytes / 1e9:.3g} GB for it",
        )
    return fitting


def _shared(trace: Trace, options: BuildOptions) -> SharedPrefixes:
    depth = options.shared_prefix_tokens
    if depth is None:
        return shared_prefixes(block_trie(trace, whole_blocks_only=True), trace.block_tokens)
    # A prompt that is not longer can't begin with the assumed prefix and go on after it.
    longer = trace.input_tokens > depth
    return SharedPrefixes(
        parent=np.array([-1]),
        depth_tokens=np.array([depth]),
        requests=np.array([longer.sum()]),
        first_request=np.array([np.argmax(longer)]),
        deepest=np.where(longer, 0, -1),
    )


def _limits(options: BuildOptions, hardware: Hardware) -> SelectionLimits:
    node_tokens = int(LEVELS[0] * hardware.usable_bytes) // hardware.kv_bytes_per_token
    return SelectionLimits(
        # The other types serve to tell long prompts from short ones.
        vertices=max(1, options.types * 3 // 4),
        total_tokens=(options.profiles - 1) * node_tokens,
        path_tokens=node_tokens,
    )


def _runtime_bytes(types: TypeGroups, hardware: Hardware) -> int:
    tokens = math.fsum(types.share * (types.input_tokens + types.output_tokens))
    return math.ceil(hardware.kv_bytes_per_token * tokens)


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
