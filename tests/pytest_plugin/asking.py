"""A pytest that knows the options for leaks and nothing else of ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.pytest_plugin import leak_options

__all__ = ["Door", "with_options"]


class Door:
    """In the place of the plugin's own door, which would act on what is asked."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        leak_options.add_options(parser)
        parser.addoption("--holdfast-replay", metavar="TOKEN")

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", leak_options.MARKER)


def with_options(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., pytest.Pytester]:
    """Has configurations made with the options, and with the lines of an ini file."""
    # To load what is installed takes most of a second, and is of no use here.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # And so does a full collection at the end of each configuration.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:unraisableexception")
    pytester.plugins.append(Door())

    def prepared(*ini: str) -> pytest.Pytester:
        pytester.makeini("\n".join(["[pytest]", *ini]))
        return pytester

    return prepared
