"""The page on demand: its examples are valid, and all kinds are in its table."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from edgegym.world.demand import Demand, Modulation
from edgegym.world.recorded import read_replay

TEXT = (Path(__file__).parents[2] / "docs" / "demand.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.S))
def test_examples_are_valid(block):
    Demand.model_validate({"rate_per_node": 1.0} | yaml.safe_load(block))


def test_the_example_of_a_file_can_be_read(tmp_path):
    (block,) = re.findall(r"```csv\n(.*?)```", TEXT, flags=re.S)
    path = tmp_path / "requests.csv"
    path.write_text(block)
    assert read_replay(str(path)).input_tokens.tolist() == [1200, 3100, 950]


def test_the_table_has_all_kinds():
    kinds = {item.model_fields["kind"].default for item in get_args(get_args(Modulation)[0])}
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, flags=re.M)) == kinds
