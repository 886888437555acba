"""Vertices with a lifetime: what is held of one becomes void when its content changes.

Version k of a vertex's content lasts from ``phase + (k − 1) · lifetime`` to ``phase + k ·
lifetime``; phases are drawn once per episode, uniform, from the stream ``versions``. A change
voids what continues the vertex too: the state of later tokens depends on earlier ones.

At a change every station that holds the vertex keeps the rest. A radix cache computes the new
version when a request needs it. A node with a profile fetches what it lost over the backhaul: that
is not charged to the budget of moves, but until all of it has arrived the node is receiving, as in
a move. Where bytes flow to the node already, those of the new version join them: what has arrived
of the old one, and what is on its way, is worth nothing. Where a move still waits for slots to get
free, only what the node held and lost is added: the rest is going to be fetched in its new version
anyway. Running requests own their context and do not notice.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.lru_data import vertex_order
from edgegym.simulator.generators import stream_generator
from edgegym.simulator.state import Floats, Ints
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache


class ExpiryParams(NamedTuple):
    """The L vertices that expire; H holdings, the first S those of the profiles."""

    lifetime_s: Floats  # [L]
    lru_vertex: Ints  # [L] index in the radix caches; empty where nodes hold profiles
    left: Ints  # [H, L] holding that is left
    lost_bytes: Ints  # [H, L] what it lacks then


class ExpiryState(NamedTuple):
    """Versions of the contents, with a leading axis of fleets."""

    phase_s: Floats  # [L] first change
    version: Ints  # [L] changes so far


def expiry_params(scenario: Scenario) -> ExpiryParams:
    """Return the constants of expiring vertices.

    Parameters
    ----------
    scenario : Scenario
        Any world; L is 0 where everything lasts.

    Returns
    -------
    ExpiryParams
        Plain arrays for kernels; vertices in the order of the forest.
    """
    tables, catalogue = scenario.compile().classes, scenario.catalogue
    order = vertex_order(scenario) if isinstance(scenario.cache, LruCache) else None
    names = catalogue.lifetime_vertices
    places = [] if order is None else [order.index(name) for name in names]
    size = catalogue.holding_bytes
    return ExpiryParams(
        lifetime_s=tables.lifetimes_s.copy(),
        lru_vertex=np.array(places, dtype=np.int64),
        left=tables.expired.copy(),
        lost_bytes=size[:, None] - size[tables.expired],
    )


def allocate_expiry(params: ExpiryParams, batch: int = 1) -> ExpiryState:
    """Return first versions that change at time 0; see :func:`draw_phases`.

    Parameters
    ----------
    params : ExpiryParams
        L vertices.
    batch : int
        Number of fleets.
    """
    shape = (batch, len(params.lifetime_s))
    return ExpiryState(np.zeros(shape), np.zeros(shape, dtype=np.int64))


def draw_phases(params: ExpiryParams, state: ExpiryState, b: int, seed: int) -> None:
    """Draw when the contents of fleet b first change.

    Parameters
    ----------
    params : ExpiryParams
        L vertices.
    state : ExpiryState
        State of B fleets, changed in place.
    b : int
        Which fleet.
    seed : int
        Seed of the episode.
    """
    draws = stream_generator(seed, "versions").random(len(params.lifetime_s))
    # From (0, 1]: nothing changes before the start.
    state.phase_s[b] = (1.0 - draws) * params.lifetime_s
    state.version[b] = 0


@inlined
def next_change_s(params: ExpiryParams, state: ExpiryState, vertex: int) -> float:
    """Return when the content of an expiring vertex, by its number, changes next."""
    return state.phase_s[vertex] + state.version[vertex] * params.lifetime_s[vertex]


@inlined
def bytes_to_fetch(
    params: ExpiryParams, vertex: int, holding: int, profile: int, draining: bool
) -> int:
    """Return the bytes that a node must fetch because a vertex changed, besides those it awaits.

    Parameters
    ----------
    params : ExpiryParams
        L vertices.
    vertex : int
        Number of the one that changed.
    holding, profile : int
        What the node held, and what it is to hold when nothing flows to it any more.
    draining : bool
        Whether a move waits there for slots to get free.
    """
    return params.lost_bytes[holding if draining else profile, vertex]
