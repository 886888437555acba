"""The page about records names every column."""

from edgegym.simulator.records import record_columns
from edgegym.world import preset
from tests.docs.pages import DOCS


def test_every_column_is_explained():
    text = (DOCS / "records.md").read_text(encoding="utf-8")
    for column in record_columns(preset("toy")):
        assert f"`{column.name}`" in text, column.name
