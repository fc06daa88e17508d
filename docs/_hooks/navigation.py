"""Expand `folder/*` in the navigation of mkdocs.yml to the pages of the folder.

A page that has its own entry elsewhere in the navigation is left out, so `nav` needs to name only
the pages whose position matters.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace each `folder/*`; a section without pages is dropped."""
    docs = Path(config.docs_dir)
    named = {page for page in pages(config.nav) if not page.endswith("/*")}
    config.nav = expand(config.nav, docs, named)
    return config


def pages(nav: Any) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav or ():
            yield from pages(each)


def expand(nav: Any, docs: Path, named: set[str]) -> Any:
    if isinstance(nav, dict):
        return {title: expand(each, docs, named) for title, each in nav.items()}
    if not isinstance(nav, list):
        return nav
    expanded: list[Any] = []
    for each in nav:
        if isinstance(each, str) and each.endswith("/*"):
            found = (page.relative_to(docs).as_posix() for page in docs.glob(f"{each}.md"))
            expanded += sorted(page for page in found if page not in named)
        else:
            expanded.append(expand(each, docs, named))
    return [each for each in expanded if each not in ([], {}) and not is_empty_section(each)]


def is_empty_section(each: Any) -> bool:
    return isinstance(each, dict) and not any(each.values())
