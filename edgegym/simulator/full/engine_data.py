"""What serving engines are made of: columns, parameters, and room for requests."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgegym.simulator.full.marks import NUM_LINKS
from edgegym.simulator.full.tokens import tpot_table
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.hardware import StepsDecode
from edgegym.world.serving import EngineService

if TYPE_CHECKING:
    from edgegym.world.compiled import World
    from edgegym.world.hardware import Hardware
    from edgegym.world.scenario import Scenario

# Columns of `station`.
CLOCK_S = 0  # until when the station's flows are worked out
PROGRESS = 1  # tokens
LEFT_S = 2  # of the prompt at the server, as long as it would take alone, at CLOCK_S
PREFILL_END_S = 3  # inf without a prompt
NUM_STATION = 4

# Columns of `state`.
CLASS = 0  # hardware class of the station
FIRST_PROMPT = 1  # at the server, -1 for none
LAST_PROMPT = 2
PROMPTS = 3  # at the server and behind it
ROOT = 4  # of the heap of finish marks, -1 for none
DECODING = 5  # sequences
RESTORING = 6  # restorations in progress
NEXT_RANK = 7  # of the next first token
DUE = 8  # which event the timer means
BUSY_SINCE_TICK = 9  # since when the prefill server's time is not yet counted
BUSY_TICKS = 10  # counted and not yet handed over
NUM_STATE = 11

# Columns of `request`, after MARK.
WORK_S = 1  # prefill as long as it would take alone
OWN_S = 2  # chunks: for each token, what the prompt takes beyond the class's prompt tokens
TOKENS = 3  # to decode after the first
BEGIN_S = 4  # when its prompt is put to the server
NUM_REQUEST = 5

# Columns of `link`, after those of the heap.
NEXT_PROMPT = NUM_LINKS
NUM_LINK = NUM_LINKS + 1


class EngineParams(NamedTuple):
    """What never changes, for C hardware classes."""

    chunked: bool
    step_tokens: int
    most: int  # sequences in the last column
    slowdown: float  # of decoding during a restoration
    token_s: Floats  # [C, most + 1] g(n, 0); 0 without a sequence
    prompt_s: Floats  # [C, most + 1] g(n, step_tokens - n) - g(n, 0)
    linear_s: Floats  # [C] of a prompt token, in prefill_seconds
    floor_s: Floats  # [C] least linear part of a prompt, in prefill_seconds
    tabulated: Bools  # [C] is prompt_s from a table, instead of linear_s?

    COLUMNS = ()


class Engine(NamedTuple):
    """Engines of M stations with P request records; a leading axis of fleets outside kernels."""

    station: Floats  # [M, NUM_STATION]
    state: Ints  # [M, NUM_STATE]
    request: Floats  # [P, NUM_REQUEST]
    link: Ints  # [P, NUM_LINK]

    COLUMNS = (
        ("station", NUM_STATION),
        ("state", NUM_STATE),
        ("request", NUM_REQUEST),
        ("link", NUM_LINK),
    )


def allocate_engine(stations: int, records: int, batch: int = 1) -> Engine:
    """Return engines without requests at time 0.

    Parameters
    ----------
    stations, records : int
        Stations, M, and request records, P.
    batch : int
        Number of fleets, B.

    Returns
    -------
    Engine
        Arrays ``[B, …]``; every station is of class 0 until `state` says otherwise.
    """
    station = np.zeros((batch, stations, NUM_STATION))
    station[:, :, PREFILL_END_S] = np.inf
    state = np.zeros((batch, stations, NUM_STATE), dtype=np.int64)
    state[:, :, [FIRST_PROMPT, LAST_PROMPT, ROOT]] = -1
    return Engine(
        station,
        state,
        np.zeros((batch, records, NUM_REQUEST)),
        np.zeros((batch, records, NUM_LINK), dtype=np.int64),
    )


def with_more_requests(engine: Engine, records: int) -> Engine:
    """Return the engines with room for more requests.

    Parameters
    ----------
    engine : Engine
        With the leading axis of fleets; the arrays of its stations are shared with the result.
    records : int
        Request records, at least as many as there are.

    Returns
    -------
    Engine
        Same content.
    """
    request = np.zeros((engine.request.shape[0], records, NUM_REQUEST))
    link = np.zeros((engine.link.shape[0], records, NUM_LINK), dtype=np.int64)
    request[:, : engine.request.shape[1]] = engine.request
    link[:, : engine.link.shape[1]] = engine.link
    return engine._replace(request=request, link=link)


def engine_params(scenario: "Scenario", world: "World") -> EngineParams:
    """Return what engines need to know of a scenario.

    Parameters
    ----------
    scenario : Scenario
        With any service; its own step is read where that is ``engine``.
    world : World
        The same, compiled.

    Returns
    -------
    EngineParams
        Steps by hardware class, from the hardware's table or from its TPOT and prefill.
    """
    service = scenario.service
    chunked = isinstance(service, EngineService) and service.schedule == "chunked"
    step_tokens = service.step_tokens if isinstance(service, EngineService) else 1
    return make_engine_params(
        # A class without GPU has no slots: which figures stand in its row does not matter.
        [item.hardware or scenario.hardware for item in scenario.node_classes],
        most=max(int(world.classes.slots.max()), 1),
        chunked=chunked,
        step_tokens=step_tokens,
        slowdown=scenario.backhaul.restore_slowdown,
    )


def make_engine_params(
    classes: "list[Hardware]",
    *,
    most: int,
    chunked: bool = False,
    step_tokens: int = 512,
    slowdown: float = 1.0,
) -> EngineParams:
    """Return the step times of hardware classes as tables over the number of sequences.

    Parameters
    ----------
    classes : list of Hardware
        C of them.
    most : int
        Most sequences that decode at once; with chunks, below ``step_tokens``.
    chunked : bool
        Do prompts share steps with decoding?
    step_tokens : int
        Tokens of such a step.
    slowdown : float
        Factor on the time of a decode step during a restoration.

    Returns
    -------
    EngineParams
        Tables ``[C, most + 1]``.
    """
    token_s = tpot_table(classes, most)
    prompt_s = np.zeros_like(token_s)
    sequences = np.arange(most + 1)
    for row, hardware, tokens in zip(prompt_s, classes, token_s, strict=True):
        chunks = np.maximum(step_tokens - sequences, 0)
        if isinstance(hardware.decode, StepsDecode):
            row[:] = hardware.decode.step(sequences, chunks) - tokens
        else:
            row[:] = hardware.prefill.linear_s * chunks
    return EngineParams(
        chunked=chunked,
        step_tokens=step_tokens,
        most=most,
        slowdown=slowdown,
        token_s=token_s,
        prompt_s=prompt_s,
        linear_s=np.array([hardware.prefill.linear_s for hardware in classes]),
        floor_s=np.array([hardware.prefill.floor_s for hardware in classes]),
        tabulated=np.array([isinstance(hardware.decode, StepsDecode) for hardware in classes]),
    )
