"""Fleets left to themselves: no policy, only traffic and a router."""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edgegym.envs.tier_wait import advertised_tier_wait_s
from edgegym.simulator import Fleet
from edgegym.simulator.full.counts import (
    FAMILY_FETCHED_BYTES,
    FAMILY_FIRST_TOKENS,
    FAMILY_HIT_TOKENS,
    FAMILY_INPUT_TOKENS,
    FAMILY_ORIGIN,
    FAMILY_REJECTED,
    FAMILY_SPILLED,
)
from edgegym.simulator.records import RecordSink
from edgegym.simulator.state import Floats
from edgegym.simulator.window import WindowStats
from edgegym.world.scenario import Scenario

QUANTILES = (0.5, 0.9, 0.99)

LONGEST_S = 4e9
"""Longest time that a fleet can be counted, and that it can be warmed up."""

_REQUESTS_AT_ONCE = 100_000.0
_LEAST_PIECES = 20


@dataclass(frozen=True)
class FamilyFigures:
    """What became of the requests of one family, or of all.

    Attributes
    ----------
    family : str
        Its name, or ``total``.
    requests, decided, hits : int
        Made; whose target was met, missed, or that were rejected; whose target was met.
    coverage : float or None
        ``hits / decided``.
    ttft_s, end_to_end_s : tuple of float or None
        Quantiles 0.5, 0.9, 0.99 of the first tokens and of the completed requests, within 1/64.
    hit_token_share : float or None
        Share of prompt tokens that were not computed.
    spilled, rejected, from_origin : int
        First tokens of requests whose best node was closed; requests whom nobody took; first tokens
        from the origin. Each request counts once, however often it was sent.
    fetched_bytes : int
        State fetched for them.
    """

    family: str
    requests: int
    decided: int
    hits: int
    coverage: float | None
    ttft_s: tuple[float | None, ...]
    end_to_end_s: tuple[float | None, ...]
    hit_token_share: float | None
    spilled: int
    rejected: int
    from_origin: int
    fetched_bytes: int


@dataclass(frozen=True)
class FleetFigures:
    """The fleet as a whole.

    Attributes
    ----------
    nodes : float
        Mean number of nodes over the fleets.
    mean_slots : float
        Slots of a node (c), mean over nodes and time.
    cached_tokens : float
        Tokens of prefix state in a node, mean over nodes at the end.
    utilization, most_utilization : float
        Share of all slot time in use, and of the busiest node.
    prefill_utilization, most_prefill_utilization : float
        GPU-seconds of prefill per second: mean over nodes, and of the busiest.
    mean_ttft_s, radio_s, wait_s, stall_s, restore_s, prefill_s : float or None
        Mean TTFT and the parts that it is the sum of.
    bytes_moved, fetched_bytes, refresh_bytes, link_bytes : int
        Charged for moves; fetched for requests; transferred anew after expiry; all over the link.
    link_utilization, origin_utilization : float or None
        Share of time in use of the shared link, and of the origin's slots; None without them.
    redirected, interrupted, redispatched, failures : int
        As in :class:`~edgegym.simulator.WindowStats`.
    """

    nodes: float
    mean_slots: float
    cached_tokens: float
    utilization: float
    most_utilization: float
    prefill_utilization: float
    most_prefill_utilization: float
    mean_ttft_s: float | None
    radio_s: float | None
    wait_s: float | None
    stall_s: float | None
    restore_s: float | None
    prefill_s: float | None
    bytes_moved: int
    fetched_bytes: int
    refresh_bytes: int
    link_bytes: int
    link_utilization: float | None
    origin_utilization: float | None
    redirected: int
    interrupted: int
    redispatched: int
    failures: int


