"""What must hold between the blocks that only the full event loop knows."""

from typing import TYPE_CHECKING

from edgegym.world.classes import class_slots
from edgegym.world.hardware import OccupancyDecode
from edgegym.world.serving import EngineService, LruCache, TokensService

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario


def check_features(scenario: "Scenario") -> None:
    """Check service against hardware, and what needs an origin or a cache of profiles.

    Parameters
    ----------
    scenario : Scenario
        Its fleet is valid.

    Raises
    ------
    ValueError
        Names the field, the value and the rule.
    """
    _check_service(scenario)
    _check_cache(scenario)
    _check_layers(scenario)
    _check_redirect(scenario)
    _check_origin(scenario)
    _check_outages(scenario)


def _check_service(scenario: "Scenario") -> None:
    if not isinstance(scenario.service, TokensService | EngineService):
        return
    for item in scenario.node_classes:
        if item.hardware is not None and isinstance(item.hardware.decode, OccupancyDecode):
            mixed = item in scenario.nodes.classes
            field = f"nodes.classes.{item.name}.hardware" if mixed else "hardware"
            raise ValueError(
                f"{field}.decode.kind = '{item.hardware.decode.kind}': service.kind = "
                f"'{scenario.service.kind}' needs 'tpot' or 'steps', the time per output token"
            )
    most = int(class_slots(scenario).max())
    if (
        isinstance(scenario.service, EngineService)
        and scenario.service.schedule == "chunked"
        and scenario.service.step_tokens <= most
    ):
        raise ValueError(
            f"service.step_tokens = {scenario.service.step_tokens}: must be above the {most} "
            "sequences that a node can run, or prompts get no part of a step"
        )


def _check_cache(scenario: "Scenario") -> None:
    if not isinstance(scenario.cache, LruCache):
        return
    for vertex in scenario.forest:
        if vertex.weights:
            raise ValueError(
                f"forest.{vertex.name}.weights = true: a cache of what was computed "
                "(cache.kind = 'lru') holds no weights; use cache.kind = 'profiles'"
            )
    if scenario.fetch.controller != "never":
        raise ValueError(
            f"fetch.controller = '{scenario.fetch.controller}': nodes with cache.kind = 'lru' "
            "compute what they miss; it must be 'never'"
        )


def _check_layers(scenario: "Scenario") -> None:
    if scenario.backhaul.layers > 1 and isinstance(scenario.service, EngineService):
        raise ValueError(
            f"backhaul.layers = {scenario.backhaul.layers}: a prefill server works on one prompt "
            "after the other and can't wait for layers; with service.kind = 'engine' it must be 1"
        )


def _check_redirect(scenario: "Scenario") -> None:
    admission = scenario.admission
    if admission is None or not admission.redirect:
        return
    if admission.node is None and admission.tier is None:
        raise ValueError(
            "admission.redirect = true: no node ever closes, so no request finds one closed; give "
            "admission.node or admission.tier, or leave redirect out"
        )


def _check_origin(scenario: "Scenario") -> None:
    if scenario.origin is not None:
        return
    rule = "there is no origin; give the block 'origin'"
    if scenario.admission is not None and scenario.admission.spill == "origin":
        raise ValueError(f"admission.spill = 'origin': {rule}")
    if scenario.failures is None:
        return
    if scenario.failures.origin is not None:
        raise ValueError(f"failures.origin: {rule}")
    if any(outage.what == "origin" for outage in scenario.failures.outages):
        raise ValueError(f"failures.outages: what = 'origin', but {rule}")


def _check_outages(scenario: "Scenario") -> None:
    if scenario.failures is None:
        return
    for position, outage in enumerate(scenario.failures.outages):
        if outage.node is not None and outage.node >= scenario.max_nodes:
            raise ValueError(
                f"failures.outages.{position}.node = {outage.node}: must be below "
                f"{scenario.max_nodes}, the most nodes that there can be"
            )
