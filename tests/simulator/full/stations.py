"""Five nodes set by hand, and larger random fleets, as the router sees them."""

from typing import Any

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.columns import (
    HOLDS,
    HOLDS_SHIFT,
    IN_SLOTS,
    NUM_MEASURED,
    NUM_NODE_WORK,
    NUM_SITE,
    PLACE,
    REPORTED,
    REQUEST_S_BITS,
    SITE_BITS,
    SITE_WAIT_S,
    SITE_X_KM,
    SLOTS,
    WAITING,
)
from edgegym.simulator.compiling import lend
from edgegym.simulator.full import routing as facade
from edgegym.simulator.full.admission import is_open, note_load
from edgegym.simulator.full.columns import DOWN, NUM_FAULT
from edgegym.simulator.full.fetch import fetch_params
from edgegym.simulator.full.flows import LinkState
from edgegym.simulator.full.groups import Faults, OriginParams
from edgegym.simulator.full.joint import Reach
from edgegym.simulator.full.link import allocate_link
from edgegym.simulator.full.margin import note_error
from edgegym.simulator.full.routing_groups import (
    Ask,
    Decision,
    Routing,
    RoutingState,
    Stock,
    allocate_routing,
    most_hits,
    routing_params,
    tier_serves,
)
from edgegym.simulator.full.sharing import link_params
from edgegym.simulator.full.sight import way_s
from edgegym.simulator.lane import Nodes, Signals, lane_of
from edgegym.simulator.search import build_grid
from edgegym.simulator.state import allocate
from tests.simulator.fleets import scenario

CHAT, CODE = 0, 1
NONE, SMALL, BIG, OTHER = range(4)

PLACES_KM = ((2.0, 5.0), (3.0, 5.0), (4.0, 5.0), (2.0, 8.0), (6.0, 5.0))
"""At distances 0, 1, 2, 3, 4 km from the user at (2, 5)."""
PROFILES = (NONE, SMALL, BIG, NONE, BIG)
REQUESTS = (3, 2, 3, 0, 1)
NODE_SLOTS = (4, 3, 2, 4, 2)
TOKENS_IN_USE = (100, 250, 900, 0, 550)
REQUEST_S = 0.5
"""Radio 0, 0.1, 0.4, 0.9, 1.6 s; prefill of `chat` 1, 0.6, 0.2, 1, 0.2 s; waits 0, 0, 1, 0, 0 s:
together 1, 0.7, 1.6, 1.9, 1.8 s."""


@kernel
def _decide(routing: Routing, ask: Ask, now: float) -> Decision:
    return facade.route(lend(routing), ask, now)


@kernel
def _note(routing: Routing, what: int, station: int, number: float, now: float) -> float:
    views = lend(routing)
    if what == 0:
        note_load(views, station, now)
    elif what == 1:
        note_error(views, station, number, now)
    elif what == 2:
        facade.note_sent(views, station, int(number), now)
    elif what == 3:
        facade.note_landed(views, station, int(number))
    elif what == 4:
        facade.note_lost(views, station, int(number))
    elif what == 5:
        facade.note_left(views, station, int(number))
    elif what == 6:
        facade.publish_tokens(views, station)
    elif what == 8:
        return 1.0 if is_open(views, station, now) else 0.0
    elif what == 9:
        return 1.0 if facade.must_move_on(views, station, now) else 0.0
    return 0.0


@kernel
def _way(routing: Routing, ask: Ask, station: int, squared_km2: float) -> float:
    return way_s(lend(routing), ask, station, squared_km2)


