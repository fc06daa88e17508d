"""Report 3 in words: messages from other threads, their runs, and the clean-up."""

from __future__ import annotations

from functools import partial

from tests.acceptance.situations import reactive
from tests.acceptance.situations.reactive import Seen
from tests.acceptance.trial import Explored, Once
from tests.acceptance.wording import Context, part, promise, when


def _kind(context: Context) -> reactive.Kind:
    kind: reactive.Kind = part(context, "RxPyLangGraphBridge")
    return kind


@when("a message comes from another thread, and the loop is idle")
def the_loop_is_idle(context: Context) -> None:
    context.trial = Once(reactive.idle(_kind(context)))


@when("a message comes from another thread, in asyncio's debug mode")
def in_debug_mode(context: Context) -> None:
    context.trial = Once(reactive.debugged(_kind(context)))


@when("messages come from another thread, and all changes of the registry are noted")
def changes_are_noted(context: Context) -> None:
    context.trial = Once(reactive.recorded(_kind(context)))


@when("a run fails in the middle of a pipeline")
def a_run_fails(context: Context) -> None:
    context.trial = Once.of(reactive.piped(_kind(context)))


@when("a message comes while it is cleaned up")
def while_it_closes(context: Context) -> None:
    context.trial = Explored(partial(reactive.while_it_closes, _kind(context)))


@when("another thread cleans up")
def another_thread_cleans_up(context: Context) -> None:
    context.trial = Once(reactive.cleaned_up_from_a_thread(_kind(context)))


@when("another thread cleans up within {timeout:f} seconds, and a run ignores its cancel")
def a_run_is_stuck(context: Context, timeout: float) -> None:
    context.trial = Once(reactive.stuck(_kind(context), timeout))


@when("the blocking clean-up is called on the loop's own thread")
def blocked_on_its_loop(context: Context) -> None:
    context.trial = Once.of(reactive.blocked_on_its_loop(_kind(context)))


@when("{threads:d} threads send {messages:d} messages each, some to fail and some cancelled")
def from_threads(context: Context, threads: int, messages: int) -> None:
    context.trial = Once(reactive.from_threads(_kind(context), threads, messages))


@when("a message comes to a loop that is {how}")
def to_a_loop_that_is_gone(context: Context, how: str) -> None:
    context.trial = Once(reactive.stopped(_kind(context), how))


@promise("its run starts promptly", otherwise="the loop is not woken")
def its_run_starts(seen: Seen) -> None:
    assert seen.started


@promise("asyncio reports nothing", otherwise="asyncio says that this is not thread-safe")
def nothing_is_said(seen: Seen) -> None:
    assert seen.words == []


@promise("only the loop's thread changes it", otherwise="other threads change it")
def only_the_loop(seen: Seen) -> None:
    assert seen.threads == {"foreign"}, f"{seen.threads}"


@promise("each message has its outcome", otherwise="the stream ends, and messages get no answer")
def each_has_its_outcome(seen: Seen) -> None:
    assert seen.answers == 3, f"{seen.answers} of 3"


@promise("no run continues after that", otherwise="a run continues after that")
def no_run_goes_on(seen: Seen) -> None:
    assert seen.running == 0, f"{seen.running} go on"


@promise("what comes later is refused", otherwise="later work is accepted, and never ended")
def later_is_refused(seen: Seen) -> None:
    assert seen.refused is not None


@promise("the waiting request has an answer", otherwise="who was waiting gets no answer")
def who_waited_is_answered(seen: Seen) -> None:
    assert seen.hanging == 0, f"{seen.hanging} without an answer"


@promise("it returns, and names the runs that are left", otherwise="no run is named")
def it_names_who_is_left(seen: Seen) -> None:
    assert seen.words == ["RxLangGraphBridge._run"], f"{seen.words}"


@promise("it raises, and says what to do instead", otherwise="it does not say what to do")
def it_says_what_to_do(seen: Seen) -> None:
    assert "cleanup_tasks_async" in str(seen.refused)


@promise(
    "all have an answer, and the registry is empty",
    otherwise="an answer is missing, or a run is kept",
)
def all_have_an_answer(seen: Seen) -> None:
    assert seen.answers > 0
    assert (seen.hanging, seen.registered) == (0, 0), str(seen)


@promise("it fails at once, and says why", otherwise="it is accepted, and never answered")
def it_fails_at_once(seen: Seen) -> None:
    assert "stopped" in str(seen.refused), f"{seen.refused!r}"
