"""From a scenario to the analytic network of its long-run means."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.world.hardware import prefill_s
from edgegym.world.network import TieredNetwork

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario


def network_of(scenario: "Scenario") -> TieredNetwork:
    """Return the analytic network of a scenario, see :meth:`Scenario.tiered_network`."""
    world, hardware = scenario.compile(), scenario.hardware
    means = _mixed(scenario) if scenario.nodes.classes else {}
    if any(vertex.weights for vertex in scenario.forest):
        means = {"servable": _servable(scenario).any(axis=0)} | means
    given: dict[str, Any] = {
        "density_per_km2": scenario.density_per_km2,
        "concurrency": np.array(scenario.concurrency),
        "decode_occupancy_s": world.decode_occupancy_s,
    } | means
    return TieredNetwork(
        request_intensity=world.mean_rate_per_s / scenario.region.area_km2,
        profile_probabilities=scenario.initial_mix,
        input_tokens=world.input_tokens,
        hit_tokens=world.hit_tokens[: len(scenario.profiles)],
        type_probabilities=world.type_share,
        prefill_linear_s=hardware.prefill.linear_s,
        prefill_quadratic_s=hardware.prefill.quadratic_s,
        prefill_floor_s=hardware.prefill.floor_s,
        attention=hardware.prefill.attention,
        radio_xi=scenario.radio.xi,
        radio_alpha=scenario.radio.alpha,
        radio_base_s=scenario.radio.base_s,
        state_bytes=np.array(scenario.state_bytes),
        **given,
    )


def _servable(scenario: "Scenario") -> np.ndarray:
    """Return whether each class serves each type when it holds each profile, ``[C, S, Q]``."""
    tables = scenario.compile().classes
    shape = (len(tables.share), tables.num_holdings, -1)
    hits = tables.hit_tokens.reshape(shape)[:, : len(scenario.profiles)]
    return (hits >= 0.0) & (tables.slots > 0)[:, :, None]


def _mixed(scenario: "Scenario") -> dict[str, Any]:
    """Return what replaces the figures of a fleet of equal nodes: means over the classes.

    Nodes without GPU thin the density. A profile's prefill times are means over the nodes that it
    fits and that serve the type; decode is the mean over all nodes with a GPU.
    """
    world = scenario.compile()
    tables = world.classes
    served = _servable(scenario)
    hits = world.hit_tokens[: len(scenario.profiles)]
    gpus = [item.hardware or scenario.hardware for item in scenario.node_classes]
    prefill = np.stack([prefill_s(gpu.prefill, world.input_tokens, hits) for gpu in gpus])
    some = served.any(axis=0)
    # Where nobody serves a type, a time must stand there all the same: the mean over all classes.
    weights = tables.share[:, None, None] * np.where(some, served, 1.0)
    with_gpu = tables.share * tables.has_gpu
    return {
        "density_per_km2": scenario.density_per_km2 * float(with_gpu.sum()),
        "decode_occupancy_s": with_gpu @ tables.occupancy_s / with_gpu.sum(),
        "prefill_s": (weights * prefill).sum(axis=0) / weights.sum(axis=0),
        "servable": some,
    }
