"""Objects of the program whose attributes raise: one of them must not hide all others."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from handfast import watch
from handfast._watch.agent import findings
from handfast._watch.agent.findings import Findings
from handfast._watch.never_wakes import find_never_waking


class Coro(Coroutine[Any, Any, None]):
    """A coroutine of the program's own, whose other attributes raise."""

    def __init__(self, future: asyncio.Future[None]) -> None:
        self._steps = future.__await__()

    def send(self, value: Any) -> Any:
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        return self._steps.throw(*error)

    def close(self) -> None: ...

    def __await__(self) -> Any:
        return self._steps

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Strange(asyncio.Future[None]):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("no class")

    @property
    def _children(self) -> Any:
        raise RuntimeError("no children")


class Nameless(Task[Any]):
    def get_name(self) -> str:
        raise RuntimeError("no name")


async def await_(future: asyncio.Future[None]) -> None:
    await future


def coroutine() -> Task[Any]:
    return asyncio.Task(Coro(asyncio.get_running_loop().create_future()))


def future() -> Task[Any]:
    return asyncio.ensure_future(await_(Strange()))


def name() -> Task[Any]:
    return Nameless(asyncio.sleep(60))


@pytest.mark.parametrize("make", [coroutine, future, name])
def test_the_other_tasks_are_shown(make: Callable[[], Task[Any]]) -> None:
    async def main() -> tuple[watch.Snapshot, list[Any]]:
        task = make()
        other = asyncio.create_task(asyncio.sleep(60), name="other")
        await asyncio.sleep(0)
        taken = await asyncio.to_thread(watch.snapshot)
        found = await asyncio.to_thread(find_never_waking, [(1, task, 1), (2, other, 1)], 60.0)
        Task.cancel(task)
        return taken, found.dead

    taken, dead = asyncio.run(main())
    assert "other" in [each.name for each in taken.tasks]
    assert taken.alive - len(taken.tasks) == taken.tasks_left_out
    assert 2 not in dead


def test_one_question_without_an_answer_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[str] = []

    def fail(place_of: object) -> Any:
        looked_at.append("kept")
        raise ZeroDivisionError

    def counts() -> Any:
        looked_at.append("counts")
        raise LookupError

    def tasks() -> list[Task[Any]]:
        looked_at.append("tasks")
        return []

    monkeypatch.setattr(findings, "find_kept", fail)
    looks = Findings()
    looks._kept_due = looks._stuck._due = 0.0
    for _ in range(3):  # the second and third are too early for any of the questions
        looks.look(counts, tasks)
    assert sorted(looked_at) == ["counts", "kept", "tasks"]
    assert looks.not_checked == (
        "which places grow is not known: LookupError while the program's objects were read",
        "which finished tasks are kept is not known: ZeroDivisionError while the program's objects "
        "were read",
    )
