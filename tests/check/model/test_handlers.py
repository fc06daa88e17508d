"""What a handler catches: by full name, through imports, second names and constants."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.handlers import (
    cancel_handlers,
    catches_cancellation,
    caught,
    names_cancellation,
)
from handfast._check.model.syntax.module import Module
from handfast._check.source import parse

HEAD = """
import asyncio, anyio, concurrent.futures
import asyncio as aio
from asyncio import CancelledError as Stopped, exceptions
from concurrent.futures import CancelledError as OfAnExecutor
Cancelled = asyncio.CancelledError
ERRORS = (Cancelled, OSError)
MORE = ERRORS + (ValueError,)
LOST = (OSError, TimeoutError)
LOOP = (LOOP, OSError)
MADE = tuple(ERRORS)
def MAKER(): return OSError
class ValueLost(Exception): pass
class Base:
    inherited = (asyncio.CancelledError, OSError)
class C(Base):
    errors = (asyncio.CancelledError, OSError)
    lost: tuple = (OSError, ValueError)
    async def f(self):
        local = anyio.get_cancelled_exc_class()
        try: await g()
        except {kind}: raise
"""


def handler_of(kind: str) -> tuple[Module, ast.Try]:
    module = Module(parse("x.py", HEAD.replace("{kind}", kind).encode()), "x")
    (tried,) = (node for node in module.functions[-1].nodes if isinstance(node, ast.Try))
    return module, tried


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("CancelledError", True),
        ("asyncio.CancelledError", True),
        ("aio.CancelledError", True),
        ("exceptions.CancelledError", True),
        ("Stopped", True),
        ("anyio.get_cancelled_exc_class()", True),
        ("local", True),
        ("BaseException", True),
        ("(ValueError, asyncio.CancelledError)", True),
        ("Cancelled", True),
        ("ERRORS", True),
        ("MORE", True),
        ("(*ERRORS, KeyError)", True),
        ("self.errors", True),
        ("C.errors", True),
        ("C.inherited", True),
        ("Exception", False),
        ("OfAnExecutor", False),
        ("concurrent.futures.CancelledError", False),
        ("LOST", False),
        ("LOOP", False),
        ("MADE", False),
        ("MAKER()", False),
        ("ValueLost", False),
        ("self.lost", False),
        ("self.unknown", False),
        ("Unknown.errors", False),
        ("(ValueError, f())", False),
    ],
)
def test_whether_a_handler_catches_a_cancellation(kind: str, expected: bool) -> None:
    module, tried = handler_of(kind)
    function = module.functions[-1]
    assert catches_cancellation(function, tried.handlers[0].type) is expected
    assert bool(cancel_handlers(function, tried)) is expected


def test_a_bare_handler_catches_everything() -> None:
    module, tried = handler_of("OSError")
    function = module.functions[-1]
    assert catches_cancellation(function, None)
    assert caught(function, None) == ("",)
    assert caught(function, tried.handlers[0].type) == ("OSError",)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Stopped", True),
        ("asyncio.CancelledError", True),
        ("f().CancelledError", True),
        ("anyio.get_cancelled_exc_class()", True),
        ("OSError", False),
        ("f()", False),
        ("1", False),
    ],
)
def test_what_names_the_class(node: str, expected: bool) -> None:
    module, _ = handler_of("OSError")
    assert names_cancellation(module.functions[-1], ast.parse(node, mode="eval").body) is expected


def test_a_cancellation_goes_to_the_handler_of_a_constant() -> None:
    module, tried = handler_of("ERRORS")
    flow = module.functions[-1].flow
    wait = next(step for step in flow.nodes if step.suspends)
    assert wait.cancelling == [flow.of(tried.handlers[0])]
