"""What must hold between the blocks of a scenario."""

from typing import TYPE_CHECKING

from edgegym.world.checks_features import check_features
from edgegym.world.checks_fleet import check_adds_to_one, check_fleet
from edgegym.world.layout import check_layout
from edgegym.world.replay import check_replay

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

_MOST_NODES = 10_000_000
_MOST_REQUESTS_AT_ONCE = 1e9


def check_scenario(scenario: "Scenario") -> None:
    """Check everything that concerns more than one block.

    Parameters
    ----------
    scenario : Scenario
        Its blocks are valid each by itself.

    Raises
    ------
    ValueError
        Names the field, the value and the rule.
    """
    _check_names(scenario)
    _check_shares(scenario)
    _check_prompts(scenario)
    check_fleet(scenario)
    check_replay(scenario)
    _check_size(scenario)
    check_layout(scenario)
    check_features(scenario)


def _check_names(scenario: "Scenario") -> None:
    forest = scenario.catalogue.forest
    for item in scenario.request_types:
        if item.path is not None and item.path not in forest:
            raise ValueError(
                f"request_types.{item.name}.path = '{item.path}': no vertex has this name"
            )
    for profile in scenario.profiles:
        for vertex in profile.vertices:
            if vertex not in forest:
                raise ValueError(f"profiles.{profile.name}.vertices: no vertex is named '{vertex}'")
    for modulation in scenario.demand.modulations:
        for family in getattr(modulation, "families", None) or ():
            if family not in scenario.family_names:
                raise ValueError(
                    f"demand.modulations.{modulation.kind}.families: no request type has the "
                    f"family '{family}' (known: {', '.join(scenario.family_names)})"
                )
    for name in scenario.initial.mix:
        if name not in scenario.profile_names:
            raise ValueError(
                f"initial.mix.{name}: no profile has this name "
                f"(known: {', '.join(scenario.profile_names)})"
            )


def _check_shares(scenario: "Scenario") -> None:
    for name, shares in (
        ("request_types", [item.share for item in scenario.request_types]),
        ("initial.mix", list(scenario.initial.mix.values())),
    ):
        check_adds_to_one(name, shares)


def _check_prompts(scenario: "Scenario") -> None:
    forest = scenario.catalogue.forest
    for item in scenario.request_types:
        path = forest.path(item.path)
        depth = forest.hit_depth(path, path)
        if depth > item.input_tokens:
            raise ValueError(
                f"request_types.{item.name}.input_tokens = {item.input_tokens}: must be at least "
                f"the {depth} tokens of its path '{item.path}'"
            )


def _check_size(scenario: "Scenario") -> None:
    """Refuse worlds that no machine could simulate, before arrays are made for them."""
    if scenario.mean_nodes < 1:
        raise ValueError(
            f"nodes.density_per_km2 = {scenario.nodes.density_per_km2:g}: gives "
            f"{scenario.mean_nodes:.3g} nodes on average in {scenario.region.area_km2:g} km²; "
            "there must be at least 1"
        )
    if scenario.mean_nodes > _MOST_NODES or scenario.max_nodes > _MOST_NODES:
        raise ValueError(
            f"nodes: {max(scenario.mean_nodes, scenario.nodes.max_count or 0):.3g} nodes; at most "
            f"{_MOST_NODES:.0e} can be simulated"
        )
    if scenario.max_nodes < scenario.mean_nodes:
        raise ValueError(
            f"nodes.max_count = {scenario.nodes.max_count}: must be at least the mean number of "
            f"nodes, {scenario.mean_nodes:g}"
        )
    rate = scenario.request_intensity * scenario.region.area_km2
    for field, seconds in (
        ("control.epoch_s", scenario.control.epoch_s),
        ("initial.warmup_s", scenario.initial.warmup_s),
    ):
        if rate * seconds > _MOST_REQUESTS_AT_ONCE:
            raise ValueError(
                f"{field} = {seconds:g}: at {rate:.3g} requests/s that is {rate * seconds:.3g} "
                f"requests at once; at most {_MOST_REQUESTS_AT_ONCE:.0e} can be simulated"
            )