@dataclass(frozen=True)
class Simulation:
    """What fleets without a policy did.

    Attributes
    ----------
    scenario, router : str
        Names.
    seeds : tuple of int
        One fleet each.
    seconds, warmup_s : float
        Counted and not counted time of each fleet.
    families : tuple of FamilyFigures
        In the order of the scenario, then ``total``.
    fleet : FleetFigures
        All of it.
    wall_s : float
        How long it took, compilation included.
    """

    scenario: str
    router: str
    seeds: tuple[int, ...]
    seconds: float
    warmup_s: float
    families: tuple[FamilyFigures, ...]
    fleet: FleetFigures
    wall_s: float

    @property
    def total(self) -> FamilyFigures:
        """All families together."""
        return self.families[-1]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of it no real fleet could have done, in words."""
        highest = self.fleet.most_prefill_utilization
        if highest <= 1.0:
            return ()
        return (
            f"a node prefilled for {highest:.2f} seconds each second; above 1 a real GPU could not "
            "have kept up. Use service.kind=engine, or less load.",
        )

    def to_json(self) -> str:
        """Return everything, with the warnings, as one JSON object."""
        whole = asdict(self) | {"warnings": self.warnings}
        return json.dumps(whole, indent=2, allow_nan=False)


@dataclass(frozen=True, eq=False)
class SimulationPlan:
    """Fleets that can be simulated: all that could be wrong has been checked.

    Attributes
    ----------
    scenario : Scenario
        The world.
    seconds, warmup_s : float
        Counted and not counted time of each fleet.
    seeds : tuple of int
        One fleet each.
    tier_wait_s : ndarray or None
        What the router is told where it advertises the waits of tiers, ``[S]``.
    """

    scenario: Scenario
    seconds: float
    warmup_s: float
    seeds: tuple[int, ...]
    tier_wait_s: Floats | None

    @property
    def pieces(self) -> int:
        """In how many parts a fleet's time is simulated: none of them takes long."""
        expected = self.scenario.compile().mean_rate_per_s * self.seconds
        return max(_LEAST_PIECES, math.ceil(expected / _REQUESTS_AT_ONCE))

    def run(
        self,
        records: RecordSink | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> Simulation:
        """Let the fleets serve traffic.

        Parameters
        ----------
        records : RecordSink, optional
            Where the records of single requests go, those of the warm-up included. The caller
            closes it.
        report : callable
            Called with a few words after each of :attr:`pieces` parts of each fleet.

        Returns
        -------
        Simulation
            The counts of all fleets together.
        """
        begin = time.perf_counter()
        played = []
        made = 0
        for seed in self.seeds:
            fleet = Fleet(self.scenario, seed, self.tier_wait_s, records=records, full=True)
            if self.warmup_s > 0.0:
                fleet.advance(self.warmup_s)
            window = None
            for piece in range(self.pieces):
                # Ends at parts of the whole, so that the last is where it should be.
                until = self.warmup_s + self.seconds * ((piece + 1) / self.pieces)
                part = fleet.advance(until - fleet.now_s)
                window = part if window is None else window + part
                made += part.arrivals
                report(f"{made:,} requests")
            assert window is not None
            nodes = int(fleet.state.node_count[0])
            played.append(_Played(window, nodes, int(fleet.cached_tokens.sum())))
        total = played[0].window
        for other in played[1:]:
            total += other.window
        return Simulation(
            self.scenario.name,
            self.scenario.routing.kind,
            self.seeds,
            self.seconds,
            self.warmup_s,
            _families(self.scenario, total),
            _fleet(self.scenario, total, played),
            time.perf_counter() - begin,
        )


@dataclass(frozen=True, eq=False)
class _Played:
    """One fleet, after all."""

    window: WindowStats
    nodes: int
    cached_tokens: int


def plan_simulation(
    scenario: Scenario, seconds: float, seeds: Sequence[int] = (0,), warmup_s: float = 0.0
) -> SimulationPlan:
    """Return fleets that nobody manages, ready to be simulated.

    Parameters
    ----------
    scenario : Scenario
        The world; nobody moves its profiles.
    seconds : float
        How long each fleet is counted, positive.
    seeds : sequence of int
        In [0, 2^64), one fleet for each.
    warmup_s : float
        Traffic before that; it is recorded but not counted.

    Raises
    ------
    ValueError
        If a time or seed is out of range, a seed stands twice, or the router should advertise the
        waits of tiers and there are none.
    """
    if not 0.0 < seconds <= LONGEST_S:
        raise ValueError(f"seconds = {seconds:g}: must be positive and at most {LONGEST_S:g}")
    if not 0.0 <= warmup_s <= LONGEST_S:
        raise ValueError(f"warmup_s = {warmup_s:g}: must lie in 0..{LONGEST_S:g}")
    if not seeds:
        raise ValueError("seeds: give at least one")
    for seed in seeds:
        if not 0 <= seed < 2**64:
            raise ValueError(f"seed = {seed}: must be an integer in [0, 2^64)")
        if list(seeds).count(seed) > 1:
            raise ValueError(f"seed = {seed}: given twice; each is one fleet")
    wait_s = advertised_tier_wait_s(scenario)
    return SimulationPlan(
        scenario, float(seconds), float(warmup_s), tuple(int(seed) for seed in seeds), wait_s
    )


def _families(scenario: Scenario, window: WindowStats) -> tuple[FamilyFigures, ...]:
    rows = []
    for family, name in enumerate(scenario.family_names):
        counts = window.family_counts[family].tolist()
        decided, hits = int(window.family_decided[family]), int(window.family_hits[family])
        rows.append(
            FamilyFigures(
                name,
                int(window.family_arrivals[family]),
                decided,
                hits,
                _ratio(hits, decided),
                tuple(_known(window.ttft_quantile_s(q, family)) for q in QUANTILES),
                tuple(_known(window.end_to_end_quantile_s(q, family)) for q in QUANTILES),
                _ratio(counts[FAMILY_HIT_TOKENS], counts[FAMILY_INPUT_TOKENS]),
                counts[FAMILY_SPILLED],
                counts[FAMILY_REJECTED],
                counts[FAMILY_ORIGIN],
                counts[FAMILY_FETCHED_BYTES],
            )
        )
    total = window.family_counts.sum(axis=0).tolist()
    assert total[FAMILY_FIRST_TOKENS] == window.first_tokens
    rows.append(
        FamilyFigures(
            "total",
            window.arrivals,
            window.decided,
            window.hits,
            _ratio(window.hits, window.decided),
            tuple(_known(window.ttft_quantile_s(q)) for q in QUANTILES),
            tuple(_known(window.end_to_end_quantile_s(q)) for q in QUANTILES),
            _known(window.hit_token_share),
            window.spilled,
            window.rejected,
            window.origin_first_tokens,
            total[FAMILY_FETCHED_BYTES],
        )
    )
    return tuple(rows)


def _fleet(scenario: Scenario, window: WindowStats, played: Sequence[_Played]) -> FleetFigures:
    nodes = sum(one.nodes for one in played)
    # Windows of fleets have added up; each node was there in its own fleet only.
    node_ticks = nodes * window.ticks / len(played)
    slot_ticks = int(window.capacity_ticks.sum())
    first = window.first_tokens
    return FleetFigures(
        nodes / len(played),
        slot_ticks / node_ticks,
        sum(one.cached_tokens for one in played) / nodes,
        int(window.busy_ticks.sum()) / max(slot_ticks, 1),
        max(float(one.window.utilization.max()) for one in played),
        int(window.prefill_ticks.sum()) / node_ticks,
        max(float(one.window.prefill_utilization.max()) for one in played),
        _known(window.mean_ttft_s),
        _ratio(window.radio_sum_s, first),
        _ratio(window.wait_sum_s, first),
        _ratio(window.stall_sum_s, first),
        _ratio(window.restore_sum_s, first),
        _ratio(window.prefill_sum_s, first),
        window.bytes_moved,
        window.fetched_bytes,
        window.refresh_bytes,
        window.link_bytes,
        window.link_utilization if scenario.backhaul.sharing == "shared" else None,
        None if scenario.origin is None else window.origin_utilization,
        window.redirected,
        window.interrupted,
        window.redispatched,
        window.failures,
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _known(value: float) -> Any:
    return None if math.isnan(value) else value
