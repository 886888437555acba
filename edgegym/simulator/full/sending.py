"""Sending requests to stations, once or again."""

import numpy as np

from edgegym.simulator.accounting import new_record, release_record
from edgegym.simulator.columns import (
    ARRIVAL_S,
    ARRIVALS,
    COUNTED,
    FAMILY_ARRIVALS,
    IN_FLIGHT,
    JOIN_S,
    MARK,
    NODE,
    ON_RADIO,
    PLACE,
    REJECTED,
    REPORTED,
    SPILLED_BITS,
    SPILLED_SHIFT,
    STATUS,
    TYPE,
)
from edgegym.simulator.compiling import helper, inlined, prefetch
from edgegym.simulator.events import LANDING, push_event, request_item
from edgegym.simulator.full.columns import (
    BY_CONTROLLER,
    BY_ROUTER,
    DOWN,
    FETCH_ORDER,
    FETCHED_BYTES,
    FIRST_REQUEST,
    FLOW,
    FORCED_FETCH,
    FORCED_REQUEST,
    FORCED_STATION,
    HIT_DEPTH,
    HIT_TOKENS,
    INPUT_TOKENS,
    KEPT_DEPTH,
    LOCAL_HIT_TOKENS,
    NEAREST,
    NOBODY,
    NOT_SPILLED,
    ORIGIN_KEY,
    OUTPUT_TOKENS,
    PREDICTED_S,
    REDISPATCHES,
    REFUSED,
    REQUEST,
    RESTORE_S,
    ROUTING_KEY,
    RUNNER_UP,
    RUNNER_UP_S,
    SERVER_WAIT_S,
    STALL_S,
    TRANSFER_WAIT_S,
    X_KM,
    Y_KM,
)
from edgegym.simulator.full.counting import count_decision
from edgegym.simulator.full.counts import (
    FAMILY_REJECTED,
    ORIGIN_DISPATCHES,
    REDIRECTED,
    REJECTED_BY_ADMISSION,
    count,
    count_of_family,
)
from edgegym.simulator.full.fetching import consider_fetch
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.log import log_rejected
from edgegym.simulator.full.routing import must_move_on, note_landed, note_sent, route
from edgegym.simulator.full.routing_groups import Ask, Decision, Routing
from edgegym.simulator.full.sight import (
    advertised_hit,
    expected_s,
    origin_expected_s,
    sight_of,
    squared_km2,
    way_s,
)
from edgegym.simulator.full.slots import queue_up, turn_away
from edgegym.simulator.telemetry import note_routed


@helper
def admit(fleet: FullLane, position: int, time: float) -> int:
    """Write the record of the request at a position of the loaded block; return it."""
    core, desk, requests = fleet.core, fleet.desk, fleet.requests
    record = new_record(core.records)
    info, num, real = core.records.info, desk.tasks.num, desk.tasks.real
    core.records.time[record, ARRIVAL_S] = time
    core.records.time[record, MARK] = requests.mark[position]
    info[record, TYPE] = requests.type[position]
    info[record, COUNTED] = 0
    num[record, REQUEST] = fleet.scalars[FIRST_REQUEST] + position
    num[record, INPUT_TOKENS] = fleet.lengths.input_tokens[position]
    num[record, OUTPUT_TOKENS] = fleet.lengths.output_tokens[position]
    num[record, REDISPATCHES] = 0
    real[record, X_KM] = requests.x_km[position]
    real[record, Y_KM] = requests.y_km[position]
    core.window.counters[ARRIVALS] += 1
    core.window.families[FAMILY_ARRIVALS, core.types.family[requests.type[position]]] += 1
    return record


@helper
def _forget_service(fleet: FullLane, record: int) -> None:
    """Begin a request's service from nothing."""
    num, real = fleet.desk.tasks.num, fleet.desk.tasks.real
    num[record, HIT_TOKENS] = -1
    num[record, LOCAL_HIT_TOKENS] = -1
    num[record, HIT_DEPTH] = 0
    num[record, KEPT_DEPTH] = 0
    num[record, FLOW] = -1
    num[record, FETCHED_BYTES] = 0
    real[record, STALL_S] = 0.0
    real[record, RESTORE_S] = 0.0
    real[record, SERVER_WAIT_S] = 0.0
    real[record, TRANSFER_WAIT_S] = 0.0


@inlined
def _family(fleet: FullLane, record: int) -> int:
    return int(fleet.desk.types.family[fleet.core.records.info[record, TYPE]])


@helper
def reject(fleet: FullLane, record: int, by_admission: bool) -> None:
    """Let a request go unserved, because its node is closed or for another reason."""
    core, desk = fleet.core, fleet.desk
    core.window.counters[REJECTED] += 1
    count_decision(desk, record, False)
    count_of_family(desk.counts, _family(fleet, record), FAMILY_REJECTED, 1)
    if by_admission:
        count(desk.counts, REJECTED_BY_ADMISSION, 1)
    tasks = desk.tasks
    log_rejected(desk.log, core.records.time, core.records.info, tasks.real, tasks.num, record)
    release_record(core.records, record)


@inlined
def _ask(fleet: FullLane, record: int) -> Ask:
    """Return a request as the router sees it."""
    num, real = fleet.desk.tasks.num, fleet.desk.tasks.real
    return Ask(
        real[record, X_KM],
        real[record, Y_KM],
        fleet.core.records.info[record, TYPE],
        float(num[record, INPUT_TOKENS]),
        float(num[record, OUTPUT_TOKENS]),
        num[record, REQUEST],
        fleet.scalars[ROUTING_KEY],
        fleet.scalars[ORIGIN_KEY],
    )


