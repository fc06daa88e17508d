"""What a project is: its packages, its tests, how pytest is configured, how async tests run.

Files are read, and nothing of the project is imported or changed.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

_TEST_FOLDERS = ("tests", "test", "testing")
# Folders at the top of a project that are neither its packages nor its tests.
_OTHER = {"docs", "doc", "examples", "example", "benchmarks", "build", "dist", "scripts", "tools"}
_MODULES_OF_TOOLS = {"setup.py", "noxfile.py", "conftest.py", "fabfile.py", "tasks.py"}
_NOT_SEARCHED = (".", "__pycache", "node_modules")
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_TEST_NAME = re.compile(r"(?:^|[-_])tests?(?:$|[-_])|^testing$")
_ASYNC = re.compile(r"^\s*async def |\basyncio\.run\b|IsolatedAsyncioTestCase", re.MULTILINE)
# The files with settings of pytest, in its own order, with the section of those that are no TOML.
_CONFIG = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "pyproject.toml": "",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}
# How async tests run, with the text in a test file that shows it.
_RUNNERS = {
    "pytest-asyncio": re.compile(r"mark\.asyncio\b"),
    "anyio": re.compile(r"mark\.anyio\b"),
    "trio": re.compile(r"mark\.trio\b"),
    "unittest": re.compile(r"\bIsolatedAsyncioTestCase\b"),
    "asyncio.run": re.compile(r"\basyncio\.run\("),
}


@dataclass
class Project:
    """What was found in the folder of a project. Paths are relative to `root`."""

    root: Path
    sources: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    test_files: int = 0
    # The file with the settings of pytest, and what matters of them.
    config: str = ""
    addopts: list[str] = field(default_factory=list)
    # The patterns of test files, if the settings name some.
    python_files: list[str] = field(default_factory=list)
    # Whether pytest has to do without the file, since it cannot be read.
    broken: bool = False
    has_async: bool = False
    runners: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def collects(self, path: Path) -> bool:
        """Whether pytest collects a file, by its name."""
        if not self.python_files:
            return is_test_file(path)
        return any(fnmatch(path.name, each) for each in self.python_files)


def find_project(root: Path) -> Project:
    """Look at a folder."""
    project = Project(root)
    settings = _pytest_settings(project)
    project.addopts = _words(settings.get("addopts", ""))
    project.python_files = _words(settings.get("python_files", ""))
    project.tests = list(_tests(project, _words(settings.get("testpaths", ""))))
    project.sources = list(_sources(project))
    project.tests = project.tests or _inner_tests(project)
    if not project.config:
        project.notes += _unused_settings(project)
    texts = [_text(path) for path in _python_files(root, project.sources)]
    project.has_async = any(map(_ASYNC.search, texts))
    test_files = filter(project.collects, _python_files(root, project.tests))
    test_texts = [_text(path) for path in test_files]
    project.test_files = len(test_texts)
    project.has_async = project.has_async or any(map(_ASYNC.search, test_texts))
    mode = str(settings.get("asyncio_mode", ""))
    project.runners = list(_runners("\n".join(test_texts), mode))
    return project


# --- pytest's settings ---------------------------------------------------------------------------


def _pytest_settings(project: Project) -> Mapping[str, Any]:
    """The settings, from the first file that has some, in pytest's own order."""
    for name in _CONFIG:
        path = project.root / name
        if not path.is_file():
            continue
        try:
            found = _read_settings(path)
        except (OSError, ValueError, RecursionError, configparser.Error) as error:
            project.broken = project.broken or name != "tox.ini"
            why = str(error).partition("\n")[0]
            project.notes.append(f"{name} cannot be read ({why}): its settings are not used")
            continue
        if found is not None:
            project.config = name
            return found
    return {}


def _read_settings(path: Path) -> Mapping[str, Any] | None:
    section = _CONFIG[path.name]
    return _from_ini(path, section) if section else _from_toml(path)


