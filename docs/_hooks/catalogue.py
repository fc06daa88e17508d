"""Add the pages of the catalogue to the site, and an index of them by family.

Other pages link to them where they are in the repository, so that the links work there, too.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from handfast import catalogue
from handfast.catalogue import FAMILIES, KINDS

PAGES = Path(catalogue.__file__).parent / "pages"
LINK = re.compile(r"\]\((?:\.\./)+src/handfast/catalogue/pages/(HF\d+\.md)?([^)]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of each family under "Catalogue" in the navigation."""
    for section in config.nav or []:
        if "Catalogue" in section:
            section["Catalogue"] += [{family: paths(prefix)} for prefix, family in FAMILIES.items()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the pages from the package as they are; only the index is generated."""
    files.append(File.generated(config, "catalogue/index.md", content=index()))
    for page in sorted(PAGES.glob("*.md")):
        files.append(File.generated(config, f"catalogue/{page.name}", abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links into the package links to the pages of the site."""
    up = "../" * page.file.src_uri.count("/")
    return LINK.sub(lambda link: f"]({up}catalogue/{link[1] or 'index.md'}{link[2]})", markdown)


def paths(prefix: str) -> list[str]:
    return [f"catalogue/{kind.code}.md" for kind in KINDS if kind.code.startswith(prefix)]


def index() -> str:
    """A table of the kinds for each family."""
    lines = [
        "# The catalogue",
        "",
        "Every kind of bug has one code, and each detector reports the same codes. "
        "`handfast explain CODE` shows a page in the terminal.",
    ]
    for prefix, family in FAMILIES.items():
        lines += [
            "",
            f"## {prefix}xx: {family}",
            "",
            "| code | name | what it is | harm |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| [{kind.code}]({kind.code}.md) | {kind.name} | {kind.summary} | {kind.harm} |"
            for kind in KINDS
            if kind.code.startswith(prefix)
        ]
    return "\n".join(lines) + "\n"
