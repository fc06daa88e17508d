"""--holdfast and its ini file: what was asked for, however it was spelled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.pytest_plugin import leak_options
from tests.pytest_plugin.asking import with_options

pytest_plugins = ["pytester"]


Parsed = Callable[..., pytest.Config]


@pytest.fixture
def parsed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Parsed:
    """What pytest makes of a command line, and of lines of an ini file."""
    prepared = with_options(pytester, monkeypatch)

    def parse(*arguments: str, ini: str = "") -> pytest.Config:
        return prepared(ini).parseconfigure(*arguments)

    return parse


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        ("--holdfast", "fail"),
        ("--holdfast tests", "fail"),
        ("tests --holdfast", "fail"),
        ("--holdfast=fail tests", "fail"),
        ("--holdfast=report tests", "report"),
        ("tests --holdfast=report", "report"),
        ("--holdfast=off tests", "off"),
        ("--holdfast --holdfast=report tests", "report"),
        ("--holdfast=report -x tests --holdfast", "fail"),
        ("--holdfast -- tests", "fail"),
        ("-q tests", "off"),
        ("tests/report --holdfast", "fail"),
        ("--holdfast tests/report", "fail"),
    ],
)
def test_the_mode_is_what_was_spelled_and_paths_stay_paths(
    pytester: pytest.Pytester, parsed: Parsed, line: str, mode: str
) -> None:
    (pytester.path / "tests" / "report").mkdir(parents=True)
    config = parsed(*line.split())
    assert leak_options.mode(config) == mode
    named = [each for each in line.split() if each.startswith("tests")]
    assert config.args == (named or [str(pytester.path)])


def test_a_path_that_is_called_like_a_mode_is_a_path(
    pytester: pytest.Pytester, parsed: Parsed
) -> None:
    pytester.mkdir("report")
    config = parsed("--holdfast", "report")
    assert (leak_options.mode(config), config.args) == ("fail", ["report"])


def test_it_may_stand_in_addopts_with_paths_behind_it(
    pytester: pytest.Pytester, parsed: Parsed
) -> None:
    pytester.mkdir("tests")
    ini = "addopts = --holdfast"
    config = parsed("tests", ini=ini)
    assert (leak_options.mode(config), config.args) == ("fail", ["tests"])
    assert leak_options.mode(parsed("--holdfast=off", "tests", ini=ini)) == "off"


@pytest.mark.parametrize("mode", ["fail", "report", "off"])
def test_the_ini_file_says_what_happens_if_the_command_line_does_not(
    parsed: Parsed, mode: str
) -> None:
    ini = f"holdfast = {mode}"
    assert leak_options.mode(parsed(ini=ini)) == mode
    assert leak_options.mode(parsed("--holdfast=report", ini=ini)) == "report"
    assert leak_options.mode(parsed("--holdfast=off", ini=ini)) == "off"
    assert leak_options.mode(parsed("-o", "holdfast=report", ini=ini)) == "report"


def test_a_mode_that_does_not_exist_is_an_error_that_names_those_that_do(parsed: Parsed) -> None:
    with pytest.raises(
        pytest.UsageError, match=r"holdfast = 'yes'.*: use one of fail, report, off"
    ):
        leak_options.mode(parsed(ini="holdfast = yes"))
    spelled = "--holdfast/--holdfast=fail/--holdfast=report/--holdfast=off: .*argument "
    for wrong in ("repotr", ""):
        with pytest.raises(pytest.UsageError, match=f"{spelled}'{wrong}'"):
            parsed(f"--holdfast={wrong}")


def test_the_other_options_keep_their_names(parsed: Parsed) -> None:
    config = parsed("--holdfast-replay=hf1.x")
    assert leak_options.mode(config) == "off"
    assert config.getoption("holdfast_replay") == "hf1.x"
    for wrong in ("--holdfas", "--holdfast-rep=x"):
        with pytest.raises(pytest.UsageError, match=f"unrecognized arguments: {wrong}"):
            parsed(wrong)


def test_a_baseline_is_named_from_where_pytest_was_started(
    pytester: pytest.Pytester, parsed: Parsed
) -> None:
    config = parsed("--holdfast", "--holdfast-baseline", "ci/leaks.json")
    assert leak_options.mode(config) == "fail"
    assert leak_options.baseline_to_read(config) == pytester.path / "ci" / "leaks.json"
    assert leak_options.baseline_to_write(config) is None


def test_a_baseline_that_nobody_would_read_is_an_error(parsed: Parsed) -> None:
    config = parsed("--holdfast-baseline=leaks.json")
    with pytest.raises(pytest.UsageError, match="--holdfast-baseline needs --holdfast, or"):
        leak_options.mode(config)
    config = parsed("--holdfast-baseline=leaks.json", "--holdfast=off")
    assert leak_options.mode(config) == "off"


def test_writing_a_baseline_fails_nothing(pytester: pytest.Pytester, parsed: Parsed) -> None:
    for arguments in ((), ("--holdfast",)):
        config = parsed(*arguments, "--holdfast-write-baseline=leaks.json")
        assert leak_options.mode(config) == "report"
    assert leak_options.baseline_to_write(config) == pytester.path / "leaks.json"
    config = parsed("--holdfast=off", "--holdfast-write-baseline=leaks.json")
    with pytest.raises(pytest.UsageError, match="there is nothing to write a baseline of"):
        leak_options.mode(config)


def test_the_help_names_every_mode(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_options(pytester, monkeypatch)()
    result = pytester.runpytest_inprocess("--help", plugins=pytester.plugins)
    spelled = "  --holdfast, --holdfast=fail, --holdfast=report, --holdfast=off"
    result.stdout.fnmatch_lines([spelled, "*--holdfast-baseline=FILE*"])


def test_the_options_import_nothing_of_holdfast() -> None:
    """What costs at every start of pytest is measured by what it imports."""
    path = Path(leak_options.__file__)
    program = (
        "import runpy, sys\n"
        f"runpy.run_path({str(path)!r})\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'holdfast'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[]"
