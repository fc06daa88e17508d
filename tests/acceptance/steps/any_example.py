"""Steps for every example: what `check`, `explore` and `leaks` say about it."""

from __future__ import annotations

import examples
from examples import show
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED
from tests.acceptance.trial import Once
from tests.acceptance.wording import Context, given, promise, when

_VERSIONS = {"reported": AS_REPORTED, "proposed": AS_PROPOSED, "fixed": FIXED}


@given('the {version} version of "{name}"')
def the_program(context: Context, name: str, version: str) -> None:
    context.example = examples.find(name)
    context.version = _VERSIONS[version]


@when("its code is checked")
def its_code_is_checked(context: Context) -> None:
    context.trial = Once(show.what_check_says(context.example, context.version))


@when("its schedules are explored")
def its_schedules_are_explored(context: Context) -> None:
    context.trial = Once(show.what_explore_finds(context.example, context.version))


@when("it runs with its real parts")
def it_runs_with_its_real_parts(context: Context) -> None:
    assert not context.example.missing, f"to be installed: {', '.join(context.example.missing)}"
    context.trial = Once(show.what_leaks(context.example, context.version))


@promise("check reports nothing", otherwise="check reports a finding")
def check_reports_nothing(section: show.Section) -> None:
    assert section.ok, section.text


@promise("no schedule breaks it", otherwise="there is a schedule that breaks it")
def no_schedule_breaks_it(section: show.Section) -> None:
    assert section.ok, section.text


@promise("nothing is leaked", otherwise="something is leaked")
def nothing_is_left(section: show.Section) -> None:
    assert section.ok, section.text
