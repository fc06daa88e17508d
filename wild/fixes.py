"""Check published packages: each bug must be found in the release that has it, not in its fix.

The rows of `fixes.toml` are bugs that their authors have fixed. A release is only downloaded and unpacked,
never installed or imported; then the file with the bug is checked.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handfast.check import Finding

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
TABLE = HERE / "fixes.toml"
CACHE = Path(os.environ.get("HANDFAST_WILD_CACHE", "~/.cache/handfast/wild")).expanduser()
# A wheel for this Python, one for an old Python, or the source: the text is the same.
OPTIONS: tuple[tuple[str, ...], ...] = (
    ("--only-binary", ":all:"),
    ("--only-binary", ":all:", "--python-version", "3.8", "--platform", "manylinux1_x86_64"),
    ("--only-binary", ":all:", "--python-version", "3.8", "--platform", "manylinux2014_x86_64"),
    (),
)


@dataclass(frozen=True)
class Fix:
    """One bug that was fixed, in `function` of the file `path`, or anywhere in it."""

    package: str
    bad: str
    good: str
    path: str
    code: str
    function: str
    what: str


def read_fixes() -> list[Fix]:
    """Return the rows of the table."""
    return [Fix(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["fix"]]


class Unavailable(Exception):
    """A release cannot be downloaded, or does not have the file."""


def main() -> int:
    """Check all pairs or the chosen ones, and print a table; return 1 if one is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="a package or a code (repeatable)"
    )
    parser.add_argument("--verbose", action="store_true", help="show what was found")
    options = parser.parse_args()
    fixes = [
        fix for fix in read_fixes() if not options.only or {fix.package, fix.code} & {*options.only}
    ]
    if not fixes:
        parser.error(f"no such package or code: {', '.join(options.only)}")
    print(f"{'code':5} {'package':24} {'versions':19} {'function':45} {'before':10} after")
    wrong = [fix for fix in fixes if not both(fix, options.verbose)]
    families = sorted({fix.code[:3] for fix in fixes})
    print(f"\n{len(fixes) - len(wrong)} of {len(fixes)} as expected, in {', '.join(families)}")
    return 1 if wrong else 0


def both(fix: Fix, verbose: bool) -> bool:
    """Whether the bug is found before the fix, and not after it."""
    try:
        before, after = findings(fix, fix.bad), findings(fix, fix.good)
    except Unavailable as error:
        print(f"{line(fix)} {error}  <-- WRONG", flush=True)
        return False
    right = bool(before) and not after
    verdicts = f"{how(before):10} {how(after) if after else 'silent'}"
    print(f"{line(fix)} {verdicts}{'' if right else '  <-- WRONG'}", flush=True)
    if verbose or not right:
        print(f"    {fix.what}")
        for version, found in ((fix.bad, before), (fix.good, after)):
            for finding in found:
                print(f"    {version} {fix.path}:{finding.place.line}: {finding.message}")
    return right


def how(found: list[Finding]) -> str:
    """Return one word for the table; `pedantic` is found with that option only."""
    if not found:
        return "missed"
    return "pedantic" if all(finding.pedantic for finding in found) else "found"


def line(fix: Fix) -> str:
    """Return the first columns of the table."""
    versions = f"{fix.bad} -> {fix.good}"
    return f"{fix.code:5} {fix.package:24} {versions:19} {fix.function:45}"


def findings(fix: Fix, version: str) -> list[Finding]:
    """Return the findings in the function in this version, with the code of the fix."""
    from handfast.check import check

    path = unpacked(fix.package, version) / fix.path
    if not path.is_file():
        raise Unavailable(f"{version} has no {fix.path}")
    lines = lines_of(path, fix.function)
    report = check([path], select=[fix.code], pedantic=True)
    return [
        finding
        for finding in report.findings
        if finding.code == fix.code and finding.place.line in lines
    ]


def lines_of(path: Path, function: str) -> range:
    """Return the lines of a function; none if it does not exist, the whole file without a name."""
    content = path.read_bytes()
    lines = range(1, content.count(b"\n") + 2)
    body = ast.parse(content).body
    for name in function.split(".") if function else ():
        found = next((each for each in definitions(body) if each.name == name), None)
        if found is None:
            return range(0)
        body = found.body
        lines = range(found.lineno, (found.end_lineno or found.lineno) + 1)
    return lines


def definitions(
    body: list[ast.stmt],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the classes and functions of a block, also inside an `if` or a `try`."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from definitions(getattr(statement, name, []))


def unpacked(package: str, version: str) -> Path:
    """Return the folder with the Python files of this release; it is filled on first use."""
    target = CACHE / "unpacked" / f"{package}=={version}"
    if not target.is_dir():
        unfinished = target.with_name(target.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            unpack(download(f"{package}=={version}", folder), unfinished)
        unfinished.rename(target)
    return target


def download(wanted: str, folder: str) -> Path:
    """Download a release and return the path of its archive."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    command += ["--ignore-requires-python", "-d", folder]
    for options in OPTIONS:
        done = subprocess.run(
            [*command, *options, wanted], capture_output=True, text=True, check=False
        )
        if not done.returncode:
            return next(Path(folder).iterdir())
    raise Unavailable(f"cannot download {wanted}: {done.stderr.strip()[-300:]}")


def unpack(archive: Path, target: Path) -> None:
    """Extract the Python files; those of a source archive without the folders around the package."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target, [name for name in wheel.namelist() if name.endswith(".py")])
        return
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            name = member.name.partition("/")[2].removeprefix("src/")
            if member.isfile() and name.endswith(".py"):
                member.name = name
                source.extract(member, target, filter="data")


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    sys.exit(main())
