"""GraphRunner: real graphs as tasks of a scope, with time-outs, thread ids and a checkpointer."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

import handfast
from handfast.bridges.langgraph import GraphRunner
from handfast.explore import explore, victim
from tests.bridges.graphs import WORKING, State, adds, fails, follows_state, graph_of, waits


def runs(**message: Any) -> Any:
    async def main() -> Any:
        async with handfast.Scope("s") as scope:
            return await GraphRunner(scope, WORKING).ainvoke(message)

    return asyncio.run(main())


def test_ainvoke_returns_the_last_state() -> None:
    assert runs(do="adds", n=1) == {"do": "adds", "n": 2}


def test_s2_4_an_error_is_raised_to_the_caller_and_no_failure_of_the_scope() -> None:
    """S2.4: the sibling tasks go on, although a failure of the scope would cancel them."""

    async def main() -> Any:
        async with handfast.Scope("s", on_failure="cancel") as scope:
            runner = GraphRunner(scope, WORKING)
            with pytest.raises(ValueError, match="7"):
                await runner.ainvoke({"do": "fails", "n": 7})
            return await runner.ainvoke({"do": "adds", "n": 1})

    assert asyncio.run(main())["n"] == 2


def test_a_run_cancelled_by_its_scope_does_not_cancel_the_caller() -> None:
    async def main() -> str:
        scope = handfast.Scope("s", on_failure="report")
        runner = GraphRunner(scope, WORKING)
        closing = asyncio.get_running_loop().call_soon(
            lambda: tasks.append(asyncio.create_task(scope.close()))
        )
        tasks: list[asyncio.Task[Any]] = []
        with pytest.raises(CancelledError, match="run of the graph for thread 'a' was cancelled"):
            await runner.ainvoke({"do": "waits"}, thread_id="a")
        assert not closing.cancelled()
        return str(await tasks[0])

    assert asyncio.run(main()) == "scope 's' closed: 1 cancelled"


class Lingering:
    """A graph whose clean-up takes some steps and fails."""

    async def ainvoke(self, message: object, config: object) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            raise OSError("clean-up")

    astream: Any = None


def test_a_caller_that_is_cancelled_twice_joins_its_run_and_gets_its_error() -> None:
    """S3.4, S3.6, A16: the error is raised, and the cancel at the next await."""

    async def main() -> int:
        async with handfast.Scope("s") as scope:

            async def call() -> int:
                with pytest.raises(OSError, match="clean-up"):
                    await GraphRunner(scope, Lingering()).ainvoke({})
                left = len(scope)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(0)
                return left

            caller = asyncio.create_task(call())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for _ in range(2):
                caller.cancel()
                await asyncio.sleep(0)
            return await caller

    assert asyncio.run(main()) == 0


def test_submit_from_a_thread_is_answered() -> None:
    async def main() -> Any:
        async with handfast.Scope("s") as scope:
            runner = GraphRunner(scope, WORKING)
            answer = await asyncio.to_thread(runner.submit, {"do": "adds", "n": 1})
            return await asyncio.wrap_future(answer)

    assert asyncio.run(main())["n"] == 2


# --- time-outs -----------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_is_cancelled_and_joined() -> None:
    async def main() -> str:
        ended: list[bool] = []

        async def slow(state: State) -> State:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0)
                ended.append(True)
            return {}

        async with handfast.Scope("s") as scope:
            runner = GraphRunner(scope, graph_of(slow), timeout=3600)
            with pytest.raises(TimeoutError) as caught:
                await runner.ainvoke({"n": 1}, thread_id="a", timeout=0.01)
            assert ended == [True]
        return str(caught.value)

    assert asyncio.run(main()) == "the run of the graph for thread 'a' took more than 0.01 s"


def test_a_time_out_of_the_graph_itself_is_raised_unchanged() -> None:
    async def main() -> str:
        async def impatient(state: State) -> State:
            raise TimeoutError("the model did not answer")

        async with handfast.Scope("s") as scope:
            with pytest.raises(TimeoutError) as caught:
                await GraphRunner(scope, graph_of(impatient), timeout=60).ainvoke({"n": 1})
        return str(caught.value)

    assert asyncio.run(main()) == "the model did not answer"


# --- streams -------------------------------------------------------------------------------------


def test_astream_gives_the_chunks_as_they_come() -> None:
    async def main() -> list[Any]:
        async with handfast.Scope("s") as scope:
            runner = GraphRunner(scope, graph_of(adds, adds))
            async with runner.astream({"n": 1}, stream_mode="values") as chunks:
                return [chunk async for chunk in chunks]

    assert asyncio.run(main()) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_stream_that_is_left_early_ends_its_run() -> None:
    async def main() -> list[str]:
        log: list[str] = []
        begun = asyncio.Event()

        async def lingers(state: State) -> State:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                log.append("ended")
            return {}

        async def read(runner: GraphRunner) -> None:
            async with runner.astream({"n": 1}, stream_mode="updates") as chunks:
                log.append(str(await anext(chunks)))
                await anext(chunks)

        async with handfast.Scope("s") as scope:
            reading = asyncio.create_task(read(GraphRunner(scope, graph_of(adds, lingers))))
            await begun.wait()
            reading.cancel()
            await asyncio.wait({reading})
            log.append("left")
            assert len(scope) == 0
        return log

    assert asyncio.run(main()) == ["{'node 0': {'n': 2}}", "ended", "left"]


def test_an_error_and_a_time_out_are_raised_by_the_next_chunk() -> None:
    async def main() -> None:
        async with handfast.Scope("s") as scope:
            with pytest.raises(ValueError, match="2"):
                async with GraphRunner(scope, graph_of(adds, fails)).astream({"n": 1}) as chunks:
                    async for _ in chunks:
                        pass
            with pytest.raises(TimeoutError, match="took more than 0 s"):
                runner = GraphRunner(scope, graph_of(waits), timeout=0)
                async with runner.astream({"n": 1}) as chunks:
                    await anext(chunks)

    asyncio.run(main())


def test_a_scope_that_closes_ends_the_streams_of_others() -> None:
    async def main() -> str:
        scope = handfast.Scope("s", on_failure="report")
        runner = GraphRunner(scope, graph_of(waits))
        async with runner.astream({"n": 1}) as chunks:
            step = asyncio.create_task(anext(chunks))
            await asyncio.sleep(0)
            report = await scope.close()
            with pytest.raises(handfast.errors.StreamBroken):
                await step
        return str(report)

    assert asyncio.run(main()) == "scope 's' closed: 1 finished"


# --- thread ids and checkpointers ------------------------------------------------------------------


class Slow(InMemorySaver):
    """A slow checkpointer, like one with a file or a server."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.open = True

    async def aget_tuple(self, config: Any) -> Any:
        assert self.open
        saved = await super().aget_tuple(config)
        await asyncio.sleep(0)
        return saved

    async def aput(self, *args: Any) -> Any:
        assert self.open
        return await super().aput(*args)


