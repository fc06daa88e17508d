"""A schedule as a short text that replays it anywhere: the settings, the departures, and enough of
the program's shape to notice when it is not the same program any more.
"""

from __future__ import annotations

import base64
import binascii
import functools
import inspect
import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from holdfast.explore.plan import Cancel, Plan, Settings

__all__ = ["BadToken", "Token", "fingerprint"]

_VERSION = 1
_PREFIX = "hf"


class BadToken(ValueError):
    """The text is no token, or one of another version."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a token says. `options` has the number of answers at each departing choice, `steps` the
    length of the run, `python` where it was made."""

    fingerprint: int
    settings: Settings
    plan: Plan
    options: tuple[int, ...]
    steps: int
    code: str
    python: str = f"{sys.version_info.major}.{sys.version_info.minor}"

    def __str__(self) -> str:
        s, p = self.settings, self.plan
        flat = [
            _VERSION,
            self.fingerprint,
            [s.model, s.cancel, s.stall, list(s.faults), int(s.real_io), s.usual],
            [[ordinal, value] for ordinal, value in p.choices],
            [[cancel.instant, cancel.task] for cancel in p.cancels],
            list(self.options),
            self.steps,
            self.code,
            self.python,
        ]
        packed = zlib.compress(json.dumps(flat, separators=(",", ":")).encode(), 9, wbits=-15)
        return f"{_PREFIX}{_VERSION}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token that `text` is; BadToken if it is none."""
        head, _, body = text.strip().partition(".")
        if not body or not head.startswith(_PREFIX):
            raise BadToken(f"{text!r} is no token: one begins with {_PREFIX}{_VERSION}.")
        if head != f"{_PREFIX}{_VERSION}":
            raise BadToken(f"this token is of version {head!r}, and this is {_PREFIX}{_VERSION}")
        try:
            packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            flat = json.loads(zlib.decompress(packed, wbits=-15))
            return cls._read(flat)
        except (binascii.Error, zlib.error, ValueError, TypeError, IndexError) as error:
            raise BadToken(f"{text!r} is damaged: copy it whole") from error

    @classmethod
    def _read(cls, flat: list[Any]) -> Token:
        _, mark, (model, cancel, stall, faults, real, usual), choices, cancels, options, *rest = (
            flat
        )
        steps, code, python = rest
        plan = Plan(
            tuple((ordinal, value) for ordinal, value in choices),
            tuple(Cancel(instant, task) for instant, task in cancels),
        )
        left = None if usual is None else tuple(usual)
        settings = Settings(model, cancel, stall, tuple(faults), bool(real), usual=left)
        return cls(mark, settings, plan, tuple(options), steps, code, python)


def fingerprint(program: Any) -> int:
    """A number that changes when the program's code does (its own, not that of what it calls)."""
    while isinstance(program, functools.partial):
        program = program.func
    program = inspect.unwrap(program)
    code = getattr(program, "__code__", None)
    if code is None:
        code = getattr(getattr(program, "__call__", None), "__code__", None)  # noqa: B004
    if code is None:
        return 0
    mark = 0
    for piece in _pieces(code):
        mark = zlib.crc32(piece, mark)
    return mark


def _pieces(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield " ".join((*code.co_names, *code.co_varnames, *code.co_freevars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _pieces(constant)
        elif isinstance(constant, (str, bytes, int, float, bool, type(None))):
            yield repr(constant).encode()
