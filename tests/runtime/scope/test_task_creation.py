"""The hook for task creation sees every task that the runtime creates without the loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import handfast
from handfast._runtime.scope.tasks import task_creation
from tests.support.stepping import run_on


async def work() -> None:
    await asyncio.sleep(0)


def test_the_hook_sees_the_tasks_of_spawn_keyed_tasks_and_submit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []
    create: Any = task_creation.new_task

    def recorded(coro: Any, **options: Any) -> asyncio.Task[Any]:
        names.append(options["name"])
        task: asyncio.Task[Any] = create(coro, **options)
        return task

    async def submitted() -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            scope.spawn(work(), name="spawned")
            scope.supervise(work, name="served")
            handfast.KeyedTasks(scope).start("key", work)
            await asyncio.wrap_future(scope.submit(submitted))

    monkeypatch.setattr(task_creation, "new_task", recorded)
    asyncio.run(main())
    assert [name.rpartition(".")[2] for name in names] == [
        "spawned",
        "served",
        "work",
        "submitted",
    ]


def test_a_task_shows_the_coroutine_of_the_user_until_it_has_ended(any_kind: str) -> None:
    """A25: in its repr and its stack, before its first step, while it waits, and when it is done."""

    async def users_own(gate: asyncio.Event) -> None:
        await gate.wait()

    def check(task: asyncio.Task[Any]) -> None:
        assert "users_own" in repr(task)
        assert "tracked" not in repr(task)

    async def main() -> None:
        gate = asyncio.Event()
        async with handfast.Scope() as scope:
            task = scope.spawn(users_own(gate), name="x")
            if any_kind != "wrapping":  # that factory shows its own coroutine
                check(task)
                await asyncio.sleep(0)
                check(task)
                assert [frame.f_code.co_name for frame in task.get_stack()] == ["users_own"]
            gate.set()
        if any_kind in ("stock", "uvloop"):
            check(task)

    run_on(any_kind, main())