@asynccontextmanager
async def slow_saver() -> AsyncIterator[Slow]:
    saver = Slow()
    yield saver
    saver.open = False
    saver.log.append("checkpointer closed")


class Sum(TypedDict):
    total: Annotated[int, operator.add]


def counting(saver: Slow) -> Any:
    """Adds up what it is sent, over all messages of a thread."""

    async def look(state: Sum) -> dict[str, int]:
        await asyncio.sleep(0)
        return {}

    builder = StateGraph(Sum).add_node("look", look).set_entry_point("look")
    return builder.compile(checkpointer=saver)


def test_runs_of_one_thread_id_are_made_one_after_another() -> None:
    """At once, they read one checkpoint and overwrite each other's, as in langgraph itself."""

    async def bare() -> int:
        graph = counting(Slow())
        config = {"configurable": {"thread_id": "a"}}
        await asyncio.gather(*(graph.ainvoke({"total": 1}, config) for _ in range(5)))
        total: int = (await graph.aget_state(config)).values["total"]
        return total

    async def ours() -> list[Any]:
        async with handfast.Scope("s") as scope:
            graph = counting(Slow())
            runner = GraphRunner(scope, graph, config={"configurable": {"user": "ada"}})
            await asyncio.gather(
                *(runner.ainvoke({"total": 1}, thread_id=name) for name in "aabaa"),
            )
            states = [
                await graph.aget_state({"configurable": {"thread_id": name}}) for name in "ab"
            ]
            assert len(runner._turns) == 0
        return [state.values["total"] for state in states]

    assert asyncio.run(bare()) == 1
    assert asyncio.run(ours()) == [4, 1]