def _unused_settings(project: Project) -> Iterator[str]:
    """A note, if only folders below have settings: pytest does not see them from here."""
    root = project.root
    folders = {root / each for each in project.tests}
    folders |= {parent for each in folders for parent in each.parents if root in parent.parents}
    with suppress(OSError, ValueError, RecursionError, configparser.Error):
        files = [folder / name for folder in sorted(folders) for name in _CONFIG]
        found = [each for each in files if each.is_file() and _read_settings(each) is not None]
        if found:
            more = f" and {len(found) - 1} more" if found[1:] else ""
            one, folder = (
                each.relative_to(root).as_posix() for each in (found[0], found[0].parent)
            )
            command = f"`handfast audit {shlex.quote(folder)}`"
            yield f"suite: pytest does not read {one}{more} from this folder; {command} uses it"


def _from_ini(path: Path, section: str) -> Mapping[str, Any] | None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(path.read_text(encoding="utf-8"), path.name)
    return dict(parser[section]) if parser.has_section(section) else None


def _from_toml(path: Path) -> Mapping[str, Any] | None:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    # Only pyproject.toml belongs to other tools, too.
    tool = tables.get("tool", {}) if path.name == "pyproject.toml" else tables
    table = tool.get("pytest") if isinstance(tool, Mapping) else None
    if not isinstance(table, Mapping):
        return None
    found = table.get("ini_options", table)
    return found if isinstance(found, Mapping) else None


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    try:
        return shlex.split(str(value))
    except ValueError:  # a quote is missing: pytest reports it
        return str(value).split()


# --- folders and files ---------------------------------------------------------------------------


def _tests(project: Project, testpaths: list[str]) -> Iterator[str]:
    root = project.root
    named = [each for each in testpaths if (root / each).exists()]
    if named:
        yield from named
        return
    for name in _TEST_FOLDERS:
        if (root / name).is_dir():
            yield name
    yield from sorted(path.name for path in root.glob("*.py") if project.collects(path))


def _inner_tests(project: Project) -> list[str]:
    """The folders of tests inside packages."""
    files = filter(project.collects, _python_files(project.root, project.sources))
    return sorted({path.parent.relative_to(project.root).as_posix() for path in files})


def _sources(project: Project) -> Iterator[str]:
    """The packages of `src/` or of the folder itself, and modules beside them."""
    root = project.root
    named = {Path(each).parts[0] for each in project.tests if Path(each).parts}
    if any((root / "src").glob("**/*.py")):
        yield "src"
    for path in sorted(root.iterdir()):
        name = path.name
        if name in _OTHER | set(_TEST_FOLDERS) | {"src"} or name.startswith("."):
            continue
        if path.is_dir():
            # A folder may contain only folders: those of several packages, or a namespace.
            files = list(_python_files(root, [name]))
            if files and (name not in named or _has_package(project, files)):
                yield name
        elif path.suffix == ".py" and name not in _MODULES_OF_TOOLS and not project.collects(path):
            yield name


def _has_package(project: Project, files: list[Path]) -> bool:
    """Whether a folder of `testpaths` is a package, with doctests or with a folder of tests."""
    folders = [path.relative_to(project.root).parts[:-1] for path in files]
    own = [
        path
        for path, parts in zip(files, folders, strict=True)
        if not any(map(_TEST_NAME.search, parts))
    ]
    return bool(own) and not any(map(project.collects, own))


def _python_files(root: Path, names: list[str]) -> Iterator[Path]:
    for name in names:
        path = root / name
        if path.is_file():
            yield path
            continue
        for folder, folders, files in os.walk(path):
            if "pyvenv.cfg" in files:
                folders.clear()
            folders[:] = sorted(each for each in folders if not each.startswith(_NOT_SEARCHED))
            yield from (Path(folder, each) for each in sorted(files) if each.endswith(".py"))


def is_test_file(path: Path) -> bool:
    """Whether pytest collects a file by default."""
    return _TEST_FILE.fullmatch(path.name) is not None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _runners(text: str, mode: str) -> Iterator[str]:
    for name, pattern in _RUNNERS.items():
        if name == "pytest-asyncio" and mode == "auto":
            yield "pytest-asyncio (auto)"
        elif pattern.search(text):
            yield name
