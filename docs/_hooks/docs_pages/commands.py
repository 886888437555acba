"""What the command line says about itself, policies and extras by name, and how to cite."""

import contextlib
import io
import re
import tomllib
from collections.abc import Callable
from unittest import mock

import yaml

from docs_pages.markdown import code, table
from docs_pages.results import ROOT

_WIDTH = "88"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def help_text(*arguments: str) -> str:
    """Return what ``edgegym ARGUMENTS --help`` prints, without colour."""
    from edgegym.cli import main

    printed = io.StringIO()
    plain = {"COLUMNS": _WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
    with mock.patch.dict("os.environ", plain), contextlib.redirect_stdout(printed):
        status = main([*arguments, "--help"])
    if status != 0:
        raise ValueError(f"edgegym {' '.join(arguments)} --help: exit code {status}")
    lines = _ANSI.sub("", printed.getvalue()).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip()


def command_help() -> str:
    """Return the help of every command, folded away."""
    from edgegym.cli.main import COMMANDS

    parts = []
    for name, command in COMMANDS.items():
        names = [function.rstrip("_") for function in command.functions]
        for arguments in [(name,)] if len(names) == 1 else [(name, sub) for sub in names]:
            block = "\n".join(f"    {line}" for line in help_text(*arguments).splitlines())
            title = f"edgegym {' '.join(arguments)}"
            parts.append(f'??? note "`{title}`"\n\n    ```text\n{block}\n    ```')
    return "\n\n".join(parts)


def commands() -> str:
    """Return the table of all commands."""
    from edgegym.cli.main import COMMANDS

    rows = [(code(f"edgegym {name}"), command.summary) for name, command in COMMANDS.items()]
    return table(("command", "what it does"), rows)


def policy_names() -> str:
    """Return the table of the policies to compare with.

    In the README's words, where it has any; else in those of the policy's class.
    """
    from edgegym.policies import make_policy, policies

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    explained = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", readme, re.M))
    rows = []
    for name in policies():
        first_line = (make_policy(name, "toy").__doc__ or "").strip().splitlines()[0]
        rows.append((code(name), explained.get(name, first_line)))
    return table(("name", "what it does"), rows)


def extras() -> str:
    """Return the table of what ``pip install "edgegym[EXTRA]"`` brings, without ``dev``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = [
        (code(name), ", ".join(re.split(r"[<>=!~;]", item)[0] for item in brought))
        for name, brought in project["optional-dependencies"].items()
        if name != "dev"
    ]
    return table(("extra", "brings"), rows)


def citation() -> str:
    """Return the BibTeX entry of CITATION.cff."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = " and ".join(
        f"{{{author['name']}}}"
        if "name" in author
        else f"{author['family-names']}, {author['given-names']}"
        for author in cff["authors"]
    )
    fields = {"author": authors, "title": cff["title"], "version": cff["version"]}
    if "date-released" in cff:
        fields["year"] = str(cff["date-released"])[:4]
    if "url" in cff:
        fields["url"] = cff["url"]
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    return "\n".join(["```bibtex", "@software{edgegym,", *lines, "}", "```"])


BLOCKS: dict[str, Callable[[], str]] = {
    "command_help": command_help,
    "commands": commands,
    "policies": policy_names,
    "citation": citation,
    "extras": extras,
}
"""What a page may ask for by name."""
