"""Containers that keep tasks which have ended (HF131): the dict that grows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from holdfast.census import owned_by, recording, take
from holdfast.census.retained import Retained

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


def kept() -> dict[int, Retained]:
    found = take(["retained"], loop=asyncio.get_running_loop()).things
    return {id(thing.container): thing for thing in found if isinstance(thing, Retained)}


def test_a_dict_that_keeps_done_tasks_is_told_with_its_holder() -> None:
    async def main() -> None:
        bot = Bot()
        for number in range(12):
            bot.tasks[number] = await done()
        things = kept()
        thing = things.pop(id(bot.tasks))
        assert not things
        assert (thing.check, thing.code) == ("retained", "HF131")
        assert thing.what == "dict with 12 done tasks, attribute tasks of Bot"
        assert thing.key == ("retained", id(bot.tasks))
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# started here")
        assert thing.owner == "the test"
        # Whoever was told of a task has not been told of this.
        thing.birth.told = True
        again = kept()[id(bot.tasks)].birth
        assert again is not None
        assert not again.told
        bot.tasks.clear()
        assert thing.over()
        assert kept() == {}

    with owned_by("the test"):
        asyncio.run(main())


def test_each_kind_of_container_is_named_by_who_holds_it() -> None:
    async def main() -> None:
        bot, slotted = Bot(), Slotted()
        for _ in range(2):
            task = await done()
            GLOBAL.append(task)
            Bot.seen.add(task)
            slotted.recent.append(task)
            bot.by_user.setdefault("somebody", []).append(task)
        words = {ref: thing.what for ref, thing in kept().items()}
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
        assert kept()[id(bot.tasks)].count == 3

    asyncio.run(main())


def test_what_a_running_function_holds_goes_by_itself() -> None:
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


def test_what_asyncio_holds_is_its_own_affair() -> None:
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


def test_a_census_and_its_own_lists_are_not_told() -> None:
    async def main() -> None:
        bot = Bot()
        bot.tasks.update({number: await done() for number in range(2)})
        first = take(["tasks", "errors", "retained"])
        second = take(["retained"], loop=asyncio.get_running_loop())
        assert [thing.key for thing in second.things] == [("retained", id(bot.tasks))]
        assert second.since(first) == []

    asyncio.run(main())
