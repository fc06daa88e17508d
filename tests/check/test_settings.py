"""The settings of pyproject.toml and the command line, and which of them win."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handfast._check.engine.engine import check
from handfast._check.settings.selection import Selection
from handfast._check.settings.settings import SettingsFinder
from handfast._check.settings.settings_file import BadSettings
from handfast.catalogue import kind


def put(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.handfast.check]\n{text}\n")


def selection_of(file: Path, *overrides: Any) -> Selection:
    return SettingsFinder(*overrides).of(str(file)).selection_for(str(file))


def test_without_settings_all_but_pedantic_rules_are_selected(tmp_path: Path) -> None:
    wanted = selection_of(tmp_path / "x.py")
    assert wanted.has("HF101")
    assert not wanted.has("HF101", pedantic=True)


def test_the_longest_prefix_decides() -> None:
    wanted = Selection(("HF1", "HF205"), ("HF2", "HF104"))
    assert [wanted.has(code) for code in ("HF101", "HF104", "HF205", "HF201", "HF301")] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_a_pedantic_rule_runs_if_its_full_code_is_selected() -> None:
    assert Selection(("HF104",)).has("HF104", pedantic=True)
    assert not Selection(("HF10",)).has("HF104", pedantic=True)
    assert Selection(pedantic=True).has("HF104", pedantic=True)


def test_the_nearest_file_wins_for_each_file(tmp_path: Path) -> None:
    put(tmp_path, 'select = ["HF1"]')
    put(tmp_path / "inner", 'select = ["HF2"]')
    (tmp_path / "inner" / "plain").mkdir()
    # A file without settings for handfast is skipped.
    (tmp_path / "inner" / "plain" / "pyproject.toml").write_text("[project]\nname='handfast'\n")
    assert selection_of(tmp_path / "x.py").select == ("HF1",)
    assert selection_of(tmp_path / "inner" / "plain" / "x.py").select == ("HF2",)


def test_the_command_line_wins(tmp_path: Path) -> None:
    put(tmp_path, 'select = ["HF1"]\nignore = ["HF101"]\npedantic = true')
    wanted = selection_of(tmp_path / "x.py", ["HF2"], [], False)
    assert wanted == Selection(("HF2",), (), False)


def test_codes_can_be_ignored_for_some_files(tmp_path: Path) -> None:
    put(
        tmp_path,
        'select = ["HF", "HF101"]\nper-file-ignores = {"tests/*" = ["HF1"], "s.py" = ["HF2"]}',
    )
    assert not selection_of(tmp_path / "tests" / "x.py").has("HF101")
    assert selection_of(tmp_path / "tests" / "x.py").has("HF201")
    assert selection_of(tmp_path / "src" / "x.py").has("HF101")
    assert not selection_of(tmp_path / "deep" / "s.py").has("HF201")


def test_excluded_paths_are_relative_to_the_settings_file(tmp_path: Path) -> None:
    put(tmp_path, 'exclude = ["gen", "/top.py"]')
    finder = SettingsFinder()
    assert finder.excluded(str(tmp_path / "a" / "gen"), True)
    assert finder.excluded(str(tmp_path / "top.py"), False)
    assert not finder.excluded(str(tmp_path / "a" / "top.py"), False)


def test_thread_callbacks_are_kept_if_other_settings_are_overridden(tmp_path: Path) -> None:
    names = ["*.connect", "speech.*.connect", "azure.speech.Recognizer"]
    put(tmp_path, f'thread-callbacks = {names}\nper-file-ignores = {{"x.py" = ["HF1"]}}')
    wanted = selection_of(tmp_path / "x.py", ["HF2"])
    assert wanted == Selection(("HF2",), ("HF1",), False, tuple(names))


def test_a_code_may_be_given_by_its_name(tmp_path: Path) -> None:
    put(tmp_path, 'ignore = ["task-dropped"]')
    assert selection_of(tmp_path / "x.py").ignore == ("HF101",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('selct = ["HF1"]', r"no setting 'selct': did you mean 'select'\?"),
        ("zzz = 1", "no setting 'zzz'; there are select"),
        ('select = ["HF1O1"]', r"select: no code begins with 'HF1O1': did you mean HF101"),
        ('ignore = ["F401"]', "no code begins with 'F401'"),
        ('select = "HF1"', "select is a list of strings"),
        ('pedantic = "yes"', "pedantic is true or false"),
        ("per-file-ignores = []", "per-file-ignores is a table"),
        ("exclude = [1]", "exclude is a list of strings"),
        ("select = [", "cannot be read"),
        ('thread-callbacks = "*.connect"', "thread-callbacks is a list of strings"),
        (
            'thread-callbacks = ["connect"]',
            r"'connect' is none of 'package.function', 'package\.\*",
        ),
        ('thread-callbacks = ["speech.*"]', r"'speech\.\*' is none of"),
        ('thread-callbacks = ["a.*.b.*.c"]', "is none of"),
        ('thread-callbacks = ["on connect.x"]', "is none of"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_the_file(
    tmp_path: Path, text: str, message: str
) -> None:
    put(tmp_path, text)
    with pytest.raises(BadSettings, match=message) as error:
        selection_of(tmp_path / "x.py")
    assert "pyproject.toml" in str(error.value)


def test_settings_that_are_not_a_table_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.handfast]\ncheck = 1\n")
    with pytest.raises(BadSettings, match="is not a table"):
        selection_of(tmp_path / "x.py")


def test_an_unknown_code_on_the_command_line_is_an_error() -> None:
    with pytest.raises(BadSettings, match="--select: no code begins with 'HF9'"):
        SettingsFinder(["HF9"])


def test_settings_that_are_nested_too_deeply_are_an_error(tmp_path: Path) -> None:
    # Attack 20: it was a traceback.
    put(tmp_path, "select = " + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(BadSettings, match="cannot be read"):
        selection_of(tmp_path / "x.py")


def test_a_file_that_may_not_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Attack "ugly", as the next one: it was ignored. Root may read any file.
    def refused(path: str, most: int) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("handfast._check.settings.settings_file.read_regular", refused)
    with pytest.raises(BadSettings, match=r"pyproject.toml cannot be read: Permission denied"):
        selection_of(tmp_path / "x.py")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[tool]\nhandfast = 1\n", ":2: tool.handfast is not a table"),
        ("[tool.handfast]\n\ncheck = 1\n", ":3: tool.handfast.check is not a table"),
        ("[tool.x]\nselect = 1\n\n[tool.handfast.check]\nselect = 1\n", ":5: select is a list"),
        ('[tool.handfast.check]\nselect = [\n  "HF1",\n  "HF9",\n]\n', ":4: select: no code"),
        ('[tool.handfast.check.per-file-ignores]\n"x" = ["HF9"]\n', ":2: per-file-ignores: x: no"),
        ("[tool.handfast]\ncheck.pedantic = 1\n", ":2: pedantic is true or false"),
        ("[tool.handfast]\ncheck = {x = 1}\n", ":2: there is no setting 'x'"),
        ("[tool.handfast.check]\nselect = [\n", ":2 cannot be read"),
        ("\n[tool.handfast.check]\nper-file-ignores = 1\n", ":3: per-file-ignores is a table"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(BadSettings) as error:
        selection_of(tmp_path / "x.py")
    assert f"{tmp_path}/pyproject.toml{where}" in str(error.value)


def test_in_relaxed_files_every_finding_has_medium_confidence(tmp_path: Path) -> None:
    put(tmp_path, 'relaxed = ["tests/"]')
    source = kind("HF101").wrong
    for name in ("tests/a.py", "b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    [plain] = check([tmp_path]).findings
    assert (Path(plain.place.path).name, plain.confidence) == ("b.py", "high")
    assert sorted(each.confidence for each in check([tmp_path], pedantic=True).findings) == [
        "high",
        "medium",
    ]
