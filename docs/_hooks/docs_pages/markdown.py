"""Markdown from plain values."""

import re
from collections.abc import Iterable, Sequence

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([\w.]+)`")
_GIB = 2**30


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; cells are Markdown, except that ``|`` and line breaks are made safe."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def code(value: object) -> str:
    """Return a value in code type."""
    return f"`{value}`"


def number(value: float, digits: int = 4) -> str:
    """Return a number in the fewest digits that a reader needs, `digits` significant at most."""
    if value == 0 or 1e-3 <= abs(value) < 1e9:
        rounded = float(f"{value:.{digits}g}")
        return f"{rounded:,.0f}" if rounded.is_integer() else f"{rounded:,}"
    return f"{value:.{digits}g}"


def unbroken(text: str) -> str:
    """Return a text that stays on one line."""
    return text.replace(" ", "&nbsp;")


def gib(size_bytes: float) -> str:
    """Return a size in GiB."""
    return f"{number(size_bytes / _GIB, 3)} GiB"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{number(100.0 * share, 3)} %"


def plain_roles(text: str) -> str:
    """Return a docstring with its cross-references as links, where the site has the target."""

    def link(match: re.Match[str]) -> str:
        short, path = match.groups()
        shown = path.rsplit(".", 1)[-1] if short else path
        return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'

    return _ROLE.sub(link, text)


def literal_blocks(text: str) -> str:
    """Return a docstring in which ``::`` before an indented block is the colon it stands for."""
    return re.sub(r"::[ \t]*\n(?=[ \t]*\n[ \t]+\S)", ":\n", text)
