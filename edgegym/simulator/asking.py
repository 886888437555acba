"""A fleet that asks where each request is to go."""

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from edgegym.simulator.columns import NEXT_REQUEST, NUM_REQUESTS
from edgegym.simulator.fleet import Fleet
from edgegym.simulator.full.columns import (
    ASKS,
    BY_CONTROLLER,
    BY_ROUTER,
    COMPUTE,
    FETCH_ANYWAY,
    WINDOW_TICK,
)
from edgegym.simulator.full.loop import NEEDS_ANSWER
from edgegym.simulator.loops import FullLoop
from edgegym.simulator.records import ORIGIN, RecordSink
from edgegym.simulator.state import Ints, to_ticks
from edgegym.simulator.step import DONE
from edgegym.simulator.window import WindowStats
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache

# A trace that is not repeated ends: nobody waits for its next request longer than this.
_PATIENCE_REQUESTS = 1e4
_PATIENCE_S = 86400.0


class AskingFleet(Fleet):
    """A fleet that stops before each new request, and is told where it goes.

    It is an ordinary :class:`Fleet` until :meth:`ask` is called for the first time; :meth:`advance`
    serves a warm-up by the scenario's own router. Told what that router would have decided, it is
    the same to the bit as if it had not asked. It asks once for each request: one that has to be
    sent again, because its node failed or could not take it, is sent by the scenario's router.

    Parameters
    ----------
    scenario : Scenario
        The world.
    seed : int
        In [0, 2^64).
    tier_wait_s, records
        As of :class:`Fleet`.

    Raises
    ------
    TypeError, ValueError
        As of :class:`Fleet`.
    """

    _can_ask: ClassVar[bool] = True

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        tier_wait_s: ArrayLike | None = None,
        *,
        records: RecordSink | None = None,
    ) -> None:
        super().__init__(scenario, seed, tier_wait_s, records=records, full=True)

    @property
    def asks(self) -> bool:
        """Whether it has begun to ask."""
        full = self._state.full
        assert full is not None
        return full.scalars.item(0, ASKS) == 1

    @property
    def is_asking(self) -> bool:
        """Whether it stands at a request that is to be routed."""
        state = self._state
        position = state.scalars.item(0, NEXT_REQUEST)
        if not self.asks or position >= state.scalars.item(0, NUM_REQUESTS):
            return False
        return state.request_time_s.item(0, position) == state.now.item(0)

    @property
    def can_fetch(self) -> bool:
        """Whether nodes can fetch state at all: caches of serving engines can't."""
        return not isinstance(self._scenario.cache, LruCache)

    @property
    def lane(self) -> Any:
        """What compiled functions take; replaced when the fleet needs room."""
        return self._lane

    @property
    def _scalars(self) -> Ints:
        full = self._state.full
        assert full is not None
        return full.scalars[0]

    def advance(self, seconds: float) -> WindowStats:
        """Serve traffic for some time, routed by the scenario's router.

        Parameters
        ----------
        seconds : float
            As of :meth:`Fleet.advance`.

        Raises
        ------
        ValueError
            As of :meth:`Fleet.advance`, or if the fleet has begun to ask.
        """
        if self.asks:
            raise ValueError("advance: the fleet asks where requests go; call answer()")
        return super().advance(seconds)

    def ask(self) -> bool:
        """Serve traffic until a request is to be routed.

        Returns
        -------
        bool
            Whether there is one: False when the requests of a trace that is not repeated are over.
            The clock stands at the request, all that comes before it has happened.
        """
        scalars = self._scalars
        if not scalars[ASKS]:
            self._full_loop.begin_asking(self._lane)
            scalars[WINDOW_TICK] = to_ticks(self.now_s)
        until = self._until_s()
        return self._finish(self._loop.advance(self._lane, until), until)

    def answer(self, node: int | None, fetch: bool = False) -> bool:
        """Send the request at which the fleet stands, and serve until the next one.

        Parameters
        ----------
        node : int or None
            Index of a node, -1 to reject it, -2 for the origin; None: the scenario's router
            decides, and its controller whether to fetch.
        fetch : bool
            Whether it fetches what the node lacks of its prefix, if anything can be fetched when it
            lands there.

        Returns
        -------
        bool
            Whether there is a next one.

        Raises
        ------
        ValueError
            If the fleet has not asked, there is no such node or no origin, or nothing to fetch with
            caches of serving engines; the fleet is unchanged.
        """
        if not self.is_asking:
            raise ValueError("answer: the fleet has not asked; call ask()")
        if fetch and not self.can_fetch:
            raise ValueError(
                "fetch = True: nodes with cache.kind = 'lru' compute, they don't fetch"
            )
        order = FETCH_ANYWAY if fetch else COMPUTE
        if node is None:
            station, order = BY_ROUTER, BY_CONTROLLER
        elif node == ORIGIN:
            if self._scenario.origin is None:
                raise ValueError("node = -2: the scenario has no origin")
            station = self._world.max_nodes
        elif -1 <= node < self._state.node_count[0]:
            station = node
        else:
            last = self._state.node_count[0] - 1
            raise ValueError(f"node = {node}: must be one of 0..{last}, -1 or -2")
        until = self._until_s()
        return self._finish(self._full_loop.answer(self._lane, until, station, order), until)

    def close_window(self) -> WindowStats:
        """Return what happened since the fleet began to ask, or since the last call.

        Returns
        -------
        WindowStats
            The request at which the fleet stands is not in it.
        """
        now, scalars = self.now_s, self._scalars
        self._full_loop.close_window(self._lane, now)
        self._hand_over_records()
        begin, scalars[WINDOW_TICK] = int(scalars[WINDOW_TICK]), to_ticks(now)
        return WindowStats.of_window(self._state, 0, to_ticks(now) - begin)

    @property
    def _full_loop(self) -> FullLoop:
        assert isinstance(self._loop, FullLoop)
        return self._loop

    def _until_s(self) -> float:
        return self.now_s + max(_PATIENCE_S, _PATIENCE_REQUESTS / self._world.mean_rate_per_s)

    def _finish(self, code: int, until: float) -> bool:
        """Go on until there is a request, or none is left."""
        while code != NEEDS_ANSWER:
            if code == DONE:
                return False
            self._provide(code)
            code = self._loop.advance(self._lane, until)
        return True
