"""python -m benchmarks.compare WORK: handfast and other libraries, measured in one run.

Reads the command line, runs the comparisons that it names, and prints what came out. Exit code 0
when everything could be run, met or not; with --strict 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence

from benchmarks.comparisons import TABLE, comparison_of
from benchmarks.measuring import Outcome, measure
from benchmarks.presenting import as_json, as_text
from benchmarks.progress import Progress

INTERRUPTED = 130


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("work", choices=[*TABLE, "all"], help="what to compare")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--n", type=positive, help="size of the work (default: the work's own)")
    parser.add_argument("--rounds", type=positive, help="interleaved rounds (default: its own)")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a target is missed")
    return parser.parse_args(argv)


def together(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """`all --json`: the fields of one comparison, each by work."""
    by_work = {outcome.comparison.work: as_json(outcome) for outcome in outcomes}
    fields = ("n", "ratios", "targets", "not_measured")
    return {
        "work": "all",
        "python": platform.python_version(),
        **{field: {work: each[field] for work, each in by_work.items()} for field in fields},
        "met": all(outcome.met for outcome in outcomes),
    }


def run(options: argparse.Namespace) -> int:
    outcomes = []
    with Progress() as progress:
        for work in TABLE if options.work == "all" else [options.work]:
            outcome = measure(comparison_of(work), options.n, options.rounds, progress.show)
            outcomes.append(outcome)
            if not options.json:
                progress.erase()
                print(as_text(outcome), flush=True)
    if options.json:
        result = together(outcomes) if options.work == "all" else as_json(outcomes[0])
        print(json.dumps(result, indent=2))
    return int(options.strict and not all(outcome.met for outcome in outcomes))


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return run(arguments(argv))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
