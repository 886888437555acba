"""MkDocs hook: pages and tables that are computed from the code, so that they can't go stale.

A page asks for a table with ``<!-- generated: NAME -->`` on a line of its own. An entry of the
navigation that ends with ``*`` stands for the pages of that folder which the navigation doesn't
name.
"""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from docs_pages import commands, environments, links, pictures, results, scenarios
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import edgegym

BLOCKS = commands.BLOCKS | environments.BLOCKS | scenarios.BLOCKS

_ROOT = Path(__file__).parents[2]
_ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_MARKER = re.compile(r"^<!-- generated: (\w+) -->$", flags=re.M)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the computed pages and pictures, then fill in the navigation."""
    for name in edgegym.presets():
        picture = f"scenarios/{name}.png"
        files.append(File.generated(config, picture, content=pictures.scenario_frame(name)))
        text = scenarios.scenario_page(name, f"{name}.png", results.RESULTS)
        files.append(File.generated(config, f"scenarios/{name}.md", content=text))
    for env_id in environments.environment_ids():
        page = environments.page_name(env_id)
        frame, picture = pictures.environment_frame(env_id), None
        if frame is not None:
            picture = page.replace(".md", ".png")
            files.append(File.generated(config, f"environments/{picture}", content=frame))
        text = environments.environment_page(env_id, picture)
        files.append(File.generated(config, f"environments/{page}", content=text))
    for name, page in _ROOT_PAGES.items():
        text = (_ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=from_root(text)))
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = expanded(config.nav, [page for page in pages if page not in _named(config.nav)])
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put tables where the page asks for them."""

    def block(match: re.Match[str]) -> str:
        if match[1] not in BLOCKS:
            known = ", ".join(BLOCKS)
            raise PluginError(f"{page.file.src_uri}: generated: {match[1]}: not one of {known}")
        return BLOCKS[match[1]]()

    return _MARKER.sub(block, markdown)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Refuse a site with links that lead nowhere, or that loads anything from elsewhere."""
    if faults := links.faults(Path(config.site_dir)):
        raise PluginError("\n".join(["the built site has faults:", *faults]))


def from_root(text: str) -> str:
    """Return a page of the repository's root with its links as the site has them."""
    text = text.replace("](docs/", "](")
    for name, page in _ROOT_PAGES.items():
        text = text.replace(f"]({name})", f"]({page})")
    return text


def _named(nav: Any) -> set[str]:
    """Return the pages that a navigation names."""
    if isinstance(nav, str):
        return {nav}
    values = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(_named, values))


def expanded(nav: Any, pages: list[str]) -> Any:
    """Return a navigation in which entries with ``*`` are the pages that match, in their order."""
    if isinstance(nav, dict):
        return {title: expanded(entry, pages) for title, entry in nav.items()}
    if not isinstance(nav, list):
        return nav
    entries = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("*"):
            folder = entry.count("/")
            entries += [p for p in pages if fnmatch(p, entry + ".md") and p.count("/") == folder]
        else:
            entries.append(expanded(entry, pages))
    return entries
