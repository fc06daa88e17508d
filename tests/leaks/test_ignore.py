"""Ignores: what they fit, what they need, and when they are stale."""

from __future__ import annotations

import pytest

from handfast._leaks.ignore import Ignore, Ignores
from tests.leaks.sample_leak import a_leak

LEAK = a_leak(
    created_via="venv/lib/driver/pool.py:7 in Pool.open",
    waiting_at=("src/bot.py:30 in test_it.<locals>.Bot._poll", "raised at src/wire.py:5 in read"),
)

FITS = [
    *("HF102", "hf102", "HF1*", "task-left-over", "task-*"),
    *("task 'poll'", "task 'p?ll'", "running*_poll"),
    *("bot.py", "src/bot.py", "b?t.py", "/project/src/*", "bot.py:12", "src/bot.py:30"),
    *("pool.py:7", "Pool.open", "wire.py", "wire.py:5", "read"),
    *("Bot.start", "start", "Bot.*", "test_it.<locals>.Bot._poll", "*"),
]
FITS_NOT = [
    *("HF101", "HF7*", "task-dropped", "task 'pull'", "bot.py:13", "ot.py", "other/bot.py"),
    *("src", "wire.py:12", "Robot.start", "Bot.stop"),
]


@pytest.mark.parametrize("pattern", FITS)
def test_a_leak_is_ignored_by_code_kind_text_or_place(pattern: str) -> None:
    ignores = Ignores([Ignore(pattern, "known")])
    assert ignores.filter([LEAK]) == []
    assert ignores.unused == ()


@pytest.mark.parametrize("pattern", FITS_NOT)
def test_what_does_not_match_is_reported_and_the_ignore_is_unused(pattern: str) -> None:
    ignores = Ignores([ignore := Ignore(pattern, "known")])
    assert ignores.filter([LEAK]) == [LEAK]
    assert ignores.unused == (ignore,)


def test_brackets_are_a_set_of_letters_and_also_themselves() -> None:
    leak = a_leak(what="task 'poll[1]'")
    assert Ignore("poll[1]", "known").matches(leak)
    assert Ignore("poll[[]?]", "known").matches(leak)


def test_a_leak_without_a_creation_is_ignored_by_what_it_is() -> None:
    leak = a_leak(created_at=None, waiting_at=("in C code",))
    assert Ignore("HF102", "known").matches(leak)
    assert not Ignore("bot.py", "known").matches(leak)


def test_a_code_means_the_code_alone() -> None:
    assert not Ignore("HF101", "known").matches(a_leak(what="task 'HF101'"))


@pytest.mark.parametrize("pattern", ["", "  ", None, 7])
def test_ignoring_nothing_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="is nothing to ignore: name a code, a file"):
        Ignore(pattern, "known")


@pytest.mark.parametrize("reason", ["", "\n ", None, 7])
def test_an_ignore_needs_a_reason(reason: str) -> None:
    with pytest.raises(ValueError, match="ignoring 'HF102' needs a reason: say why"):
        Ignore("HF102", reason)


def test_an_unknown_code_is_an_error_that_names_similar_ones() -> None:
    with pytest.raises(ValueError, match=r"no bug kind is called 'HF109'; near: HF101"):
        Ignore("HF109", "known")


def test_an_ignore_is_not_unused_because_another_came_first() -> None:
    ignores = Ignores([Ignore("HF102", "known"), Ignore("bot.py", "known"), Ignore("x.py", "no")])
    assert ignores.filter([LEAK]) == []
    assert [str(ignore) for ignore in ignores.unused] == ["x.py: no"]


def test_what_matched_once_stays_in_use() -> None:
    ignores = Ignores([Ignore("HF102", "known")])
    ignores.filter([LEAK])
    assert ignores.filter([]) == []
    assert ignores.unused == ()


def test_without_ignores_everything_is_reported() -> None:
    assert Ignores().filter([LEAK]) == [LEAK]
