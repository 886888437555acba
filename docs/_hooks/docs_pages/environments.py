"""A page for each registered environment, in Gymnasium's order, from its class."""

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import gymnasium

import edgegym
from docs_pages.markdown import code, number, plain_roles, table, unbroken

SECTIONS = (
    "Description",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Arguments",
    "Vectorized environment",
    "Version History",
)
"""Headings of an environment's docstring, in Gymnasium's order."""

_PREFIX = "EdgeGym/"
# Environments of many agents are made by a function, which no registry lists: class and page.
_PARALLEL = {
    "edgegym.envs.multi_agent.parallel_env": (
        "edgegym.envs.multi_agent:PlacementParallelEnv",
        "placement-parallel-v0",
    ),
}
_HEADING = re.compile(r"^## (.+)$", flags=re.M)
_EXAMPLE = "moving-hotspot"


def environment_ids() -> tuple[str, ...]:
    """Return the ids of all edgegym environments, in the order of their registration.

    Environments of many agents come last, named by the function that makes them.
    """
    edgegym.register()
    return (*(name for name in gymnasium.registry if name.startswith(_PREFIX)), *_PARALLEL)


def page_name(env_id: str) -> str:
    """Return the file of an environment's page within ``environments/``."""
    if env_id in _PARALLEL:
        return _PARALLEL[env_id][1] + ".md"
    return env_id.removeprefix(_PREFIX).lower() + ".md"


def page_title(env_id: str) -> str:
    """Return the heading of an environment's page."""
    return "Placement, one agent per node" if env_id in _PARALLEL else env_id.removeprefix(_PREFIX)


def environment_class(env_id: str) -> type:
    """Return the class that an id makes."""
    parallel = env_id in _PARALLEL
    entry_point = _PARALLEL[env_id][0] if parallel else gymnasium.spec(env_id).entry_point
    module, name = str(entry_point).split(":")
    return getattr(import_module(module), name)


def docstring_sections(cls: type) -> tuple[str, dict[str, str]]:
    """Return what precedes the first heading of a class docstring, and its sections by heading."""
    text = inspect.getdoc(cls) or ""
    lead, *parts = _HEADING.split(text)
    return lead.strip(), dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))


def environment_page(env_id: str, picture: str | None) -> str:
    """Return the page of an environment.

    Parameters
    ----------
    env_id : str
        A registered id.
    picture : str or None
        File of a rendered frame as seen from the page.

    Raises
    ------
    ValueError
        If the class docstring lacks a heading of ``SECTIONS``, or has them in another order.
    """
    cls = environment_class(env_id)
    lead, sections = docstring_sections(cls)
    if tuple(sections) != SECTIONS:
        raise ValueError(
            f"docstring of {cls.__qualname__}: headings are {list(sections)}; "
            f"an environment's page has {list(SECTIONS)}"
        )
    parts = [f"# {page_title(env_id)}", plain_roles(lead)]
    if picture:
        parts.append(f"![A frame that the environment drew]({picture})")
    parts.append(f"```python\n{_how_to_make(env_id)}\n```")
    parts.append(_summary(env_id))
    for heading in SECTIONS:
        parts.append(f"## {heading}")
        parts.append(_section(cls, heading, sections[heading]))
        if heading == "Observation Space":
            parts += ["### Sizes by scenario", sizes(cls)]
        if heading == "Rewards" and (keys := info_keys(cls)):
            parts += ["### Keys of `info`", keys]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _how_to_make(env_id: str) -> str:
    """Return the code that makes an environment."""
    if env_id in _PARALLEL:
        module, function = env_id.rsplit(".", 1)
        return f"from {module} import {function}\n\nenv = {function}()"
    return f'import gymnasium as gym\n\nenv = gym.make("edgegym:{env_id}")'


def _section(cls: type, heading: str, text: str) -> str:
    """Return a section; its table gives way to one from the code, where there is one."""
    computed = {"Observation Space": observation_features, "Arguments": arguments}
    text = plain_roles(text)
    if heading not in computed:
        return text
    fresh = computed[heading](cls, _last_column(text))
    return re.sub(r"(?:^\|.*\n?)+", lambda _: fresh, text, count=1, flags=re.M) if fresh else text


def _last_column(text: str) -> dict[str, str]:
    """Return the last cell of each row of a section's table by name (the second to first cells)."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.lstrip().startswith("|")
    ]
    meaning = {}
    for row in rows[2:]:
        for cell in row[:-1]:
            meaning.setdefault(cell.strip("`"), row[-1])
    return meaning


def make(env_id: str, **arguments: Any) -> Any:
    """Return an environment, without wrappers."""
    if env_id in _PARALLEL:
        return environment_class(env_id)(**arguments)
    return gymnasium.make(env_id, **arguments).unwrapped


def spaces(env: Any) -> tuple[Any, Any]:
    """Return the spaces of actions and observations, of many agents those of the first."""
    if not hasattr(env, "possible_agents"):
        return env.action_space, env.observation_space
    agent = env.possible_agents[0]
    return env.action_space(agent), env.observation_space(agent)


def _summary(env_id: str) -> str:
    """Return the spaces of the environment in its default world, as it declares them."""
    env = make(env_id)
    try:
        action, observation = spaces(env)
        of_each = " of each agent" if env_id in _PARALLEL else ""
        rows = [
            (f"Action space{of_each}", code(action)),
            (f"Observation space{of_each}", code(observation)),
            ("Default scenario", f"[{env.scenario.name}](../scenarios/{env.scenario.name}.md)"),
            ("Render modes", ", ".join(map(code, env.metadata["render_modes"]))),
        ]
    finally:
        env.close()
    return table(("", "in its default scenario"), rows)


def _layout_of(cls: type, scenario: str) -> Any:
    """Return the layout of an environment's observations, clock included if it offers one."""
    clock = "observe_clock" in inspect.signature(cls).parameters
    env = cls(scenario=scenario, **({"observe_clock": True} if clock else {}))
    try:
        return getattr(env, "layout", None)
    finally:
        env.close()


