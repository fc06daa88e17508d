"""What is said when the library behind a bridge is not installed."""

from __future__ import annotations

__all__ = ["absent"]


def absent(package: str, install: str) -> ModuleNotFoundError:
    """The error that names the way out.

    >>> print(absent("reactivex", "holdfast[rx]"))
    this bridge needs reactivex: pip install "holdfast[rx]"
    """
    return ModuleNotFoundError(
        f'this bridge needs {package}: pip install "{install}"', name=package
    )
