"""The JSON schema of a snapshot, made from the dataclasses of `handfast.watch` and their docstrings.

`python -m tests.support.snapshot_schema` writes it into the docs.
"""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from handfast._watch import snapshot

FILE = Path(__file__).parents[2] / "docs" / "api" / "snapshot.schema.json"
_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean"}


def schema() -> dict[str, Any]:
    """The schema of `Snapshot`, with a definition for each of its parts."""
    parts = [
        each
        for each in vars(snapshot).values()
        if inspect.isclass(each) and is_dataclass(each) and each is not snapshot.Snapshot
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A snapshot of handfast.watch",
        **_record(snapshot.Snapshot),
        "$defs": {each.__name__: _record(each) for each in parts},
    }


def _record(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    texts = _texts(kind)
    properties = {
        each.name: {
            **_type(hints[each.name]),
            **({"description": texts[each.name]} if each.name in texts else {}),
        }
        for each in fields(kind)
    }
    if kind is snapshot.Snapshot:
        properties["version"] = {"const": snapshot.VERSION}
    required = [
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    ]
    return {
        "description": inspect.cleandoc(kind.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": properties,
        "required": [*required, *(["version"] if kind is snapshot.Snapshot else [])],
        "additionalProperties": True,
    }


def _texts(kind: type[Any]) -> dict[str, str]:
    """The string after each field, in the source."""
    # Not `inspect.getsource`: the classes show the public module as theirs.
    tree = ast.parse(Path(snapshot.__file__).read_text(encoding="utf-8"))
    definition = next(
        each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == kind.__name__
    )
    found = {}
    for each, after in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(each, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(each.target, ast.Name)
            text = ast.literal_eval(after.value)
            found[each.target.id] = " ".join(text.split())
    return found


def _type(hint: Any) -> dict[str, Any]:
    if isinstance(hint, UnionType):
        (other,) = (each for each in get_args(hint) if each is not type(None))
        return {"anyOf": [_type(other), {"type": "null"}]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _type(get_args(hint)[0])}
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    return {"$ref": f"#/$defs/{hint.__name__}"}


def text() -> str:
    """The file."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
