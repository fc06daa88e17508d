"""The docs are complete and name only what exists: API pages, tools, commands, files of the source."""

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import typer

import handfast
from handfast.cli.app import app

ROOT = Path(__file__).parents[2]
# The path of a link or a picture, without the anchor; and code, in which nothing is a link.
LINK = re.compile(r"\]\(([^)#\s]+)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
README = (ROOT / "README.md").read_text()
CONTRIBUTING = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "contributing").glob("*.md"))]


def test_every_public_name_has_one_entry_in_the_api_pages() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    shown = re.findall(r"^::: handfast\.((?:errors\.)?\w+)$", pages, re.MULTILINE)
    modules = {name for name in handfast.__all__ if isinstance(getattr(handfast, name), ModuleType)}
    public = {*handfast.__all__} - {"__version__"} - modules | {"catalogue"}
    assert sorted(shown) == sorted(public | {f"errors.{name}" for name in handfast.errors.__all__})


def test_each_tool_of_the_readme_is_a_module() -> None:
    tools = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", README, re.MULTILINE)
    assert tools == ["leaks", "explore", "check", "watch"]
    assert [tool for tool in tools if find_spec(f"handfast.{tool}") is None] == []


def test_each_command_of_the_readme_exists() -> None:
    commands = set(re.findall(r"\bhandfast (\w+) [\w.@~/-]", "\n".join(code_of(README))))
    with typer.Context(typer.main.get_command(app)) as context:
        existing = set(context.command.list_commands(context))  # type: ignore[attr-defined]
    assert commands
    assert commands <= existing


def code_of(text: str) -> list[str]:
    """What is written as code: blocks for a shell, and between backquotes in a line."""
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [*blocks, *re.findall(r"`([^`\n]+)`", text)]


def test_each_source_file_that_the_contributor_docs_name_exists() -> None:
    """Paths are written from `src/handfast/` or from the root: `_check/engine/engine.py`, `tests/docs/`."""
    named = re.compile(r"`((?:[\w.-]+/)*[\w.-]+(?:\.py|\.md|\.toml|\.yml|/))`")
    missing = [
        f"{page.name}: {path}"
        for page in CONTRIBUTING
        for path in named.findall(page.read_text())
        if not (ROOT / path).exists() and not (ROOT / "src" / "handfast" / path).exists()
    ]
    assert missing == []


def test_the_architecture_page_names_every_part_of_the_package() -> None:
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    parts = {
        each.name + ("/" if each.is_dir() else "")
        for each in (ROOT / "src" / "handfast").iterdir()
        if each.is_dir() or each.suffix == ".py"
    }
    assert sorted(p for p in parts - {"__pycache__/", "__main__.py"} if f"  {p} " not in page) == []


def test_each_relative_link_of_a_markdown_file_leads_to_a_file() -> None:
    """In a clone, as GitHub shows it; mkdocs checks the links of the site."""
    pages = list(markdown_files())
    assert len(pages) > 100
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []


def markdown_files() -> Iterator[Path]:
    """Those of the repository: not of environments and builds beside it."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [each for each in folders if not each.startswith((".", "build", "site"))]
        yield from (Path(folder, name) for name in names if name.endswith(".md"))
