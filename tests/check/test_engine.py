"""A run over several files: what is found, and that no file stops it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from handfast._check.engine.discovery import Found
from handfast._check.engine.parallel import _no_interrupt
from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.output import render
from handfast._check.rules.rule import Rule, report
from handfast.check import Report, check
from tests.check.tiny_rules import RULE, never_ended, no_close

WRONG = "import asyncio\ndrop(asyncio)\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name: str, content: str | bytes = WRONG) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def places(report: Report) -> list[tuple[str, str, int, int]]:
    return [
        (each.code, each.place.path, each.place.line, each.place.column) for each in report.findings
    ]


def test_findings_are_sorted_and_have_related_places() -> None:
    put("b.py")
    put("a.py", "import asyncio\n\ndrop(drop(1))\n")
    report = check(["."], rules=[RULE])
    assert places(report) == [
        ("HF101", "a.py", 3, 1),
        ("HF101", "a.py", 3, 6),
        ("HF101", "b.py", 2, 1),
    ]
    assert report.findings[0].related[0].place.line == 1
    assert (report.files, report.clean) == (2, False)


def test_a_file_that_does_not_mention_asyncio_is_not_parsed() -> None:
    put("a.py", "drop(1")
    assert check(["."], rules=[RULE]).clean


def test_checked_files_are_not_run() -> None:
    put("a.py", "import asyncio\nopen('ran', 'w')\n")
    check(["."], rules=[RULE])
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"import asyncio\nx = (\n", "syntax error"),
        (b"import asyncio\nx = '\xff'\n", "cannot be decoded"),
        (b"# coding: nonsense\nimport asyncio\n", "cannot be decoded"),
        (b"import asyncio\n\0\n", ""),
        (b"import asyncio\nx = " + b"(" * 5000 + b")" * 5000, ""),
        (b"import asyncio\nx = " + b"-" * 100_000 + b"1", ""),
    ],
    ids=["syntax", "encoding", "cookie", "nul", "parentheses", "nesting"],
)
def test_a_file_that_cannot_be_parsed_is_reported_and_the_others_are_checked(
    content: bytes, message: str
) -> None:
    put("a.py", content)
    put("b.py")
    report = check(["."], rules=[RULE])
    assert places(report) == [("HF101", "b.py", 2, 1)]
    [error] = report.broken
    assert error.path == "a.py"
    assert message in error.why


@pytest.mark.parametrize(
    ("line", "form", "since"),
    [
        ('x = t"{1}"', "a t-string", (3, 14)),
        ("try:\n    pass\nexcept A, B:\n    pass", "`except A, B:` without parentheses", (3, 14)),
        ("lazy import json", "a lazy import", (3, 15)),
        ("x = [*y for y in z]", "unpacking in a comprehension", (3, 15)),
        ("x = {**y for y in z}", "unpacking in a comprehension", (3, 15)),
        ("type X = int", "a type statement", (3, 12)),
        ("def f[T](x: T) -> T: ...", "a type parameter list", (3, 12)),
        ('x = f"{y["z"]}"', "an f-string with its own quotes inside", (3, 12)),
    ],
)
def test_an_error_about_newer_syntax_names_the_python_version_that_it_needs(
    line: str, form: str, since: tuple[int, int]
) -> None:
    put("a.py", f"import asyncio\n{line}\n")
    report = check(["."], rules=[RULE])
    if sys.version_info >= since:
        assert report.broken == ()
        return
    [error] = report.broken
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    needs = f"{since[0]}.{since[1]}"
    assert error.why.endswith(
        f"(parsed by Python {here}; {form} needs Python {needs}: run handfast with it)"
    )


def test_an_error_about_wrong_syntax_names_no_python_version() -> None:
    put("a.py", "import asyncio\nx = (\n")
    [error] = check(["."], rules=[RULE]).broken
    assert error.why == "syntax error: '(' was never closed"


def test_a_long_line_with_an_error_is_not_searched_for_newer_syntax() -> None:
    # Attack 15: one of the patterns is quadratic, which took hours.
    put("a.py", "import asyncio\nx = ?" + "[*" * 200_000)
    [error] = check(["."], rules=[RULE]).broken
    assert error.why.startswith("syntax error")


def test_an_error_about_unknown_syntax_names_the_python_version_of_the_parser() -> None:
    put("a.py", "import asyncio\nx = 1 ? 2\n")
    [error] = check(["."], rules=[RULE]).broken
    assert error.why.endswith(
        f"(parsed by Python {sys.version_info.major}.{sys.version_info.minor})"
    )


def test_a_deep_tree_is_checked_or_reported() -> None:
    put("a.py", "import asyncio\nx = " + "a." * 900 + "b\ny = " + "1 + " * 900 + "1\ndrop(1)\n")
    report = check(["."], rules=[RULE])
    assert places(report) or report.broken


def test_a_file_of_a_hundred_thousand_lines_is_checked() -> None:
    put("a.py", "import asyncio\n" + "\n# and so on\n" * 50_000 + "drop(1)\n")
    assert places(check(["."], rules=[RULE])) == [("HF101", "a.py", 100_002, 1)]


def test_declared_encodings_are_used() -> None:
    put("a.py", "# coding: latin-1\nimport asyncio\nx = 'ä'; drop(1)\n".encode("latin-1"))
    put("b.py", b"\xef\xbb\xbf" + WRONG.encode())
    report = check(["."], rules=[RULE])
    assert places(report) == [("HF101", "a.py", 3, 10), ("HF101", "b.py", 2, 1)]


def test_columns_count_characters_not_bytes() -> None:
    put("a.py", "import asyncio\nx = 'äöü€'; drop(1)\n")
    [finding] = check(["."], rules=[RULE]).findings
    assert (finding.place.column, finding.place.end_column) == (13, 20)
    assert finding.fix is not None
    assert finding.fix.edits[0].place.column == 13


def test_a_form_feed_does_not_end_a_line() -> None:
    put("a.py", "import asyncio\n\x0c\ndrop(1)  # noqa: HF101\n")
    assert check(["."], rules=[RULE]).clean


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_checked() -> None:
    put("a.py")
    Path("loop.py").symlink_to("loop.py")
    Path("gone.py").symlink_to("nowhere.py")
    assert check(["."], rules=[RULE]).paths == ("a.py",)
    if os.geteuid():
        put("b.py").chmod(0)
        [error] = check(["."], rules=[RULE]).broken
        assert (error.path, error.why) == ("b.py", "Permission denied")


def test_a_file_that_is_removed_during_the_run_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py")
    monkeypatch.setattr("handfast._check.engine.engine.find", lambda *_: Found(["a.py", "gone.py"]))
    [error] = check(["."], rules=[RULE]).broken
    assert (error.path, error.why) == ("gone.py", "No such file or directory")


def _faulty(module: Module) -> Iterator[Finding]:
    yield report("HF201", module, module.source.tree.body[0], "before it fails")
    raise KeyError("oops")


def test_an_exception_in_a_rule_is_reported_and_the_others_run() -> None:
    put("a.py")
    report = check(["."], rules=[Rule("HF201", _faulty), RULE])
    assert [each.code for each in report.findings] == ["HF201", "HF101"]
    assert "bug in handfast, rule HF201: KeyError: 'oops'" in report.broken[0].why


def test_standard_input_is_checked() -> None:
    report = check(["-"], rules=[RULE], stdin=WRONG.encode())
    assert places(report) == [("HF101", "-", 2, 1)]
    assert report.texts == {"-": WRONG}


def test_the_report_has_the_text_that_was_checked(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(WRONG)
    report = check([file], rules=[RULE])
    file.write_text("\n\n" + WRONG)
    assert list(report.texts.values()) == [WRONG]


def test_a_module_that_others_import_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: str) -> bytes:
        raise AssertionError(f"{path} is read again")

    monkeypatch.setattr("handfast._check.engine.dependency_tracking.read", read)
    put("pkg/__init__.py", "")
    put("pkg/base.py", "import asyncio\nclass Base:\n    def close(self): ...\n")
    put("pkg/child.py", "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n")
    assert check(["pkg/child.py"], rules=[no_close]).clean


def test_select_ignore_and_pedantic() -> None:
    put("a.py")
    pedantic = Rule("HF101", RULE.check, pedantic=True)
    assert not check(["."], rules=[RULE], ignore=["HF1"]).findings
    assert not check(["."], rules=[RULE], select=["HF2"]).findings
    assert not check(["."], rules=[pedantic]).findings
    assert check(["."], rules=[pedantic], pedantic=True).findings[0].pedantic
    assert check(["."], rules=[pedantic], select=["task-dropped"]).findings


def test_the_nearest_settings_are_used() -> None:
    put("pyproject.toml", '[tool.handfast.check]\nper-file-ignores = {"a.py" = ["HF101"]}\n')
    put("a.py")
    put("sub/pyproject.toml", "[tool.handfast.check]\n")
    put("sub/a.py")
    assert [each.place.path for each in check(["."], rules=[RULE]).findings] == ["sub/a.py"]


def test_a_noqa_for_a_kind_without_a_rule_is_not_reported_as_unused() -> None:
    put("a.py", "import asyncio  # noqa: HF301\nx = 1  # noqa: HF101\ny = 1  # noqa: HF999\n")
    report = check(["."], rules=[RULE])
    assert [(each.code, each.place.line) for each in report.findings] == [
        ("HF001", 2),
        ("HF001", 3),
    ]


def test_unused_noqa_comments_can_be_ignored() -> None:
    put("a.py", "import asyncio  # noqa: HF101\n")
    assert check(["."], rules=[RULE], ignore=["HF001"]).clean
    assert not check(["."], rules=[RULE]).clean


BASE = "class Base:\n    def close(self): ...\n"
CHILD = "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n"


def test_a_base_class_in_another_file_is_used_if_only_one_file_is_given() -> None:
    put("pkg/__init__.py", "")
    put("pkg/base.py", BASE)
    put("pkg/child.py", CHILD)
    assert check(["pkg/child.py"], rules=[no_close]).clean
    put("pkg/base.py", "class Base: ...\n")
    assert len(check(["pkg/child.py"], rules=[no_close]).findings) == 1


def test_what_another_file_of_the_package_ends_is_known_if_only_one_file_is_given() -> None:
    put("pkg/__init__.py", "")
    put("pkg/sub/__init__.py", "")
    put("pkg/sub/one.py", "import asyncio\nclass Job: ...\n")
    assert len(check(["pkg/sub/one.py"], rules=[never_ended]).findings) == 1
    put("pkg/other.py", "def stop(x):\n    x.job.cancel()\n")
    report = check(["pkg/sub/one.py"], rules=[never_ended])
    assert (report.clean, report.paths) == (True, ("pkg/sub/one.py",))


def test_projects_are_checked_separately() -> None:
    put("one/pkg/__init__.py", "")
    put("one/pkg/job.py", "import asyncio\nclass Job: ...\n")
    put("two/other/__init__.py", "")
    put("two/other/stop.py", "def stop(x):\n    x.job.cancel()\n")
    files = [put(f"{each}/pyproject.toml", "") for each in ("one", "two")]
    assert len(check(["."], rules=[never_ended]).findings) == 1
    for file in files:
        file.unlink()
    assert check(["."], rules=[never_ended]).clean


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers get one file at a time."""
    monkeypatch.setattr("handfast._check.engine.parallel._PART", 1)


