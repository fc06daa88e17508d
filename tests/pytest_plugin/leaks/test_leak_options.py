"""--handfast and the ini file: the mode, the baseline, and wrong values."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handfast.pytest_plugin.leaks import options as leak_options
from tests.pytest_plugin.inner_options import with_options

pytest_plugins = ["pytester"]


Parsed = Callable[..., pytest.Config]


@pytest.fixture
def parsed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Parsed:
    """What pytest makes of a command line, and of lines of an ini file."""
    prepared = with_options(pytester, monkeypatch)

    def parse(*arguments: str, ini: str = "") -> pytest.Config:
        pytester = prepared(ini)
        # Else pytester adds it at the end, where after `--` it is a path (argparse of 3.13).
        return pytester.parseconfigure(f"--basetemp={pytester.path / 'basetemp'}", *arguments)

    return parse


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        ("--handfast", "fail"),
        ("--handfast tests", "fail"),
        ("tests --handfast", "fail"),
        ("--handfast=fail tests", "fail"),
        ("--handfast=report tests", "report"),
        ("tests --handfast=report", "report"),
        ("--handfast=off tests", "off"),
        ("--handfast --handfast=report tests", "report"),
        ("--handfast=report -x tests --handfast", "fail"),
        ("--handfast -- tests", "fail"),
        ("-q tests", "off"),
        ("tests/report --handfast", "fail"),
        ("--handfast tests/report", "fail"),
    ],
)
def test_the_mode_is_in_the_option_and_paths_stay_paths(
    pytester: pytest.Pytester, parsed: Parsed, line: str, mode: str
) -> None:
    (pytester.path / "tests" / "report").mkdir(parents=True)
    config = parsed(*line.split())
    assert leak_options.mode(config) == mode
    named = [each for each in line.split() if each.startswith("tests")]
    assert config.args == (named or [str(pytester.path)])


def test_a_path_with_the_name_of_a_mode_is_a_path(
    pytester: pytest.Pytester, parsed: Parsed
) -> None:
    pytester.mkdir("report")
    config = parsed("--handfast", "report")
    assert (leak_options.mode(config), config.args) == ("fail", ["report"])


def test_addopts_may_have_the_option_with_paths_after_it(
    pytester: pytest.Pytester, parsed: Parsed
) -> None:
    pytester.mkdir("tests")
    ini = "addopts = --handfast"
    config = parsed("tests", ini=ini)
    assert (leak_options.mode(config), config.args) == ("fail", ["tests"])
    assert leak_options.mode(parsed("--handfast=off", "tests", ini=ini)) == "off"


@pytest.mark.parametrize("mode", ["fail", "report", "off"])
def test_the_ini_file_has_the_default_mode(parsed: Parsed, mode: str) -> None:
    ini = f"handfast = {mode}"
    assert leak_options.mode(parsed(ini=ini)) == mode
    assert leak_options.mode(parsed("--handfast=report", ini=ini)) == "report"
    assert leak_options.mode(parsed("--handfast=off", ini=ini)) == "off"
    assert leak_options.mode(parsed("-o", "handfast=report", ini=ini)) == "report"


def test_an_unknown_mode_is_an_error_that_lists_the_modes(parsed: Parsed) -> None:
    with pytest.raises(
        pytest.UsageError, match=r"handfast = 'yes'.*: use one of fail, report, off"
    ):
        leak_options.mode(parsed(ini="handfast = yes"))
    spelled = "--handfast/--handfast=fail/--handfast=report/--handfast=off: .*argument "
    for wrong in ("repotr", ""):
        with pytest.raises(pytest.UsageError, match=f"{spelled}'{wrong}'"):
            parsed(f"--handfast={wrong}")


def test_the_other_options_keep_their_names(parsed: Parsed) -> None:
    config = parsed("--handfast-replay=hf1.x")
    assert leak_options.mode(config) == "off"
    assert config.getoption("handfast_replay") == "hf1.x"
    for wrong in ("--holdfas", "--handfast-rep=x"):
        with pytest.raises(pytest.UsageError, match=f"unrecognized arguments: {wrong}"):
            parsed(wrong)


def test_a_baseline_is_relative_to_the_folder_where_pytest_was_started(
    pytester: pytest.Pytester, parsed: Parsed
) -> None:
    config = parsed("--handfast", "--handfast-baseline", "ci/leaks.json")
    assert leak_options.mode(config) == "fail"
    assert leak_options.baseline_to_read(config) == pytester.path / "ci" / "leaks.json"
    assert leak_options.baseline_to_write(config) is None


def test_a_baseline_without_the_leak_detector_is_an_error(parsed: Parsed) -> None:
    config = parsed("--handfast-baseline=leaks.json")
    with pytest.raises(pytest.UsageError, match="--handfast-baseline needs --handfast, or"):
        leak_options.mode(config)
    config = parsed("--handfast-baseline=leaks.json", "--handfast=off")
    assert leak_options.mode(config) == "off"


def test_writing_a_baseline_fails_nothing(pytester: pytest.Pytester, parsed: Parsed) -> None:
    for arguments in ((), ("--handfast",)):
        config = parsed(*arguments, "--handfast-write-baseline=leaks.json")
        assert leak_options.mode(config) == "report"
    assert leak_options.baseline_to_write(config) == pytester.path / "leaks.json"
    config = parsed("--handfast=off", "--handfast-write-baseline=leaks.json")
    with pytest.raises(pytest.UsageError, match="cannot be used with --handfast=off"):
        leak_options.mode(config)


def test_the_help_names_every_mode(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_options(pytester, monkeypatch)()
    result = pytester.runpytest_inprocess(
        "--help", "-p", "no:langsmith_plugin", plugins=pytester.plugins
    )
    spelled = "  --handfast, --handfast=fail, --handfast=report, --handfast=off"
    result.stdout.fnmatch_lines([spelled, "*--handfast-baseline=FILE*"])


def test_the_options_import_nothing_of_handfast() -> None:
    """What costs at every start of pytest is measured by what it imports."""
    path = Path(leak_options.__file__)
    program = (
        "import runpy, sys\n"
        f"runpy.run_path({str(path)!r})\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'handfast'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[]"
