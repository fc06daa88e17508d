"""No package imports private names of another. import-linter checks which packages it may import."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "handfast"


def part_of(module: str) -> str:
    """The top-level part that a module belongs to: `_runtime` for `handfast._runtime.scope.scope`."""
    return [*module.split("."), ""][1]


def private_imports(source: str, module: str) -> Iterator[str]:
    """The private names of other parts that this module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("handfast"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("handfast")]
        else:
            continue
        for name in names:
            # A top-level module with an underscore, as `_code_owner`, is private to handfast and
            # shared by all of its parts.
            if part_of(name) != part_of(module) and any(
                part.startswith("_") and not part.endswith("__") for part in name.split(".")[2:]
            ):
                yield name


def modules() -> Iterator[tuple[str, str]]:
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path.read_text()


def test_no_part_imports_private_names_of_another() -> None:
    found = [
        f"{name}: {what}" for name, source in modules() for what in private_imports(source, name)
    ]
    assert found == []


def test_a_private_name_of_another_part_is_found() -> None:
    source = (
        "from handfast._runtime.scope.scope import _join, Scope\nimport handfast._runtime._queue\n"
    )
    assert list(private_imports(source, "handfast._leaks.audit")) == [
        "handfast._runtime.scope.scope._join",
        "handfast._runtime._queue",
    ]
    assert list(private_imports(source, "handfast._runtime.keyed_tasks")) == []
    shared = "from handfast._code_owner import code_owner, _maker\n"
    assert list(private_imports(shared, "handfast._runtime.keyed_tasks")) == [
        "handfast._code_owner._maker"
    ]