@pytest.mark.usefixtures("small_parts")
def test_several_processes_find_the_same() -> None:
    for number in range(40):
        put(f"f{number}.py")
    calls: list[tuple[int, int]] = []
    alone = check(["."], rules=[RULE])
    together = check(["."], rules=[RULE], jobs=2, progress=lambda *now: calls.append(now))
    assert together == alone
    assert len(together.findings) == 40
    assert calls[-1] == (40, 40)


def test_dropping_trees_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    put("pkg/__init__.py", "")
    put("pkg/base.py", "import asyncio\n" + BASE)
    for name in ("one", "two", "three"):
        put(f"pkg/{name}.py", CHILD.replace("Child", name.title()))
    put("pkg/wrong.py", "import asyncio\nclass Wrong: ...\n")
    kept = check(["."], rules=[no_close])
    monkeypatch.setattr("handfast._check.engine.parallel._KEPT", 1)
    assert check(["."], rules=[no_close]) == kept
    assert places(kept) == [("HF104", "pkg/wrong.py", 2, 1)]


def _kills(module: Module) -> Iterator[Finding]:
    import multiprocessing
    import os

    if multiprocessing.parent_process() is not None:
        os._exit(9)
    yield from RULE.check(module)


@pytest.mark.usefixtures("small_parts")
def test_files_of_a_worker_that_dies_are_checked() -> None:
    for number in range(4):
        put(f"f{number}.py")
    report = check(["."], rules=[Rule("HF101", _kills)], jobs=2)
    assert len(report.findings) == 4


