"""Five systems from bug reports as programs: as reported, with the report's fix, and fixed.

`python -m examples [NAME]` runs them in a clone, and shows what each tool says.

    __main__        the command
    example         `Example` and `Claim`: what an example consists of
    show            runs `check`, `explore` and `leaks` on one example
    first_steps     seven small programs, one for each main feature
    cleanup         ends what a broken version leaks

    captures/       report 1: a chat bot captures the output of commands, one task for each key
    child/          report 2: a child process, and the task that drains its stderr
    reactive/       report 3: a reactive pipeline that runs graphs on an event loop
    phases/         report 4: the phases of an agent over a stream, under a task group
    prefetch/       report 5: background prefetching in a synchronous program

    programs/       common programs, each with handfast, asyncio and anyio
"""

from __future__ import annotations

from importlib import import_module

from examples.example import Claim, Example

__all__ = ["NAMES", "Claim", "Example", "NoSuchExample", "all_examples", "find"]

NAMES = ("captures", "child", "reactive", "phases", "prefetch")


class NoSuchExample(ValueError):
    """No example has this name or number."""


def find(name: str) -> Example:
    """The example of this name, or of the report with this number.

    >>> find("1").name
    'captures'
    """
    for example in all_examples():
        if name in (example.name, str(example.number)):
            return example
    raise NoSuchExample(f"there is no example {name!r}; there are {', '.join(NAMES)}")


def all_examples() -> tuple[Example, ...]:
    """The examples in the order of their reports."""
    found: list[Example] = [import_module(f"{__name__}.{name}").EXAMPLE for name in NAMES]
    return tuple(found)
