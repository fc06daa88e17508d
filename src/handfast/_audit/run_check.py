"""`check` on the sources of a project, in this process."""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from handfast._audit.budget import Budget
from handfast._audit.observation import Evidence, Observation, Place, relative
from handfast._audit.project import Project, is_test_file
from handfast._check.engine.discovery import NoSuchPath
from handfast._check.engine.engine import check, default_jobs
from handfast._check.finding import Finding, Span
from handfast._check.report import Report
from handfast._check.settings.settings_file import BadSettings
from handfast._check.source import SourceError, decoded, read

_CREATING = {"create_task", "ensure_future", "run_coroutine_threadsafe", "start_soon"}
_CLOSING = {"close", "aclose", "stop", "shutdown", "disconnect", "__aexit__", "terminate"}
# Files that are checked alone, to see whether that shows their findings.
_MOST_TRIED = 20


@dataclass
class CheckResult:
    """What `check` has found, and how much it has read."""

    found: list[Observation] = field(default_factory=list)
    files: int = 0
    task_places: int = 0
    close_methods: int = 0
    pedantic: int = 0
    notes: list[str] = field(default_factory=list)


class _OutOfTime(Exception):
    pass


def run_check(
    project: Project, budget: Budget, progress: Callable[[str], None] = lambda text: None
) -> CheckResult:
    """Check the sources."""

    def show(done: int, total: int) -> None:
        progress(f"{done} of {total} files")
        if not budget.left:
            raise _OutOfTime

    result = CheckResult()
    paths = [str(project.root / each) for each in project.sources]
    if not paths:
        result.notes.append("check: no Python package or module was found in this folder")
        return result
    try:
        report = check(paths, pedantic=True, jobs=default_jobs(), progress=show)
    except (BadSettings, NoSuchPath) as error:
        result.notes.append(f"check: not run: {error}")
        return result
    except _OutOfTime:
        result.notes.append("check: not finished: the time was over; use more --minutes")
        return result
    result.files = report.files
    findings = [each for each in report.findings if not _is_in_tests(each, project)]
    result.found = list(_observations([each for each in findings if not each.pedantic], project))
    result.pedantic = sum(each.pedantic for each in findings)
    for broken in report.broken:
        path = _path(broken.path, project)
        result.notes.append(f"check: {path}:{broken.line} was not checked: {broken.why}")
    for path in report.paths:
        _count(path, result)
    return result


def _is_in_tests(finding: Finding, project: Project) -> bool:
    """Tests may be inside the package. They start tasks and let them go on purpose."""
    path = Path(_path(finding.place.path, project))
    return is_test_file(path) or path.name == "conftest.py" or "tests" in path.parts


def _observations(findings: list[Finding], project: Project) -> Iterator[Observation]:
    """The findings, with a command that was tried: it names the file alone if that shows it."""
    sources = " ".join(map(shlex.quote, project.sources))
    alone: dict[str, set[tuple[str, Span]]] = {}
    for finding in findings:
        path = finding.place.path
        if path not in alone:
            tried = check([path]) if len(alone) < _MOST_TRIED else Report()
            alone[path] = {(each.code, each.place) for each in tried.findings}
        is_shown = (finding.code, finding.place) in alone[path]
        files = shlex.quote(_path(path, project)) if is_shown else sources
        yield _observation(finding, project, f"handfast check {files} --select {finding.code}")


def _observation(finding: Finding, project: Project, command: str) -> Observation:
    place = _place(finding.place, project)
    # The line that creates the task, if the rule names it: other tools know the bug by that line.
    created = [each.place for each in finding.related if "created here" in each.message]
    return Observation(
        tool="check",
        code=finding.code,
        message=finding.message,
        place=_place(created[0], project) if created else place,
        related=frozenset(_place(each, project) for each in finding.places()),
        evidence=Evidence.READ,
        command=command,
        detail=f"{place}: {finding.message}",
        fix=finding.fix.message if finding.fix is not None else "",
    )


def _place(span: Span, project: Project) -> Place:
    return Place(_path(span.path, project), span.line)


def _path(path: str, project: Project) -> str:
    # `check` shows paths relative to the present folder.
    return relative(os.path.abspath(path), project.root)


# --- how much was read ---------------------------------------------------------------------------


def _count(path: str, result: CheckResult) -> None:
    try:
        tree = ast.parse(decoded(path, read(path)))
    except (SourceError, SyntaxError, ValueError, RecursionError):
        return
    for name in _names(tree):
        result.task_places += name in _CREATING
        result.close_methods += name == "def"


def _names(tree: ast.Module) -> Iterator[str]:
    """The names of the calls, and `def` for each method that closes."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(name) | ast.Attribute(_, name)):
                yield name
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if name in _CLOSING:
                yield "def"