def test_importing_the_package_loads_one_module() -> None:
    program = (
        "import sys, handfast; before = set(sys.modules); import handfast.check; "
        "print(len(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == 1


def test_the_default_rules_are_those_of_handfast() -> None:
    put("a.py", "import asyncio\n\n\ndef f(g):\n    asyncio.create_task(g())\n")
    assert [each.code for each in check(["a.py"]).findings] == ["HF101"]


def test_an_unknown_name_of_the_public_module_is_an_attribute_error() -> None:
    import handfast.check

    with pytest.raises(AttributeError):
        handfast.check.nonsense  # noqa: B018


@pytest.mark.usefixtures("small_parts")
def test_an_interrupt_that_a_lock_of_the_pool_hides_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C inside `Condition.wait` becomes "release unlocked lock"; any other error stays."""

    def interrupted(_: object) -> Iterator[object]:
        try:
            raise KeyboardInterrupt
        finally:
            threading.Lock().release()
        yield

    def failing(_: object) -> Iterator[object]:
        raise RuntimeError("another error")
        yield

    for number in range(3):
        put(f"f{number}.py")
    for as_completed, error in ((interrupted, KeyboardInterrupt), (failing, RuntimeError)):
        monkeypatch.setattr("concurrent.futures.as_completed", as_completed)
        with pytest.raises(error):
            check(["."], rules=[RULE], jobs=2)


@pytest.mark.parametrize("coding", ["undefined", "punycode", "hex", "nonsense"])
def test_an_encoding_that_decodes_nothing_is_reported_for_its_file(coding: str) -> None:
    # Attack 18: one such file ended the whole run.
    put("a.py", f"# coding: {coding}\nimport asyncio\n# -\u00e4\n")
    put("b.py", "import asyncio\ndrop(1)\n")
    report = check(["."], rules=[RULE])
    assert [each.path for each in report.broken] == ["a.py"]
    assert [each.place.path for each in report.findings] == ["b.py"]


def _waits(module: Module) -> Iterator[Finding]:
    """Never returns for `b.py`, as a rule that takes very long."""
    if module.path == "b.py":
        threading.Event().wait()
    yield from ()


def _interrupt(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_does_not_wait_for_the_workers() -> None:
    # Attack 14: they ignore Ctrl-C, and the parent waited for the rest of their parts.
    for name in ("a.py", "b.py"):
        put(name, "import asyncio\n" + "x = 1\n" * 20_000)
    with pytest.raises(KeyboardInterrupt):
        check(["."], rules=[Rule("HF101", _waits)], jobs=2, progress=_interrupt)


def test_a_second_interrupt_is_ignored_while_the_workers_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Attack 14: two quick Ctrl-C left the command hanging.
    from concurrent.futures import ProcessPoolExecutor

    shutdown = ProcessPoolExecutor.shutdown

    def interrupted(pool: ProcessPoolExecutor, *args: bool, **options: bool) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        shutdown(pool, *args, **options)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", interrupted)
    for name in ("a.py", "b.py"):
        put(name, "import asyncio\n" + "x = 1\n" * 20_000)
    handler = signal.getsignal(signal.SIGINT)
    assert check(["."], rules=[RULE], jobs=2).clean
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_thread_that_checks_leaves_signals_alone() -> None:
    entered: list[object] = []

    def thread() -> None:
        with _no_interrupt():  # only the main thread may set a handler
            entered.append(signal.getsignal(signal.SIGINT))

    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    assert entered == [signal.getsignal(signal.SIGINT)]


@pytest.mark.parametrize("content", ["x = [" + "1," * 500_001 + "]\n", "#" * 10_000_001])
def test_a_file_that_is_too_large_is_reported(content: str) -> None:
    # Attack 16: a list of 2 MB took 1 GB, and a file of 50 MB all memory.
    put("a.py", "import asyncio\n" + content)
    [error] = check(["."], rules=[RULE]).broken
    assert error.why.startswith("too large to be checked: ")


def test_a_file_that_is_nested_too_deeply_says_so() -> None:
    put("a.py", "import asyncio\nx = " + "-" * 100_000 + "1\n")
    [error] = check(["."], rules=[RULE]).broken
    assert re.search("nested too deeply|recursion|too complex", error.why)


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")
def test_a_pipe_or_a_device_that_is_named_is_not_read() -> None:
    # A pre-commit hook names each file of a repository: both did not end.
    os.mkfifo("pipe.py")
    os.symlink("/dev/zero", "zero.py")
    report = check(["pipe.py", "zero.py"])
    assert [(each.path, each.why) for each in report.broken] == [
        ("pipe.py", "not a regular file"),
        ("zero.py", "not a regular file"),
    ]
    assert "HF000 not a regular file" in render(report, "text", version="1")
