"""The tree of loops, scopes and tasks; and why a place's tasks do not go on."""

from __future__ import annotations

from handfast._watch.views.tree import tree, tree_lines
from handfast._watch.views.why import why
from handfast.watch import LiveScope
from tests.watch.views.snapshots import BOT, HOSTILE, loop, place, snapshot, task

AT = ("bot.py:41 in fetch",)


def test_loops_scopes_and_awaited_tasks_are_one_tree() -> None:
    assert tree_lines(BOT) == [
        "uvloop.Loop, MainThread: 1,204 tasks",
        "├─ main main 5.0s  (bot.py:5 in main; place not known)",
        "│  └─ child work 5.0s  (Queue.get ← bot.py:41 in fetch; created at bot.py:88 poll)",
        "└─ 5 × work, the oldest 5.0s  (bot.py:41 in fetch; created at bot.py:88 poll)",
        "scope 'requests': open, 1 task  (created at app/bot.py:10 in main)",
        "├─ Task-3 work 5.0s  (runs, or is about to; created at api.py:20 request)",
        "└─ scope 'inner': closing, 0 tasks  (created at app/bot.py:11 in main)",
        "1,196 younger tasks not listed",
    ]


def test_a_task_with_two_that_await_it_is_shown_once() -> None:
    found = snapshot(
        loops=(loop(3),), tasks=(task(1, awaits=(3,)), task(2, awaits=(3,)), task(3, name="shared"))
    )
    lines = tree_lines(found)
    assert [line for line in lines if "shared" in line] == [
        "│  └─ shared work 5.0s  (runs, or is about to; place not known)",
        "   └─ shared work (shown elsewhere)",
    ]


def test_a_task_of_a_scope_is_only_named_where_it_is_awaited() -> None:
    found = snapshot(
        loops=(loop(2),),
        tasks=(task(1, awaits=(2,)), task(2, scope=5)),
        scopes=(LiveScope(5, "s", "a.py:1 in f", "open", 1),),
    )
    assert "   └─ Task-2 work (shown in its scope)" in tree_lines(found)


def test_tasks_that_await_each_other_are_called_a_ring() -> None:
    found = snapshot(
        loops=(loop(3),), tasks=(task(1, awaits=(2,)), task(2, awaits=(1,)), task(3, awaits=(3,)))
    )
    lines = tree_lines(found)
    assert "tasks that await each other: Task-1 → Task-2 → Task-1" in lines
    assert any("Task-1 work (above: these await each other, for ever)" in line for line in lines)
    assert "tasks that await each other: Task-3 → Task-3" in "\n".join(lines) or "Task-3" in str(
        lines
    )


def test_a_ring_below_a_task_is_called_one_too() -> None:
    found = snapshot(
        loops=(loop(3),), tasks=(task(1, awaits=(2,)), task(2, awaits=(3,)), task(3, awaits=(2,)))
    )
    assert "Task-2 work (above: these await each other, for ever)" in tree_lines(found)[-1]


def test_scopes_that_hold_each_other_are_each_shown_once() -> None:
    scopes = tuple(LiveScope(n, f"s{n}", "a.py:1 in f", "open", 0, parent=3 - n) for n in (1, 2))
    assert sum("scope" in line for line in tree_lines(snapshot(scopes=scopes))) == 2


def test_a_chain_of_a_hundred_thousand_tasks_is_drawn() -> None:
    tasks = tuple(task(n, awaits=(n + 1,)) for n in range(1, 100_001))
    lines = tree_lines(snapshot(loops=(loop(100_000),), tasks=tasks))
    assert len(lines) == 100_001
    assert "[100000] Task-100000 " in lines[-1]
    assert max(map(len, lines)) < 300


def test_a_ring_of_a_hundred_thousand_tasks_is_drawn() -> None:
    tasks = tuple(task(n, awaits=(n % 100_000 + 1,)) for n in range(1, 100_001))
    lines = tree_lines(snapshot(loops=(loop(100_000),), tasks=tasks))
    assert "→ Task-1 (of 100,000)" in lines[1]


def test_tasks_of_a_loop_that_is_not_listed_are_shown() -> None:
    assert tree_lines(snapshot(tasks=(task(1, loop=9),)))[0].startswith("Task-1 work")


def test_lines_are_cut_to_the_terminal_only_on_request() -> None:
    assert max(map(len, tree(BOT, 60).splitlines())) == 60
    assert "created at bot.py:88 poll)" in tree(BOT)


def test_hostile_names_do_not_control_the_terminal() -> None:
    nasty = task(1, name=HOSTILE, coroutine=HOSTILE, waiting_at=(HOSTILE,), waits_for=HOSTILE)
    scope = LiveScope(1, HOSTILE, HOSTILE, HOSTILE, 0)
    found = snapshot(loops=(loop(1),), tasks=(nasty,), scopes=(scope,))
    assert all(line.isprintable() for line in [*tree_lines(found), *why(found, None)])


# --- why -----------------------------------------------------------------------------------------


def test_why_follows_the_tasks_that_are_awaited() -> None:
    found = snapshot(
        places=(place(1, 2),),
        tasks=(
            task(1, place=1, awaits=(2, 3), waiting_at=("a.py:1 in f", "a.py:2 in g")),
            task(2, waiting_at=("b.py:3 in h",), waits_for="Event.wait"),
            task(3),
        ),
    )
    assert why(found, 1) == [
        "1 task created at bot.py:11 poll",
        "",
        "1 of them, the oldest 5.0s:",
        "  Task-1 work",
        "    a.py:1 in f",
        "    a.py:2 in g",
        "  awaits, the first of 2 tasks",
        "  Task-2 work",
        "    b.py:3 in h",
        "    waits for Event.wait",
    ]


def test_why_ends_at_a_ring_and_in_a_long_chain() -> None:
    ring = snapshot(tasks=(task(1, awaits=(2,)), task(2, awaits=(1,))))
    assert why(ring, None)[
        -1
    ] == "    awaits Task-1 again: these await each other" or "again" in str(why(ring, None))
    chain = snapshot(tasks=tuple(task(n, awaits=(n + 1,)) for n in range(1, 200)))
    assert "    and so on" in why(chain, None)


def test_why_counts_equal_stacks_and_limits_different_ones() -> None:
    tasks = tuple(task(n, waiting_at=(f"a.py:{n % 12} in f",)) for n in range(60))
    lines = why(snapshot(tasks=tasks), None)
    assert lines[0] == "60 tasks with place not known"
    assert lines[2] == "5 of them, the oldest 5.0s:"
    assert lines[-1] == "and 2 other await stacks"


def test_why_says_that_no_task_of_the_place_is_listed() -> None:
    assert why(BOT, 3) == [
        "no listed task created at sync.py:9 drain; 1,196 younger tasks not listed"
    ]
