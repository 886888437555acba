"""What every study's figure must do with its table."""

from edgegym.figures.spec import Figure
from edgegym.figures.style import picture_png
from edgegym.figures.table import Table


def check_picture_and_words(figure: Figure, table: Table) -> None:
    """Check that a figure is drawn and described from what its file holds."""
    again = Table.from_csv(table.to_csv())
    assert picture_png(figure, again, "a stamp").startswith(b"\x89PNG")
    caption = figure.caption(again)
    for text in (caption.paper, caption.here, caption.difference):
        assert text.endswith(".")
        assert "nan" not in text
