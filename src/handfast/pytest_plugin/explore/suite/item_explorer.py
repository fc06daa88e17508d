"""One test under the explorer: can it be explored, which schedules break it, and is that confirmed?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pytest

from handfast._explore.corpus.continued import ContinuedCampaign
from handfast._explore.corpus.store import Corpus, CorpusFolder
from handfast._explore.hosted.isolation import ForkEnded, in_fork
from handfast._explore.hosted.loops import OWN_CLOCK
from handfast._explore.hosted.program import Ended
from handfast._explore.hosted.stock import confirm, passes
from handfast._explore.loop.determinism import steady
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.replay import replay
from handfast._explore.result import Counterexample
from handfast._explore.search.plan import Options, Plan, Record, Settings
from handfast._explore.search.run import run
from handfast._explore.search.watchdog import TooLong, Watchdog
from handfast._explore.token import fingerprint
from handfast._explore.verdict.verdict import Verdict
from handfast.pytest_plugin.explore import output
from handfast.pytest_plugin.explore.finding_output import replay_line, with_page
from handfast.pytest_plugin.explore.suite.explored import Explored, Extent, SuiteFinding
from handfast.pytest_plugin.explore.suite.item_run import ItemRun, Sibling
from handfast.pytest_plugin.explore.suite.options import SuiteOptions

# Runs in the plain order before anything else; their steps; the real seconds of any run.
_PLAIN_RUNS = 3
_PLAIN_STEPS = 20_000
RUN_SECONDS = 5.0
_KEEPS_STATE = "not repeatable in one process after a cancel"


@dataclass
class Looked:
    """What the plain runs have shown: a result if there is nothing to search."""

    nodeid: str
    promise: int = 0
    result: Explored | None = None


class ItemExplorer:
    """Explores one item."""

    def __init__(self, item: pytest.Item, options: SuiteOptions, watchdog: Watchdog | None) -> None:
        self.item = item
        self._options = options
        self._runs = ItemRun(item)
        self._watchdog = watchdog
        self._program = self._runs.program(self._limited)
        self._seconds = 0.0
        # The result if nothing follows any more: a finding that is not confirmed yet.
        self.interrupted: Explored | None = None
        self._lateness = options.lateness
        if options.isolated:
            self._runs.tears_down_all = True
            self._program.fork = lambda call: in_fork(call, RUN_SECONDS)

    # --- can it be explored? -------------------------------------------------------------------

    def look(self, *, own_loop: str) -> Looked:
        """Run it in the plain order, and count what could be reordered."""
        began = time.monotonic()
        nodeid = self.item.nodeid
        with self._environment():
            self._tear_down(self._runs.sibling)
            try:
                reason, record = self._plain_runs()
            except pytest.exit.Exception:
                raise
            except Exception as error:
                reason, record = _own_failure(error), None
        self._seconds = time.monotonic() - began
        if record is None:
            if own_loop:
                reason = f"brings its own event loop ({own_loop})"
            return Looked(nodeid, 0, self._result("refused", reason))
        promise = _promise(record)
        if not promise:
            return Looked(nodeid, 0, self._result("single", schedules=1))
        return Looked(nodeid, promise)

    def _plain_runs(self) -> tuple[str, Record | None]:
        """The reason why it cannot be explored, or the record of a plain run."""
        record = None
        for number in range(_PLAIN_RUNS):
            try:
                record = self._run_plain()
                if self._program.keeps_loop and not self._runs.tears_down_all:
                    # A fixture of wider scope keeps the loop: from now on each run has its own.
                    self._runs.tears_down_all = True
                    self._tear_down(None)
                    record = self._run_plain()
            except Uncontrolled as error:
                return _refusal(error), None
            except ForkEnded as error:
                return f"ends its process ({error})", None
            except TooLong:
                return f"a run takes more than {RUN_SECONDS:g} s", None
            if record.steps >= _PLAIN_STEPS:
                return "polls for something that the explorer does not run, or is very long", None
            if record.verdict is not None:
                return self._why_plain_fails(number, record.verdict), None
            reference = self._program.reference
            if reference is not None and reference.test_reads_clock:
                self._lateness = 0.0  # it measures time, and lateness would change what it reads
            if not _promise(record):
                break  # there is no other schedule that would need to repeat it
        return "", record

    def _run_plain(self) -> Record:
        settings = replace(self._settings(), step_limit=_PLAIN_STEPS)
        return run(self._program, Plan(observe=True), settings)

    def _limited(self) -> Ended | None:
        """Run the item once, for a limited real time."""
        if self._watchdog is None:
            return self._runs.run()
        ended = None
        try:
            with self._watchdog.limit():
                ended = self._runs.run()
        except Exception:
            # TooLong in a hook of pytest may come out as a warning that is an error.
            if not self._watchdog.fired:
                raise
        if self._watchdog.fired:
            raise TooLong
        return ended

    def finish(self) -> None:
        """Tear down all that the tests so far have left."""
        with self._environment():
            self._tear_down(None)

    def _tear_down(self, following: Sibling | None) -> None:
        """Tear down the wider fixtures of other tests, and what is left of a run that was cut, in
        limited time."""
        if self._watchdog is None:
            self._runs.finish(following)
            return
        with suppress(TooLong), self._watchdog.limit():
            self._runs.finish(following)

    def _why_plain_fails(self, number: int, verdict: Verdict) -> str:
        if not number and verdict.code == "HF431":
            return "waits for something outside that the explorer does not run"
        if isinstance(verdict.error, Uncontrolled):
            return _refusal(verdict.error)
        if _refused_connection(verdict.error):
            return "connects to something outside that the explorer does not run"
        # The normal run was the first one: the next on asyncio's own loop may fail as well.
        if number or not self._passes_again():
            isolated = self._options.isolated
            return "does not pass every time" if isolated else "not repeatable in one process"
        return f"does not run on the explorer's loop: {verdict.error_type or verdict.code}"

    def _passes_again(self) -> bool:
        try:
            return passes(self._program)
        except (TooLong, ForkEnded):
            return True  # that is another problem

    def _still_passes(self) -> bool:
        """Whether the plain order passes, as it did before the search."""
        try:
            return self._run_plain().verdict is None
        except (Uncontrolled, TooLong, ForkEnded):
            return False

    # --- the search ----------------------------------------------------------------------------

    def search(self, seconds: float) -> Explored:
        """Look for a schedule that breaks it, and confirm that on asyncio's own loop."""
        began = time.monotonic()
        with self._environment():
            self._tear_down(self._runs.sibling)
            corpus = self._load_corpus()
            options = replace(self._campaign_options(seconds), seed=corpus.searches)
            campaign = ContinuedCampaign(self._program, options, corpus)
            trouble = ""
            try:
                campaign.run()
            except Uncontrolled as error:
                trouble = _refusal(error)
            except ForkEnded as error:
                trouble = f"ends its process ({error})"
            except TooLong:
                trouble = f"a run takes more than {RUN_SECONDS:g} s"
            except pytest.exit.Exception:
                raise
            except Exception as error:
                trouble = _own_failure(error)
            finally:  # also after Ctrl-C
                self._save_corpus(campaign.corpus())
            result = campaign.result()
            found = result.counterexample
            if found is not None and self._options.cancel and not self._still_passes():
                # A cancel keeps the test from cleaning up, and a global has kept what it left.
                found, trouble = None, _KEEPS_STATE
            finding = None
            if found is not None:
                finding = self._finding(found)
                # Ctrl-C ends the next step, and what was found is shown all the same.
                self.interrupted = self._result(
                    "sampled", schedules=result.schedules, finding=finding
                )
                confirmation = confirm(self._program, found)
                finding = replace(
                    finding, confirmed=confirmation.confirmed, tries=confirmation.tries
                )
        self._seconds += time.monotonic() - began
        extent: Extent = "all" if result.complete and not trouble else "sampled"
        if trouble and (result.schedules <= 1 or trouble == _KEEPS_STATE):
            extent = "refused"
        return self._result(extent, trouble, schedules=result.schedules, finding=finding)

    def _load_corpus(self) -> Corpus:
        kept = self._options.corpus
        return Corpus() if kept is None else CorpusFolder(kept).load(self._corpus_key())

    def _save_corpus(self, corpus: Corpus) -> None:
        kept = self._options.corpus
        if kept is not None:
            CorpusFolder(kept).save(self._corpus_key(), corpus)

    def _corpus_key(self) -> str:
        """What decides whether the schedules of an earlier run still mean anything."""
        settings = self._settings()
        version = ".".join(map(str, sys.version_info[:2]))
        mark = fingerprint(self._program)
        return f"{self.item.nodeid}\n{mark} {version} {settings.cancel} {settings.stall}"

    def _campaign_options(self, seconds: float) -> Options:
        options = self._options
        return Options(
            seconds=seconds,
            schedules=options.schedules,
            stall=self._lateness,
            cancel=options.cancel,
        )

    def _settings(self) -> Settings:
        return self._campaign_options(1.0).settings

    def _finding(self, found: Counterexample) -> SuiteFinding:
        return SuiteFinding(
            code=found.code,
            message=found.verdict.message,
            where=found.verdict.where[0] if found.verdict.where else "",
            token=found.token,
            replay=self.replay_line(found.token),
            text=self.text(found),
        )

    def replay_line(self, token: str) -> str:
        isolated = ["--handfast-explore-isolated"] if self._options.isolated else []
        return replay_line(self.item, token, *isolated)

    def text(self, found: Counterexample, size: str = "", *, width: int = 100) -> str:
        """What is shown of a finding."""
        line = self.replay_line(found.token)
        return with_page(self.item, found, line, found.report(line, size, width=width))

    # --- replay --------------------------------------------------------------------------------

    def replay(self, token: str) -> Counterexample:
        """Run the schedule of a token, after a plain run that it is judged by."""
        with self._environment():
            try:
                run(self._program, Plan(), self._settings())
                return replay(self._program, token)
            finally:
                self._tear_down(None)

    # --- around the runs -----------------------------------------------------------------------

    def _result(
        self,
        extent: Extent,
        reason: str = "",
        *,
        schedules: int = 0,
        finding: SuiteFinding | None = None,
    ) -> Explored:
        on_time = self._lateness < self._options.lateness
        seconds = round(self._seconds, 3)
        return Explored(self.item.nodeid, extent, reason, schedules, seconds, finding, on_time)

    @contextmanager
    def _environment(self) -> Iterator[None]:
        with steady(), output.mute_asyncio_log():
            yield


def _promise(record: Record) -> int:
    """How much of a plain run can be changed."""
    return sum(point.options - 1 for point in record.points) + len(record.segments)


def _refused_connection(error: BaseException | None) -> bool:
    """Whether nobody listened: a blocking socket does not reach a server on the explorer's loop."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, ConnectionRefusedError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _own_failure(error: Exception) -> str:
    """The tests after this one are explored all the same."""
    return f"handfast itself fails: {type(error).__name__}: {error}"


def _refusal(error: Uncontrolled) -> str:
    if error.name == "the event loop":
        return "does not run on a loop of asyncio's own"
    if error.name == OWN_CLOCK:
        return f"brings its own clock ({error.why})"
    return f"uses {error.name}"
