"""Containers that keep finished tasks (HF131): the dict that grows."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from handfast._census import owned_by, recording, take, task_containers
from handfast._census.live_object import LiveObject

GLOBAL: list[asyncio.Task[None]] = []


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield
    GLOBAL.clear()
    Bot.seen.clear()


class Bot:
    seen: ClassVar[set[asyncio.Task[None]]] = set()

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.by_user: dict[str, list[asyncio.Task[None]]] = {}
        self.first: Any = None
        self.second: Any = None


class Slotted:
    __slots__ = ("recent",)

    def __init__(self) -> None:
        self.recent: deque[asyncio.Task[None]] = deque()


async def nothing() -> None: ...


async def done() -> asyncio.Task[None]:
    task = asyncio.create_task(nothing())  # started here
    await task
    return task


def kept() -> dict[int, LiveObject]:
    found = take(["retained"], loop=asyncio.get_running_loop()).objects
    return {id(live.target): live for live in found}


def test_a_dict_that_keeps_done_tasks_is_listed_with_its_holder() -> None:
    async def main() -> None:
        bot = Bot()
        for number in range(12):
            bot.tasks[number] = await done()
        objects = kept()
        live = objects.pop(id(bot.tasks))
        assert not objects
        assert (live.check, live.code) == ("retained", "HF131")
        assert live.what == "dict with 12 done tasks, attribute tasks of Bot"
        assert live.key == ("retained", id(bot.tasks))
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# started here")
        assert live.owner == "the test"
        # A report of the task is no report of its container.
        live.creation.reported = True
        again = kept()[id(bot.tasks)].creation
        assert again is not None
        assert not again.reported
        bot.tasks.clear()
        assert live.ended()
        assert kept() == {}

    with owned_by("the test"):
        asyncio.run(main())


def test_each_kind_of_container_is_named_by_who_holds_it(whole_heap: None) -> None:
    async def main() -> None:
        bot, slotted = Bot(), Slotted()
        for _ in range(2):
            task = await done()
            GLOBAL.append(task)
            Bot.seen.add(task)
            slotted.recent.append(task)
            bot.by_user.setdefault("somebody", []).append(task)
        words = {ref: live.what for ref, live in kept().items()}
        assert words == {
            id(GLOBAL): f"list with 2 done tasks, GLOBAL of module {__name__}",
            id(Bot.seen): "set with 2 done tasks, attribute seen of Bot",
            id(slotted.recent): "deque with 2 done tasks, attribute recent of Slotted",
            id(bot.by_user["somebody"]): "list with 2 done tasks, in attribute by_user of Bot",
        }

    asyncio.run(main())


def test_one_task_or_tasks_under_names_of_their_own_are_no_growth() -> None:
    async def main() -> None:
        bot = Bot()
        bot.tasks[0] = bot.first = await done()
        bot.second = await done()
        assert kept() == {}
        assert bot.first is not bot.second

    asyncio.run(main())


def test_tasks_that_have_not_ended_are_not_counted() -> None:
    async def main() -> None:
        bot = Bot()
        for number in range(3):
            bot.tasks[number] = asyncio.create_task(asyncio.sleep(60))
        assert kept() == {}
        for task in bot.tasks.values():
            task.cancel()
        await asyncio.wait(bot.tasks.values())
        assert kept()[id(bot.tasks)].size == 3

    asyncio.run(main())


def test_what_a_local_variable_holds_is_not_listed() -> None:
    async def main() -> None:
        mine = [await done() for _ in range(3)]
        finished, _ = await asyncio.wait(mine)

        async def inner() -> None:
            also = list(mine)  # mine is shared with a closure
            await asyncio.sleep(0)
            assert len(also) == 3
            await asyncio.Event().wait()

        waiting = asyncio.create_task(inner())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert kept() == {}
        assert len(finished) == 3
        waiting.cancel()

    asyncio.run(main())


def test_what_asyncio_holds_is_not_listed() -> None:
    class Holder:
        outer: Any = None

    async def main() -> None:
        Holder.outer = asyncio.gather(*[asyncio.create_task(nothing()) for _ in range(3)])
        await Holder.outer
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(nothing())
        assert kept() == {}
        Holder.outer = None

    asyncio.run(main())


def test_a_snapshot_and_its_own_lists_are_not_listed() -> None:
    async def main() -> None:
        bot = Bot()
        bot.tasks.update({number: await done() for number in range(2)})
        first = take(["tasks", "errors", "retained"])
        second = take(["retained"], loop=asyncio.get_running_loop())
        assert [live.key for live in second.objects] == [("retained", id(bot.tasks))]
        assert second.since(first) == []

    asyncio.run(main())


def test_the_heap_is_walked_as_often_for_many_containers_as_for_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks: list[int] = []

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: object) -> Any:
            walks[-1] += 1
            return function(*given)

        return call

    async def main(count: int) -> None:
        bots = [Bot() for _ in range(count)]
        for bot in bots:
            bot.by_user["ann"] = [await done(), await done()]
        walks.append(0)
        found = take(["retained"], loop=asyncio.get_running_loop())
        assert [live.what for live in found.objects] == [
            "list with 2 done tasks, in attribute by_user of Bot"
        ] * count

    walking = SimpleNamespace(
        get_referents=gc.get_referents,
        get_referrers=counted(gc.get_referrers),
    )
    monkeypatch.setattr(task_containers, "gc", walking)
    for count in (2, 40):
        asyncio.run(main(count))
    assert 0 < walks[1] <= walks[0]
