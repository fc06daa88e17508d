"""What can be asked of every case: what its file looks like, its schedules, and what it leaves."""

from __future__ import annotations

import importlib

from holdfast.casebook import telling
from tests.acceptance.trial import Once
from tests.acceptance.wording import Context, given, promise, when

_VERSIONS = {words: version for version, words in telling.NAMES.items()}


@given('the program "{name}" {version}')
def the_program(context: Context, name: str, version: str) -> None:
    context.case = importlib.import_module(f"holdfast.casebook.{name}").CASE
    context.version = _VERSIONS[version]


@when("its code is read")
def its_code_is_read(context: Context) -> None:
    context.trial = Once(telling.what_check_says(context.case, context.version))


@when("its schedules are explored")
def its_schedules_are_explored(context: Context) -> None:
    context.trial = Once(telling.what_explore_finds(context.case, context.version))


@when("it runs with its real parts")
def it_runs_with_its_real_parts(context: Context) -> None:
    assert not context.case.missing, f"to be installed: {', '.join(context.case.missing)}"
    context.trial = Once(telling.what_is_left(context.case, context.version))


@promise("there is nothing to say against it", otherwise="there is something to say against it")
def nothing_to_say(chapter: telling.Chapter) -> None:
    assert chapter.went_well, chapter.text


@promise("no schedule breaks it", otherwise="there is a schedule that breaks it")
def no_schedule_breaks_it(chapter: telling.Chapter) -> None:
    assert chapter.went_well, chapter.text


@promise("nothing is left behind", otherwise="something is left behind")
def nothing_is_left(chapter: telling.Chapter) -> None:
    assert chapter.went_well, chapter.text
