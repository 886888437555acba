"""Which parts of the simulator a scenario asks for."""

from typing import TYPE_CHECKING

from edgegym.world.demand import TraceReplay
from edgegym.world.routing import LoadAwareRouting, Margin, NearestRouting, PrefixAwareRouting
from edgegym.world.serving import (
    DeterministicService,
    ExponentialService,
    LognormalService,
    LruCache,
)
from edgegym.world.transport import Backhaul

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

_PLAIN_ROUTING = (NearestRouting, PrefixAwareRouting, LoadAwareRouting)
_PLAIN_SERVICE = (ExponentialService, DeterministicService, LognormalService)


def full_features(scenario: "Scenario") -> tuple[str, ...]:
    """Return the fields that only the full event loop knows, in the order of the document.

    A scenario that uses none of them runs on the fast loop. Both draw the same world and follow
    the same rules; the full one spends more time on each request.

    Parameters
    ----------
    scenario : Scenario
        Any valid scenario.

    Returns
    -------
    tuple of str
        Dotted names of the fields in use, such as ``"nodes.classes"``.
    """
    routing, backhaul = scenario.routing, scenario.backhaul
    margin = routing.margin if isinstance(routing, LoadAwareRouting) else Margin()
    used = {
        "nodes.classes": bool(scenario.nodes.classes),
        "forest.lifetime_s": any(vertex.lifetime_s is not None for vertex in scenario.forest),
        "forest.weights": any(vertex.weights for vertex in scenario.forest),
        "request_types.requires": any(item.requires for item in scenario.request_types),
        "request_types.xi_factor": any(item.xi_factor != 1.0 for item in scenario.request_types),
        "demand.modulations.trace": bool(scenario.demand.modulations_of(TraceReplay)),
        "routing.kind": not isinstance(routing, _PLAIN_ROUTING),
        "routing.margin": margin != Margin(),
        "telemetry.catalogue_period_s": scenario.telemetry.catalogue_period_s > 0,
        "admission": scenario.admission is not None,
        "backhaul.sharing": backhaul.sharing != "dedicated",
        "backhaul": _beyond_its_rate(scenario),
        "fetch.controller": scenario.fetch.controller != "never",
        "service.kind": not isinstance(scenario.service, _PLAIN_SERVICE),
        "cache.kind": isinstance(scenario.cache, LruCache),
        "origin": scenario.origin is not None,
        "failures": scenario.failures is not None,
    }
    return tuple(name for name, present in used.items() if present)


def _beyond_its_rate(scenario: "Scenario") -> bool:
    """Return whether the link has options besides its rate and how it is shared."""
    link = scenario.backhaul
    return link != Backhaul(rate_bytes_per_s=link.rate_bytes_per_s, sharing=link.sharing)
