"""A simulated fleet."""

from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from edgegym.simulator.arguments import (
    checked_index,
    checked_number,
    checked_seed,
    checked_sink,
    checked_span,
    checked_tier_wait,
)
from edgegym.simulator.backhaul import bucket_level
from edgegym.simulator.checking import check_state
from edgegym.simulator.full.columns import (
    ASKS,
    BY_CONTROLLER,
    FORCED_FETCH,
    FORCED_REQUEST,
    FORCED_STATION,
)
from edgegym.simulator.full.log import take_rows
from edgegym.simulator.full.loop import NEEDS_FLUSH, RULE_HAS_FAILED
from edgegym.simulator.full.user_router import RuleError, UserRouter
from edgegym.simulator.held import cached_tokens
from edgegym.simulator.loops import EventLoop, event_loop
from edgegym.simulator.moves import IllegalMove, charge_move, legal_moves, why_illegal
from edgegym.simulator.records import ORIGIN, RecordSink
from edgegym.simulator.state import Bools, FleetState, Ints, copy_state, to_ticks
from edgegym.simulator.step import DONE, NEEDS_BLOCK
from edgegym.simulator.stream import RequestStream
from edgegym.simulator.window import WindowStats
from edgegym.world.compiled import World
from edgegym.world.scenario import Scenario


