"""A whole run: find the files, read them, check them, sort what was found.

Results of earlier runs come from the cache; `parallel` checks the other files.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from handfast._check.engine.cache import Cache
from handfast._check.engine.discovery import STDIN, find, shown
from handfast._check.engine.file_facts import (
    ModuleLocator,
    ProjectFiles,
    SourceFile,
    digest,
    facts_of,
)
from handfast._check.report import FileError, FileResult, Report
from handfast._check.settings.settings import SettingsFinder
from handfast._check.source import LARGEST, SourceError, decoded, read_regular

if TYPE_CHECKING:
    from handfast._check.rules.rule import Rule  # loads the model, which a warm run does not need


Progress = Callable[[int, int], None]
"""Called with the number of files that are done, and with the number of all files."""


def check(
    paths: Iterable[str | os.PathLike[str]] = (".",),
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    pedantic: bool | None = None,
    jobs: int = 1,
    cache: str | os.PathLike[str] | None = None,
    rules: Sequence[Rule] | None = None,
    stdin: bytes | None = None,
    stdin_filename: str | None = None,
    extend_select: Iterable[str] = (),
    per_file_ignores: Mapping[str, Iterable[str]] | None = None,
    exclude: Iterable[str] | None = None,
    config: Iterable[str] = (),
    count_hidden: bool = False,
    edits: bool = True,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Find lifetime bugs in Python files, without importing or running them.

    Args:
        paths: Files and folders; `-` is the content of `stdin`.
        select: Codes, prefixes of codes, or names; the default is in the settings.
        ignore: The same, for findings to leave out.
        pedantic: Also run the rules that are off by default.
        jobs: The number of processes.
        cache: A folder to keep results in; without one nothing is kept.
        rules: Other rules than those of handfast.
        stdin: The content of `-`.
        stdin_filename: The file that `-` is the content of: its settings and its package apply.
        extend_select: Codes in addition to those of the settings.
        per_file_ignores: Codes to leave out, by pattern.
        exclude: Patterns of files to leave out.
        config: A settings file in place of each pyproject.toml, and single settings such as
            `pedantic = true`.
        edits: Whether fixes need their edits, which are not cached: files with fixes are checked
            again.
        count_hidden: If there are no findings, count those that `pedantic` would add.
        progress: Called with the number of files that are done, and with the number of all files.

    Raises:
        NoSuchPath: A path does not exist.
        BadSettings: A setting or a code is unknown.
    """
    finder = SettingsFinder(
        select,
        ignore,
        pedantic,
        extend_select=extend_select,
        per_file_ignores=per_file_ignores,
        exclude=exclude,
        config=config,
    )
    wanted = find((os.fspath(path) for path in paths), finder.excluded)
    run = _Run(finder, Cache(None if cache is None else os.fspath(cache)), rules, edits)
    for at, path in enumerate(wanted.files):
        if path != STDIN:
            run.read(path)
        else:
            wanted.files[at] = shown(os.path.abspath(stdin_filename)) if stdin_filename else path
            run.read(wanted.files[at], stdin or b"")
    run.read_packages(wanted.listings)
    results = run.results(jobs, progress)
    findings = [finding for result in results for finding in result.findings]
    errors = [each for result in results for each in result.broken]
    hidden: int | None = None
    if count_hidden and results and not findings and not errors:
        hidden = run.hidden(jobs, progress)
    run.cache.save()
    return Report(
        tuple(sorted(findings, key=lambda each: (each.place, each.code, each.message))),
        tuple(sorted([*run.unread, *errors])),
        tuple(wanted.files),
        tuple(wanted.not_checked),
        run.texts(
            {place.path for each in findings for place in each.places()}
            | {each.path for each in errors}
        ),
        *run.looked_at(),
        hidden,
    )


