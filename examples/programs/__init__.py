"""The programs that people write most, each with handfast, with plain asyncio and with anyio.

A folder is one program. Its `__init__` says what the program does, and its `demo(version)` runs one
of the three versions and returns what happened. `docs/guides/programs.md` shows them all.

    __main__        the command: how many lines each version has
    lines           counts them

    fan_out/            first_success/      race_with_timeout/  wait_until_ready/
    periodic/           worker_pool/        supervisor/         graceful_shutdown/
    debounce/           single_flight/      producer_consumer/  merged_streams/
"""

from pathlib import Path

__all__ = ["LIBRARIES", "NAMES", "version_file"]

NAMES = (
    "fan_out",
    "first_success",
    "race_with_timeout",
    "wait_until_ready",
    "periodic",
    "worker_pool",
    "supervisor",
    "graceful_shutdown",
    "debounce",
    "single_flight",
    "producer_consumer",
    "merged_streams",
)
LIBRARIES = ("handfast", "asyncio", "anyio")


def version_file(name: str, library: str) -> Path:
    """The file of a program's version."""
    return Path(__file__).parent / name / f"with_{library}.py"
