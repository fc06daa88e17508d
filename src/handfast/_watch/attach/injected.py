"""The script that the process under watch runs to start the agent.

It must do no harm: it catches every error, leaves `sys.path` and `__main__` as they are, and works in
a thread of its own, so that the program is not held up while files are read.
"""

from __future__ import annotations

from pathlib import Path

import handfast

_SCRIPT = """\
def start():
    try:
        import sys

        folder = {folder!r}
        # At the end: the program's own handfast, if it has one, comes first.
        added = folder not in sys.path
        if added:
            sys.path.append(folder)
        try:
            import handfast.watch
        finally:
            if added:
                sys.path.remove(folder)
        handfast.watch.serve()
        import shutil

        # The command does it, too, but may have given up before.
        shutil.rmtree({own!r}, ignore_errors=True)
    except BaseException as error:
        with open({errors!r} + ".new", "w", encoding="utf-8") as file:
            file.write(type(error).__name__ + ": " + str(error).replace("\\n", " "))
        import os

        os.replace({errors!r} + ".new", {errors!r})


try:
    import threading

    threading.Thread(target=start, name="handfast-attach", daemon=True).start()
except BaseException:
    pass
"""


def script(own: Path, errors: Path) -> str:
    """Return the script, which is in the folder `own`; it writes to `errors` why it failed."""
    # handfast has no dependencies, so its folder is all that the other process needs.
    folder = str(Path(handfast.__file__).resolve().parents[1])
    return _SCRIPT.format(folder=folder, own=str(own), errors=str(errors))
