"""No room reaches into another's private names. Who may import whom at all, import-linter holds."""

import ast
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).parents[2] / "src" / "holdfast"


def room(module: str) -> str:
    """The room that a module of the house belongs to: `holdfast.runtime.scope` is in `runtime`."""
    return [*module.split("."), ""][1]


def private_imports(source: str, module: str) -> Iterator[str]:
    """The private names of other rooms that this module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("holdfast")]
        else:
            continue
        for name in names:
            if room(name) != room(module) and any(
                part.startswith("_") and not part.endswith("__") for part in name.split(".")
            ):
                yield name


def modules() -> Iterator[tuple[str, str]]:
    for path in HOUSE.rglob("*.py"):
        parts = path.relative_to(HOUSE.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path.read_text()


def test_no_room_imports_private_names_of_another() -> None:
    found = [
        f"{name}: {what}" for name, source in modules() for what in private_imports(source, name)
    ]
    assert found == []


def test_a_private_name_of_another_room_is_seen() -> None:
    source = "from holdfast.runtime.scope import _joined, Scope\nimport holdfast.runtime._queue\n"
    assert list(private_imports(source, "holdfast.watch.agent")) == [
        "holdfast.runtime.scope._joined",
        "holdfast.runtime._queue",
    ]
    assert list(private_imports(source, "holdfast.runtime.slots")) == []
