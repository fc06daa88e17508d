"""All of it, one after the other: which files, what they tell, which rules, what is taken back.

What was found last time is taken from the cache; the rest is done by `jobs`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.check.cache import Cache
from holdfast.check.facts import Facts, Standing, Where, digest, facts_of
from holdfast.check.files import STDIN, find, shown
from holdfast.check.report import Report, Trouble
from holdfast.check.result import Result
from holdfast.check.settings import Finder, Overrides, Settings

if TYPE_CHECKING:
    from holdfast.check.rules.rule import Rule

__all__ = ["File", "Group", "Progress", "check", "default_jobs"]

Progress = Callable[[int, int], None]
"""Told how many files are done, and of how many."""


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
    progress: Progress = lambda done, total: None,
) -> Report:
    """Read Python files and say what is wrong with the lifetimes in them.

    Args:
        paths: Files and folders; `-` stands for `stdin`.
        select: Codes, beginnings of codes or names; what the settings say, if it is not given.
        ignore: The same, of what is not wanted.
        pedantic: Also run the rules that are off by default.
        jobs: How many processes.
        cache: A folder to keep results in; without one nothing is kept.
        rules: Other rules than the house's own.
        stdin: The content of `-`.
        progress: Called now and then with the number of files done, and of all.

    Raises:
        NoSuchPath: A path is not there.
        BadSettings: A setting or a code is unknown.
    """
    finder = Finder(Overrides.of(select, ignore, pedantic))
    wanted = find((os.fspath(path) for path in paths), finder.excluded)
    run = _Run(finder, Cache(None if cache is None else os.fspath(cache)), rules)
    for path in wanted.files:
        run.read(path, stdin)
    run.read_around()
    results = run.results(jobs, progress)
    run.cache.save()
    findings = [finding for result in results for finding in result.findings]
    troubles = [each for result in results for each in result.broken]
    return Report(
        tuple(sorted(findings, key=lambda each: (each.place, each.code, each.message))),
        tuple(sorted([*run.unread, *troubles])),
        tuple(wanted.files),
        tuple(wanted.not_checked),
        None if stdin is None else stdin.decode("utf-8", "replace"),
    )


@dataclass(slots=True)
class File:
    """One file that was read."""

    path: str
    key: str
    facts: Facts
    where: Standing
    settings: Settings
    asked_for: bool
    size: int
    content: bytes | None = None
    """Only for the standard input, which cannot be read twice."""


@dataclass(slots=True)
class Group:
    """The files of one project."""

    paths: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    ended_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
    quiet: set[str] = field(default_factory=set)
    """The modules that have no word of asyncio, and end nothing."""


class _Run:
    """One run: what was read so far."""

    def __init__(self, finder: Finder, cache: Cache, rules: Sequence[Rule] | None) -> None:
        self.cache = cache
        self.unread: list[Trouble] = []
        self._finder = finder
        self._rules = rules
        self._where = Where()
        self._files: list[File] = []
        self._seen: set[str] = set()
        self._groups: defaultdict[str, Group] = defaultdict(Group)

    def read(self, path: str, stdin: bytes | None = None, *, asked_for: bool = True) -> None:
        """Read one file, and note what it tells about the others."""
        if path == STDIN:
            content = stdin or b""
        else:
            try:
                with open(path, "rb", buffering=0) as file:
                    content = file.read()
            except OSError as error:
                if asked_for:
                    self.unread.append(Trouble(path, 1, error.strerror or str(error)))
                return
        whole = os.path.abspath(path)
        self._seen.add(whole)
        key = digest(content)
        facts = self.cache.facts(key)
        if facts is None:
            facts = facts_of(content)
            self.cache.keep_facts(key, facts)
        where = self._where.of(whole)
        self._note(where, path, key, facts)
        settings = self._finder.of_folder(os.path.dirname(whole))
        kept = content if path == STDIN else None
        self._files.append(File(path, key, facts, where, settings, asked_for, len(content), kept))

    def _note(self, where: Standing, path: str, key: str, facts: Facts) -> None:
        group = self._groups[where.project]
        if path != STDIN:
            group.paths.setdefault(where.module, path)
            group.keys.setdefault(where.module, key)
            group.ended_by.setdefault(where.module, facts.ended)
            if not facts.of_interest and not facts.ended:
                group.quiet.add(where.module)
        group.ended.update(facts.ended)

    def read_around(self) -> None:
        """Read the rest of the packages: one file of them may end what another starts."""
        folders = {
            file.where.package
            for file in self._files
            if file.facts.of_interest and file.path != STDIN
        }
        packages = [each for each in folders if os.path.exists(os.path.join(each, "__init__.py"))]
        more = find(packages, self._finder.excluded).files if packages else []
        for path in more:
            if os.path.abspath(path) not in self._seen:
                self.read(shown(path), asked_for=False)

    def results(self, jobs: int, progress: Progress) -> list[Result]:
        """The results of all files that any rule could have something to say about."""
        wanted = [file for file in self._files if file.asked_for and file.facts.of_interest]
        known: list[Result] = []
        todo: list[tuple[str, File]] = []
        for file in wanted:
            key = self._key(file)
            result = self.cache.result(key)
            if result is not None and self._still_counts(result, file):
                known.append(result)
            else:
                todo.append((key, file))
        if todo:
            known += self._anew(todo, len(wanted), jobs, progress)
        return known

    def _key(self, file: File) -> str:
        settings = file.settings
        asked = repr(settings.selection_for(file.path))
        place = f"{os.path.abspath(file.path)}\0{file.path}\0{file.where.module}"
        return digest(file.key.encode(), place.encode(errors="surrogatepass"), asked.encode())

    def _still_counts(self, result: Result, file: File) -> bool:
        group = self._groups[file.where.project]
        return all(
            group.keys.get(module, "") == key for module, key in result.asked.items()
        ) and all(group.ended.get(name, 0) == files for name, files in result.ended.items())

    def _anew(
        self, todo: list[tuple[str, File]], total: int, jobs: int, progress: Progress
    ) -> list[Result]:
        # Here and not above: a warm run needs neither the rules nor a parser.
        from holdfast.check.jobs import Work, run

        rules = self._rules
        if rules is None:
            from holdfast.check.rules import RULES

            rules = RULES
        work = Work(tuple(rules), dict(self._groups))
        done = total - len(todo)
        results: list[Result] = []
        for part in run(work, [file for _, file in todo], jobs):
            results += part
            progress(done + len(results), total)
        by_path = {result.path: result for result in results}
        for key, file in todo:
            # What a fault of ours has cut short is looked at again next time.
            if not by_path[file.path].broken or _is_about_the_file(by_path[file.path]):
                self.cache.keep_result(key, by_path[file.path])
        return results


def _is_about_the_file(result: Result) -> bool:
    return not any(each.why.startswith("fault of holdfast") for each in result.broken)


def default_jobs() -> int:
    """As many as there are processors for us; beyond a handful the hand-over eats the gain."""
    if sys.platform == "linux":
        return min(len(os.sched_getaffinity(0)), 16)
    return min(os.cpu_count() or 1, 16)