@inlined
def _predicted_s(
    routing: Routing, ask: Ask, station: int, squared: float, otherwise_s: float, now: float
) -> float:
    """Return the predicted time to the first token at a station that the router did not choose."""
    if station < 0:
        return otherwise_s
    if station == routing.origin_station:
        return routing.area.radio_base_s + origin_expected_s(routing, ask, squared)
    place = routing.nodes.work[station, PLACE]
    hit = advertised_hit(routing, ask, place)
    if hit < 0.0:
        return otherwise_s
    return routing.area.radio_base_s + expected_s(sight_of(routing, ask, place, squared, hit, now))


@helper
def _decide(fleet: FullLane, record: int, ask: Ask, now: float) -> Decision:
    """Route a request, unless its station is given."""
    num = fleet.desk.tasks.num
    decision = route(fleet.routing, ask, now)
    num[record, FETCH_ORDER] = BY_CONTROLLER
    if ask.number != fleet.scalars[FORCED_REQUEST] or num[record, REDISPATCHES] > 0:
        return decision
    num[record, FETCH_ORDER] = fleet.scalars[FORCED_FETCH]
    station = fleet.scalars[FORCED_STATION]
    if station in (BY_ROUTER, decision.node):
        return decision
    squared = np.inf
    if 0 <= station < fleet.life.num_nodes:
        place = fleet.core.nodes.work[station, PLACE]
        squared = squared_km2(fleet.area, place, ask.x_km, ask.y_km)
    elif station >= 0 and decision.nearest >= 0 and fleet.faults.num[station, DOWN] == 0:
        place = fleet.core.nodes.work[decision.nearest, PLACE]
        squared = squared_km2(fleet.area, place, ask.x_km, ask.y_km)
    if squared == np.inf:
        # The forced station is down: nobody takes the request.
        station = NOBODY
    return Decision(
        station,
        decision.nearest,
        squared,
        _predicted_s(fleet.routing, ask, station, squared, decision.predicted_s, now),
        decision.runner_up_s,
        decision.runner_up,
        NOT_SPILLED,
    )


@helper
def dispatch(fleet: FullLane, record: int, now: float) -> int:
    """Send a request on its way to a station; return the nearest up node, -1 without one."""
    core, desk = fleet.core, fleet.desk
    num, real = desk.tasks.num, desk.tasks.real
    _forget_service(fleet, record)
    ask = _ask(fleet, record)
    decision = _decide(fleet, record, ask, now)
    num[record, NEAREST] = decision.nearest
    num[record, RUNNER_UP] = decision.runner_up
    # Predictions are of the time since the request was made, however often it was sent.
    elapsed_s = now - core.records.time[record, ARRIVAL_S]
    real[record, PREDICTED_S] = elapsed_s + decision.predicted_s
    real[record, RUNNER_UP_S] = elapsed_s + decision.runner_up_s
    station = decision.node
    if station == NOBODY or num[record, REDISPATCHES] > fleet.life.most_dispatches:
        reject(fleet, record, decision.spilled == REFUSED)
        return decision.nearest
    core.records.info[record, STATUS] = IN_FLIGHT
    core.records.info[record, NODE] = station
    prefetch(core.nodes.work, station, REPORTED)
    _note_way(fleet, record, station, decision.spilled)
    join = now + way_s(fleet.routing, ask, station, decision.distance_squared_km2)
    if join > now:
        push_event(core.queue, join, LANDING, request_item(station, record))
    # Last, when the node's memory may have come.
    note_routed(core.signals, core.nodes, station)
    note_sent(fleet.routing, station, num[record, INPUT_TOKENS] + num[record, OUTPUT_TOKENS], now)
    core.nodes.work[station, ON_RADIO] += 1
    if join <= now:
        # It would be the next event anyway.
        land(fleet, station, record, now)
    return decision.nearest


@inlined
def _note_way(fleet: FullLane, record: int, station: int, spilled: int) -> None:
    """Take note of how a request is sent; whoever serves it counts that it spilled."""
    info = fleet.core.records.info
    info[record, COUNTED] = (info[record, COUNTED] & ~SPILLED_BITS) | (spilled << SPILLED_SHIFT)
    if station == fleet.desk.origin:
        count(fleet.desk.counts, ORIGIN_DISPATCHES, 1)


@helper
def land(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request reach its station."""
    core, num = fleet.core, fleet.desk.tasks.num
    core.nodes.work[station, ON_RADIO] -= 1
    core.records.time[record, JOIN_S] = now
    note_landed(fleet.routing, station, num[record, INPUT_TOKENS] + num[record, OUTPUT_TOKENS])
    if must_move_on(fleet.routing, station, now):
        count(fleet.desk.counts, REDIRECTED, 1)
        turn_away(fleet, station, record, now)
        return
    consider_fetch(fleet, station, record, now)
    queue_up(fleet, station, record, now)


@helper
def send_again(fleet: FullLane, record: int, now: float) -> None:
    """Send a request whose station can't serve it, its clock running."""
    fleet.desk.tasks.num[record, REDISPATCHES] += 1
    dispatch(fleet, record, now)