class _Run:
    """One run, and what it has read so far."""

    def __init__(
        self, finder: SettingsFinder, cache: Cache, rules: Sequence[Rule] | None, edits: bool
    ) -> None:
        self.cache = cache
        self.unread: list[FileError] = []
        self._finder = finder
        self._rules = rules
        self._edits = edits
        self._locator = ModuleLocator()
        self._files: dict[str, SourceFile] = {}
        self._exported: dict[str, bytes] = {}
        self._projects: defaultdict[str, ProjectFiles] = defaultdict(ProjectFiles)

    def read(self, path: str, content: bytes | None = None, *, requested: bool = True) -> None:
        """Read one file, and add it to its project."""
        if content is None:
            content = self._content(path, requested)
            if content is None:
                return
        key = digest(content)
        facts = self.cache.facts(key)
        if facts is None:
            facts = facts_of(content)
            self.cache.keep_facts(key, facts)
        whole = os.path.abspath(path)
        location = self._locator.locate(whole)
        settings = self._finder.of_folder(os.path.dirname(whole))
        kept = content if facts.of_interest else None
        source = SourceFile(path, key, facts, location, settings, requested, len(content), kept)
        self._files[whole] = source
        project = self._projects[location.project]
        project.ended.update(facts.ended)
        if path != STDIN:
            project.by_module.setdefault(location.module, source)

    def _content(self, path: str, requested: bool) -> bytes | None:
        try:
            # Also for a file that was named: a pre-commit hook names what a repository has.
            return read_regular(path, LARGEST)
        except OSError as error:
            if requested:
                self.unread.append(FileError(path, 1, error.strerror or str(error)))
        return None

    def read_packages(self, listings: list[set[str]]) -> None:
        """Read the rest of the packages: one file of them may end what another starts."""
        folders = {
            file.location.package
            for file in self._files.values()
            if file.facts.of_interest and file.path != STDIN
        }
        packages = [each for each in folders if os.path.exists(os.path.join(each, "__init__.py"))]
        for path in find(packages, self._finder.excluded, listings).files:
            if os.path.abspath(path) not in self._files:
                self.read(shown(path), requested=False)

    def results(self, jobs: int, progress: Progress) -> list[FileResult]:
        """Return the results of all requested files in which a rule could report something."""
        wanted = [
            each for each in self._files.values() if each.requested and each.facts.of_interest
        ]
        known: list[FileResult] = []
        todo: dict[str, SourceFile] = {}
        for file in wanted:
            key = self._key(file)
            result = self.cache.result(key)
            if result is not None and self._is_valid(result, file):
                known.append(result)
            else:
                todo[key] = file
        if todo:
            known += self._check(todo, len(wanted), jobs, progress)
        return known

    def texts(self, paths: set[str]) -> dict[str, str]:
        """Return the text of files, as they were read."""
        found: dict[str, str] = {}
        for file in self._files.values():
            if file.path in paths and file.content is not None:
                try:
                    found[file.path] = decoded(file.path, file.content)
                except SourceError:
                    is_stdin = file.path == STDIN
                    found[file.path] = file.content.decode("utf-8", "replace") if is_stdin else ""
        return found

    def looked_at(self) -> tuple[int, int]:
        """Return the number of functions and of places that create a task."""
        facts = [each.facts for each in self._files.values() if each.requested]
        return sum(each.functions for each in facts), sum(each.creations for each in facts)

    def hidden(self, jobs: int, progress: Progress) -> int:
        """Return the number of findings that `pedantic` would add; the last question of a run."""
        for file in self._files.values():
            selection = replace(file.settings.selection, pedantic=True)
            file.settings = replace(file.settings, selection=selection)
        return sum(
            each.pedantic for result in self.results(jobs, progress) for each in result.findings
        )

    def _key(self, file: SourceFile) -> str:
        selection = repr(file.settings.selection_for(file.path))
        place = f"{os.path.abspath(file.path)}\0{file.path}\0{file.location.module}"
        exports = self._exports(file.location.project)
        return digest(
            file.key.encode(), place.encode(errors="surrogatepass"), selection.encode(), exports
        )

    def _exports(self, project: str) -> bytes:
        """The exported names of a project: they decide which files are worth parsing."""
        if project not in self._exported:
            names = self._projects[project].ended
            self._exported[project] = "\n".join(
                sorted(each for each in names if not each.isidentifier())
            ).encode()
        return self._exported[project]

    def _is_valid(self, result: FileResult, file: SourceFile) -> bool:
        """Whether a result is complete, of this file, and nothing has changed in the other files
        that it depends on."""
        if result.path != file.path or any(
            each.place.path != file.path or (self._edits and each.fix is not None)
            for each in result.findings
        ):
            return False
        project = self._projects[file.location.project]
        return all(project.key_of(module) == key for module, key in result.modules.items()) and all(
            project.ended.get(name, 0) == files for name, files in result.ended.items()
        )

    def _check(
        self, todo: dict[str, SourceFile], total: int, jobs: int, progress: Progress
    ) -> list[FileResult]:
        # Imported here: a warm run needs neither the rules nor a parser.
        from handfast._check.engine.parallel import Work, run

        rules = self._rules
        if rules is None:
            from handfast._check.rules import RULES

            rules = RULES
        results: list[FileResult] = []
        for part in run(Work(tuple(rules), dict(self._projects), list(todo.values())), jobs):
            results += part
            progress(total - len(todo) + len(results), total)
        by_path = {result.path: result for result in results}
        for key, file in todo.items():
            # A result that a bug in handfast has cut short is not kept.
            if not any(each.is_internal for each in by_path[file.path].broken):
                self.cache.keep_result(key, by_path[file.path])
        return results


def default_jobs() -> int:
    """The number of available processors, up to 16: more processes cost more than they save."""
    if sys.platform == "linux":
        return min(len(os.sched_getaffinity(0)), 16)
    return min(os.cpu_count() or 1, 16)
