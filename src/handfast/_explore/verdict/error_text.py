"""The text of an exception, whatever its `__str__` does and however long it is."""

from __future__ import annotations

from collections.abc import Iterator

# The characters of a message that a report can use.
_LONGEST = 10_000


def message_of(error: BaseException) -> str:
    """`str(error)`, shortened, in characters that can be written anywhere."""
    try:
        message = str(error)
    except Exception as broken:
        return f"(its message cannot be shown: __str__ raises {type(broken).__name__})"
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]}... ({len(message):,} characters)"
    return printable(message)


def error_text(error: BaseException) -> str:
    """The type and the message of an exception."""
    message = message_of(error)
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def printable(text: str) -> str:
    """The text without lone surrogates, which no terminal and no file takes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, and of the groups in it."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from leaves(each)
