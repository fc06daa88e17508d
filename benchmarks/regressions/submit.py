"""Submit work to a loop from a thread, and wait for every result."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.comparisons import submit
from benchmarks.foreign_loop import foreign_loop

N = 20_000


class Submit:
    def setup(self) -> None:
        self.stack = ExitStack()
        loop = self.stack.enter_context(foreign_loop())
        self.submit = submit.scope_submit(self.stack, loop)

    def teardown(self) -> None:
        self.stack.close()

    def time_answers(self) -> None:
        submit.submit_and_wait(self.submit, N)
