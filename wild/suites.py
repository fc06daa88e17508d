"""Explore the test suites of published packages as they are, and write docs/bugs.md.

Each suite is the newest release when it was added: its source distribution is downloaded and
unpacked, the release is installed into a virtual environment of its own with handfast from this
checkout, and `pytest --handfast-explore` runs in the unpacked folder.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from bugs_page import Confirmed, Result, Suite, page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CACHE = Path(os.environ.get("HANDFAST_WILD_CACHE", "~/.cache/handfast/wild")).expanduser()
PAGE = ROOT / "docs" / "bugs.md"
# Seconds for one suite, its normal run included.
TIMEOUT = 900


# What the settings of many suites name, or their tests use as a matter of course.
COMMON = ("pytest", "pytest-asyncio", "pytest-timeout", "pytest-mock", "pytest-cov")


def listed() -> list[Suite]:
    """The suites of suites.toml."""
    data = tomllib.loads((HERE / "suites.toml").read_text(encoding="utf-8"))
    return [
        Suite(
            package,
            each["version"],
            each.get("tests", "tests"),
            tuple(each.get("needs", "").split()),
            tuple(shlex.split(each.get("options", ""))),
            each.get("budget", "30s"),
        )
        for package, each in data.items()
    ]


SUITES = listed()


def main() -> int:
    """Explore the suites, and print or write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", metavar="PACKAGE", help="just this one")
    parser.add_argument("--budget", help="for each suite (what suites.toml says)")
    parser.add_argument("--cancel", action="store_true", help="cancel tasks at other points, too")
    parser.add_argument("--add", action="append", default=[], metavar="PACKAGE[==VERSION][:TESTS]")
    parser.add_argument("--need", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument("--stored", action="store_true", help="run none, use the last results")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    suites = [each for each in SUITES if not options.only or each.package in options.only]
    if options.add:
        suites = [_added(each, tuple(options.need)) for each in options.add]
    for suite in () if options.stored else suites:
        result = explore(suite, options.budget or suite.budget, cancel=options.cancel)
        print(line(result), flush=True)
        for finding in findings(result):
            print(f"    {finding}", flush=True)
    if options.write:
        plain = [stored(each, cancel=False) for each in SUITES]
        cancel = [stored(each, cancel=True) for each in SUITES]
        PAGE.write_text(page(plain, cancel, confirmed()), encoding="utf-8")
    return 0


def _added(text: str, needs: tuple[str, ...]) -> Suite:
    name, _, tests = text.partition(":")
    name, _, version = name.partition("==")
    return Suite(name, version or newest(name), tests or "tests", needs)


def line(result: Result) -> str:
    """One line of the table."""
    name = f"{result.suite.package} {result.suite.version}"
    if result.trouble:
        return f"{name:32} {result.trouble}"
    extents = result.extents
    reasons = Counter(each["reason"] for each in result.tests if each["extent"] == "refused")
    return (
        f"{name:32} {len(result.tests):4} tests, {extents['all']} to the end, "
        f"{extents['sampled']} sampled, {extents['single']} single, {extents['budget']} over, "
        f"{extents['refused']} refused {dict(reasons)} {result.seconds:.0f} s"
    )


def findings(result: Result) -> list[str]:
    """A line for each finding."""
    found = []
    for test in result.tests:
        if finding := test["finding"]:
            shown = "confirmed" if finding["confirmed"] else "not confirmed"
            found.append(
                f"{test['nodeid']}: {finding['code']} {finding['message'][:150]!r} "
                f"at {finding['where']}: {shown}"
            )
    return found


# --- the confirmed bugs ------------------------------------------------------------------------


def confirmed() -> list[Confirmed]:
    """Run each script of confirmed/, and keep those that show their bug."""
    scripts = sorted(each for each in (HERE / "confirmed").glob("*.py") if each.stem != "script")
    releases = {each: _release(each) for each in scripts}
    python = _environment(sorted({f"{name}=={version}" for name, version in releases.values()}))
    found = []
    for script, (package, version) in releases.items():
        shown = _output([str(python), str(script)])
        explored = _output([str(python), str(script), "--explore"])
        bug = re.search(r"^the bug is there: (.*)$", shown, re.MULTILINE)
        code = re.search(r"^(HF\d+) ", explored, re.MULTILINE)
        if bug is None or code is None:
            print(f"{script.name}: not shown\n{shown[-300:]}\n{explored[-300:]}", flush=True)
            continue
        what = _first_line(script).partition(": ")[2]
        what = what[0].upper() + what[1:]
        found.append(Confirmed(script.name, package, version, what, bug[1], code[1]))
    return found


def _release(script: Path) -> tuple[str, str]:
    named = re.search(r'PACKAGE, VERSION = "(.+)", "(.+)"', script.read_text(encoding="utf-8"))
    assert named is not None, script
    return named[1], named[2]


def _first_line(script: Path) -> str:
    return str(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))).splitlines()[0]


def _environment(requirements: list[str]) -> Path:
    folder = CACHE / "confirmed"
    python = folder / "venv" / "bin" / "python"
    done = folder / "installed"
    if not done.is_file() or done.read_text() != " ".join(requirements):
        _call([sys.executable, "-m", "venv", "--clear", str(folder / "venv")])
        _call([str(python), "-m", "pip", "install", "-q", *requirements, "-e", str(ROOT)])
        done.write_text(" ".join(requirements))
    return python


