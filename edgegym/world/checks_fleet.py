"""What must hold between the node classes, their memory, and what is asked of them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgegym.world.classes import class_slots, profile_slots, sequence_bytes
from edgegym.world.hardware import Hardware
from edgegym.world.serving import LruCache

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

SHARE_TOLERANCE = 1e-6
"""How far shares may be from adding up to 1."""
_MOST_SLOTS = 1_000_000


def check_adds_to_one(field: str, shares: Sequence[float]) -> None:
    """Refuse shares that don't add up to 1."""
    total = math.fsum(shares)
    if abs(total - 1) > SHARE_TOLERANCE:
        raise ValueError(f"{field}: the shares add up to {total:.9g}; they must add to 1")


def check_fleet(scenario: "Scenario") -> None:
    """Check classes, slots, and that every request type can be served somewhere.

    Parameters
    ----------
    scenario : Scenario
        Its names and shares are valid.

    Raises
    ------
    ValueError
        Names the field, the value and the rule.
    """
    if scenario.nodes.classes:
        _check_classes(scenario)
    _check_tags(scenario)
    _check_holdings(scenario)
    _check_slots(scenario)
    _check_initial_mix(scenario)
    _check_every_type_is_served(scenario)


def _check_classes(scenario: "Scenario") -> None:
    classes = scenario.nodes.classes
    seen: set[str] = set()
    for item in classes:
        if item.name in seen:
            raise ValueError(f"nodes.classes: name '{item.name}' stands twice; names are unique")
        seen.add(item.name)
    check_adds_to_one("nodes.classes", [item.share for item in classes])
    if not any(item.gpu for item in classes):
        names = ", ".join(item.name for item in classes)
        raise ValueError(f"nodes.classes: none of {names} has a GPU; at least one class must serve")


def _check_tags(scenario: "Scenario") -> None:
    for asked in scenario.request_types:
        if not any(item.can_serve(asked.requires) for item in scenario.node_classes):
            raise ValueError(
                f"request_types.{asked.name}.requires = '{asked.requires}': no class of "
                "nodes.classes offers this tag"
            )


def _check_holdings(scenario: "Scenario") -> None:
    """Let the catalogue refuse tables that are too large."""
    _ = scenario.catalogue.holdings


def _check_slots(scenario: "Scenario") -> None:
    table = class_slots(scenario)
    for index, profile in enumerate(scenario.profiles):
        for item, slots in zip(scenario.node_classes, table[:, index], strict=True):
            if item.hardware is not None and slots > _MOST_SLOTS:
                raise ValueError(
                    f"concurrency of profile '{profile.name}' is {slots}{_on(scenario, item.name)}"
                    f": usable memory {item.hardware.usable_bytes / 1e9:.3g} GB holds more than "
                    f"{_MOST_SLOTS} sequences of "
                    f"{sequence_bytes(scenario, item.hardware) / 1e9:.3g} GB, the most a node can "
                    "have"
                )
        if not table[:, index].any():
            raise ValueError(_does_not_fit(scenario, index))
    for item, slots in zip(scenario.node_classes, table, strict=True):
        if item.hardware is not None and not slots.any():
            raise ValueError(
                f"nodes.classes.{item.name}: no profile fits beside one sequence in its usable "
                f"memory {item.hardware.usable_bytes / 1e9:.3g} GB; give it more, or gpu = false"
            )


def _on(scenario: "Scenario", name: str) -> str:
    return f" on class '{name}'" if scenario.nodes.classes else ""


def _largest_gpu(scenario: "Scenario") -> Hardware:
    gpus = [item.hardware for item in scenario.node_classes if item.hardware is not None]
    return max(gpus, key=lambda gpu: gpu.usable_bytes - sequence_bytes(scenario, gpu))


def _does_not_fit(scenario: "Scenario", index: int) -> str:
    gpu = _largest_gpu(scenario)
    name, held, what = scenario.profile_names[index], scenario.state_bytes[index], "state"
    if isinstance(scenario.cache, LruCache):
        held, what = scenario.cache.budget_bytes, "cache.budget_bytes"
    where = " of every class" if scenario.nodes.classes else ""
    return (
        f"concurrency of profile '{name}' is {profile_slots(scenario, gpu)[index]}: {what} "
        f"{held / 1e9:.3g} GB + one sequence {sequence_bytes(scenario, gpu) / 1e9:.3g} GB exceed "
        f"the usable memory {gpu.usable_bytes / 1e9:.3g} GB{where}"
    )


def _check_initial_mix(scenario: "Scenario") -> None:
    """Refuse shares of large profiles beyond the share of the nodes that have room for them.

    What a profile needs is one number, so the classes that fit profiles are nested.
    """
    classes = scenario.node_classes
    fits = class_slots(scenario) > 0  # [C, S]
    share = np.array([item.share for item in classes if item.gpu])
    for index, name in enumerate(scenario.profile_names):
        room = share[fits[[item.gpu for item in classes], index]].sum() / share.sum()
        as_large = ~(fits & ~fits[:, [index]]).any(axis=0)
        wanted = scenario.initial_mix[as_large].sum()
        if wanted > room + SHARE_TOLERANCE:
            raise ValueError(
                f"initial.mix: {wanted:.3g} of the nodes with a GPU start with '{name}' or a "
                f"profile that fits no more classes, but these are only {room:.3g} of them"
            )


def _check_every_type_is_served(scenario: "Scenario") -> None:
    fits = class_slots(scenario) > 0  # [C, S]
    models = scenario.catalogue.holds_weights[: len(scenario.profiles)]  # [S, Q]
    for index, asked in enumerate(scenario.request_types):
        offered = np.array([item.can_serve(asked.requires) for item in scenario.node_classes])
        if not (fits & offered[:, None] & models[None, :, index]).any():
            raise ValueError(
                f"request_types.{asked.name}: no class of nodes can serve it with any profile that "
                "fits: one must hold the weights on its path and offer the tag that it requires"
            )
