"""The schema in the docs: it is that of the dataclasses, and snapshots fit it."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from handfast import Scope, watch
from tests.support.snapshot_schema import FILE, text
from tests.watch.views.snapshots import BOT

SCHEMA: dict[str, Any] = json.loads(FILE.read_text())


def test_the_schema_in_the_docs_is_up_to_date() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.support.snapshot_schema"


def strict(schema: Any) -> Any:
    """The schema, which also refuses what it does not name."""
    strict = copy.deepcopy(schema)
    for part in (strict, *strict["$defs"].values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
    return strict


def test_a_snapshot_of_a_live_process_fits_and_has_no_other_field() -> None:
    async def main() -> watch.Snapshot:
        async with Scope("jobs") as scope:
            scope.spawn(asyncio.sleep(3600))
            await asyncio.sleep(0)
            taken = await asyncio.to_thread(watch.snapshot)
            scope.cancel()
        return taken

    with watch.serve("schema"):
        taken = asyncio.run(main())
    assert taken.scopes
    assert taken.tasks
    for each in (taken, BOT):
        jsonschema.Draft202012Validator(strict(SCHEMA)).validate(json.loads(each.to_json()))


@pytest.mark.parametrize(
    ("path", "value"),
    [(("places", 0, "alive"), "1"), (("loops", 0, "lag_p50"), "x"), (("version",), 2)],
)
def test_what_is_no_snapshot_does_not_fit(path: tuple[Any, ...], value: Any) -> None:
    data = part = json.loads(BOT.to_json())
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


def test_a_field_that_the_schema_does_not_name_is_found() -> None:
    short = strict(SCHEMA)
    del short["$defs"]["LiveTask"]["properties"]["waits_for"]
    short["$defs"]["LiveTask"]["required"].remove("waits_for")
    with pytest.raises(jsonschema.ValidationError, match="waits_for"):
        jsonschema.validate(json.loads(BOT.to_json()), short)
