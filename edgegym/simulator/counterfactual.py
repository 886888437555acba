"""What if one request had gone elsewhere: the same world, played again with that one change.

Requests, places, service marks and failures depend on the seed alone, so two plays differ by the
choice and by what follows from it. Both are the same to the bit until the request is made: they are
played once up to there and then go separate ways.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgegym.simulator.columns import NUM_REQUESTS
from edgegym.simulator.fleet import Fleet
from edgegym.simulator.records import ArraySink, RecordTable
from edgegym.simulator.state import Bools, Floats, Ints, allocate
from edgegym.simulator.stream import USUAL_BLOCK_CAPACITY, RequestStream
from edgegym.world.scenario import Scenario

_MOST_REQUESTS = 10**9


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """What one request, sent elsewhere, would have changed.

    Differences are *forced less factual*: positive where the forced choice is slower. They are
    those of two independent simulations from time 0 to ``until_s``, to the bit.

    Attributes
    ----------
    request : int
        Position in the request stream, from 0.
    arrival_s : float
        When it is made.
    factual_node : int or None
        Who served it: a node, -1 for nobody, -2 for the origin; None if it had not ended.
    forced_node : int
        Who was made to, in the same numbers.
    factual_ttft_s, forced_ttft_s : float
        Its TTFT either way; NaN where it was not served by ``until_s``.
    factual_end_to_end_s, forced_end_to_end_s : float
        From its arrival to its end; NaN as above.
    others : ndarray
        ``[n]`` the other requests for which the choice made a difference, in order.
    others_ttft_difference_s, others_end_to_end_difference_s : ndarray
        ``[n]``; NaN where the request was served in one play only.
    unfinished : int
        Requests made by ``until_s`` that had not ended by then in one play or the other: what the
        choice did to them is not known yet.
    until_s : float
        How far both were played.
    """

    request: int
    arrival_s: float
    factual_node: int | None
    forced_node: int
    factual_ttft_s: float
    forced_ttft_s: float
    factual_end_to_end_s: float
    forced_end_to_end_s: float
    others: Ints
    others_ttft_difference_s: Floats
    others_end_to_end_difference_s: Floats
    unfinished: int
    until_s: float

    @property
    def own_ttft_difference_s(self) -> float:
        """Its own TTFT: forced less factual."""
        return self.forced_ttft_s - self.factual_ttft_s

    @property
    def own_end_to_end_difference_s(self) -> float:
        """Its own end-to-end time: forced less factual."""
        return self.forced_end_to_end_s - self.factual_end_to_end_s

    @property
    def others_ttft_sum_s(self) -> float:
        """What the choice costs all others together, in TTFT; those served once only left out."""
        return float(np.nansum(self.others_ttft_difference_s))

    @property
    def num_affected(self) -> int:
        """How many others it made a difference to."""
        return len(self.others)


def replay_counterfactual(
    scenario: Scenario,
    seed: int,
    request: int,
    node: int,
    until_s: float,
    tier_wait_s: ArrayLike | None = None,
) -> Counterfactual:
    """Play a world twice, the second time with one request sent elsewhere.

    Parameters
    ----------
    scenario : Scenario
        The world; nobody moves its profiles.
    seed : int
        Its seed.
    request : int
        Position in the request stream, from 0: column ``request`` of the records.
    node : int
        Where it is sent: a node, -1 (rejected) or -2 (the origin).
    until_s : float
        How far both are played, after the request's arrival. What the choice did to requests that
        have not ended by then is left out.
    tier_wait_s : array_like, optional
        As of :class:`~edgegym.simulator.Fleet`.

    Returns
    -------
    Counterfactual
        The request's own difference, and everybody else's.

    Raises
    ------
    ValueError
        If there is no such request by ``until_s`` or no such node.
    """
    request, until_s = _index("request", request), _seconds("until_s", until_s)
    factual = _Factual(scenario, seed, tier_wait_s)
    arrival_s = _arrivals_s(scenario, seed, [request], until_s)[0]
    return factual.replays([request], [node], [arrival_s], [until_s])[0]


def replay_counterfactuals(
    scenario: Scenario,
    seed: int,
    requests: Sequence[int],
    nodes: Sequence[int],
    horizon_s: float,
    tier_wait_s: ArrayLike | None = None,
) -> list[Counterfactual]:
    """Replay many requests of one world, each by itself, for the price of one factual play.

    Parameters
    ----------
    scenario : Scenario
        The world; nobody moves its profiles.
    seed : int
        Its seed.
    requests, nodes : sequence of int
        As of :func:`replay_counterfactual`, one of each for each replay; requests are in ascending
        order and may stand several times.
    horizon_s : float
        How long each is played from its arrival.
    tier_wait_s : array_like, optional
        As of :class:`~edgegym.simulator.Fleet`.

    Returns
    -------
    list of Counterfactual
        In the same order.

    Raises
    ------
    ValueError
        If a request or node does not exist, or the horizon is not positive.
    """
    horizon_s = _seconds("horizon_s", horizon_s)
    numbers = [_index("request", request) for request in requests]
    if numbers != sorted(numbers) or len(numbers) != len(nodes):
        raise ValueError("requests: must be in ascending order, with a node for each")
    if not numbers:
        return []
    factual = _Factual(scenario, seed, tier_wait_s)
    arrivals_s = _arrivals_s(scenario, seed, numbers, math.inf)
    until_s = [arrival_s + horizon_s for arrival_s in arrivals_s]
    return factual.replays(numbers, nodes, arrivals_s, until_s)


def _index(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"{name} = {value!r}: must be an integer, at least 0")
    if value >= _MOST_REQUESTS:
        raise ValueError(f"{name} = {value}: must be below {_MOST_REQUESTS:g}")
    return int(value)


def _seconds(name: str, value: float) -> float:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} = {value!r}: must be positive and finite")
    return float(value)


def _arrivals_s(
    scenario: Scenario, seed: int, requests: Sequence[int], until_s: float
) -> list[float]:
    """Return when requests, in ascending order, are made."""
    world = scenario.compile()
    stream = RequestStream(world, seed)
    if stream.replay is not None and not world.replay.repeats and len(world.flash) == 0:
        # Nothing follows the trace.
        until_s = min(until_s, world.replay.cycle_s * stream.replay.stretch)
    state, first = stream.fill(allocate(world, USUAL_BLOCK_CAPACITY), 0), 0
    found: list[float] = []
    while True:
        count = state.scalars.item(0, NUM_REQUESTS)
        while len(found) < len(requests) and requests[len(found)] < first + count:
            found.append(state.request_time_s.item(0, requests[len(found)] - first))
        if len(found) == len(requests) or state.stream_end_s.item(0) > until_s:
            break
        first += count
        state = stream.fill(state, 0)
    if len(found) < len(requests) or found[-1] > until_s:
        raise ValueError(f"request = {requests[-1]}: is not made by {until_s:g} s")
    return found


def _span_s(fleet: Fleet, until_s: float) -> float:
    """Return the longest advance that does not go beyond a time, whatever is rounded."""
    span_s = until_s - fleet.now_s
    while fleet.now_s + span_s > until_s:
        span_s = math.nextafter(span_s, 0.0)
    return span_s


class _Factual:
    """The factual play, and forced ones that part from it."""

    def __init__(self, scenario: Scenario, seed: int, tier_wait_s: ArrayLike | None) -> None:
        self._sink = ArraySink()
        self._fleet = Fleet(scenario, seed, tier_wait_s, records=self._sink)
        self._made = 0

    def replays(
        self,
        requests: Sequence[int],
        nodes: Sequence[int],
        arrivals_s: Sequence[float],
        until_s: Sequence[float],
    ) -> list[Counterfactual]:
        """Play once to the end of the last replay, and each forced play from its request on."""
        forced: list[RecordTable] = []
        ended: list[int] = []
        stand: dict[float, tuple[int, int]] = {}
        ends = {(end_s, 0, -1) for end_s in until_s}
        starts = {(math.nextafter(when, 0.0), 1, k) for k, when in enumerate(arrivals_s)}
        # In the order of the requests, because their arrivals are.
        for stop_s, begins, index in sorted(ends | starts):
            stand[stop_s] = self._play(stop_s)
            if begins:
                ended.append(self._sink.num_rows)
                forced.append(self._forced(requests[index], nodes[index], until_s[index]))
        everything = self._sink.table()
        found = []
        for index, end_s in enumerate(until_s):
            made, rows = stand[end_s]
            factual = everything.where(np.arange(ended[index], rows))
            plays = _Plays(requests[index], factual, forced[index], made - ended[index])
            found.append(plays.compared(nodes[index], arrivals_s[index], end_s))
        return found

    def _play(self, until_s: float) -> tuple[int, int]:
        """Go on; return how many requests have been made, and how many of them have ended."""
        if until_s > self._fleet.now_s:
            self._made += self._fleet.advance(_span_s(self._fleet, until_s)).arrivals
        return self._made, self._sink.num_rows

    def _forced(self, request: int, node: int, until_s: float) -> RecordTable:
        """Return the records of a fleet that goes on from here with one request forced."""
        sink = ArraySink()
        fleet = self._fleet.fork(sink)
        fleet.force(request, node)
        fleet.advance(_span_s(fleet, until_s))
        return sink.table()


@dataclass(frozen=True, eq=False)
class _Plays:
    """Records of both plays, from where they part."""

    request: int
    factual: RecordTable
    forced: RecordTable
    at_stake: int  # requests that had not ended where the plays part, or were made after that

    def compared(self, node: int, arrival_s: float, until_s: float) -> Counterfactual:
        numbers, one, two = np.intersect1d(
            self.factual["request"], self.forced["request"], return_indices=True
        )
        factual, forced = self.factual.where(one), self.forced.where(two)
        ttft = forced["ttft_s"] - factual["ttft_s"]
        end_to_end = forced["end_to_end_s"] - factual["end_to_end_s"]
        same = _equal(forced, factual, "ttft_s") & _equal(forced, factual, "end_to_end_s")
        same &= forced["outcome"] == factual["outcome"]
        others = ~same & (numbers != self.request)
        own_factual, own_forced = self._own(self.factual), self._own(self.forced)
        return Counterfactual(
            request=self.request,
            arrival_s=arrival_s,
            factual_node=int(own_factual["node"][0]) if own_factual.num_rows else None,
            forced_node=int(node),
            factual_ttft_s=_first(own_factual["ttft_s"]),
            forced_ttft_s=_first(own_forced["ttft_s"]),
            factual_end_to_end_s=_first(own_factual["end_to_end_s"]),
            forced_end_to_end_s=_first(own_forced["end_to_end_s"]),
            others=numbers[others],
            others_ttft_difference_s=ttft[others],
            others_end_to_end_difference_s=end_to_end[others],
            unfinished=self.at_stake - len(numbers),
            until_s=until_s,
        )

    def _own(self, table: RecordTable) -> RecordTable:
        return table.where(table["request"] == self.request)


def _equal(one: RecordTable, other: RecordTable, name: str) -> Bools:
    return (one[name] == other[name]) | (np.isnan(one[name]) & np.isnan(other[name]))


def _first(values: Floats) -> float:
    return values.item(0) if len(values) else math.nan
