"""What the site computes from the code is what the code says, and its pages hang together."""

import inspect
import json
import re
from pathlib import Path

import pytest
import yaml

import edgegym
from edgegym.cli.main import COMMANDS
from edgegym.envs.info import EPOCH_KEYS, INFO_KEYWORDS, INFO_MEANING
from edgegym.evaluation import compare
from edgegym.interface.layout import ObservationLayout
from edgegym.policies import policies
from tests.docs.pages import DOCS, HOOKS, PAGES, ROOT

# The modules of docs/_hooks, which `tests.docs.pages` puts on the path.
from docs_pages import commands, environments, links, results, scenarios  # isort: skip
from docs_pages.markdown import gib, literal_blocks, number, plain_roles, table  # isort: skip

_BLOCKS = commands.BLOCKS | environments.BLOCKS | scenarios.BLOCKS
_IDS = environments.environment_ids()


def rows(text):
    """Return the cells of a Markdown table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_environment_has_a_page_in_gymnasiums_order():
    assert "EdgeGym/Placement-v0" in _IDS
    for env_id in _IDS:
        page = environments.environment_page(env_id, None)
        headings = re.findall(r"^## (.+)$", page, flags=re.M)
        assert tuple(headings) == environments.SECTIONS
        assert ":class:" not in page


def test_a_page_is_refused_when_a_section_is_missing(monkeypatch):
    cls = environments.environment_class("EdgeGym/Placement-v0")
    monkeypatch.setattr(cls, "__doc__", cls.__doc__.replace("## Episode End", "## The end"))
    with pytest.raises(ValueError, match="The end"):
        environments.environment_page("EdgeGym/Placement-v0", None)


def test_the_observation_table_is_the_layout():
    cls = environments.environment_class("EdgeGym/Placement-v0")
    layout = ObservationLayout.from_scenario(edgegym.preset("moving-hotspot"), observe_clock=True)
    sizes = {"S": layout.num_profiles, "F": layout.num_families}
    text = environments.environment_page("EdgeGym/Placement-v0", None)
    section = text.split("## Observation Space")[1].split("### Sizes")[0]
    shown = rows(section)
    assert len(shown) == len(layout.features)
    for feature, (scope, name, size, columns, meaning, _) in zip(
        layout.features, shown, strict=True
    ):
        assert (scope, name) == (feature.scope, f"`{feature.name}`")
        assert sizes.get(size) == feature.size or int(size) == feature.size
        assert columns.split(" … ")[0] == str(feature.start)
        assert columns.split(" … ")[-1] == str(feature.start + feature.size - 1)
        assert meaning
    assert environments.observation_features(cls).count("\n| ") == len(layout.features)


def test_the_sizes_are_those_of_the_spaces():
    cls = environments.environment_class("EdgeGym/Placement-v0")
    shown = rows(environments.sizes(cls))
    assert len(shown) == len(edgegym.presets())
    cells = dict(zip(edgegym.presets(), shown, strict=True))["moving-hotspot"]
    env = cls(scenario="moving-hotspot")
    assert cells[1:4] == ["25", "8", "7"]
    assert cells[4] == f"`Discrete({env.action_space.n})`"
    assert cells[5] == f"{env.observation_space.shape[0]} in [0, 1]"


def test_the_arguments_are_those_of_the_class_and_all_explained():
    for env_id in _IDS:
        page = environments.environment_page(env_id, None)
        section = page.split("## Arguments")[1].split("## Vectorized")[0]
        shown = {cells[0].strip("`"): cells[1:] for cells in rows(section)}
        parameters = inspect.signature(environments.environment_class(env_id)).parameters
        assert list(shown) == list(parameters)
        for name, (default, meaning) in shown.items():
            assert default == f"`{parameters[name].default!r}`"
            assert meaning, f"{env_id}: argument {name} isn't in the docstring's table"


def test_every_key_of_info_is_explained():
    assert tuple(INFO_MEANING) == EPOCH_KEYS
    shown = rows(environments.info_keys(environments.environment_class("EdgeGym/Placement-v0")))
    assert [cells[0] for cells in shown] == [f"`{key}`" for key in (*EPOCH_KEYS, "action_mask")]
    assert [cells[1].strip("`") for cells in shown if cells[1]] == list(INFO_KEYWORDS)


@pytest.mark.parametrize("name", edgegym.presets())
def test_every_preset_has_a_page_with_its_numbers(name):
    scenario = edgegym.preset(name)
    page = scenarios.scenario_page(name, None, Path("nowhere"))
    assert scenario.description in page
    profiles = {cells[0].strip("`"): cells for cells in rows(scenarios.profiles(scenario))}
    assert list(profiles) == list(scenario.profile_names)
    for s, (_, _, state, slots, share) in enumerate(profiles.values()):
        assert float(state.removesuffix(" GiB")) * 2**30 == pytest.approx(
            scenario.state_bytes[s], rel=1e-2
        )
        assert int(slots) == scenario.concurrency[s]
        assert float(share.removesuffix(" %")) == pytest.approx(
            100 * scenario.initial_mix[s], rel=1e-2
        )
    types = rows(scenarios.request_types(scenario))
    assert [cells[0].strip("`") for cells in types] == list(scenario.type_names)
    listed = page.split("```yaml")[1].split("```")[0]
    assert edgegym.Scenario.from_document(yaml.safe_load(listed)) == scenario


def test_the_key_numbers_are_those_of_the_world():
    numbers = dict(rows(scenarios.key_numbers(edgegym.preset("moving-hotspot"))))
    assert numbers["Nodes"] == "25"
    assert numbers["Requests"].startswith("87.5/s in the whole region, 3.5/s for each node")
    assert numbers["Budget of moves"] == "0.6 GiB/s, bucket of 9 GiB"
    numbers = dict(rows(scenarios.key_numbers(edgegym.preset("paper"))))
    assert numbers["Nodes"].startswith("25 on average (Poisson), at most ")


def test_a_mixed_fleet_has_a_table_of_its_classes():
    scenario = edgegym.preset("mixed-fleet")
    shown = rows(scenarios.node_classes(scenario))
    assert [cells[0].strip("`") for cells in shown] == [c.name for c in scenario.node_classes]
    assert [float(cells[1].removesuffix(" %")) for cells in shown] == pytest.approx(
        [100 * c.share for c in scenario.node_classes], rel=1e-2
    )
    for cells, item in zip(shown, scenario.node_classes, strict=True):
        assert (cells[2] == "no GPU") == (item.hardware is None)
    assert "`nodes.classes`" in scenarios.key_numbers(scenario)
    assert scenarios.node_classes(edgegym.preset("toy")) == ""


def test_every_field_of_a_scenario_is_listed_and_explained():
    text = scenarios.fields()
    schema = edgegym.Scenario.json_schema()
    for name, block in schema["$defs"].items():
        assert f"{{ #{name.lower()} }}" in text, name
        for field in block["properties"]:
            assert f"| `{field}` |" in text, (name, field)
    targets = set(re.findall(r"\]\(#(\w+)\)", text))
    assert targets <= set(re.findall(r"\{ #(\w+) \}", text))
    unexplained = [cells[0] for cells in rows(text) if cells[-1] == "" and cells[0] != "`kind`"]
    assert unexplained == []


def test_every_policy_and_command_is_in_its_table():
    assert [cells[0].strip("`") for cells in rows(commands.policy_names())] == list(policies())
    assert [cells[0] for cells in rows(commands.commands())] == [
        f"`edgegym {name}`" for name in COMMANDS
    ]
    text = commands.command_help()
    assert "--observe-clock" in text
    assert "\x1b" not in text


def test_every_extra_is_in_its_table():
    shown = dict(rows(commands.extras()))
    assert shown["`docs`"] == "mkdocs, mkdocs-material, mkdocstrings[python]"
    assert "torch" in shown["`sb3`"]
    assert "`dev`" not in shown


def test_the_citation_is_that_of_the_repository():
    assert f"version = {{{edgegym.__version__}}}" in commands.citation()


def test_results_come_from_committed_files_only(tmp_path):
    assert results.results_section("toy", tmp_path) == ""
    played = compare(
        {"static": "static", "analytic": "analytic"},
        scenario="toy",
        seeds=[10_000, 10_001],
        workers=1,
        progress=False,
    )
    played.to_json(tmp_path / "toy.json")
    section = results.results_section("toy", tmp_path)
    static, analytic = rows(section)
    assert "2 evaluation seeds (10000 … 10001)" in section
    assert (static[0], analytic[0]) == ("`static`", "`analytic`")
    assert static[1] == f"{played.table[0].coverage:.3f}"
    assert static[2].startswith(f"{played.table[0].difference:+.3f} [".replace("-", "−"))
    assert analytic[2] == "reference"
    assert analytic[3] == f"{played.table[1].mean_ttft_s:.2f} s"
    assert analytic[5] == f"{played.table[1].bytes_moved / 1e9:.0f} GB"


@pytest.mark.parametrize("file", sorted(results.RESULTS.glob("*.json")), ids=lambda f: f.stem)
def test_committed_results_are_of_the_preset_and_stand_on_its_page(file):
    document = json.loads(file.read_text(encoding="utf-8"))
    scenario = edgegym.preset(file.stem)
    epochs = document["scenario"]["control"]["horizon_epochs"]
    played = scenario.with_overrides({"control.horizon_epochs": epochs})
    assert edgegym.Scenario.from_document(document["scenario"]) == played
    seeds = document["seeds"]
    assert tuple(seeds) == scenario.evaluation_seeds[: len(seeds)]
    command = results.compare_command(document)
    assert (f" --seeds {len(seeds)}" in command) == (len(seeds) < len(scenario.evaluation_seeds))
    assert ("control.horizon_epochs" in command) == (played != scenario)
    page = scenarios.scenario_page(file.stem, None, results.RESULTS)
    assert f"`{command}`" in page
    overview = {cells[0]: cells[1:] for cells in rows(results.coverage_overview())}
    shown = overview[f"[{file.stem}]({file.stem}.md#results)"]
    for row in document["policies"]:
        assert f"{row['coverage']:.3f}" in shown
        assert row["policy"] in policies()
    coverage = {row["policy"]: row["coverage"] for row in document["policies"]}
    assert coverage["clairvoyant"] >= coverage["analytic_local"]


@pytest.mark.parametrize(
    "file", sorted((results.RESULTS / "learned").glob("*.json")), ids=lambda f: f.stem
)
def test_tables_with_a_trained_agent_stand_on_their_pages(file):
    document = json.loads(file.read_text(encoding="utf-8"))
    page = scenarios.scenario_page(file.stem, None, results.RESULTS)
    section = page.split("### With a trained agent")[1].split("\n#")[0]
    learned = next(row for row in document["policies"] if row["policy"] == "learned")
    assert {cells[0]: cells[1] for cells in rows(section)}["`learned`"] == (
        f"{learned['coverage']:.3f}"
    )
    assert f"{len(document['seeds'])} evaluation seeds" in section
    assert "steps, seed" in section
    assert f"`python -m agents tables --kind learned --only {file.stem}`" in section


def test_tables_of_larger_fleets_come_by_size(tmp_path):
    (tmp_path / "larger").mkdir()
    for nodes in (3, 2, 11):
        played = compare(
            {"static": "static", "analytic": "analytic"},
            scenario="toy",
            overrides={"nodes.count": nodes, "control.horizon_epochs": 2},
            seeds=[10_000],
            workers=1,
            progress=False,
        )
        played.to_json(tmp_path / "larger" / f"toy-{nodes}.json")
    text = results.larger_tables(tmp_path)
    assert re.findall("## toy, (.*) nodes", text) == ["2", "3", "11"]
    assert len(rows(text)) >= 6


def test_the_demo_table_is_the_readmes():
    section = results.demo_table("moving-hotspot")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "| trained agent |" in section
    assert all(line in readme for line in section.splitlines()[1:])
    assert results.demo_table("toy") == ""


def test_what_pages_ask_for_exists():
    asked = {
        name
        for page in PAGES
        for name in re.findall(r"<!-- generated: (\w+) -->", page.read_text(encoding="utf-8"))
    }
    assert asked == set(_BLOCKS)
    for name in asked:
        assert _BLOCKS[name]().strip()


def test_markdown_of_values():
    assert table(("a",), [("x | y\nz",)]) == "| a |\n|---|\n| x \\| y z |\n"
    assert [number(value) for value in (0, 25.0, 0.36, 1234.5, 2.5e-9)] == [
        "0", "25", "0.36", "1,234", "2.5e-09",
    ]  # fmt: skip
    assert gib(3 * 2**29) == "1.5 GiB"
    role = plain_roles("see :func:`~edgegym.files.write_text`.")
    assert role == (
        'see <autoref optional identifier="edgegym.files.write_text"><code>write_text</code>'
        "</autoref>."
    )
    assert literal_blocks("as follows::\n\n    x = 1") == "as follows:\n\n    x = 1"


def test_the_hook_folder_is_not_part_of_the_site():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"{HOOKS.relative_to(DOCS)}/" in text


def test_broken_links_and_foreign_hosts_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="sub/b.html#here">1</a><a href="#top">2</a>'
        '<a href="https://example.org/x">3</a><link rel="canonical" href="https://example.org/">'
        '<a href="sub/">4</a><a href="gone.html">5</a><a href="sub/b.html#gone">6</a>'
        '<script src="https://cdn.example.org/x.js"></script><img src="sub/gone%20too.png">'
    )
    (tmp_path / "sub" / "b.html").write_text('<p id="here">B</p>')
    (tmp_path / "sub" / "index.html").write_text("<p>C</p>")
    (tmp_path / "a.css").write_text("a { background: url('//example.org/y.png') }")
    assert links.faults(tmp_path) == [
        "a.html: loads https://cdn.example.org/x.js from another host",
        "a.html: gone.html: no such file",
        "a.html: sub/b.html#gone: no such anchor",
        "a.html: sub/gone%20too.png: no such file",
        "a.css: loads //example.org/y.png from another host",
    ]
