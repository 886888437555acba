"""Simulated fleets under traffic that alternates between two levels, with late telemetry."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import TrafficUncertainty, solve_equilibrium
from edgegym.simulator import Fleet, FleetState
from edgegym.simulator.columns import NUM_REQUESTS, PLACE, SITE_WAIT_S
from edgegym.world import Scenario

QUIET, BUSY = 0, 1
_FIRST_S = 120.0
_REQUESTS = [name for name in FleetState._fields if name.startswith("request_")]


class ThinnedStream:
    """The stream of a busy fleet, of which a part of the requests is dropped in quiet times."""

    def __init__(self, fleet: Fleet, busy_until: NDArray[np.float64], kept: float) -> None:
        self.stream, self.busy_until, self.kept = fleet.stream, busy_until, kept
        self.rng = np.random.default_rng(fleet.seed)
        self.thin(fleet.state)

    def fill(self, state: FleetState, b: int) -> FleetState:
        """Load the next block."""
        state = self.stream.fill(state, b)
        self.thin(state)
        return state

    def thin(self, state: FleetState) -> None:
        """Drop requests from the loaded block; visits alternate, the first is quiet."""
        count = state.scalars[0, NUM_REQUESTS]
        visit = np.searchsorted(self.busy_until, state.request_time_s[0, :count])
        chosen = np.flatnonzero((visit % 2 == BUSY) | (self.rng.random(count) < self.kept))
        for name in _REQUESTS:
            values = getattr(state, name)
            values[0, : len(chosen)] = values[0, chosen]
        state.scalars[0, NUM_REQUESTS] = len(chosen)


def advertise(fleet: Fleet, wait_s: NDArray[np.float64]) -> None:
    """Let a fleet with tier waits route by others from now on."""
    state = fleet.state
    state.tier_wait_s[0] = wait_s
    places = state.node_work[0, :, PLACE]
    state.sites[0, places, SITE_WAIT_S] = wait_s[state.profile[0]]


def simulated_coverage(
    scenario: Scenario,
    mix: Sequence[float],
    traffic: TrafficUncertainty,
    *,
    seed: int,
    visits: int,
    tier_waits: bool = True,
) -> float:
    """Return the share of requests within target over so many quiet and busy visits.

    Their lengths are those of a stratified sample of the exponential law, in random order: the same
    for all mixes.

    Parameters
    ----------
    scenario : Scenario
        Its request intensity is the mean of the traffic.
    mix : sequence of float
        Share of each profile.
    traffic : TrafficUncertainty
        With bursts and known popularity.
    seed : int
        Of nodes, requests, and the order of the visits.
    visits : int
        Of each state.
    tier_waits : bool
        Whether the router acts on the states' equilibrium waits, as in the model; if not, on what
        the scenario's telemetry reports.
    """
    names = [profile.name for profile in scenario.profiles]
    shares = {name: share for name, share in zip(names, mix, strict=True) if share > 0}
    changes: dict[str, Any] = {"initial.mix": shares}
    if tier_waits:
        changes["routing.advertised_wait"] = "tier"
    world = scenario.with_overrides(changes)
    levels = traffic.intensities()
    net = world.tiered_network()
    waits = np.array(
        [
            solve_equilibrium(
                replace(net, request_intensity=net.request_intensity * level)
            ).assumed_wait_s
            for level in levels
        ]
    )
    rng = np.random.default_rng(seed)
    quantiles = (np.arange(visits) + 0.5) / visits
    lengths = [
        rng.permutation(-np.log1p(-quantiles)) * mean_s for mean_s in traffic.visit_lengths_s()
    ]
    # A quiet visit to begin with, which does not count.
    ends = np.cumsum([_FIRST_S, *np.stack([lengths[BUSY], lengths[QUIET]], axis=1).ravel()])
    busiest = world.with_overrides(
        {"demand.request_intensity": float(net.request_intensity * levels[BUSY])}
    )
    fleet = Fleet(busiest, seed, tier_wait_s=waits[QUIET] if tier_waits else None)
    fleet._stream = ThinnedStream(fleet, ends, levels[QUIET] / levels[BUSY])  # type: ignore
    fleet.advance(_FIRST_S)
    total = None
    known_ends = ends + traffic.telemetry_delay_s
    for until in np.unique(np.r_[ends, known_ends[known_ends < ends[-1]]])[1:]:
        if tier_waits:
            advertise(fleet, waits[np.searchsorted(known_ends, fleet.now_s, side="right") % 2])
        stats = fleet.advance(until - fleet.now_s)
        total = stats if total is None else total + stats
    assert total is not None
    return total.coverage
