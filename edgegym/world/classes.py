"""Node classes and holdings as plain tables: what the full simulator reads of a mixed fleet."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.world.hardware import Hardware, prefill_s
from edgegym.world.serving import LruCache

if TYPE_CHECKING:
    from edgegym.world.catalogue import Catalogue
    from edgegym.world.scenario import Scenario

NOT_SERVED = -1.0
"""In the table of hits: a request of this type can't be served there."""


class ClassTables(NamedTuple):
    """What a node of each class has, and what each holding is worth on it; never changes.

    C classes (one in a fleet without classes), H holdings, S profiles, Q request types, L vertices
    that expire. A *row* is a class and a holding: ``row = class * H + holding``. State has the same
    size on all classes: bytes belong to vertices.
    """

    num_holdings: int
    share: NDArray[np.float64]  # [C] of all nodes
    has_gpu: NDArray[np.int64]  # [C] 0 or 1
    coefficients: NDArray[np.float64]  # [C, 4] linear_s, quadratic_s, floor_s, 1 for context
    occupancy_s: NDArray[np.float64]  # [C, Q] decode; 0 without GPU
    slots: NDArray[np.int64]  # [C, S] 0 without GPU and where a profile doesn't fit
    kv_bytes_per_token: NDArray[np.int64]  # [C] 0 without GPU
    sequence_bytes: NDArray[np.int64]  # [C] of one running sequence; 0 without GPU
    usable_bytes: NDArray[np.int64]  # [C] for state and sequences; 0 without GPU
    serves: NDArray[np.int64]  # [C, Q] 1 where the class has a GPU and offers the type's tag
    hit_tokens: NDArray[np.float64]  # [C * H, Q] NOT_SERVED where a type can't be served
    row_class: NDArray[np.int64]  # [C * H]
    row_service_rate: NDArray[np.float64]  # [C * H] 1/s of a slot, at the long-run mix of the types
    empty_row: NDArray[np.int64]  # [C] the row that holds nothing
    meet: NDArray[np.int64]  # [H, S] holding kept when a move to a profile starts, -1: never occurs
    missing_bytes: NDArray[np.int64]  # [H, S] to go from a holding to a profile
    move_bytes: NDArray[np.int64]  # [S, S] from, to
    lifetimes_s: NDArray[np.float64]  # [L]
    expired: NDArray[np.int64]  # [H, L] holding left when a vertex and what continues it expire


