"""Each cell of the README's comparison with task groups is an experiment that runs here.

A row is one experiment, run with each library; it returns the text of the cell.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

import handfast

README = (Path(__file__).parents[2] / "README.md").read_text()

# Runs the children, and the body beside them; then ends.
Child = Coroutine[Any, Any, None]
Owner = Callable[[list[Child], Callable[[], Child]], Child]


async def with_task_group(children: Any, body: Any) -> None:
    async with asyncio.TaskGroup() as group:
        for child in children:
            group.create_task(child)
        await body()


async def with_anyio(children: Any, body: Any) -> None:
    async def run(child: Child) -> None:
        await child

    async with anyio.create_task_group() as group:
        for child in children:
            group.start_soon(run, child)
        await body()


async def with_aiojobs(children: Any, body: Any) -> None:
    import aiojobs

    scheduler = aiojobs.Scheduler(exception_handler=lambda *_: None)
    try:
        for child in children:
            await scheduler.spawn(child)
        await body()
    finally:
        await scheduler.close()


async def with_scope(children: Any, body: Any, on_failure: Any = "cancel") -> None:
    async with handfast.Scope("s", timeout=0.1, on_failure=on_failure) as scope:
        for child in children:
            scope.spawn(child)
        await body()


OWNERS: dict[str, Owner] = {
    "`asyncio.TaskGroup`": with_task_group,
    "anyio": with_anyio,
    "aiojobs": with_aiojobs,
    "handfast": with_scope,
}


async def for_ever() -> None:
    await asyncio.Event().wait()


async def a_child_swallows_its_cancel(owner: Owner) -> str:
    gate = asyncio.Event()

    async def swallower() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                pass

    host = asyncio.create_task(owner([swallower()], for_ever))
    await asyncio.sleep(0.01)
    host.cancel()
    if owner is not with_scope:  # a scope ends while the gate is still closed
        asyncio.get_running_loop().call_later(0.3, gate.set)
    await asyncio.wait({host})
    waited = gate.is_set()
    gate.set()
    await asyncio.sleep(0.01)
    if waited:
        return "waits for it"
    named = not host.cancelled() and "swallower" in repr(host.exception())
    return "ends at its deadline and names the task" if named else "ends"


async def a_cleanup_that_awaits(owner: Owner) -> str:
    for times, verdict in (
        (1, "is interrupted at its first `await`"),
        (2, "is interrupted by a second cancel"),
    ):
        log: list[str] = []
        started = asyncio.Event()

        async def cleanup(log: list[str] = log, started: asyncio.Event = started) -> None:
            started.set()
            try:
                await for_ever()
            finally:
                log.append("begun")
                await asyncio.sleep(0.02)
                log.append("done")

        host = asyncio.create_task(owner([cleanup()], for_ever))
        await started.wait()
        for _ in range(times):
            host.cancel()
            while not log:
                await asyncio.sleep(0)
        await asyncio.wait({host})
        if log != ["begun", "done"]:
            return verdict
    return "completes"


async def siblings_of_a_failure(owner: Owner) -> str:
    log: list[str] = []
    failed = asyncio.Event()

    async def fails() -> None:
        await asyncio.sleep(0)
        failed.set()
        raise ValueError

    async def sibling() -> None:
        await failed.wait()
        await asyncio.sleep(0.01)
        log.append("keep running")

    async def both_ended() -> None:
        await asyncio.sleep(0.05)

    try:
        await owner([fails(), sibling()], both_ended)
    except* ValueError:
        pass
    return log[0] if log else "are cancelled"


async def left_in_another_task(owner: Owner) -> str:
    manager: Any
    if owner is with_task_group:
        manager = asyncio.TaskGroup()
    elif owner is with_anyio:
        manager = anyio.create_task_group()
    elif owner is with_scope:
        manager = handfast.Scope("s")
    else:
        import aiojobs

        manager = aiojobs.Scheduler()
    await asyncio.create_task(manager.__aenter__())
    try:
        await asyncio.create_task(manager.__aexit__(None, None, None))
    except RuntimeError:
        return "raises `RuntimeError`"
    return "works"


async def both_policies(owner: Owner) -> str:
    seen = await siblings_of_a_failure(owner)
    if owner is with_scope:
        other = await siblings_of_a_failure(
            lambda children, body: with_scope(children, body, on_failure=lambda _: None)
        )
        return f"{seen} or {other}, as configured"
    return seen


EXPERIMENTS: dict[str, Callable[[Owner], Coroutine[Any, Any, str]]] = {
    "Close, if a child swallows its cancellation": a_child_swallows_its_cancel,
    "Cleanup that awaits, if the owner is cancelled": a_cleanup_that_awaits,
    "Siblings of a child that fails": both_policies,
    "Leaving it in another task than the one that entered it": left_in_another_task,
}


def table() -> dict[tuple[str, str], str]:
    """(row, peer) -> the cell."""
    lines = README[README.index("<!-- table: peers -->") :].split("\n\n")[0].splitlines()[1:]
    rows = [[re.sub(r"\*\*", "", cell).strip() for cell in line.split("|")[1:-1]] for line in lines]
    peers = rows[0][1:]
    return {
        (row[0], peer): cell for row in rows[2:] for peer, cell in zip(peers, row[1:], strict=True)
    }


def test_every_cell_has_its_experiment() -> None:
    assert set(table()) == {(row, peer) for row in EXPERIMENTS for peer in OWNERS}


@pytest.mark.parametrize("peer", OWNERS)
@pytest.mark.parametrize("row", EXPERIMENTS)
def test_the_cell_says_what_the_library_does(row: str, peer: str) -> None:
    if peer == "aiojobs":
        pytest.importorskip("aiojobs", reason="aiojobs comes with the dependency group `bench`")
    assert asyncio.run(EXPERIMENTS[row](OWNERS[peer])) == table()[row, peer]
