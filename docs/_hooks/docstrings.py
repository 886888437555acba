"""Griffe extension: docstrings are written for the terminal; here they become Markdown."""

import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from docs_pages.markdown import literal_blocks, plain_roles


class Readable(griffe.Extension):
    """Turns cross-references into links and ``::`` into a colon."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = literal_blocks(plain_roles(obj.docstring.value))
