"""The page of pains: each has a test, and every test of this folder stands there."""

import ast
import re

from tests.docs.pages import DOCS, ROOT

TEXT = (DOCS / "pains.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith("| pain ")
]
CELL = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def named_in(file):
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def test_each_pain_has_a_test_that_exists():
    assert len(ROWS) >= 29
    for pain, answer, test in ROWS:
        assert pain
        assert answer
        file, name = CELL.fullmatch(test).groups()
        assert name in named_in(file), f"{pain}: there is no {file}::{name}"


def test_each_test_of_this_folder_is_on_the_page():
    named = {CELL.fullmatch(row[2]).groups() for row in ROWS}
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "pains").glob("test_*.py")}
    for file in files - {"tests/pains/test_page.py"}:
        missing = named_in(file) - {test for where, test in named if where == file}
        assert not missing, f"{file}: {missing} on no line of the page"
