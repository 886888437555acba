"""A page for each preset, and the fields of a scenario, from the code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgegym
from docs_pages.markdown import (
    code,
    gib,
    literal_blocks,
    number,
    percent,
    plain_roles,
    table,
    unbroken,
)
from docs_pages.results import ROOT, coverage_overview, larger_tables, results_section
from edgegym.world.classes import class_slots
from edgegym.world.features import full_features
from edgegym.world.scenario import Scenario


def scenario_page(name: str, picture: str | None, results: Path) -> str:
    """Return the page of a preset.

    Parameters
    ----------
    name : str
        One of :func:`edgegym.presets`.
    picture : str or None
        File of a rendered frame as seen from the page.
    results : path
        Folder with the results of comparisons, ``<preset>.json`` as ``Comparison.to_json`` writes
        them.
    """
    scenario = edgegym.preset(name)
    parts = [
        f"# {name}",
        scenario.description,
        f"![A frame of {name}]({picture})" if picture else "",
        f'```python\nenv = gym.make("edgegym:EdgeGym/Placement-v0", scenario="{name}")\n```',
        "## Numbers",
        key_numbers(scenario),
        node_classes(scenario),
        "### Profiles",
        profiles(scenario),
        "### Request types",
        request_types(scenario),
        "### Demand",
        demand(scenario),
        results_section(name, results),
        "## Try it",
        _commands(name),
        "## The whole scenario",
        f'??? note "`edgegym scenarios show {name}`"\n\n' + _indented(_yaml(scenario)),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _commands(name: str) -> str:
    lines = [
        f"edgegym compare --scenario {name} --policy static analytic analytic_local",
        f"edgegym render --scenario {name} --policy analytic_local -o {name}.gif",
        f"edgegym solve --scenario {name} --optimize",
    ]
    config = Path("configs") / f"{name}.yaml"
    if (ROOT / config).is_file():
        lines.append(f"python -m agents train {config.as_posix()}    # in a clone")
    return "\n".join(["```sh", *lines, "```"])


def _yaml(scenario: Scenario) -> str:
    import yaml

    text = yaml.safe_dump(scenario.document(), sort_keys=False, allow_unicode=True)
    return f"```yaml\n{text}```"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def key_numbers(scenario: Scenario) -> str:
    """Return the table of a scenario's main numbers."""
    world, control, region = scenario.compile(), scenario.control, scenario.region
    fixed = scenario.nodes.fixed_count(region.area_km2)
    nodes = (
        f"{number(scenario.mean_nodes)} on average (Poisson), at most {scenario.max_nodes}"
        if fixed is None
        else str(fixed)
    )
    rate = world.mean_rate_per_s
    epochs = f"{control.horizon_epochs} epochs of {number(control.epoch_s)} s"
    edges = "torus" if region.periodic else "with edges"
    rows = [
        ("Region", f"{number(region.width_km)} × {number(region.height_km)} km, {edges}"),
        ("Nodes", nodes),
        (
            "Requests",
            f"{number(rate)}/s in the whole region, {number(rate / scenario.mean_nodes)}/s for "
            "each node (long-run means)",
        ),
        *_memory(scenario),
        ("Radio latency", _radio(scenario)),
        ("Routing", code(scenario.routing.kind)),
        ("Service", code(scenario.service.kind)),
        ("Target", f"first token within {number(scenario.objective.ttft_target_s)} s"),
        ("Reward", code(scenario.objective.kind)),
        ("Episode", f"{epochs}; moves in each: at most {control.moves_per_epoch}"),
        (
            "Budget of moves",
            f"{gib(scenario.migration.budget_bytes_per_s)}/s, bucket of "
            f"{gib(scenario.migration.burst_bytes)}",
        ),
        ("Backhaul", f"{gib(scenario.backhaul.rate_bytes_per_s)}/s"),
        ("Families", ", ".join(map(code, scenario.family_names))),
    ]
    if scenario.needs_full:
        rows.append(("Beyond the plain model", ", ".join(map(code, full_features(scenario)))))
    return table(("", ""), rows)


