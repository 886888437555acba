"""What the page of other libraries shows stands in the examples."""

import re
from textwrap import dedent

import gymnasium as gym
import pytest
import yaml

from edgegym.sb3 import scorer_kwargs
from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "guide" / "ecosystem.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples"
SNIPPETS = re.findall(r"^<!-- from: (.*?) -->\n```py\n(.*?)^```$", PAGE, flags=re.M | re.S)


@pytest.mark.parametrize(("file", "snippet"), SNIPPETS)
def test_a_snippet_is_a_part_of_its_example(file, snippet):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines(keepends=True)
    count = snippet.count("\n")
    parts = ["".join(lines[i : i + count]) for i in range(len(lines) - count + 1)]
    assert snippet in [dedent(part) for part in parts]


def test_every_block_of_code_is_from_an_example():
    assert len(SNIPPETS) == len(re.findall(r"^```py(?:thon)?$", PAGE, flags=re.M)) >= 9


def test_every_example_has_its_place_on_the_pages():
    overview = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.iterdir():
        if path.name not in {"README.md", "runs"}:
            assert f"]({path.name})" in overview
            assert path.name in PAGE


def test_the_campus_is_that_of_the_guide():
    guide = (DOCS / "guide" / "custom-scenario.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- file: campus.yaml -->\n```yaml\n(.*?)```", guide, flags=re.S)
    assert shown is not None
    assert (EXAMPLES / "own_package/src/campus/campus.yaml").read_text() == shown[1]


def test_sizes_in_the_hyperparameters_of_rl_zoo_are_those_of_the_scenario():
    settings = yaml.safe_load((EXAMPLES / "rl_zoo" / "ppo_mask.yml").read_text())
    chosen = settings["EdgeGym/Placement-v0"]
    env = gym.make("edgegym:EdgeGym/Placement-v0", **chosen["env_kwargs"])
    sizes = scorer_kwargs(env)
    env.close()
    assert eval(chosen["policy_kwargs"]) == {k: v for k, v in sizes.items() if k != "width"}
