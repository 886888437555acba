"""The worlds of the study of practice: tool agents, and two recorded hours of a chat service."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgegym.analytic import optimize_placement
from edgegym.policies.lru import lru_world
from edgegym.traces import BuildOptions, build_from_trace, read_trace
from edgegym.world import Scenario, preset

TRACES_VARIABLE = "EDGEGYM_TRACES"
"""Environment variable: the folder with the Mooncake traces."""

CACHES = ("profiles", "lru")

AGENT_RATE_PER_NODE = 2.0
"""Requests per second: a third more than the preset's own, at which the best routers serve nearly
all requests in time with either cache."""

CANDIDATES = 4
"""Nodes that routers choose from, unless they search them all with regard to the distance."""

_SEARCH_ALL = ("nearest", "prefix_aware", "load_aware")

# As in the preset `toolagent`: prompts in chunks that share each step with decoding.
_ENGINE = {"kind": "engine", "schedule": "chunked", "step_tokens": 2048}


@dataclass(frozen=True)
class Recording:
    """A recorded trace, and how it is replayed."""

    files: tuple[str, ...]
    """Names that the file may have."""
    nodes: int
    """So many that their slots are busy for about half of the time under `load_aware`."""
    warmup_s: float
    """Time that is not counted."""


RECORDINGS = {
    "conversation": Recording(
        ("mooncake_conversation.jsonl.gz", "mooncake_conversation.jsonl"), 16, 600.0
    ),
    "synthetic": Recording(("mooncake_synthetic.jsonl.gz", "mooncake_synthetic.jsonl"), 20, 200.0),
}
"""By the name of the world."""


@dataclass(frozen=True)
class World:
    """A world in both forms."""

    profiles: Scenario
    """Nodes hold placed prefixes."""
    lru: Scenario
    """Nodes hold what they computed last, in as much memory."""
    warmup_s: float
    """Time that is not counted."""
    counted_s: float
    """Time that is."""

    def scenario(self, cache: str, router: str) -> Scenario:
        """Return the scenario with a kind of cache and a router.

        A router that looks at candidates gets the nearest nodes, ``CANDIDATES`` of all profiles in
        use together, or a few more.
        """
        world = self.lru if cache == "lru" else self.profiles
        routing: dict[str, Any] = {"kind": router}
        if router not in _SEARCH_ALL:
            routing["candidates_per_profile"] = -(-CANDIDATES // len(world.initial.mix))
        return world.with_overrides({"routing": routing})


@contextmanager
def practice_worlds(counted_s: float) -> Iterator[dict[str, World]]:
    """Yield the worlds by name: ``toolagent``, and the recordings that there are files of.

    Parameters
    ----------
    counted_s : float
        How much of the traffic is counted; of a recording at most what it has.

    Raises
    ------
    ValueError
        If the folder named by ``EDGEGYM_TRACES`` lacks a trace.
    """
    with tempfile.TemporaryDirectory() as folder:
        worlds = {"toolagent": _agents(counted_s)}
        if traces := os.environ.get(TRACES_VARIABLE):
            for name, recording in RECORDINGS.items():
                worlds[name] = _replay(_trace_file(Path(traces), recording), recording, folder)
        yield worlds


def _agents(counted_s: float) -> World:
    """Return the preset at more load, with the mix that is best in the analytic model."""
    scenario = preset("toolagent").with_overrides({"demand.rate_per_node": AGENT_RATE_PER_NODE})
    best = optimize_placement(
        scenario.tiered_network(), ttft_target_s=scenario.objective.ttft_target_s
    )
    shares = zip(scenario.profile_names, best.probabilities, strict=True)
    mix = {name: float(share) for name, share in shares if share > 0}
    return _both(scenario.with_overrides({"initial.mix": mix}), 120.0, counted_s)


def _trace_file(folder: Path, recording: Recording) -> Path:
    for name in recording.files:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(
        f"{TRACES_VARIABLE} = '{folder}': there is no {recording.files[0]}; fetch the traces as "
        "docs/practice.md says, or unset the variable"
    )


def _replay(trace: Path, recording: Recording, folder: str) -> World:
    """Return a world that replays a trace once, with every shared prefix in its forest."""
    options = BuildOptions(nodes=recording.nodes, whole_forest=True)
    build = build_from_trace(read_trace(trace), options)
    requests = Path(folder) / f"{trace.name}.requests.csv.gz"
    build.requests.write(requests)
    scenario, _ = build.replaying(requests)
    length_s = float(build.requests.arrival_s[-1])
    engine: dict[str, Any] = {"service": _ENGINE, "initial.warmup_s": 0.0}
    return _both(scenario.with_overrides(engine), recording.warmup_s, length_s - recording.warmup_s)


def _both(scenario: Scenario, warmup_s: float, counted_s: float) -> World:
    # With radix caches profiles say nothing: one will do.
    single = {"profiles": [{"name": "any"}], "initial.mix": {"any": 1.0}}
    return World(scenario, lru_world(scenario).with_overrides(single), warmup_s, counted_s)
