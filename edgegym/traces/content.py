"""What a scenario built from a trace is made of: requests, prefixes, request types, profiles."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles import LEVELS, CandidateProfile
from edgegym.traces.grouping import TypeGroups, group_families, group_types
from edgegym.traces.options import BuildOptions
from edgegym.traces.profiles import trace_demand, trace_profiles
from edgegym.traces.selection import (
    KeptForest,
    SelectionLimits,
    all_prefixes,
    select_prefixes,
)
from edgegym.traces.trace import Trace, TraceError
from edgegym.traces.trie import SharedPrefixes, block_trie, shared_prefixes
from edgegym.world.hardware import Hardware, prefill_s
from edgegym.world.hardware_presets import hardware_figures


@dataclass(frozen=True, eq=False)
class TraceContent:
    """What was measured in a trace and chosen for it.

    Attributes
    ----------
    hardware : Hardware
        Of every node.
    window, used : Trace
        The part that the user wants, and its requests that fit into the memory of a node.
    shared : SharedPrefixes
        All prefixes that two prompts share.
    forest : KeptForest
        Those that become vertices.
    types : TypeGroups
        Request types, Q.
    family : ndarray
        ``[Q]`` family of each type, -1 for the rest.
    profiles : tuple of CandidateProfile
        The empty one first.
    runtime_bytes : int
        KV of a running sequence.
    """

    hardware: Hardware
    window: Trace
    used: Trace
    shared: SharedPrefixes
    forest: KeptForest
    types: TypeGroups
    family: NDArray[np.int64]
    profiles: tuple[CandidateProfile, ...]
    runtime_bytes: int

    @property
    def has_rest(self) -> bool:
        """Whether there are requests without a chosen prefix."""
        return bool((self.types.vertex < 0).any())


def trace_content(trace: Trace, options: BuildOptions) -> TraceContent:
    """Choose requests, prefixes, request types and profiles.

    Parameters
    ----------
    trace : Trace
        What ``read_trace`` returned.
    options : BuildOptions
        What the user decides.

    Raises
    ------
    TraceError
        If nothing of the trace can be used or placed.
    ScenarioError
        If the hardware preset is unknown.
    """
    hardware = Hardware.model_validate({"preset": hardware_figures(options.hardware).name})
    _check_prefixes(trace, options)
    window = _window(trace, options)
    used = window.subset(_fitting(window, hardware, options))
    shared = _shared(used, options)
    forest = _forest(used, shared, hardware, options)
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
    return TraceContent(
        hardware, window, used, shared, forest, types, family, profiles, runtime_bytes
    )


def _forest(
    used: Trace, shared: SharedPrefixes, hardware: Hardware, options: BuildOptions
) -> KeptForest:
    """Return the prefixes that become vertices."""
    if options.whole_forest:
        forest = all_prefixes(shared)
    else:
        limits = _limits(options, hardware)
        forest = select_prefixes(shared, used.input_tokens, hardware.prefill, limits)
    if forest.num_vertices == 0:
        raise TraceError.at(
            used.path,
            None,
            f"no prefix that two prompts share fits into {LEVELS[0]:.0%} of a node's usable memory "
            "and saves prefill time; there is nothing to place",
        )
    return forest


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