def profile_slots(scenario: "Scenario", hardware: Hardware) -> NDArray[np.int64]:
    """Return how many sequences run at once beside each profile, ``[S]`` (eq. 12).

    With an LRU cache its budget takes the place of the profile's state. 0 where not even one
    sequence fits.
    """
    runtime = sequence_bytes(scenario, hardware)
    held = scenario.state_bytes
    if isinstance(scenario.cache, LruCache):
        held = (scenario.cache.budget_bytes,) * len(held)
    # Python's integers: a negative number of bytes must not wrap around.
    slots = [max((hardware.usable_bytes - size) // runtime, 0) for size in held]
    return np.array(slots, dtype=np.int64)


def sequence_bytes(scenario: "Scenario", hardware: Hardware) -> int:
    """Return the memory of one running sequence on a GPU, bytes (m_run)."""
    types = scenario.request_types
    return hardware.sequence_bytes(
        [item.share for item in types], [item.input_tokens + item.output_tokens for item in types]
    )


def class_slots(scenario: "Scenario") -> NDArray[np.int64]:
    """Return the slots of each class beside each profile, ``[C, S]``, 0 where it doesn't fit."""
    none = np.zeros(len(scenario.profiles), dtype=np.int64)
    return np.stack(
        [
            none if item.hardware is None else profile_slots(scenario, item.hardware)
            for item in scenario.node_classes
        ]
    )


def mean_slots(scenario: "Scenario") -> tuple[int, ...]:
    """Return the mean slots beside each profile over the nodes that it fits, rounded, ``[S]``.

    0 where it fits no class.
    """
    slots = class_slots(scenario)
    share = np.array([item.share for item in scenario.node_classes])[:, None] * (slots > 0)
    total = share.sum(axis=0)
    # The smallest class has at least one slot; rounding errors must not take it away.
    mean = (share * slots).sum(axis=0) / np.where(total > 0, total, 1.0)
    return tuple(int(number) for number in np.floor(mean + 1e-9))


def class_tables(scenario: "Scenario", type_share: NDArray[np.float64]) -> ClassTables:
    """Return the tables of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Any valid scenario.
    type_share : ndarray, shape [Q]
        Long-run share of each request type, adds up to 1.
    """
    catalogue, classes = scenario.catalogue, scenario.node_classes
    gpus = [item.hardware for item in classes]
    serves = _serves(scenario)
    hits = _hits(scenario, serves)
    occupancy_s = np.stack(
        [
            np.zeros(len(scenario.request_types)) if gpu is None else _decode_s(scenario, gpu)
            for gpu in gpus
        ]
    )
    rates = [
        _service_rate(scenario, gpu, hits[index], occupancy_s[index], type_share)
        for index, gpu in enumerate(gpus)
    ]
    num_holdings = len(catalogue.holdings)
    return ClassTables(
        num_holdings=num_holdings,
        share=np.array([item.share for item in classes]),
        has_gpu=np.array([gpu is not None for gpu in gpus], dtype=np.int64),
        coefficients=np.array([_coefficients(gpu) for gpu in gpus]),
        occupancy_s=occupancy_s,
        slots=class_slots(scenario),
        kv_bytes_per_token=_whole([0 if gpu is None else gpu.kv_bytes_per_token for gpu in gpus]),
        sequence_bytes=_whole(
            [0 if gpu is None else sequence_bytes(scenario, gpu) for gpu in gpus]
        ),
        usable_bytes=_whole([0 if gpu is None else gpu.usable_bytes for gpu in gpus]),
        serves=serves,
        hit_tokens=np.concatenate(hits),
        row_class=np.repeat(np.arange(len(classes)), num_holdings),
        row_service_rate=np.concatenate(rates),
        empty_row=np.arange(len(classes)) * num_holdings + catalogue.holding_index[frozenset()],
        meet=_meet(catalogue),
        missing_bytes=_missing_bytes(catalogue),
        move_bytes=catalogue.move_bytes.copy(),
        lifetimes_s=np.array(
            [vertex.lifetime_s for vertex in scenario.forest if vertex.lifetime_s is not None],
            dtype=np.float64,
        ),
        expired=_expired(catalogue),
    )


def _whole(numbers: list[int]) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def _coefficients(gpu: Hardware | None) -> tuple[float, float, float, float]:
    if gpu is None:
        return 0.0, 0.0, 0.0, 0.0
    law = gpu.prefill
    return law.linear_s, law.quadratic_s, law.floor_s, float(law.attention == "context")


def _decode_s(scenario: "Scenario", gpu: Hardware) -> NDArray[np.float64]:
    outputs = np.array([item.output_tokens for item in scenario.request_types], dtype=np.float64)
    return gpu.decode.seconds(outputs)


def _serves(scenario: "Scenario") -> NDArray[np.int64]:
    return np.array(
        [
            [item.can_serve(asked.requires) for asked in scenario.request_types]
            for item in scenario.node_classes
        ],
        dtype=np.int64,
    )


def _hits(scenario: "Scenario", serves: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Return the hits on each class, ``[H, Q]``, with ``NOT_SERVED`` where it can't serve."""
    catalogue = scenario.catalogue
    has_model = catalogue.holds_weights
    return [np.where(has_model & (row == 1), catalogue.hit_tokens, NOT_SERVED) for row in serves]


def _service_rate(
    scenario: "Scenario",
    gpu: Hardware | None,
    hits: NDArray[np.float64],
    decode_s: NDArray[np.float64],
    type_share: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the rate of a slot on each holding, ``[H]``, over the types that it can serve."""
    if gpu is None:
        return np.ones(len(hits))
    served = hits >= 0.0
    lengths = np.array([item.input_tokens for item in scenario.request_types], dtype=np.float64)
    occupancy_s = prefill_s(gpu.prefill, lengths, np.maximum(hits, 0.0)) + decode_s
    if served.all():
        # As the tables without classes work it out, to the last bit.
        return 1.0 / (occupancy_s @ type_share)
    weights = served * type_share
    mean_s = (occupancy_s * weights).sum(axis=1)
    return np.where(served.any(axis=1), weights.sum(axis=1), 1.0) / np.where(
        served.any(axis=1), mean_s, 1.0
    )


def _meet(catalogue: "Catalogue") -> NDArray[np.int64]:
    index = catalogue.holding_index
    table = np.array(
        [
            [index.get(held & kept, -1) for kept in catalogue.profile_sets]
            for held in catalogue.holdings
        ],
        dtype=np.int64,
    )
    table[: len(catalogue.profiles)] = catalogue.meet
    return table


def _missing_bytes(catalogue: "Catalogue") -> NDArray[np.int64]:
    size = catalogue.forest.total_bytes
    return np.array(
        [[size(kept - held) for kept in catalogue.profile_sets] for held in catalogue.holdings],
        dtype=np.int64,
    )


def _expired(catalogue: "Catalogue") -> NDArray[np.int64]:
    gone = [catalogue.forest.subtree(name) for name in catalogue.lifetime_vertices]
    index = catalogue.holding_index
    table = np.zeros((len(catalogue.holdings), len(gone)), dtype=np.int64)
    for position, held in enumerate(catalogue.holdings):
        for vertex, lost in enumerate(gone):
            # Two profiles may be the same set; what loses nothing stays what it is.
            table[position, vertex] = index[held - lost] if held & lost else position
    return table
