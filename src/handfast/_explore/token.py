"""A schedule as a short text that replays it anywhere.

It has the settings, the departures, and a fingerprint of the program, to notice when its code has
changed.
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

from handfast._explore.search.plan import CANCEL_MODES, FAULTS, MODELS, Cancel, Plan, Settings

_VERSION = 1
_PREFIX = "hf"
# The bytes of an unpacked token, and the seconds of lateness, that are possible.
_LONGEST = 10_000_000
_LONGEST_STALL = 1e6
_HERE = ".".join(map(str, sys.version_info[:3]))


class BadToken(ValueError):
    """The text is not a token, or one of another version."""


@dataclass(frozen=True, slots=True)
class Token:
    """The contents of a token.

    `options` has the number of answers at each departing choice, `steps` the length of the run,
    `python` the version that made it.
    """

    fingerprint: int
    settings: Settings
    plan: Plan
    options: tuple[int, ...]
    steps: int
    code: str
    # With the patch release: 3.13.0 and 3.13.18 do not offer the same schedules. Tokens of
    # version 0.1.0 have major.minor only.
    python: str = _HERE

    @property
    def made_elsewhere(self) -> bool:
        """Whether another Python made the token, as far as its version is in it."""
        version = self.python.split(".")
        return version != _HERE.split(".")[: len(version)]

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
        # Raw deflate: without the header and the checksum a token is 6 bytes shorter.
        packed = zlib.compress(json.dumps(flat, separators=(",", ":")).encode(), 9, wbits=-15)
        return f"{_PREFIX}{_VERSION}.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read a token; BadToken if `text` is not one."""
        head, _, body = text.strip().partition(".")
        if not body or not head.startswith(_PREFIX):
            raise BadToken(f"{text!r} is not a token: tokens begin with {_PREFIX}{_VERSION}.")
        if head != f"{_PREFIX}{_VERSION}":
            raise BadToken(f"this token is of version {head!r}, and this is {_PREFIX}{_VERSION}")
        try:
            return cls._read(json.loads(_unpacked(body)))
        except (ValueError, TypeError, RecursionError) as error:
            if isinstance(error, BadToken):
                raise
            raise BadToken(f"{text[:200]!r} is damaged: copy it whole") from error

    @classmethod
    def _read(cls, flat: Any) -> Token:
        """Check every value: a token comes from a log, a chat or an issue."""
        _, mark, (model, cancel, stall, faults, real, usual), choices, cancels, options, *rest = (
            flat
        )
        steps, code, python = rest
        plan = Plan(
            tuple((_count(ordinal), _count(value)) for ordinal, value in choices),
            tuple(Cancel(_count(instant), _count(task)) for instant, task in cancels),
        )
        if len(options) != len(plan.choices):
            raise ValueError("the options are not those of the choices")
        if not isinstance(stall, (int, float)) or not 0 <= stall < _LONGEST_STALL:
            raise ValueError(f"stall {stall!r}")
        if real:
            # What touches the outside is for the one who replays to decide.
            raise BadToken("this token was made with real I/O, and real I/O cannot be replayed")
        if model not in MODELS:
            # Version 0.1.0 had a model `wild`, which changed an order that asyncio keeps.
            raise BadToken(
                f"this token was made with model {_text(model)!r}, which no longer exists"
            )
        settings = Settings(
            model,
            _one_of(cancel, CANCEL_MODES),
            float(stall),
            tuple(_one_of(fault, FAULTS) for fault in faults),
            usual=None if usual is None else tuple(map(_text, usual)),
        )
        counts = tuple(map(_count, options))
        return cls(_count(mark), settings, plan, counts, _count(steps), _text(code), _text(python))


def _unpacked(body: str) -> bytes:
    """The bytes in a token. A few of them can be packed so that they would fill the memory."""
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        stream = zlib.decompressobj(wbits=-15)
        plain = stream.decompress(packed, _LONGEST)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from error
    if stream.unconsumed_tail or not stream.eof:
        raise ValueError("too long, or cut off")
    return plain


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is not known")
    return value


def fingerprint(program: Any) -> int:
    """A number that changes when the program's code does (its own, not that of what it calls)."""
    # The function that the user wrote, below partials and decorators.
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
    # Not the line numbers: a token stays valid when code above the program changes.
    yield code.co_code
    yield " ".join((*code.co_names, *code.co_varnames, *code.co_freevars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _pieces(constant)
        # Not `repr` of everything: that of a frozenset depends on the hash seed.
        elif isinstance(constant, (str, bytes, int, float, bool, type(None))):
            yield repr(constant).encode()
