"""What was measured, chosen, assumed and dropped on the way from a trace to a scenario."""

from dataclasses import dataclass, replace

from edgegym.traces.options import BuildOptions

_LITTLE_ROOM = 0.03


@dataclass(frozen=True)
class Load:
    """What the mean demand would mean for a node that holds one profile and serves all types."""

    profile: str
    """Name of the profile."""
    slots: int
    """Sequences that run at once beside it."""
    utilization: float
    """Arrivals per node times mean occupancy, over the slots."""
    prefill_utilization: float
    """Arrivals per node times mean prefill time: prefill work per second on one GPU."""


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """Figures of one build."""

    source: str
    """Name of the trace file."""
    source_format: str
    """``"mooncake"`` or ``"azure"``."""
    options: BuildOptions
    """What was given."""
    requests: int
    """Requests in the trace."""
    window_requests: int
    """Requests in the part of it that was used."""
    dropped_share: float
    """Share of those left out because their own KV exceeds a node's memory."""
    measured_rate_per_s: float
    """Mean arrival rate of the part that was used, dropped requests included."""
    rate_per_node: float
    """The scenario's requests per second and node."""
    ttft_target_s: float
    """The scenario's TTFT target."""
    idle_attainment: tuple[float, float]
    """Estimated shares of requests within the target on idle nodes, without hits and at best."""
    num_vertices: int
    """Vertices of the forest."""
    num_types: int
    """Request types."""
    num_families: int
    """Families."""
    num_profiles: int
    """Profiles."""
    runtime_bytes: int
    """Memory of one running sequence."""
    prefix_share: float
    """Share of requests that begin with a chosen prefix."""
    shared_token_share: float
    """Prompt tokens within any prefix that two prompts share, over all prompt tokens."""
    chosen_token_share: float
    """Prompt tokens within the chosen prefixes, over all prompt tokens."""
    loads: tuple[Load, ...]
    """One for each profile, the empty one first."""
    replayed: str | None = None
    """Name of the file whose requests the scenario replays, if it does."""

    def replaying(self, requests: str, recorded_rate_per_s: float) -> "BuildReport":
        """Return the report of the scenario that replays the trace.

        Parameters
        ----------
        requests : str
            Name of the replay file.
        recorded_rate_per_s : float
            Rate of the requests in it; the replay keeps it unless a rate was given.
        """
        rate = self.options.rate_per_node or recorded_rate_per_s / self.options.nodes
        ratio = rate / self.rate_per_node
        loads = [
            replace(
                load,
                utilization=load.utilization * ratio,
                prefill_utilization=load.prefill_utilization * ratio,
            )
            for load in self.loads
        ]
        return replace(
            self,
            replayed=requests,
            measured_rate_per_s=recorded_rate_per_s,
            rate_per_node=rate,
            loads=tuple(loads),
        )

    @property
    def best_load(self) -> Load:
        """The profile under which a node that serves all types has the lowest utilisation."""
        return min(self.loads, key=lambda load: load.utilization)

    def choices(self) -> dict[str, str]:
        """Return what was measured, chosen and assumed: a heading and a sentence each."""
        popularity = "stationary, each request type keeps its share of the whole trace"
        if self.options.window_s is not None or self.options.start_s > 0:
            popularity = (
                f"stationary, that of the {self.window_requests} requests (of {self.requests}) "
                f"from {self.options.start_s:g} s on"
            )
            if self.options.window_s is not None:
                popularity += f" within {self.options.window_s:g} s"
        if self.replayed is not None:
            popularity = (
                f"that of the trace, whose requests are replayed from {self.replayed} in their "
                "order and with their own lengths, again and again; rate_per_node sets the pace"
            )
        return {
            "Dropped": (
                f"{self.dropped_share:.2%} of {self.window_requests} requests, whose own KV exceeds"
                f" the memory of {self.options.hardware}"
            ),
            "Rate": self._rate(),
            "Prefixes": self._prefixes(),
            "Popularity": popularity,
            "Memory": (
                f"a running sequence takes {self.runtime_bytes / 1e9:.3g} GB, the KV of the mean "
                "prompt plus output"
            ),
            "Service": (
                "slots that prefill side by side and scatter as output lengths do"
                if self.options.service == "slots"
                else "engines, one prefill server for each GPU"
            ),
            "TTFT target": self._target(),
            "Assumed": (
                "not in the trace are radio 0.36 s/km², uniform places, 10 Gb/s of backhaul for "
                "each transfer, a migration budget of one mean profile every 2 epochs of 10 s, and "
                "a start with the hottest prefixes on every node"
            ),
        }

    def _rate(self) -> str:
        if self.options.rate_per_node is None:
            return (
                f"{self.rate_per_node:.4g} requests/s per node, the measured "
                f"{self.measured_rate_per_s:.4g} requests/s over {self.options.nodes} nodes"
            )
        return (
            f"{self.rate_per_node:.4g} requests/s per node as given (measured: "
            f"{self.measured_rate_per_s:.4g} requests/s in all)"
        )

    def _prefixes(self) -> str:
        tokens = self.options.shared_prefix_tokens
        if tokens is not None:
            return (
                f"assumed, the trace has none: every prompt longer than {tokens} tokens begins "
                f"with the same {tokens} ({self.prefix_share:.1%} of the requests; the others, too "
                "short for it, reuse nothing)"
            )
        return (
            f"{self.shared_token_share:.1%} of the prompt tokens lie in prefixes that at least two "
            f"prompts share, {self.chosen_token_share:.1%} in the {self.num_vertices} chosen ones, "
            f"with which {self.prefix_share:.1%} of the requests begin"
        )

    def _target(self) -> str:
        how = "as given"
        if self.options.ttft_target_s is None:
            how = "the round number at which hits matter most and half of the requests need none"
        without, best = self.idle_attainment
        return (
            f"{self.ttft_target_s:g} s, {how}; on idle nodes about {without:.1%} of the requests "
            f"meet it without hits, and about {best:.1%} at best"
        )

    def warnings(self) -> list[str]:
        """Return what makes the scenario doubtful, a sentence each."""
        found = []
        if self.dropped_share > 0.1:
            found.append(
                f"{self.dropped_share:.1%} of the requests do not fit into the memory of "
                f"{self.options.hardware}: what remains is not the trace's mix of lengths."
            )
        uncached, best = self.loads[0], self.best_load
        if best.utilization > 1:
            found.append(
                f"Unstable: the offered load is {uncached.utilization:.2f} of the slots of "
                f"uncached nodes and {best.utilization:.2f} at best ('{best.profile}'); above 1 "
                "queues grow without bound. Lower the rate per node or take a larger GPU."
            )
        elif uncached.utilization > 1:
            found.append(
                f"Uncached nodes are overloaded (offered load {uncached.utilization:.2f} of their "
                f"slots); '{best.profile}' brings it to {best.utilization:.2f}."
            )
        least = min(load.prefill_utilization for load in self.loads)
        if least > 1:
            found.append(
                f"Nodes would do at least {least:.2f} GPU-seconds of prefill per second: "
                + (
                    "slots that prefill side by side at full speed are an optimistic model of this "
                    "load; service = engine has one prefill server."
                    if self.options.service == "slots"
                    else "prompts queue without bound."
                )
            )
        if self.num_profiles == 2:
            found.append(
                f"'{self.loads[1].profile}' is the only profile beside the empty one, so there is "
                "little to decide."
            )
        without, with_hits = self.idle_attainment
        if with_hits - without < _LITTLE_ROOM:
            found.append(
                f"Hits change the attainment by about {100 * (with_hits - without):.1f} points at "
                "most: no deep prefix draws a large share of the requests. A part of the trace "
                "(start_s, window_s) has fewer and hotter prefixes; more types and profiles cover "
                "more of them."
            )
        return found

    def description(self) -> str:
        """Return the text that the scenario carries."""
        opening = f"Built from {self.source} ({self.source_format} trace)."
        choices = [f"{heading}: {text}." for heading, text in self.choices().items()]
        return " ".join([opening, *choices, *self.warnings()])
