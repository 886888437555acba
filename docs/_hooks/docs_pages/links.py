"""Checks a built site: links lead somewhere, and nothing is loaded from another host."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# An attribute that makes a browser load something, by tag; links that are only followed are free.
_LOADED = {
    "audio": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "script": "src",
    "source": "src",
    "video": "src",
}
_NOT_LOADED = {"canonical", "next", "prev"}
_FOREIGN = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)")


class _Page(HTMLParser):
    """Collects anchors, links and what is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.add(values["href"])
        target = values.get(_LOADED.get(tag, ""), "")
        if target and not (tag == "link" and values.get("rel") in _NOT_LOADED):
            self.loaded.add(target)


def faults(site: Path) -> list[str]:
    """Return what is wrong with a built site, one line for each fault.

    Parameters
    ----------
    site : path
        The folder.
    """
    pages: dict[Path, _Page] = {}
    for file in sorted(site.rglob("*.html")):
        pages[file.resolve()] = page = _Page()
        page.feed(file.read_text(encoding="utf-8"))
    found = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        for target in sorted(page.loaded):
            if urlsplit(target).netloc:
                found.append(f"{name}: loads {target} from another host")
        if file.name == "404.html":  # its links begin at the root of wherever the site is put
            continue
        for target in sorted(page.links | page.loaded):
            if fault := _fault(file, target, pages):
                found.append(f"{name}: {target}: {fault}")
    for file in sorted(site.rglob("*.css")):
        for target in _FOREIGN.findall(file.read_text(encoding="utf-8")):
            found.append(f"{file.relative_to(site)}: loads {target} from another host")
    return found


def _fault(file: Path, target: str, pages: dict[Path, _Page]) -> str:
    """Return why a link of a page leads nowhere, "" if it leads somewhere."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if there.is_dir():
        there /= "index.html"
    if not there.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and there in pages and anchor not in pages[there].anchors | {"__consent"}:
        return "no such anchor"
    return ""
