"""The pages of the documentation, and the modules that compute parts of them."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOOKS = DOCS / "_hooks"

if str(HOOKS) not in sys.path:
    sys.path.insert(0, str(HOOKS))

PAGES = sorted(page for page in DOCS.rglob("*.md") if HOOKS not in page.parents)

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>(?:in tests|file): .*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    flags=re.M | re.S,
)


def fences(page: Path) -> list[tuple[str, str, str]]:
    """Return the code blocks of a page: kind, text, and the comment before it or ""."""
    text = page.read_text(encoding="utf-8")
    return [(m["kind"], m["text"], m["note"] or "") for m in _FENCE.finditer(text)]


def snippets(page: Path) -> list[tuple[str, str | None]]:
    """Return what a page runs, small enough for a test, each with the output it shows or None.

    A comment before a block makes it smaller: ``<!-- in tests: 30_000 -> 64; A -> B -->``.
    """
    found = fences(page)
    kept = []
    for position, (kind, text, note) in enumerate(found):
        if kind != "python":
            continue
        for change in note.removeprefix("in tests: ").split("; ") if note else ():
            old, new = change.split(" -> ")
            assert old in text, f"{page.name}: '{old}' isn't in the code any more"
            text = text.replace(old, new)
        after = found[position + 1] if position + 1 < len(found) else ("", "", "")
        kept.append((text, after[1] if after[0] == "text" else None))
    return kept


def files(page: Path) -> dict[str, str]:
    """Return the files that a page shows, by name: ``<!-- file: NAME -->`` before the block."""
    return {
        note.removeprefix("file: "): text
        for _, text, note in fences(page)
        if note.startswith("file: ")
    }


def swept_tables(text: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the tables of a page that are swept over the rate: column names and rows of cells."""
    found = []
    for block in re.findall(r"(\| requests/s .*?)\n\n", text, flags=re.S):
        head, _, *rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        found.append((head[1:], rows))
    return found