def test_runs_of_two_threads_do_not_wait_for_each_other() -> None:
    async def main() -> None:
        meeting = asyncio.Barrier(2)

        async def meets(state: State) -> State:
            await meeting.wait()
            return {}

        async with handfast.Scope("s") as scope:
            runner = GraphRunner(scope, graph_of(meets))
            await asyncio.gather(*(runner.ainvoke({"n": 1}, thread_id=name) for name in "ab"))

    asyncio.run(main())


def test_the_checkpointer_is_closed_last() -> None:
    """Runs are joined before the checkpointer that they use is closed."""

    async def main() -> tuple[list[str], str]:
        scope = handfast.Scope("s", on_failure="report")
        saver = await scope.hold(slow_saver())
        begun = asyncio.Semaphore(0)

        async def lingers(state: State) -> State:
            begun.release()
            try:
                await asyncio.Event().wait()
            finally:
                await saver.aget_tuple({"configurable": {"thread_id": "a"}})
                saver.log.append("run ended")
            return {}

        runner = GraphRunner(scope, graph_of(lingers, checkpointer=saver))
        for name in "ab":
            runner.submit({"n": 1}, thread_id=name)
        for _ in range(2):
            await begun.acquire()
        report = await scope.close()
        return saver.log, str(report)

    log, report = asyncio.run(main())
    assert log == ["run ended", "run ended", "checkpointer closed"]
    assert report == "scope 's' closed: 1 finished, 2 cancelled"


# --- schedules -----------------------------------------------------------------------------------


def test_explored_a_caller_cancelled_at_any_step_leaks_no_run() -> None:
    graph = graph_of(adds, follows_state)

    async def program() -> None:
        async with handfast.Scope("s") as scope:
            runner = GraphRunner(scope, graph)
            outcome = await victim(runner.ainvoke({"do": "adds", "n": 1}, thread_id="a"))
            assert outcome.cancelled or outcome.finished
            assert len(scope) == 0
            assert (await runner.ainvoke({"do": "adds", "n": 1}, thread_id="a"))["n"] == 3

    result = explore(program, cancel=True, schedules=80)
    assert result.counterexample is None


def test_explored_a_reader_cancelled_at_any_step_leaks_no_run() -> None:
    graph = graph_of(adds, adds)

    async def read(runner: GraphRunner) -> list[Any]:
        async with runner.astream({"n": 1}, stream_mode="values") as chunks:
            return [chunk async for chunk in chunks]

    async def program() -> None:
        async with handfast.Scope("s") as scope:
            outcome = await victim(read(GraphRunner(scope, graph)))
            assert outcome.cancelled or outcome.value == [{"n": 1}, {"n": 2}, {"n": 3}]
            assert len(scope) == 0

    result = explore(program, cancel=True, schedules=80)
    assert result.counterexample is None


# --- words -----------------------------------------------------------------------------------------


def test_a_graph_that_is_not_compiled_is_refused_with_a_hint() -> None:
    scope = handfast.Scope("s")
    builder: Any = StateGraph(State)
    with pytest.raises(TypeError, match="compile it first"):
        GraphRunner(scope, builder)
    nothing: Any = None
    with pytest.raises(TypeError, match=r"not None$"):
        GraphRunner(scope, nothing)
    with pytest.raises(ValueError, match="timeout must be"):
        GraphRunner(scope, WORKING, timeout=-1)


def test_the_bridge_itself_does_not_load_langgraph() -> None:
    """It takes seconds, and a program with a graph has loaded it."""
    program = "import handfast.bridges.langgraph, sys; print('langgraph.graph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"
