"""A token may come from anyone: what is no token is refused, and none switches on real I/O."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from handfast._explore.search.plan import Plan, Settings
from handfast._explore.token import Token
from handfast.explore import BadToken, replay

GOOD: list[Any] = [1, 7, ["strict", "no", 0.1, [], 0, None], [[3, 1]], [], [2], 40, "HF441", "3.13"]


def packed(text: bytes) -> str:
    body = zlib.compress(text, 9, wbits=-15)
    return "hf1." + base64.urlsafe_b64encode(body).decode().rstrip("=")


def changed(at: int, value: Any) -> str:
    flat = [*GOOD]
    flat[at] = value
    return packed(json.dumps(flat).encode())


async def program() -> None:
    """Never run: the token is refused before."""
    raise AssertionError


def test_the_token_that_the_others_are_made_from_is_good() -> None:
    assert Token.parse(packed(json.dumps(GOOD).encode())).plan == Plan(((3, 1),))


@pytest.mark.parametrize(
    "text",
    [
        packed(b"[" * 200_000),
        packed(b"7"),
        packed(b"[]"),
        packed(b"{}"),
        packed(b"\xff"),
        packed(b"0" * 50_000_000),
        packed(json.dumps(GOOD).encode())[:-9],
        changed(1, "a text"),
        changed(1, -1),
        changed(2, ["strict", "sometimes", 0.1, [], 0, None]),
        changed(2, ["strict", {}, 0.1, [], 0, None]),
        changed(2, ["strict", "no", "late", [], 0, None]),
        changed(2, ["strict", "no", -1, [], 0, None]),
        changed(2, ["strict", "no", 1e300, [], 0, None]),
        changed(2, ["strict", "no", 0.1, ["fire"], 0, None]),
        changed(2, ["strict", "no", 0.1, [], 0, [[]]]),
        changed(3, [[3, [1]]]),
        changed(3, [[{}, 1]]),
        changed(3, [[3, 1.5]]),
        changed(3, [[3, True]]),
        changed(4, [[1, -2]]),
        changed(5, []),
        changed(5, ["x"]),
        changed(6, None),
        changed(7, 441),
        changed(8, []),
    ],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadToken, match="damaged"):
        replay(program, text)


def test_a_token_cannot_switch_on_real_io() -> None:
    token = Token(7, Settings(real_io=True), Plan(), (), 1, "HF441")
    with pytest.raises(BadToken, match="made with real I/O"):
        replay(program, str(token))