def _output(command: list[str]) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return finished.stdout + finished.stderr


# --- one suite ---------------------------------------------------------------------------------


def explore(suite: Suite, budget: str, *, cancel: bool) -> Result:
    """Install a suite if necessary, and explore it."""
    result = Result(suite)
    folder = CACHE / "suites" / f"{suite.package}-{suite.version}"
    began = time.perf_counter()
    try:
        source = unpacked(suite, folder)
        python = installed(suite, folder)
        result.tests = explored(suite, source, python, folder, budget, cancel=cancel)
    except (Trouble, OSError, subprocess.TimeoutExpired) as error:
        result.trouble = str(error)
    result.seconds = time.perf_counter() - began
    if not result.trouble:
        data = {"seconds": result.seconds, "budget": budget, "tests": result.tests}
        stored_file(suite, cancel=cancel).write_text(json.dumps(data, indent=1))
    return result


def stored(suite: Suite, *, cancel: bool) -> Result:
    """The last result of a suite; without tests if there is none."""
    file = stored_file(suite, cancel=cancel)
    if not file.is_file():
        return Result(suite, trouble="not run")
    data = json.loads(file.read_text())
    return Result(suite, data["tests"], data["seconds"])


def stored_file(suite: Suite, *, cancel: bool) -> Path:
    """Where the last result of a suite is kept."""
    name = "cancel.json" if cancel else "default.json"
    return CACHE / "suites" / f"{suite.package}-{suite.version}" / name


class Trouble(Exception):
    """Why a suite could not be explored."""


def newest(package: str) -> str:
    return str(_index(package)["info"]["version"])


def _index(package: str) -> Any:
    with urllib.request.urlopen(f"https://pypi.org/pypi/{package}/json", timeout=60) as answer:
        return json.load(answer)


def _source_url(suite: Suite) -> str:
    """The address of the source distribution, from the page that lists all files."""
    with urllib.request.urlopen(f"https://pypi.org/simple/{suite.package}/", timeout=60) as answer:
        page = answer.read().decode()
    for url in re.findall(r'href="([^"#]+\.tar\.gz)[#"]', page):
        if url.endswith(f"-{suite.version}.tar.gz"):
            return str(url)
    raise Trouble("has no source distribution")


def unpacked(suite: Suite, folder: Path) -> Path:
    """The folder with the source distribution."""
    source = folder / "source"
    if not source.is_dir():
        url = _source_url(suite)
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / url.rpartition("/")[2]
        with urllib.request.urlopen(url, timeout=120) as answer, archive.open("wb") as file:
            shutil.copyfileobj(answer, file)
        part = folder / "source.part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(part, filter="data")
        part.rename(source)
    inner = [each for each in source.iterdir() if each.is_dir()]
    if len(inner) != 1 or not all((inner[0] / each).exists() for each in suite.tests.split()):
        raise Trouble(f"has no {suite.tests} in its source distribution")
    return inner[0]


def installed(suite: Suite, folder: Path) -> Path:
    """The interpreter of an environment with the release and what its tests need."""
    python = folder / "venv" / "bin" / "python"
    done = folder / "installed"
    needs = [*COMMON, *suite.needs]
    if not done.is_file() or done.read_text() != " ".join(needs):
        _call([sys.executable, "-m", "venv", "--clear", str(folder / "venv")])
        _call([str(python), "-m", "pip", "install", "-q", f"{suite.package}=={suite.version}",
               *needs, "-e", str(ROOT)])  # fmt: skip
        done.write_text(" ".join(needs))
    return python


def _call(command: list[str]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise Trouble(f"{command[2]} failed: {finished.stderr.strip()[-300:]}")


def explored(
    suite: Suite, source: Path, python: Path, folder: Path, budget: str, *, cancel: bool
) -> list[dict[str, Any]]:
    """The result for each test."""
    output = folder / "result.json"
    output.unlink(missing_ok=True)
    command = [
        str(python), "-m", "pytest", *suite.tests.split(), "-q", "-o", "addopts=", "-p", "no:cacheprovider",
        "-o", "asyncio_default_fixture_loop_scope=function", "--continue-on-collection-errors",
        f"--handfast-explore={budget}", f"--handfast-explore-json={output}", "--handfast-explore-no-corpus",
        *suite.options,
    ]  # fmt: skip
    if cancel:
        command.append("--handfast-explore-cancel")
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # it makes each start slower
    # The tests must import the installed release, and not a folder beside them that is not built.
    finished = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, timeout=TIMEOUT,
        check=False,
    )  # fmt: skip
    (folder / "output.txt").write_text(finished.stdout + finished.stderr)
    if not output.is_file():
        raise Trouble(f"no result: {finished.stdout.strip()[-400:]} {finished.stderr[-300:]}")
    tests: list[dict[str, Any]] = json.loads(output.read_text())["tests"]
    if not tests:
        raise Trouble(f"no async test has passed: {finished.stdout.strip()[-200:]}")
    return tests


if __name__ == "__main__":
    sys.exit(main())
