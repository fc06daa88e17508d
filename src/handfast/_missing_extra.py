"""Messages for a library that is not installed: they name the extra that brings it."""

from __future__ import annotations


def install_line(extra: str) -> str:
    """Return the commands that install an extra of handfast, from the index and from a clone.

    >>> print(install_line("cli"))
    pip install 'handfast[cli]', or in a clone pip install '.[cli]'
    """
    return f"pip install 'handfast[{extra}]', or in a clone pip install '.[{extra}]'"


def missing_for_bridge(package: str, extra: str | None = None) -> ModuleNotFoundError:
    """Return the error for a bridge whose library is missing. Without `extra`, handfast has no
    extra for the library, and it is installed by its own name.

    >>> print(missing_for_bridge("anyio"))
    this bridge needs anyio: pip install anyio
    """
    how = install_line(extra) if extra else f"pip install {package}"
    return ModuleNotFoundError(f"this bridge needs {package}: {how}", name=package)
