"""A simulated fleet."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegym.simulator.backhaul import bucket_level
from edgegym.simulator.checking import check_state
from edgegym.simulator.compiling import entry_point
from edgegym.simulator.lane import lane_of
from edgegym.simulator.moves import (
    IllegalMove,
    change_profile,
    charge_move,
    legal_moves,
    why_illegal,
)
from edgegym.simulator.search import grid_shape
from edgegym.simulator.state import (
    Bools,
    FleetState,
    allocate,
    copy_state,
    to_ticks,
    with_more_records,
)
from edgegym.simulator.step import DONE, NEEDS_BLOCK, advance_one
from edgegym.simulator.stream import USUAL_BLOCK_CAPACITY, RequestStream
from edgegym.simulator.topology import place_nodes
from edgegym.simulator.window import WindowStats
from edgegym.world.compiled import ROUTER_KINDS, WAIT_KINDS, World
from edgegym.world.scenario import Scenario

# Times are kept as 64-bit ticks.
_LAST_CLOCK_S = 8e9
_MOST_REQUESTS = 1e9


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

    Raises
    ------
    ValueError
        If the seed is out of range, or ``tier_wait_s`` is missing, superfluous, or not ``[S]``
        non-negative finite numbers.
    TypeError
        If the scenario is none.
    """

    def __init__(
        self, scenario: Scenario, seed: int = 0, tier_wait_s: ArrayLike | None = None
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise TypeError(f"scenario = {scenario!r}: must be a Scenario, as preset() returns")
        self._scenario = scenario
        self._world: World = scenario.compile()
        seed = _checked_seed(seed)
        self._stream = RequestStream(self._world, seed)
        cells_x, cells_y = grid_shape(self._world)
        state = allocate(self._world, USUAL_BLOCK_CAPACITY, cells_x * cells_y)
        state.tier_wait_s[0] = checked_tier_wait(self._world, tier_wait_s)
        place_nodes(self._world, state, 0, seed)
        self._adopt(self._stream.fill(state, 0))
        self._bind_kernels()

    def _bind_kernels(self) -> None:
        """Resolve the kernels for this world's lanes: their types never change."""
        self._advance_one = entry_point(advance_one, self._lane, 0.0)
        self._change_profile = entry_point(change_profile, self._lane, 0, 0, 0, 0)

    def _adopt(self, state: FleetState) -> None:
        """Make a state the fleet's own."""
        self._state = state
        self._lane = lane_of(self._world, state, 0)

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
        """
        begin = self._state.now.item(0)
        until = begin + _checked_span(self._world, begin, seconds)
        while (code := self._advance_one(self._lane, until)) != DONE:
            state = self._state
            if code == NEEDS_BLOCK:
                state = self._stream.fill(state, 0)
            else:
                state = with_more_records(state)
            if state is not self._state:
                self._adopt(state)
        return WindowStats.of_window(self._state, 0, to_ticks(until) - to_ticks(begin))

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
        node, profile = _checked_index("node", node), _checked_index("profile", profile)
        world, state = self._world, self._state
        if rule := why_illegal(self._scenario, state, 0, node, profile):
            raise IllegalMove(rule)
        current = state.profile.item(0, node)
        price_bytes = world.move_bytes.item(current, profile)
        charge_move(world, state, 0, price_bytes)
        self._change_profile(
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
            From :meth:`get_state`; it is copied. Its seed becomes the fleet's.

        Raises
        ------
        ValueError
            If it is no state, its nodes, profiles, types or families are not those of this fleet,
            or its contents contradict the scenario; the fleet is unchanged.
        """
        check_state(self._world, self._state, state)
        adopted = copy_state(state)
        if int(adopted.seed[0]) != self.seed:
            self._stream = RequestStream(self._world, int(adopted.seed[0]))
        self._adopt(adopted)

    def fork(self) -> "Fleet":
        """Return a fleet that continues from here by itself."""
        fleet = Fleet.__new__(Fleet)
        fleet._scenario, fleet._world, fleet._stream = self._scenario, self._world, self._stream
        fleet._advance_one, fleet._change_profile = self._advance_one, self._change_profile
        fleet._adopt(copy_state(self._state))
        return fleet

    def __copy__(self) -> "Fleet":
        """Return a fork: two fleets never share a state."""
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Fleet":
        """Return a fork; scenario and compiled world never change and are shared."""
        return self.fork()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle needs: the rest follows from it."""
        return {"scenario": self._scenario, "state": tuple(self._state)}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        """Restore from :meth:`__getstate__`."""
        self._scenario = pickled["scenario"]
        self._world = self._scenario.compile()
        self._adopt(FleetState._make(pickled["state"]))
        self._bind_kernels()
        self._stream = RequestStream(self._world, self.seed)


def _checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"seed = {seed!r}: must be an integer in [0, 2^64)")
    return int(seed)


def _checked_span(world: World, begin_s: float, seconds: float) -> float:
    number = isinstance(seconds, int | float | np.integer | np.floating)
    if not number or isinstance(seconds, bool) or not 0.0 <= seconds < math.inf:
        raise ValueError(f"seconds = {seconds!r}: must be finite and at least 0")
    if seconds > _LAST_CLOCK_S - begin_s:
        raise ValueError(
            f"seconds = {seconds!r}: the clock, now {begin_s:g} s, must stay within "
            f"{_LAST_CLOCK_S:g} s"
        )
    expected = world.mean_rate_per_s * float(seconds)
    if expected >= _MOST_REQUESTS:
        raise ValueError(
            f"seconds = {seconds!r}: {expected:.3g} requests are expected in it, must be fewer "
            f"than {_MOST_REQUESTS:g} in one call"
        )
    return float(seconds)


def _checked_index(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise IllegalMove(f"{name} = {value!r}: must be an integer")
    return int(value)


def checked_tier_wait(world: World, tier_wait_s: ArrayLike | None) -> Any:
    """Return the advertised waits ``[S]``; 0 where the router advertises none.

    Raises
    ------
    ValueError
        If they are missing, superfluous, or not ``[S]`` non-negative finite numbers.
    """
    load_aware, tier = ROUTER_KINDS.index("load_aware"), WAIT_KINDS.index("tier")
    needed = world.router_kind == load_aware and world.wait_kind == tier
    if not needed:
        if tier_wait_s is not None:
            raise ValueError("tier_wait_s: only used with routing.advertised_wait = 'tier'")
        return 0.0
    if tier_wait_s is None:
        raise ValueError("tier_wait_s is missing: routing.advertised_wait = 'tier' needs it")
    try:
        waits = np.asarray(tier_wait_s)
    except ValueError:  # of uneven rows
        waits = np.empty(0, dtype=object)
    if waits.dtype.kind not in "iuf":
        raise ValueError(f"tier_wait_s = {tier_wait_s!r}: must be numbers")
    if waits.shape != (world.num_profiles,):
        raise ValueError(f"tier_wait_s has shape {waits.shape}: must be ({world.num_profiles},)")
    if not (np.isfinite(waits).all() and (waits >= 0.0).all()):
        raise ValueError(f"tier_wait_s = {waits.tolist()}: must be finite and at least 0")
    return waits.astype(np.float64)