class Stations:
    """A fleet as the router sees it; everything can be set."""

    def __init__(
        self,
        places_km: Any = PLACES_KM,
        profiles: Any = PROFILES,
        *,
        user: Any = None,
        cells: tuple[int, int] = (0, 0),
        origin: dict[str, Any] | None = None,
        hits: Any = None,
        by_profile: bool = True,
        live: bool = True,
        predicts: bool = True,
        **overrides: Any,
    ) -> None:
        """Build it from places, profiles and overrides of the world of ``scenario``."""
        places, count = np.array(places_km, dtype=np.float64), len(places_km)
        if origin is not None:
            overrides["origin"] = {
                "rtt_s": 0.05, "slots": 8, "prefill_linear_s": 1e-4, "tpot_s": 0.01
            }  # fmt: skip
        self.scenario = scenario(**{"nodes": {"count": count}} | overrides)
        world = self.world = self.scenario.compile()
        state = allocate(world, grid_cells=cells[0] * cells[1])
        state.node_count[0] = count
        state.node_x[0], state.node_y[0] = places.T
        state.up[0] = True
        build_grid(world, state, 0, cells)
        work = np.zeros((count + 1, NUM_NODE_WORK), dtype=np.int64)
        work[:count, PLACE] = state.node_work[0, :, PLACE]
        work[count, PLACE] = count
        sites = np.zeros((count + 1, NUM_SITE))
        sites[:count] = state.sites[0]
        area = lane_of(world, state, 0).area._replace(sites=sites)
        params = routing_params(self.scenario, world, user)
        if not by_profile:
            rule = params.rule._replace(num_groups=1, quota=params.rule.quota * 4)
            params = params._replace(rule=rule)
        self.state = allocate_routing(params, count + 1, world.num_profiles)
        hit_tokens = np.asarray(world.hit_tokens if hits is None else hits, dtype=np.float64)
        row_class = np.zeros(len(hit_tokens), dtype=np.int64)
        prefill = self.scenario.hardware.prefill
        coefficients = np.array(
            [
                [prefill.linear_s, prefill.quadratic_s, prefill.floor_s, 0.0],
                [1e-4, 0.0, 0.0, 0.0],  # of the origin
            ]
        )
        stock = Stock(
            hit_tokens,
            row_class,
            coefficients,
            most_hits(hit_tokens, row_class, 1),
            tier_serves(hit_tokens, world.num_holdings, world.num_profiles),
        )
        numbers: dict[str, Any] = {
            "exists": origin is not None,
            "rtt_s": 0.0,
            "handshake_s": 0.0,
            "new_connection_share": 0.0,
            "slots": 8,
            "tpot_s": 0.01,
            "affinity": 1.0,
            "output_cap_tokens": 2**62,
            "path_tokens": np.array([800.0, 500.0]),
            "request_s": 0.1,
        }
        self.count, self.user = count, user  # its address lives as long as it
        self.routing = Routing(
            params,
            RoutingState._make(array[0] for array in self.state),
            stock,
            Signals(True, -1, False, live, predicts, 0.0 if live else 1.0, 10.0),
            Nodes(work, np.zeros((count + 1, NUM_MEASURED)), sites),
            area,
            OriginParams(**numbers | (origin or {})),
            count if origin is not None else -1,
            Faults(np.zeros((count + 2, NUM_FAULT), dtype=np.int64)),
            np.array(profiles, dtype=np.int64),
            np.ones(count, dtype=np.bool_),
            np.zeros(count, dtype=np.bool_),
            self._reach(hit_tokens),
            True,
            False,
        )
        self.hold(profiles)
        if count == len(PLACES_KM):
            for node in range(count):
                self.load(node, REQUESTS[node], NODE_SLOTS[node], REQUEST_S)
                self.routing.state.station_sums[node, 5] = TOKENS_IN_USE[node]
        for node in range(count):
            self.note_load(node, 0.0)

    def _reach(self, hit_tokens: Any) -> Reach:
        """Return an empty link, and nobody to fetch from."""
        link = link_params(self.scenario)
        state = allocate_link(link, self.count + 1)
        return Reach(
            fetch_params(self.scenario),
            link,
            LinkState._make(array[0] for array in state),
            hit_tokens,
            np.zeros(len(hit_tokens), dtype=np.int64),
        )

    def hold(self, rows: Any) -> None:
        """Let nodes hold and advertise rows."""
        work, sites = self.routing.nodes.work, self.routing.nodes.sites
        for node, row in enumerate(rows):
            work[node, HOLDS] = row
            bits = np.int64((int(row) << HOLDS_SHIFT) + node)
            sites[work[node, PLACE], SITE_BITS] = bits.view(np.float64)

    def load(self, station: int, requests: int, slots: int, request_s: float) -> None:
        """Let the router know of n requests on c slots, with the wait that follows."""
        work = self.routing.nodes.work
        work[station, REPORTED], work[station, SLOTS] = requests, slots
        work[station, REQUEST_S_BITS] = np.float64(request_s).view(np.int64)
        self.wait(station, max(0, requests - slots + 1) * request_s)

    def wait(self, station: int, seconds: float) -> None:
        """Advertise a wait."""
        place = self.routing.nodes.work[station, PLACE]
        self.routing.nodes.sites[place, SITE_WAIT_S] = seconds

    def fail(self, station: int) -> None:
        """Let a station be down."""
        self.routing.faults.num[station, DOWN] = 1
        if station < self.count:
            self.routing.up[station] = False
            place = self.routing.nodes.work[station, PLACE]
            self.routing.nodes.sites[place, SITE_X_KM] = np.inf
            self.note_load(station, 0.0)

    def occupy(self, station: int, active: int, queued: int, now: float) -> None:
        """Let a node really have so many requests from now on."""
        self.routing.nodes.work[station, IN_SLOTS] = active
        self.routing.nodes.work[station, WAITING] = queued
        self.note_load(station, now)

    def route(
        self,
        request_type: int = CHAT,
        now: float = 0.0,
        place_km: tuple[float, float] = (2.0, 5.0),
        input_tokens: float | None = None,
        output_tokens: float = 10.0,
        index: int = 0,
    ) -> Decision:
        """Decide where one request goes."""
        return _decide(
            self.routing,
            self.ask(request_type, place_km, input_tokens, output_tokens, index),
            float(now),
        )

    def ask(
        self,
        request_type: int = CHAT,
        place_km: tuple[float, float] = (2.0, 5.0),
        input_tokens: float | None = None,
        output_tokens: float = 10.0,
        index: int = 0,
    ) -> Ask:
        """Return a request as the router sees it."""
        length = (1000.0, 600.0)[request_type] if input_tokens is None else float(input_tokens)
        x, y = float(place_km[0]), float(place_km[1])
        return Ask(x, y, request_type, length, float(output_tokens), index, 11, 12)

    def way_s(self, ask: Ask, station: int, squared_km2: float) -> float:
        """Return how long the request is on its way."""
        return _way(self.routing, ask, station, float(squared_km2))

    def note_load(self, station: int, now: float) -> None:
        """Take note of a change."""
        _note(self.routing, 0, station, 0.0, float(now))

    def note_error(self, station: int, error_s: float, now: float) -> None:
        """Take note of a prediction's error."""
        _note(self.routing, 1, station, float(error_s), float(now))

    def note_sent(self, station: int, tokens: int, now: float = 0.0) -> None:
        """Take note of a request sent."""
        _note(self.routing, 2, station, float(tokens), float(now))

    def note_landed(self, station: int, tokens: int) -> None:
        """Take note of a landing."""
        _note(self.routing, 3, station, float(tokens), 0.0)

    def note_lost(self, station: int, tokens: int) -> None:
        """Take note of a loss on the way."""
        _note(self.routing, 4, station, float(tokens), 0.0)

    def note_left(self, station: int, tokens: int) -> None:
        """Take note of a request that left."""
        _note(self.routing, 5, station, float(tokens), 0.0)

    def publish_tokens(self) -> None:
        """Let all stations report."""
        _note(self.routing, 6, self.count + 1, 0.0, 0.0)

    def is_open(self, station: int, now: float) -> bool:
        """Return whether it takes requests."""
        return bool(_note(self.routing, 8, station, 0.0, float(now)))

    def must_move_on(self, station: int, now: float) -> bool:
        """Return whether a request that lands there is sent on."""
        return bool(_note(self.routing, 9, station, 0.0, float(now)))
