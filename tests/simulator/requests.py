"""All requests of some blocks of a stream."""

import numpy as np

from edgegym.simulator.columns import NEXT_BLOCK, NUM_REQUESTS
from edgegym.simulator.state import allocate
from edgegym.simulator.stream import RequestStream

FIELDS = ("request_time_s", "request_x_km", "request_y_km", "request_mark", "request_type")


def requests(world, seed, blocks, first=0):
    """Return time, x, y, mark and type of all requests of some blocks, ``[5, n]``."""
    return requests_and_lengths(world, seed, blocks, first)[0]


def requests_and_lengths(world, seed, blocks, first=0):
    """Return the same, and input and output tokens, ``[2, n]``."""
    stream = RequestStream(world, seed)
    state = allocate(world)
    state.scalars[0, NEXT_BLOCK] = first
    parts, lengths = [], []
    for _ in range(blocks):
        state, length = stream.fill_with_lengths(state, 0)
        count = state.scalars[0, NUM_REQUESTS]
        parts.append(np.array([getattr(state, name)[0, :count] for name in FIELDS]))
        lengths.append(np.array(length))
    return np.concatenate(parts, axis=1), np.concatenate(lengths, axis=1)