class Fleet:
    """A fleet of edge nodes that serves requests, from time 0.

    Equal scenario and seed give equal requests and nodes to the bit, whatever is done to the fleet.

    Parameters
    ----------
    scenario : Scenario
        The world.
    seed : int
        In [0, 2^64).
    tier_wait_s : array_like, optional
        ``[S]`` advertised wait of each profile; required with ``routing.advertised_wait: tier``.
    records : RecordSink, optional
        Receives a row for each request that ends; see :mod:`edgegym.simulator.records`.
    router : UserRouter, optional
        A routing rule of the user's own, which takes the place of the scenario's.
    full : bool
        Whether to run the full event loop even where the fast one would do: the same to the bit,
        slower, and its windows know more (quantiles by family, end-to-end times, hit depths).

    Raises
    ------
    ValueError
        If the seed is out of range, or ``tier_wait_s`` is missing, superfluous, or not ``[S]``
        non-negative finite numbers.
    TypeError
        If the scenario is none, ``records`` no sink, or ``router`` no UserRouter.
    """

    # Whether the loop may stop at requests, for somebody to say where they go.
    _can_ask: ClassVar[bool] = False

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        tier_wait_s: ArrayLike | None = None,
        *,
        records: RecordSink | None = None,
        router: UserRouter | None = None,
        full: bool = False,
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise TypeError(f"scenario = {scenario!r}: must be a Scenario, as preset() returns")
        self._scenario = scenario
        self._world: World = scenario.compile()
        seed = checked_seed(seed)
        self._stream = RequestStream(self._world, seed)
        self._records = checked_sink(records)
        self._router = router
        if router is not None and not isinstance(router, UserRouter):
            raise TypeError(f"router = {router!r}: must be a UserRouter around the rule")
        self._loop: EventLoop = event_loop(scenario, router, records is not None, full)
        state = self._loop.allocate(1)
        state.tier_wait_s[0] = checked_tier_wait(self._world, tier_wait_s)
        self._loop.begin(state, 0, seed)
        self._adopt(self._loop.fill(self._stream, state, 0))
        self._loop.resolve(self._lane)
        # Last, so that no file is begun for a fleet that can't be made.
        if records is not None:
            records.begin(scenario)

    def _adopt(self, state: FleetState) -> None:
        """Make a state the fleet's own."""
        self._state = state
        self._lane = self._loop.lane_of(state, 0)

    @property
    def scenario(self) -> Scenario:
        """The scenario."""
        return self._scenario

    @property
    def world(self) -> World:
        """The compiled scenario."""
        return self._world

    @property
    def state(self) -> FleetState:
        """The live state, B = 1; arrays are replaced when the fleet needs room: don't hold on."""
        return self._state

    @property
    def stream(self) -> RequestStream:
        """The request stream."""
        return self._stream

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self._state.seed[0])

    @property
    def now_s(self) -> float:
        """The clock."""
        return float(self._state.now[0])

    @property
    def bucket_bytes(self) -> float:
        """What moves may cost now."""
        return bucket_level(self._world, self._state, 0)

    @property
    def cached_tokens(self) -> Ints:
        """Tokens of prefix state that each node really holds now, ``[N]``."""
        return cached_tokens(self._scenario, self._state, 0)

    def advance(self, seconds: float) -> WindowStats:
        """Serve traffic for some time.

        Parameters
        ----------
        seconds : float
            How long, positive or 0.

        Returns
        -------
        WindowStats
            What happened in (now, now + seconds].

        Raises
        ------
        ValueError
            If ``seconds`` is negative, not finite or no number, if it would bring the clock beyond
            8e9 s, or if 1e9 requests or more are expected in it; the fleet is unchanged.
        RuleError
            If the routing rule of a :class:`UserRouter` raises an exception. The fleet stands where
            that happened and raises it again; :meth:`set_state` brings it back before.
        """
        begin = self._state.now.item(0)
        until = begin + checked_span(self._world, begin, seconds)
        while (code := self._loop.advance(self._lane, until)) != DONE:
            self._provide(code)
        self._hand_over_records()
        return WindowStats.of_window(self._state, 0, to_ticks(until) - to_ticks(begin))

    def _provide(self, code: int) -> None:
        """Give the loop what it says that it needs."""
        state = self._state
        if code == NEEDS_BLOCK:
            state = self._loop.fill(self._stream, state, 0)
        elif code == NEEDS_FLUSH:
            self._hand_over_records()
        elif code == RULE_HAS_FAILED:
            raise self._rule_failure()
        else:
            state = self._loop.with_more_room(state, code)
        if state is not self._state:
            self._adopt(state)

    def _rule_failure(self) -> RuleError:
        """Return what to raise after the routing rule has failed."""
        assert self._state.full is not None
        routing = self._state.full.routing
        if self._router is None:
            return RuleError("state: is of a fleet whose routing rule has failed")
        return self._router.failure(routing.failed[0, : routing.failed_count[0, 0]].copy())

    def _hand_over_records(self) -> None:
        """Give the rows of the log to whoever wanted them."""
        full = self._state.full
        if full is not None and full.log.real.size:
            rows = take_rows(full.log, 0)
            if self._records is not None:
                self._records.write(self.seed, *rows)

    def force(self, request: int, node: int) -> None:
        """Give one request its place: where it goes when it is made, whatever the router says.

        Parameters
        ----------
        request : int
            Position in the request stream, from 0. A later call replaces an earlier one.
        node : int
            Index of a node, -1 to reject it, -2 for the origin.

        Raises
        ------
        ValueError
            If there is no such node, no origin, or the fleet runs on the fast loop.
        """
        full = self._state.full
        if full is None:
            raise ValueError("force: only with the full event loop, Fleet(..., full=True)")
        request = checked_number("request", request, 0)
        station = checked_number("node", node, ORIGIN)
        if station == ORIGIN:
            if self._scenario.origin is None:
                raise ValueError("node = -2: the scenario has no origin")
            station = self._world.max_nodes
        elif station >= self._state.node_count[0]:
            last = self._state.node_count[0] - 1
            raise ValueError(f"node = {node}: must be one of 0..{last}, -1 or -2")
        full.scalars[0, FORCED_REQUEST] = request
        full.scalars[0, FORCED_STATION] = station
        full.scalars[0, FORCED_FETCH] = BY_CONTROLLER

    def start_move(self, node: int, profile: int) -> None:
        """Start to give a node another profile.

        Parameters
        ----------
        node : int
            Index of the node.
        profile : int
            Index of its new profile.

        Raises
        ------
        IllegalMove
            If the move is not legal now; the fleet is unchanged.
        """
        node, profile = checked_index("node", node), checked_index("profile", profile)
        world, state = self._world, self._state
        if rule := why_illegal(self._scenario, state, 0, node, profile):
            raise IllegalMove(rule)
        current = state.profile.item(0, node)
        price_bytes = world.move_bytes.item(current, profile)
        charge_move(world, state, 0, price_bytes)
        self._loop.change_profile(
            self._lane, node, profile, world.meet.item(current, profile), price_bytes
        )

    def legal_moves(self) -> Bools:
        """Return which moves are legal now.

        Returns
        -------
        ndarray
            ``[N, S]`` bool.
        """
        return legal_moves(self._world, self._state, 0)

    def get_state(self) -> FleetState:
        """Return a copy of the whole state, the position in the request stream included."""
        return copy_state(self._state)

    def set_state(self, state: FleetState) -> None:
        """Continue from a state of a fleet of the same scenario.

        Parameters
        ----------
        state : FleetState
            From :meth:`get_state`; it is copied. Its seed becomes the fleet's. Where records go
            stays as it is.

        Raises
        ------
        ValueError
            If it is no state, its nodes, profiles, types or families are not those of this fleet,
            or its contents contradict the scenario; the fleet is unchanged.
        """
        check_state(self._world, self._state, state)
        if not self._can_ask and state.full is not None and state.full.scalars[0, ASKS]:
            raise ValueError(
                "state.full.scalars[ASKS]: the state is of an AskingFleet that has begun to ask; "
                "only such a fleet can go on from it"
            )
        adopted = self._loop.with_own_log(copy_state(state))
        if int(adopted.seed[0]) != self.seed:
            self._stream = RequestStream(self._world, int(adopted.seed[0]))
        self._adopt(adopted)

    def fork(self, records: RecordSink | None = None) -> Self:
        """Return a fleet that continues from here by itself.

        Parameters
        ----------
        records : RecordSink, optional
            Receives the records of the fork, if this fleet has records too; else it has none.

        Raises
        ------
        ValueError
            If records are asked for and this fleet has none.
        """
        records = checked_sink(records)
        if records is not None:
            if self._state.full is None or not self._state.full.log.real.size:
                raise ValueError("records: the fleet that is forked must have records too")
            records.begin(self._scenario)
        fleet = type(self).__new__(type(self))
        fleet._scenario, fleet._world, fleet._stream = self._scenario, self._world, self._stream
        fleet._loop, fleet._router, fleet._records = self._loop, self._router, records
        fleet._adopt(copy_state(self._state))
        return fleet

    def __copy__(self) -> Self:
        """Return a fork: two fleets never share a state."""
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a fork; scenario and compiled world never change and are shared."""
        return self.fork()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle needs: the rest follows from it."""
        logs = self._state.full is not None and self._state.full.log.real.size > 0
        return {
            "scenario": self._scenario,
            "router": self._router,
            "logs": logs,
            "state": self._state,
        }

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        """Restore from :meth:`__getstate__`."""
        self._scenario = pickled["scenario"]
        self._world = self._scenario.compile()
        self._router, self._records = pickled["router"], None
        full = pickled["state"].full is not None
        self._loop = event_loop(self._scenario, self._router, pickled["logs"], full)
        self._adopt(pickled["state"])
        self._loop.resolve(self._lane)
        self._stream = RequestStream(self._world, self.seed)
