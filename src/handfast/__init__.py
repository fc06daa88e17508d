"""handfast: find and prevent asyncio lifetime bugs.

    handfast             the runtime: Scope, KeyedTasks, Process, stream, shielded, run
    handfast.errors      every error that the runtime raises
    handfast.check       which lifetime bugs are in existing code
    handfast.leaks       which code leaks what
    handfast.explore     which timing or cancellation breaks a program
    handfast.watch       what is alive in a running process
    handfast.scripted    child processes that follow a script, under the explorer
    handfast.types       classes that are returned and never constructed
    handfast.catalogue   the kinds of bugs: code, name, why, wrong, right
    handfast.bridges     the runtime with reactivex, langgraph, anyio, aiohttp
    handfast.pytest_plugin   `pytest --handfast`, `@pytest.mark.explore`
    handfast.cli         the `handfast` command

Start with `Scope`: every task, process and stream belongs to one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from handfast import errors, types
from handfast._public_names import publish
from handfast._runtime.failure import split_errors
from handfast._runtime.hosting.stream import stream
from handfast._runtime.keyed_tasks import KeyedTasks
from handfast._runtime.merge import merge
from handfast._runtime.process.process import Process
from handfast._runtime.process.run_process import run_process
from handfast._runtime.program.background_loop import BackgroundLoop
from handfast._runtime.program.run import run
from handfast._runtime.race import race
from handfast._runtime.restart import Restart
from handfast._runtime.scope.scope import Scope
from handfast._runtime.shield import shielded

if TYPE_CHECKING:
    from handfast import bridges, catalogue, check, explore, leaks, scripted, watch

__version__ = "0.2.0"

__all__ = [
    "BackgroundLoop",
    "KeyedTasks",
    "Process",
    "Restart",
    "Scope",
    "__version__",
    "bridges",
    "catalogue",
    "check",
    "errors",
    "explore",
    "leaks",
    "merge",
    "race",
    "run",
    "run_process",
    "scripted",
    "shielded",
    "split_errors",
    "stream",
    "types",
    "watch",
]

_LOADED_ON_USE = ("bridges", "catalogue", "check", "explore", "leaks", "scripted", "watch")

publish(__name__, [globals()[name] for name in __all__ if name not in _LOADED_ON_USE])


if not TYPE_CHECKING:  # a type checker would take any misspelt name for one that is loaded here

    def __getattr__(name: str) -> Any:
        """Load a public module when it is first used: `import handfast` loads only the runtime."""
        if name in _LOADED_ON_USE:
            return import_module(f"handfast.{name}")
        raise AttributeError(f"module 'handfast' has no attribute {name!r}")
