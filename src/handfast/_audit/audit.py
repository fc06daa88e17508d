"""A whole audit: plan, check, the suite with leaks, the explorer; one report.

What one step cannot do is a note, and the next step runs. Ctrl-C ends the present step and skips the
others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from handfast._audit.budget import Budget, hang_limit
from handfast._audit.merge import merge
from handfast._audit.observation import Observation
from handfast._audit.project import Project, find_project
from handfast._audit.report import AuditReport
from handfast._audit.run_check import run_check
from handfast._audit.run_explore import run_explore
from handfast._audit.run_leaks import SuiteOutcome, run_leaks
from handfast._audit.suite.interpreter import Interpreter, find_interpreter
from handfast._audit.suite.runner import SuiteRunner, result_folder

Progress = Callable[[str, str], None]
"""Called with the step, and with how far it is."""


@dataclass(frozen=True)
class Plan:
    """What was found and what will run."""

    project: Project
    interpreter: Interpreter
    seconds: float
    # Variables for the runs of the tests.
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def no_suite(self) -> str:
        """Why the tests do not run; empty if they do."""
        if not self.project.test_files:
            return "no tests were found"
        if self.interpreter.trouble:
            path = self.interpreter.path
            return f"{path} cannot run them: {self.interpreter.trouble}; name another with --python"
        return ""

    def lines(self) -> Iterator[str]:
        """The plan as text."""
        project = self.project
        yield f"project    {project.root}"
        yield f"sources    {_names(project.sources) or 'none found'}"
        yield f"tests      {self._tests() if project.test_files else 'none found'}"
        found = self.interpreter
        state = f"Python {found.version}, found by: {found.found_by}"
        if found.trouble:
            state = f"cannot run the tests: {found.trouble}"
        yield f"python     {found.path} ({state})"
        steps = ["check the sources"]
        if not self.no_suite:
            steps.append("run the suite once and look for leaks")
            steps += ["explore its async tests"] * self.project.has_async
        yield f"will run   {'; '.join(steps)}; at most {_time(self.seconds)}"

    def _tests(self) -> str:
        project = self.project
        facts = [_count(project.test_files, "file")]
        if project.runners:
            facts.append(f"async tests run by {_names(project.runners)}")
        if project.config:
            facts.append(f"settings in {project.config}")
        return f"{_names(project.tests)} ({', '.join(facts)})"


def make_plan(
    root: Path, python: str | None, seconds: float, environment: Mapping[str, str] = os.environ
) -> Plan:
    """Look at a project."""
    root = root.resolve()
    return Plan(find_project(root), find_interpreter(root, python, environment), seconds)


def run_audit(plan: Plan, progress: Progress = lambda step, text: None) -> AuditReport:
    """Run all tools."""
    run = _Run(plan, Budget(plan.seconds), progress)
    try:
        run.check()
        if plan.no_suite:
            run.report.notes.append(f"tests: not run: {plan.no_suite}")
        else:
            run.suite_and_schedules()
    except KeyboardInterrupt:
        run.report.interrupted = True
    run.report.issues = merge(each.with_pytest(run.report.pytest) for each in run.found)
    run.report.seconds = run.budget.spent
    return run.report


@dataclass
class _Run:
    plan: Plan
    budget: Budget
    progress: Progress
    report: AuditReport = field(init=False)
    found: list[Observation] = field(default_factory=list)

    def __post_init__(self) -> None:
        project = self.plan.project
        self.report = AuditReport(project, self.plan.interpreter, notes=list(project.notes))
        if not project.has_async:
            self.report.notes.append("no async code was found in this project")

    def check(self) -> None:
        result = run_check(self.plan.project, self.budget, self._step("check"))
        looked_at = self.report.looked_at
        looked_at.files, looked_at.task_places = result.files, result.task_places
        looked_at.close_methods = result.close_methods
        self.report.pedantic = result.pedantic
        self.found += result.found
        self.report.notes += result.notes

    def suite_and_schedules(self) -> None:
        with result_folder() as folder:
            plan = self.plan
            runner = SuiteRunner(
                plan.project, plan.interpreter, folder, self._step("suite"), plan.environment
            )
            alone = not self.plan.project.has_async
            seconds = self.budget.for_suite(alone=alone)
            spare = self.budget.for_suite(alone=True) - seconds
            suite = run_leaks(runner, seconds, hang_limit(seconds), spare)
            self._add_suite(suite)
            if suite.collected and not self.report.interrupted and not alone:
                runner.progress = self._step("explore")
                self._explore(runner, suite)

    def _add_suite(self, suite: SuiteOutcome) -> None:
        self.report.looked_at.tests, self.report.looked_at.tasks = suite.ran, suite.tasks
        self.report.interrupted = suite.interrupted
        if suite.needs_folder:
            self.report.pytest = "python -m pytest"
        self.found += suite.found
        self.report.notes += suite.notes

    def _explore(self, runner: SuiteRunner, suite: SuiteOutcome) -> None:
        result = run_explore(runner, suite, self.found, self.budget)
        looked_at = self.report.looked_at
        looked_at.explored, looked_at.schedules = result.tests, result.schedules
        self.report.interrupted = result.interrupted
        self.found += result.found
        self.report.notes += result.notes

    def _step(self, name: str) -> Callable[[str], None]:
        return lambda text: self.progress(name, text)


def _names(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _time(seconds: float) -> str:
    return _count(round(seconds), "second") if seconds < 60 else _count(seconds / 60, "minute")


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}{'' if number == 1 else 's'}"
