"""What the standard streams of a child can be connected to, in words.

| word | meaning |
|---|---|
| `pipe` | a pipe; a full output makes the child wait for its reader |
| `keep` | a pipe that is always drained; only the first and the last bytes are kept |
| `inherit` | the stream of this program |
| `null` | no input, or output that is discarded |
| `stdout` | for stderr: the same as stdout |
"""

from __future__ import annotations

import subprocess
from typing import Literal, TypeAlias

Input: TypeAlias = Literal["pipe", "inherit", "null"]
Output: TypeAlias = Literal["pipe", "keep", "inherit", "null"]
ErrorOutput: TypeAlias = Literal["pipe", "keep", "inherit", "null", "stdout"]

_TARGETS = {
    "pipe": subprocess.PIPE,
    "keep": subprocess.PIPE,
    "inherit": None,
    "null": subprocess.DEVNULL,
    "stdout": subprocess.STDOUT,
}
_ALLOWED = {
    "stdin": ("pipe", "inherit", "null"),
    "stdout": ("pipe", "keep", "inherit", "null"),
    "stderr": ("pipe", "keep", "inherit", "null", "stdout"),
}


def check_stream(name: str, word: object) -> None:
    """Raise a clear error unless `word` is one of those for this stream."""
    allowed = _ALLOWED[name]
    if word not in allowed:
        words = ", ".join(map(repr, allowed))
        error = ValueError if isinstance(word, str) else TypeError
        raise error(f"{name} must be one of {words}, not {word!r}")


def popen_target(word: str) -> int | None:
    """The value that `subprocess` takes for it."""
    return _TARGETS[word]