def _symbol(sizes: tuple[int, ...], layouts: tuple[Any, ...]) -> str:
    """Return S or F where a feature has that size in every preset, else the number."""
    if len(set(sizes)) == 1:
        return str(sizes[0])
    if sizes == tuple(layout.num_profiles for layout in layouts):
        return "S"
    if sizes == tuple(layout.num_families for layout in layouts):
        return "F"
    raise ValueError(f"sizes {sizes} are neither constant nor profiles nor families")


def observation_features(cls: type, meaning: dict[str, str] | None = None) -> str:
    """Return the table of an environment's observation features; "" if it has another layout.

    Parameters
    ----------
    cls : type
        The environment's class.
    meaning : dict, optional
        What each feature says, by name; its unit where there is no such text.
    """
    example = _layout_of(cls, _EXAMPLE)
    if example is None:
        return ""
    layouts = tuple(_layout_of(cls, name) for name in edgegym.presets())
    rows = []
    for feature in example.features:
        sizes = tuple(layout.feature(feature.name).size for layout in layouts)
        scale = (
            "as it is" if feature.scale is None else unbroken(f"x / (x + {number(feature.scale)})")
        )
        rows.append(
            (
                feature.scope,
                code(feature.name),
                _symbol(sizes, layouts),
                _columns(feature.start, feature.size),
                (meaning or {}).get(feature.name, feature.unit),
                scale,
            )
        )
    head = ("scope", "feature", "size", "columns", "value", "written as")
    symbol = example.scope[0].upper()
    note = (
        f"Columns and scales are those of `{_EXAMPLE}` (S = {example.num_profiles} profiles, "
        f"F = {example.num_families} families, {symbol} = {example.num_rows} {example.scope}s, "
        f"K = {example.row_features}, G = {example.global_features} with the clock).\n"
    )
    return table(head, rows) + "\n" + note


def _columns(start: int, size: int) -> str:
    return str(start) if size == 1 else f"{start} … {start + size - 1}"


def sizes(cls: type) -> str:
    """Return the table of both spaces in each preset."""
    rows = []
    for name in edgegym.presets():
        env = cls(scenario=name)
        try:
            world, both = env.scenario, spaces(env)
        finally:
            env.close()
        counts = (world.max_nodes, len(world.profiles), len(world.family_names))
        rows.append((f"[{name}](../scenarios/{name}.md)", *counts, *map(_space, both)))
    head = ("scenario", "most nodes N", "profiles S", "families F", "actions", "observation")
    return table(head, rows)


def _space(space: Any) -> str:
    """Return a space in short: how many choices, or how many numbers in which range."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return code(f"Discrete({space.n})")
    if isinstance(space, gymnasium.spaces.Box):
        shape = " × ".join(map(str, space.shape))
        return f"{shape} in [{space.low.min():g}, {space.high.max():g}]"
    return code(space)


def arguments(cls: type, meaning: dict[str, str]) -> str:
    """Return the table of a class's arguments, with the defaults of its signature."""
    rows = []
    for name, parameter in inspect.signature(cls).parameters.items():
        default = "required" if parameter.default is parameter.empty else repr(parameter.default)
        rows.append((code(name), code(default), meaning.get(name, "")))
    return table(("argument", "default", "meaning"), rows)


def info_keys(cls: type) -> str:
    """Return the table of the keys in ``info``; "" if the environment's module explains none.

    It does so by ``INFO_MEANING``, what each key of a step says, and ``INFO_KEYWORDS``, the running
    values of the episode; ``INFO_SPAN`` says what a step is about where that is no epoch.
    """
    module = import_module(cls.__module__)
    meaning: dict[str, str] = getattr(module, "INFO_MEANING", {})
    if not meaning:
        return ""
    rows = []
    for key, text in meaning.items():
        running = f"episode_{key}"
        rows.append((code(key), code(running) if running in module.INFO_KEYWORDS else "", text))
    if hasattr(cls, "action_masks") or hasattr(cls, "action_mask"):
        rows.append((code("action_mask"), "", "which actions are legal, bool, one for each action"))
    span = getattr(module, "INFO_SPAN", "of the epoch that the step ran (zero if it ran none)")
    text = (
        f"Every step, and `reset`, reports the same finite scalars: {span}, "
        "and running values of the episode without its warm-up. "
        f"`{cls.__module__}.INFO_KEYWORDS` lists the latter for Stable-Baselines3's `Monitor`.\n\n"
    )
    one = "of the step" if hasattr(module, "INFO_SPAN") else "of the epoch"
    return text + table((one, "of the episode", "meaning"), rows)


def overview() -> str:
    """Return the table of all environments."""
    rows = []
    for env_id in environment_ids():
        cls = environment_class(env_id)
        lead, _ = docstring_sections(cls)
        env = make(env_id)
        try:
            kind = type(spaces(env)[0]).__name__
        finally:
            env.close()
        rows.append((f"[`{env_id}`]({page_name(env_id)})", plain_roles(lead), code(kind)))
    return table(("id", "what the agent does", "actions"), rows)


BLOCKS: dict[str, Callable[[], str]] = {"environments": overview}
"""What a page may ask for by name."""
