"""Record creations: install the patches with the first recording, uninstall them after the last.

A library may be imported later than that. uvloop is then patched when the next runner is made, or
when `patch_late_imports` is called.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from handfast._census import creation_log
from handfast._census.kinds import KINDS
from handfast._census.patch import Patch, call_before

_LOCK = threading.Lock()
_PATCH_FIRST = call_before(lambda *_, **__: patch_late_imports())
_installed: list[Patch] = []
_recordings = 0
_uvloop_is_patched = False


@contextmanager
def recording() -> Iterator[None]:
    """Within, record where objects are created."""
    try:
        _begin()
        yield
    finally:
        _end()


def patch_late_imports() -> None:
    """Patch uvloop if it was imported since the recording began."""
    global _uvloop_is_patched
    if _recordings and not _uvloop_is_patched and "uvloop" in sys.modules:
        with _LOCK:
            _uvloop_is_patched = True
            loop_class = sys.modules["uvloop"].Loop
            _install(patch for patch in _patches() if patch.where is loop_class)


def _begin() -> None:
    global _recordings, _uvloop_is_patched
    with _LOCK:
        _recordings += 1
        if _recordings == 1:
            _uvloop_is_patched = "uvloop" in sys.modules
            _install([*_patches(), Patch(asyncio.Runner, "__init__", _PATCH_FIRST)])
            creation_log.set_recording(True)


def _patches() -> list[Patch]:
    return [patch for kind in KINDS.values() for patch in kind.patches()]


def _install(patches: Iterable[Patch]) -> None:
    for patch in patches:
        patch.install()
        _installed.append(patch)


def _end() -> None:
    global _recordings
    with _LOCK:
        _recordings -= 1
        if _recordings == 0:
            while _installed:
                _installed.pop().uninstall()
            creation_log.set_recording(False)
            for kind in KINDS.values():
                kind.clear()
