"""Real programs that get SIGINT and SIGTERM at random moments: one, two or three of them.

As a program, it runs as many as its first argument says, from the seed of its second argument:
`python -m tests.runtime.program.random_signals 300 7`.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.runtime.program.programs import Program

# What the programs have in common: tasks with clean-up, a thread that submits, a child process.
WORK = """
say("started")

async def with_clean_up(n):
    try:
        while True:
            await asyncio.sleep(0.001 * (n % 3))
    finally:
        await asyncio.sleep(0.001)

async def short():
    await asyncio.sleep(0)

def submit_until_refused(scope):
    try:
        while True:
            scope.submit(short).result()
    except BaseException:
        pass

async def work(scope):
    for n in range(20):
        scope.spawn(with_clean_up(n))
    threading.Thread(target=submit_until_refused, args=(scope,), daemon=True).start()

async def main():
    async with handfast.Scope("work") as scope:
        await work(scope)
        {process}
        say("ready")
        await forever()
"""

PROCESS = "child = await scope.hold(handfast.Process('sleep', '1000'))"

ENDS = {
    "run": "handfast.run(main, timeout=5, loop_factory=FACTORIES['{kind}'])",
    "asyncio": """
with asyncio.Runner(loop_factory=FACTORIES['{kind}']) as runner:
    runner.run(main())
""",
    "background": """
with handfast.BackgroundLoop("back", loop_factory=FACTORIES['{kind}']) as background:
    background.submit(work, background.scope).result()
    say("ready")
    # Python handles a signal that comes right before a wait without end after that wait.
    while not threading.Event().wait(0.1):
        pass
""",
}


class Shot(NamedTuple):
    """One program, and the signals that it gets, each after a number of seconds: the first so
    long after the program has said "started" or "ready"."""

    way: str
    kind: str
    word: str
    signals: tuple[tuple[float, int], ...]


def shots(count: int, seed: int, kinds: list[str]) -> list[Shot]:
    """Random ones, with one, two and three signals in turn."""
    chance = random.Random(seed)
    drawn = [
        Shot(
            list(ENDS)[n % 3],
            chance.choice(kinds),
            chance.choice(("started", "ready", "ready")),
            tuple(
                (chance.choice((0.0, 0.001, 0.03)) * chance.random(), number)
                for number in chance.choices((signal.SIGINT, signal.SIGTERM), k=1 + n // 3 % 3)
            ),
        )
        for n in range(count)
    ]
    return [one_interrupt(shot) if shot.way == "asyncio" else shot for shot in drawn]


def one_interrupt(shot: Shot) -> Shot:
    """Without SIGINT after the first one: for the second, the handler of `asyncio.Runner` raises
    KeyboardInterrupt wherever the main thread is (#95571). Right after `_run_once` has taken the step
    of a task out of its queue, that step is lost: then the runner waits for ever for the task."""
    numbers = [number for _, number in shot.signals]
    kept = tuple(
        each
        for n, each in enumerate(shot.signals)
        if each[1] != signal.SIGINT or signal.SIGINT not in numbers[:n]
    )
    return shot._replace(signals=kept)


def problem_of(shot: Shot) -> str | None:
    """Run it; what is wrong with its end, or None."""
    process = PROCESS if shot.way == "run" else ""
    script = WORK.replace("{process}", process) + ENDS[shot.way].replace("{kind}", shot.kind)
    with Program(script) as program:
        program.hear(shot.word)
        for seconds, number in shot.signals:
            time.sleep(seconds)
            program.signal(number)
        try:
            ended = program.end()
        except subprocess.TimeoutExpired:
            return "it hangs"
        # The interpreter ends itself by SIGINT, and the shell adds 128 to the number of a signal.
        code = 128 - ended.code if ended.code < 0 else ended.code
        if code not in {128 + number for _, number in shot.signals}:
            return f"exit code {code}: {ended.errors}"
        if orphans := program.descendants():
            return f"orphans {orphans}"
    return None


def problems(count: int, seed: int, kinds: list[str]) -> list[tuple[Shot, str]]:
    """What is wrong with the ends of `count` programs."""
    chosen = shots(count, seed, kinds)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(problem_of, chosen))
    return [(shot, problem) for shot, problem in zip(chosen, found, strict=True) if problem]


if __name__ == "__main__":
    from tests.support.stepping import loop_kinds

    for shot, problem in problems(int(sys.argv[1]), int(sys.argv[2]), loop_kinds()):
        print(shot, problem)  # noqa: T201