def _memory(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the rows about memory; a mixed fleet has a table of its own."""
    if scenario.nodes.classes:
        return []
    return [
        ("Memory of a node", f"{gib(scenario.hardware.usable_bytes)} after the weights"),
        ("Memory of a running request", gib(scenario.runtime_bytes_per_sequence)),
    ]


def node_classes(scenario: Scenario) -> str:
    """Return the table of the classes of a mixed fleet; "" if all nodes are alike."""
    if not scenario.nodes.classes:
        return ""
    rows = []
    for item, slots in zip(scenario.node_classes, class_slots(scenario), strict=True):
        gpu = item.hardware
        rows.append(
            (
                code(item.name),
                percent(item.share),
                "no GPU" if gpu is None else gpu.preset or "figures of its own",
                "" if gpu is None else gib(gpu.usable_bytes),
                ", ".join(map(str, slots)) if slots.any() else "",
            )
        )
    names = ", ".join(map(code, scenario.profile_names))
    head = ("class", "share", "hardware", "memory after the weights", "slots by profile")
    note = (
        f"Slots are those beside {names}, in this order; 0: the profile doesn't fit. The tables "
        "below have the mean slots, and the prefill of the scenario's own `hardware`.\n"
    )
    return "### Node classes\n\n" + table(head, rows) + "\n" + note


def _radio(scenario: Scenario) -> str:
    radio = scenario.radio
    slope = f"{number(radio.xi)} s · (r / km)<sup>{number(radio.alpha)}</sup>"
    return f"{number(radio.base_s)} s + {slope}" if radio.base_s else slope


def profiles(scenario: Scenario) -> str:
    """Return the table of a scenario's profiles."""
    mix = scenario.initial_mix
    rows = [
        (
            code(profile.name),
            ", ".join(map(code, profile.vertices)) or "nothing",
            gib(scenario.state_bytes[s]),
            scenario.concurrency[s],
            percent(float(mix[s])),
        )
        for s, profile in enumerate(scenario.profiles)
    ]
    return table(("profile", "holds", "state", "slots beside it", "nodes at the start"), rows)


def request_types(scenario: Scenario) -> str:
    """Return the table of a scenario's request types."""
    hits = scenario.catalogue.hit_tokens[: len(scenario.profiles)]
    best = scenario.prefill_s(hits.max(axis=0))
    cold = scenario.prefill_s(0.0 * hits[0])
    rows = [
        (
            code(item.name),
            code(item.family),
            percent(item.share),
            f"{item.input_tokens:,} + {item.output_tokens:,}",
            f"{int(hits[:, q].max()):,}",
            unbroken(f"{number(float(best[q]), 3)} … {number(float(cold[q]), 3)} s"),
        )
        for q, item in enumerate(scenario.request_types)
    ]
    head = ("type", "family", "share", "tokens in + out", "most that can be held", "prefill")
    return table(head, rows)


def demand(scenario: Scenario) -> str:
    """Return the table of what modulates a scenario's demand, or a sentence if nothing does."""
    modulations = scenario.demand.modulations
    if not modulations:
        return "Nothing modulates the demand: it is a Poisson process, uniform in space and time."
    rows = []
    for item in modulations:
        document = item.model_dump(exclude_none=True)
        kind = document.pop("kind")
        values = ", ".join(f"`{key}` = {_value(value)}" for key, value in document.items())
        rows.append((code(kind), values))
    return table(("kind", "values"), rows)


def _value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"{len(value)} ({value[0]} … {value[-1]})" if len(value) > 2 else ", ".join(value)
    return number(value) if isinstance(value, int | float) else str(value)


def overview() -> str:
    """Return the table of all presets."""
    rows = []
    for name in edgegym.presets():
        scenario = edgegym.preset(name)
        sentence = scenario.description.split(". ")[0].rstrip(".") + "."
        rows.append((f"[{name}]({name}.md)", number(scenario.mean_nodes), sentence))
    return table(("preset", "nodes", "why it exists, in a sentence"), rows)


def preset_names() -> str:
    """Return the names of the presets, linked."""
    return ", ".join(f"[{name}](../scenarios/{name}.md)" for name in edgegym.presets()) + "."


def fields() -> str:
    """Return every field of a scenario by block, with type, default and meaning."""
    schema = Scenario.json_schema()
    blocks = schema["$defs"]
    paths: dict[str, list[str]] = {}
    queue = [(schema, "")]
    while queue:
        block, path = queue.pop(0)
        for field, item in block["properties"].items():
            here = f"{path}.{field}".lstrip(".")
            for name in _blocks(item):
                seen = paths.setdefault(name, [])
                if not seen:
                    queue.append((blocks[name], here))
                seen.append(here)
    parts = ["## The scenario itself", _field_table(schema, blocks)]
    for name, places in sorted(paths.items(), key=lambda item: _order(schema, item[1][0])):
        block = blocks[name]
        parts.append(f"## {_title(block, places)} {{ #{name.lower()} }}")
        parts.append(literal_blocks(plain_roles(block.get("description", ""))))
        parts.append(_field_table(block, blocks))
    return "\n\n".join(part.strip() for part in parts)


def _order(schema: dict[str, Any], path: str) -> int:
    """Return where a path stands: by the scenario's own field that it begins with."""
    return list(schema["properties"]).index(path.split(".")[0])


def _title(block: dict[str, Any], places: list[str]) -> str:
    """Return where a block stands in a file, and its kind if there are several."""
    shown = ", ".join(dict.fromkeys(places))
    return f"{shown}: {kind}" if (kind := _kind(block)) else shown


def _kind(block: dict[str, Any]) -> str | None:
    return block["properties"].get("kind", {}).get("const")


def _blocks(item: Any) -> list[str]:
    """Return the names of the blocks that a piece of a JSON schema refers to, in order."""
    if isinstance(item, dict):
        if "$ref" in item:
            return [item["$ref"].rsplit("/", 1)[1]]
        kept = {
            key: value for key, value in item.items() if key not in ("default", "discriminator")
        }
        return [name for value in kept.values() for name in _blocks(value)]
    if isinstance(item, list):
        return [name for value in item for name in _blocks(value)]
    return []


def _field_table(block: dict[str, Any], blocks: dict[str, Any]) -> str:
    required = block.get("required", ())
    rows = []
    for name, item in block["properties"].items():
        default = "required" if name in required else _default(item.get("default"))
        rows.append((code(name), _type(item, blocks), default, item.get("description", "")))
    return table(("field", "type", "default", "meaning"), rows)


def _default(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return code(value.get("kind", "its defaults")) if "kind" in value else "its defaults"
    if isinstance(value, list):
        return "none" if not value else f"{value[0]} … {value[-1]}"
    return code(json.dumps(value))


def _type(item: dict[str, Any], blocks: dict[str, Any]) -> str:
    """Return the type of a field in words, with links to blocks."""
    if "$ref" in item:
        name = item["$ref"].rsplit("/", 1)[1]
        return f"[{_kind(blocks[name]) or 'block'}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in item:
            kinds = [_type(kind, blocks) for kind in item[key] if kind.get("type") != "null"]
            return " or ".join(kinds)
    if "const" in item:
        return code(json.dumps(item["const"]))
    if "enum" in item:
        return " or ".join(code(json.dumps(value)) for value in item["enum"])
    kind = item.get("type", "any")
    if kind == "array":
        return f"list of {_type(item.get('items', {}), blocks)}"
    if kind == "object":
        return f"name: {_type(item.get('additionalProperties', {}), blocks)}"
    words = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "yes or no",
    }
    return words.get(kind, str(kind)) + _range(item)


def _range(item: dict[str, Any]) -> str:
    """Return the limits of a number in words; the technical outer ones are left out."""
    limits = []
    for key, sign in (("exclusiveMinimum", ">"), ("minimum", "≥"), ("maximum", "≤")):
        if key in item and abs(item[key]) < 1e18:
            limits.append(f"{sign} {number(item[key])}")
    return f" {', '.join(limits)}" if limits else ""


BLOCKS: dict[str, Callable[[], str]] = {
    "scenarios": overview,
    "results": coverage_overview,
    "larger_fleets": larger_tables,
    "presets": preset_names,
    "scenario_fields": fields,
}
"""What a page may ask for by name."""
