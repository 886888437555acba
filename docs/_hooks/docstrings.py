"""Griffe extension: docstrings are written for the terminal; here they become Markdown."""

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from docs_pages.markdown import literal_blocks, plain_roles

_LISTED = re.compile(r"^Attributes\n-+$", flags=re.M)
_PAGE = re.compile(r"\n## Description\n.*", flags=re.S)


class Readable(griffe.Extension):
    """Makes docstrings and classes fit for a page of the reference.

    Cross-references become links and ``::`` a colon. The fields of a class become one list instead
    of a heading each. An environment's description stays on the environment's own page.
    """

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            text = _PAGE.sub("", obj.docstring.value)
            obj.docstring.value = literal_blocks(plain_roles(text))

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """List the documented fields of a class in its docstring."""
        text = cls.docstring.value if cls.docstring is not None else ""
        if _LISTED.search(text):
            return
        fields = [
            (name, member)
            for name, member in cls.members.items()
            if not member.is_alias
            and member.is_attribute
            and member.docstring is not None
            and "property" not in member.labels
            and not name.startswith("_")
        ]
        if not fields:
            return
        entries = [f"{name} : {member.annotation}\n{_indented(member)}" for name, member in fields]
        listed = "\n".join(["", "", "Attributes", "----------", *entries])
        like = fields[0][1].docstring
        cls.docstring = griffe.Docstring(
            text + listed, parent=cls, parser=like.parser, parser_options=like.parser_options
        )
        for name, _member in fields:
            del cls.members[name]


def _indented(member: Any) -> str:
    return "\n".join(f"    {line}" for line in member.docstring.value.splitlines())
