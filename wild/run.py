"""Explore published packages: each bug must be found in the release that has it, not in its fix.

Each file in `bugs/` is one bug; its constants say what to install. Each version has its own folder in
the cache, and is explored in a separate process, with handfast from this checkout.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
BUGS = HERE / "bugs"
CACHE = Path(os.environ.get("HANDFAST_WILD_CACHE", "~/.cache/handfast/wild")).expanduser()
# Seconds; a program that blocks its thread would never return.
TIMEOUT = 300


@dataclass
class Bug:
    """The constants at the top of one file of `bugs/`."""

    name: str
    package: str
    bad: str
    good: str
    finding: str
    needs: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Bug:
        """Read the constants without an import: the package is not installed here."""
        constants: dict[str, Any] = {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name in ("PACKAGE", "BAD", "GOOD", "FINDING", "NEEDS"):
                    constants[name.lower()] = ast.literal_eval(node.value)
        return cls(path.stem, **constants)


@dataclass
class Result:
    """The result of exploring one version; `trouble` says why there is none."""

    schedules: int = 0
    seconds: float = 0.0
    code: str = ""
    error: str = ""
    departures: list[str] = field(default_factory=list)
    exhausted: str = ""
    token: str = ""
    trouble: str = ""


def main() -> int:
    """Run all bugs or the chosen ones, and print a table; return 1 if a result is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="just this bug (repeatable)"
    )
    parser.add_argument("--schedules", type=int, default=1000, help="for each version (1000)")
    parser.add_argument("--verbose", action="store_true", help="show each counterexample")
    parser.add_argument("--explore", metavar="NAME", help=argparse.SUPPRESS)  # in the subprocess
    options = parser.parse_args()
    if options.explore:
        explored(options.explore, options.schedules)
    bugs = [Bug.read(path) for path in sorted(BUGS.glob("*.py"))]
    if options.only:
        unknown = set(options.only) - {bug.name for bug in bugs}
        if unknown:
            parser.error(f"no such bug: {', '.join(sorted(unknown))}")
        bugs = [bug for bug in bugs if bug.name in options.only]
    print(f"{'bug':24} {'package':15} {'version':8} {'finding':34} {'schedules':>9} {'s':>6}")
    wrong = [bug.name for bug in bugs if not both(bug, options.schedules, options.verbose)]
    print(f"\n{len(bugs) - len(wrong)} of {len(bugs)} as expected")
    if wrong:
        print(f"not: {', '.join(wrong)}")
    return 1 if wrong else 0


def both(bug: Bug, schedules: int, verbose: bool) -> bool:
    """Whether the bug is found in the bad version, and nothing in the good one."""
    right = True
    for version, has_bug in ((bug.bad, True), (bug.good, False)):
        result = run(bug, version, schedules)
        skipped = result.trouble.startswith("skipped")
        # Another code than the expected one would be another bug, or none at all.
        expected = skipped or (
            not result.trouble and result.code == (bug.finding if has_bug else "")
        )
        right = right and expected
        print(line(bug, version, result, expected), flush=True)
        if result.trouble or (verbose and result.error) or not expected:
            print(
                "    " + (result.trouble or result.error or "nothing found").replace("\n", "\n    ")
            )
            for departure in result.departures:
                print(f"      {departure}")
            if result.token:
                print(f"    token {result.token}")
    return right


def line(bug: Bug, version: str, result: Result, expected: bool) -> str:
    """Return one line of the table."""
    if result.trouble:
        finding = result.trouble.splitlines()[0][:33]
    elif result.code:
        departures = len(result.departures)
        finding = f"{result.code}, {departures} departure{'' if departures == 1 else 's'}"
    else:
        finding = f"none {result.exhausted}".strip()
    mark = "" if expected else "  <-- WRONG"
    return (
        f"{bug.name:24} {bug.package:15} {version:8} {finding:34} "
        f"{result.schedules:9} {result.seconds:6.1f}{mark}"
    )


def run(bug: Bug, version: str, schedules: int) -> Result:
    """Explore one version in a separate process."""
    python = interpreter(version) if bug.package == "python" else sys.executable
    if python is None:
        return Result(trouble=f"skipped: no python{version} here")
    path = [str(SOURCE)]
    if bug.package != "python":
        target = install(bug, version)
        if isinstance(target, Result):
            return target
        path.append(str(target))
    command = [python, str(HERE / "run.py"), "--explore", bug.name, "--schedules", str(schedules)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0"}
    started = time.perf_counter()
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return Result(trouble=f"not finished after {TIMEOUT} s", seconds=TIMEOUT)
    seconds = time.perf_counter() - started
    for text in done.stdout.splitlines():
        if text.startswith("RESULT "):
            return Result(**json.loads(text.removeprefix("RESULT ")), seconds=seconds)
    return Result(trouble=f"broken: {done.stderr.strip()[-1500:]}", seconds=seconds)


def interpreter(version: str) -> str | None:
    """Return the path of this minor version of Python, or None."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    pyenv = Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")
    for python in (shutil.which(f"python{version}"), *map(str, pyenv)):
        # A shim of pyenv may exist without an installed version.
        if python and not subprocess.run([python, "-c", ""], capture_output=True).returncode:
            return python
    return None


def install(bug: Bug, version: str) -> Path | Result:
    """Return the folder with this version of the package; it is installed on first use."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = [f"{bug.package}=={version}", *bug.needs]
    target = CACHE / here / re.sub(r"[^\w.=]+", "-", " ".join(wanted))
    if not target.is_dir():
        unfinished = target.with_name(target.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--target",
            str(unfinished),
            *wanted,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return Result(trouble=f"cannot install: {done.stderr.strip()[-300:]}")
        unfinished.rename(target)
    return target


def explored(name: str, schedules: int) -> None:
    """In the subprocess: explore, print the result on one line, and exit without waiting for threads
    that a bad version has leaked."""
    from handfast.explore import Divergence, explore

    spec = importlib.util.spec_from_file_location(name, BUGS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = explore(module.program, **{"schedules": schedules, **module.OPTIONS})
    result: dict[str, Any] = {"schedules": found.schedules}
    if found.exhausted:
        result["exhausted"] = f"(all up to {found.bound})"
    if counterexample := found.counterexample:
        result |= {
            "code": counterexample.code,
            "error": str(counterexample),
            "token": counterexample.token,
            "departures": list(counterexample.departures),
        }
        try:
            counterexample.replay()
        except Divergence as divergence:
            result["trouble"] = f"does not replay: {divergence}"
    print("RESULT " + json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
