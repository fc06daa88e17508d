"""The lines of files that findings point to, read once, for those who show them."""

from __future__ import annotations

from holdfast.check.source import Broken, decoded, lines_in, read

__all__ = ["Lines"]


class Lines:
    """The lines of a file, by its path; none if it cannot be read.

    >>> Lines({"-": "a\\nb"})("-")
    ['a', 'b']
    """

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self._known = {path: lines_in(text) for path, text in (texts or {}).items()}

    def __call__(self, path: str) -> list[str]:
        if path not in self._known:
            try:
                self._known[path] = lines_in(decoded(path, read(path)))
            except Broken:
                self._known[path] = []
        return self._known[path]
