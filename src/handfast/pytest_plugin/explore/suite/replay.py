"""`--handfast-replay` for a test without a marker: one schedule, from its set-up to its teardown."""

from __future__ import annotations

import shutil

import pytest

from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.replay import Divergence
from handfast._explore.search.watchdog import TooLong, Watchdog
from handfast._explore.token import BadToken, Token
from handfast.pytest_plugin.explore import output
from handfast.pytest_plugin.explore.failed_report import failed_report
from handfast.pytest_plugin.explore.suite.explorer import all_outcomes
from handfast.pytest_plugin.explore.suite.item_explorer import RUN_SECONDS, ItemExplorer
from handfast.pytest_plugin.explore.suite.options import SuiteOptions, wants_isolation


def replay_unmarked(session: pytest.Session) -> None:
    """Replay the token of the command line on the one test that is selected."""
    token = str(session.config.getoption("handfast_replay"))
    if len(session.items) > 1:
        raise pytest.UsageError(
            f"--handfast-replay is for one test, and {len(session.items)} tests are selected: "
            f"name the test of the token, such as {session.items[0].nodeid}"
        )
    replay = _Replay(token, isolated=wants_isolation(session.config))
    session.config.pluginmanager.register(replay, "handfast-suite-replay")


class _Replay:
    """Runs the schedule in place of the test."""

    def __init__(self, token: str, *, isolated: bool) -> None:
        self._token = token
        self._isolated = isolated

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        hooks = item.ihook
        hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        hooks.pytest_runtest_logreport(report=failed_report(item, self._replayed(item)))
        hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _replayed(self, item: pytest.Item) -> str:
        """The report on the schedule, or why it cannot be replayed."""
        watchdog = None if self._isolated else Watchdog(RUN_SECONDS)
        try:
            token = Token.parse(self._token)
            cancel = token.settings.cancel != "no"
            lateness = token.settings.stall
            options = SuiteOptions(cancel=cancel, lateness=lateness, isolated=self._isolated)
            explorer = ItemExplorer(item, options, watchdog)
            with all_outcomes(), output.without_cleanup_warnings():
                found = explorer.replay(self._token)
        except BadToken as error:
            return f"--handfast-replay: {error}"
        except Divergence as error:
            return f"--handfast-replay: the token does not fit: {error}"
        except Uncontrolled as error:
            return f"--handfast-replay: {error}"
        except TooLong:
            return f"--handfast-replay: the run takes more than {RUN_SECONDS:g} s"
        finally:
            if watchdog is not None:
                watchdog.close()
        width = shutil.get_terminal_size((100, 24)).columns
        return explorer.text(found, "replayed from its token", width=width)
