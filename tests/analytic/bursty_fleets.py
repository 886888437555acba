"""Simulated fleets under traffic that alternates between two levels, with late telemetry."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import TrafficUncertainty, solve_equilibrium
from edgegym.simulator import Fleet, FleetState, WindowStats
from edgegym.simulator.state import NEXT_BLOCK, NEXT_REQUEST, NUM_REQUESTS
from edgegym.world import Scenario

QUIET, BUSY = 0, 1
_STREAM = [name for name in FleetState._fields if name.startswith(("request_", "stream_"))]
_POSITION = [NEXT_BLOCK, NEXT_REQUEST, NUM_REQUESTS]


class BurstyFleet:
    """One fleet whose request intensity is changed at any time.

    A stream of requests is a function of scenario and seed. So a fleet of each level runs along
    only for its stream, and a change of level takes that fleet's place in its stream over.

    Parameters
    ----------
    scenario : Scenario
    seed : int
    levels : sequence of float
        Request intensity of the states over the scenario's.
    waits_s : float64 [states, S], optional
        Advertised waits of the profiles by state; without them the routing is the scenario's own.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        levels: NDArray[np.float64],
        waits_s: NDArray[np.float64] | None,
    ) -> None:
        mean = scenario.demand.request_intensity
        assert mean is not None
        worlds = [
            scenario.with_overrides({"demand.request_intensity": float(mean * level)})
            for level in levels
        ]
        self.waits_s = waits_s
        first = None if waits_s is None else waits_s[QUIET]
        self.streams = [Fleet(world, seed, tier_wait_s=first) for world in worlds]
        self.players = [fleet.fork() for fleet in self.streams]
        self.state = self.players[QUIET].get_state()

    def advance(self, level: int, routing: int, seconds: float) -> WindowStats:
        """Serve the traffic of a state, routed by the waits of a state."""
        source = self.streams[level].state
        scalars = self.state.scalars.copy()
        scalars[:, _POSITION] = source.scalars[:, _POSITION]
        state = self.state._replace(
            scalars=scalars, **{name: getattr(source, name) for name in _STREAM}
        )
        if self.waits_s is not None:
            waits = self.waits_s[routing]
            state = state._replace(
                tier_wait_s=waits[None, :].copy(), advertised_wait_s=waits[self.state.profile]
            )
        player = self.players[level]
        player.set_state(state)
        stats = player.advance(seconds)
        self.state = player.get_state()
        for fleet in self.streams:
            fleet.advance(seconds)
        return stats


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
    fleet = BurstyFleet(world, seed, levels, waits if tier_waits else None)
    rng = np.random.default_rng(seed)
    quantiles = (np.arange(visits) + 0.5) / visits
    lengths = [
        rng.permutation(-np.log1p(-quantiles)) * mean_s for mean_s in traffic.visit_lengths_s()
    ]
    fleet.advance(QUIET, QUIET, 120.0)
    total = None
    state_since = [(0.0, QUIET)]  # what the router knows changes a delay later
    now = 120.0
    for visit in range(visits):
        for level in (BUSY, QUIET):
            state_since.append((now, level))
            end = now + lengths[level][visit]
            while now < end:
                known = [s for since, s in state_since if since + traffic.telemetry_delay_s <= now]
                coming = [
                    since + traffic.telemetry_delay_s
                    for since, _ in state_since
                    if now < since + traffic.telemetry_delay_s < end
                ]
                until = min([end, *coming])
                stats = fleet.advance(level, known[-1], until - now)
                total = stats if total is None else total + stats
                now = until
    assert total is not None
    return total.coverage
