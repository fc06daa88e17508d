"""Cases as pages of HTML: one for each case, one for each timeline, and a first page.

All of them stand alone: they load nothing, so a folder of them can be sent to somebody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from holdfast.casebook.case import Case
from holdfast.casebook.telling import Chapter

__all__ = ["write_case", "write_index"]


def write_case(folder: Path, case: Case, chapters: Sequence[Chapter]) -> Path:
    """Write the page of a case, and those of its timelines; the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_head(case)]
    for number, chapter in enumerate(chapters, start=1):
        link = ""
        if chapter.page:
            name = f"{case.name}-{number}.html"
            (folder / name).write_text(chapter.page, encoding="utf-8")
            link = f'<p><a href="{name}">the same as a timeline to look around in</a></p>'
        parts.append(_chapter(chapter, link))
    path = folder / f"{case.name}.html"
    path.write_text(_page(case.title, parts), encoding="utf-8")
    return path


def write_index(folder: Path, cases: Iterable[Case]) -> Path:
    """Write the page that leads to those of the cases that are there."""
    rows = [
        f'<h2><a href="{case.name}.html">{escape(case.title)}</a></h2><p>{escape(case.story)}</p>'
        for case in cases
        if (folder / f"{case.name}.html").exists()
    ]
    path = folder / "index.html"
    path.write_text(_page("The casebook of holdfast", rows), encoding="utf-8")
    return path


def _head(case: Case) -> str:
    rows = "".join(
        f"<tr><td>{escape(claim.report)}</td><td>{escape(claim.truth)}</td>"
        f"<td><code>{escape(claim.shown_by)}</code></td></tr>"
        for claim in case.claims
    )
    return (
        f"<p>{escape(case.story)}</p><table><thead><tr><th>the report says</th><th>what is true</th>"
        f"<th>shown by</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _chapter(chapter: Chapter, link: str) -> str:
    kind = "well" if chapter.went_well else "wrong"
    return (
        f'<section class="{kind}"><h2>{escape(chapter.title)}</h2>'
        f"<p><code>$ {escape(chapter.command)}</code></p><pre>{escape(chapter.text)}</pre>{link}</section>"
    )


def _page(title: str, parts: Iterable[str]) -> str:
    template = (files("holdfast.casebook") / "page.html").read_text(encoding="utf-8")
    body = f"<h1>{escape(title)}</h1>{''.join(parts)}"
    return template.replace("{{title}}", escape(title)).replace("{{body}}", body)
