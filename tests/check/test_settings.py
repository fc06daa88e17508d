"""What pyproject.toml and the command line ask for, and who wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.check.selection import Selection
from holdfast.check.settings import BadSettings, Finder, Overrides


def put(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.holdfast.check]\n{text}\n")


def settled(file: Path, overrides: Overrides | None = None) -> Selection:
    return Finder(overrides).of(str(file)).selection_for(str(file))


def test_without_settings_all_but_the_pedantic_is_wanted(tmp_path: Path) -> None:
    wanted = settled(tmp_path / "x.py")
    assert wanted.has("HF101")
    assert not wanted.has("HF101", pedantic=True)


def test_the_longest_prefix_decides() -> None:
    wanted = Selection(("HF1", "HF205"), ("HF2", "HF104"))
    assert [wanted.has(code) for code in ("HF101", "HF104", "HF205", "HF201", "HF301")] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_a_pedantic_rule_runs_if_its_whole_code_is_selected() -> None:
    assert Selection(("HF104",)).has("HF104", pedantic=True)
    assert not Selection(("HF10",)).has("HF104", pedantic=True)
    assert Selection(pedantic=True).has("HF104", pedantic=True)


def test_the_nearest_file_wins_for_each_file(tmp_path: Path) -> None:
    put(tmp_path, 'select = ["HF1"]')
    put(tmp_path / "inner", 'select = ["HF2"]')
    (tmp_path / "inner" / "plain").mkdir()
    # One that says nothing about us is passed by.
    (tmp_path / "inner" / "plain" / "pyproject.toml").write_text("[project]\nname='holdfast'\n")
    assert settled(tmp_path / "x.py").select == ("HF1",)
    assert settled(tmp_path / "inner" / "plain" / "x.py").select == ("HF2",)


def test_the_command_line_wins(tmp_path: Path) -> None:
    put(tmp_path, 'select = ["HF1"]\nignore = ["HF101"]\npedantic = true')
    wanted = settled(tmp_path / "x.py", Overrides.of(["HF2"], [], False))
    assert wanted == Selection(("HF2",), (), False)


def test_a_file_can_be_excused_from_codes(tmp_path: Path) -> None:
    put(
        tmp_path,
        'select = ["HF", "HF101"]\nper-file-ignores = {"tests/*" = ["HF1"], "s.py" = ["HF2"]}',
    )
    assert not settled(tmp_path / "tests" / "x.py").has("HF101")
    assert settled(tmp_path / "tests" / "x.py").has("HF201")
    assert settled(tmp_path / "src" / "x.py").has("HF101")
    assert not settled(tmp_path / "deep" / "s.py").has("HF201")


def test_excluded_paths_are_seen_from_the_settings_file(tmp_path: Path) -> None:
    put(tmp_path, 'exclude = ["gen", "/top.py"]')
    finder = Finder()
    assert finder.excluded(str(tmp_path / "a" / "gen"), True)
    assert finder.excluded(str(tmp_path / "top.py"), False)
    assert not finder.excluded(str(tmp_path / "a" / "top.py"), False)


def test_what_calls_back_on_a_thread_is_kept_whatever_else_is_asked_for(tmp_path: Path) -> None:
    names = ["*.connect", "speech.*.connect", "azure.speech.Recognizer"]
    put(tmp_path, f'thread-callbacks = {names}\nper-file-ignores = {{"x.py" = ["HF1"]}}')
    wanted = settled(tmp_path / "x.py", Overrides.of(["HF2"]))
    assert wanted == Selection(("HF2",), ("HF1",), False, tuple(names))


def test_a_code_may_be_given_by_its_name(tmp_path: Path) -> None:
    put(tmp_path, 'ignore = ["task-dropped"]')
    assert settled(tmp_path / "x.py").ignore == ("HF101",)


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_a_mistake_is_named_with_its_file_and_the_way_out(
    tmp_path: Path, text: str, told: str
) -> None:
    put(tmp_path, text)
    with pytest.raises(BadSettings, match=told) as error:
        settled(tmp_path / "x.py")
    assert "pyproject.toml" in str(error.value)


def test_settings_that_are_no_table_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.holdfast]\ncheck = 1\n")
    with pytest.raises(BadSettings, match="is no table"):
        settled(tmp_path / "x.py")


def test_an_unknown_code_on_the_command_line_is_named() -> None:
    with pytest.raises(BadSettings, match="--select: no code begins with 'HF9'"):
        Overrides.of(["HF9"])
