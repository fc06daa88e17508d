"""An inner pytest with the options of the leak detector and nothing else of handfast."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handfast.pytest_plugin.leaks import options as leak_options

__all__ = ["OptionsOnly", "with_options"]


class OptionsOnly:
    """In place of the real plugin, which would act on the options."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        leak_options.add_options(parser)
        parser.addoption("--handfast-replay", metavar="TOKEN")

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", leak_options.MARKER)


def with_options(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., pytest.Pytester]:
    """Return a function that writes an ini file for a pytest with these options."""
    # Loading the installed plugins takes most of a second.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # So does the garbage collection at the end of each configuration.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:unraisableexception")
    pytester.plugins.append(OptionsOnly())

    def prepared(*ini: str) -> pytest.Pytester:
        pytester.makeini("\n".join(["[pytest]", *ini]))
        return pytester

    return prepared
