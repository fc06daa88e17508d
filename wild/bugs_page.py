"""The text of docs/bugs.md, from results of suites.py, verdicts.toml and the scripts in confirmed/."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
VERDICTS = {
    "library": "bug of the library",
    "test": "bug of the test",
    "explorer": "limit of the explorer",
    "": "not read yet",
}


@dataclass(frozen=True)
class Suite:
    """A package, its version, where its tests are, and what they need."""

    package: str
    version: str
    tests: str = "tests"
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    budget: str = "30s"


@dataclass
class Result:
    """What came of one suite."""

    suite: Suite
    tests: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    trouble: str = ""

    @property
    def extents(self) -> Counter[str]:
        return Counter(each["extent"] for each in self.tests)

    @property
    def explored(self) -> int:
        extents = self.extents
        return extents["all"] + extents["sampled"] + extents["single"]

    def verdicts(self, known: dict[tuple[str, str, str], Verdict]) -> list[tuple[Any, Verdict]]:
        """Each test with a finding, and what the finding is."""
        found = []
        for test in self.tests:
            if test["finding"]:
                key = (self.suite.package, test["nodeid"], test["finding"]["code"])
                found.append((test, known.get(key, Verdict("", ""))))
        return found


@dataclass(frozen=True)
class Verdict:
    """What a finding is, and why."""

    kind: str
    note: str


@dataclass(frozen=True)
class Confirmed:
    """A bug that a script shows on asyncio's own loop, and the code that the explorer gives it."""

    script: str
    package: str
    version: str
    what: str
    shown: str
    code: str


def known_verdicts() -> dict[tuple[str, str, str], Verdict]:
    """The verdicts, by package, test and code."""
    data = tomllib.loads((HERE / "verdicts.toml").read_text(encoding="utf-8"))
    return {
        (each["package"], each["test"], each["code"]): Verdict(each["verdict"], each["note"])
        for each in data["finding"]
    }


def page(plain: list[Result], cancel: list[Result], confirmed: list[Confirmed]) -> str:
    """The text of docs/bugs.md: only what these runs have shown."""
    known = known_verdicts()
    ran = [each for each in plain if each.tests]
    findings = [found for each in ran for found in each.verdicts(known)]
    explored = sum(each.explored for each in ran)
    single = sum(each.extents["single"] for each in ran)
    kinds = Counter(verdict.kind for _, verdict in findings)
    false = kinds["explorer"] + kinds[""]
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    parts = [
        "# Bugs in published packages",
        "",
        f"{len(confirmed)} bugs in the newest releases of "
        f"{len({each.package for each in confirmed})} packages, and {len(ran)} test suites of "
        "published packages, explored as they are.",
        "",
        "## Confirmed bugs",
        "",
        "Each one is reproduced on asyncio's own loop by a script that exits with status 1 while "
        "the bug is there. The script also has a small program that uses the package as usual and "
        "does not say when to cancel, in which the explorer finds the bug under the code of the "
        "third column. Some of the bugs were first noticed in the source of the package.",
        "",
        "```console\n$ python wild/confirmed/httpcore_pool.py\n"
        "$ python wild/confirmed/httpcore_pool.py --explore\n```",
        "",
        "| package | bug | finding | script |",
        "|---|---|---|---|",
        *(
            f"| {each.package} {each.version} | {each.what} | {each.code} "
            f"| `wild/confirmed/{each.script}` |"
            for each in confirmed
        ),
        "",
        "## Explored suites",
        "",
        f"Each suite runs as it is, on Python {python}, with `pytest --handfast-explore`:",
        "",
        "```console\n$ python wild/suites.py --only PACKAGE    # one suite after the other\n"
        "$ python wild/suites.py --stored --write   # this page, from the results\n```",
        "",
        "*Tests* are the async tests that pass in a normal run in this environment; a suite may "
        "have more, which need a server or a package that is not installed. *One schedule* "
        "means that nothing in the test can be reordered. The seconds are those of the whole run on "
        "two shared cores; on a busy machine more tests have no time left. Of the largest suites only "
        "some files are run; `wild/suites.toml` has the details.",
        "",
        f"Together: {sum(len(each.tests) for each in ran):,} tests, {explored:,} explored to a "
        f"verdict ({explored - single:,} of them can be reordered, {single:,} have one schedule), "
        f"{len(findings)} with a finding: {_kinds(kinds)}. "
        f"{100 * false / max(explored, 1):.2f} % of the explored tests have a false finding.",
        "",
        *_table(ran, known),
        "",
        *_not_run(plain),
        "### Not explored",
        "",
        *_refusals(ran),
        "",
        "### Findings",
        "",
        *_findings(ran, known),
    ]
    if cancel_ran := [each for each in cancel if each.tests]:
        parts += [
            "",
            "## With cancellation",
            "",
            "`--handfast-explore-cancel` cancels the tasks that a test cancels itself at other "
            "points, too, and [calls of the library](guides/explore.md#an-existing-suite) that a "
            "test makes. What it finds is in the package, and its own tests pass:",
            "",
            "```console\n$ python wild/suites.py --only PACKAGE --cancel\n```",
            "",
            *_table(cancel_ran, known),
            "",
            *_findings(cancel_ran, known),
        ]
    return "\n".join(parts) + "\n"


def _kinds(kinds: Counter[str]) -> str:
    return ", ".join(
        f"{kinds[kind]} {words}" for kind, words in VERDICTS.items() if kind or kinds[kind]
    )


def _table(results: list[Result], known: dict[tuple[str, str, str], Verdict]) -> list[str]:
    rows = [
        "| package | tests | all schedules | sampled | one schedule | no time left | not explored "
        "| findings | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        extents = each.extents
        counts = [extents[name] for name in ("all", "sampled", "single", "budget", "refused")]
        cells = " | ".join(map(str, (len(each.tests), *counts, len(each.verdicts(known)))))
        name = f"{each.suite.package} {each.suite.version}"
        rows.append(f"| {name} | {cells} | {each.seconds:.0f} |")
    return rows


def _not_run(results: list[Result]) -> list[str]:
    names = ", ".join(f"{each.suite.package}" for each in results if not each.tests)
    return [f"Without a result in this run: {names}.", ""] if names else []


def _refusals(results: list[Result]) -> list[str]:
    reasons: Counter[str] = Counter()
    for result in results:
        for test in result.tests:
            if test["extent"] == "refused":
                # Without the names of threads and files, which are different in each suite.
                reasons[re.sub(r" in thread \d+ \(.*\)$", " in a thread", test["reason"])] += 1
    return [f"- {count}: {reason}" for reason, count in reasons.most_common()] or ["None."]


def _findings(results: list[Result], known: dict[tuple[str, str, str], Verdict]) -> list[str]:
    lines = []
    for result in results:
        for test, verdict in result.verdicts(known):
            finding = test["finding"]
            evidence = "confirmed" if finding["confirmed"] else "not confirmed"
            lines.append(
                f"- {result.suite.package}, `{test['nodeid']}`: {finding['code']}, "
                f"{evidence} on asyncio's own loop. {VERDICTS[verdict.kind].capitalize()}. "
                f"{verdict.note}".rstrip()
            )
    return lines or ["None."]
