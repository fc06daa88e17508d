"""Classes and functions across files, and what other files end."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, count_ended, ended_names, exported_names
from handfast._check.source import parse


@pytest.mark.parametrize(
    "text",
    [
        "x._task.cancel()",
        "self._task.cancel('why')",
        "x._task['a'].cancel()",
        "x._task.pop(key).cancel()",
        "x._task.get(key).cancel()",
        "await x._task",
        "await self.owner._task\n",
        "gather(*x._task)",
        "asyncio.wait(x._task)",
        "asyncio.wait_for(self._task, 1)",
        "for t in x._task:",
        "for t in list(x._task):",
    ],
)
def test_a_name_that_a_file_ends(text: str) -> None:
    assert "_task" in ended_names(text.encode())


@pytest.mark.parametrize(
    "text", ["x._task = 1", "x._task.done()", "await x._task.go()", "task.cancel()", "if x._task:"]
)
def test_a_name_that_a_file_only_has(text: str) -> None:
    assert "_task" not in ended_names(text.encode())


def test_what_a_file_ends_itself_is_not_elsewhere() -> None:
    one, other = b"x._a.cancel()\nx._b.cancel()", b"x._b.cancel()\nx._c.cancel()"
    project = Project({}, count_ended([one, other]))
    assert dict(project.ended_elsewhere) == {"_a": 1, "_b": 2, "_c": 1}
    assert dict(project.beside(one).ended_elsewhere) == {"_b": 1, "_c": 1}
    assert len(project.beside(other).ended_elsewhere) == 2
    assert "_a" not in project.beside(one).ended_elsewhere
    assert "_gone" not in project.ended_elsewhere


def write(tmp_path: Path, **files: str) -> Project:
    paths = {}
    for name, text in files.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        paths[f"pkg.{name}"] = str(path)
    return Project(paths)


def module(source: str, project: Project | None = None, name: str = "pkg.x") -> Module:
    return Module(parse("x.py", source.encode()), name, project)


def test_a_base_in_another_file_is_found(tmp_path: Path) -> None:
    project = write(tmp_path, near="class Base:\n    def close(self): pass\n")
    klass = module("from pkg.near import Base\nclass A(Base): pass\n", project).classes["A"]
    assert klass.is_complete
    assert "close" in klass.all_methods
    relative = module("from . import near\nclass A(near.Base): pass\n", project).classes["A"]
    assert relative.is_complete


def test_a_base_that_is_handed_on_is_found(tmp_path: Path) -> None:
    project = write(tmp_path, near="from pkg.far import Base as Handed\n", far="class Base: pass\n")
    assert (
        module("from pkg.near import Handed\nclass A(Handed): pass\n", project)
        .classes["A"]
        .is_complete
    )


def test_a_name_that_is_handed_in_a_circle_is_not_found(tmp_path: Path) -> None:
    project = write(tmp_path, a="from pkg.b import X, f\n", b="from pkg.a import X, f\n")
    assert project.find_class("pkg.a.X") is None
    assert project.find_function("pkg.a.f") is None


@pytest.mark.parametrize("name", ["X", "gone.X", "pkg.broken.X", "pkg.near.Gone"])
def test_what_is_not_there_is_not_found(tmp_path: Path, name: str) -> None:
    project = write(tmp_path, broken="class X(:", near="class Base: pass\n")
    assert project.find_class(name) is None
    assert project.find_function(name) is None
    assert (
        not module(f"import {name.rpartition('.')[0] or 'y'}\nclass A({name}): pass\n", project)
        .classes["A"]
        .is_complete
    )


def test_a_function_in_another_file_is_found(tmp_path: Path) -> None:
    project = write(tmp_path, near="from pkg.far import end\n", far="def end(task): pass\n")
    found = project.find_function("pkg.near.end")
    assert found is not None
    assert found.qualname == "end"


def test_a_module_that_was_added_is_not_read_again() -> None:
    project = Project()
    added = module("class A: pass\n", project)
    project.add(added)
    assert project.module("pkg.x") is added
    assert project.module("pkg.y") is None


def test_classes_that_are_each_other_s_base_are_borne(tmp_path: Path) -> None:
    project = write(
        tmp_path,
        a="from pkg.b import B\nclass A(B): pass\n",
        b="from pkg.a import A\nclass B(A): pass\n",
    )
    klass = project.find_class("pkg.a.A")
    assert klass is not None
    assert {each.name for each in klass.lineage} == {"A", "B"}
    assert klass.is_complete


def test_a_file_that_is_gone_is_borne() -> None:
    assert Project({"pkg.x": "/gone/x.py"}).module("pkg.x") is None


def test_a_file_that_is_nested_too_deeply_is_borne(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deep(*_: object) -> None:
        raise RecursionError

    project = write(tmp_path, near="x = 1\n")
    monkeypatch.setattr("handfast._check.model.syntax.project.Module", deep)
    assert project.module("pkg.near") is None


@pytest.mark.parametrize(
    "line", ["x.cancel(" * 40_000, "a.t.cancel()," * 40_000, "  " + "a=" * 400_000]
)
def test_a_very_long_line_is_read_once(line: str) -> None:
    # Attack 15: these took a minute and more, because each match looked at the whole line again.
    content = f"class A:\n  def close(self):\n    create_task\n{line}\n".encode()
    assert ended_names(content) <= {"t"}
    assert exported_names(content) == {"class A"}
