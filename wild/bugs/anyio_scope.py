"""A cancel of the task that comes together with a scope's deadline is swallowed by the scope."""

import anyio

from handfast.explore import victim

PACKAGE = "anyio"
BAD = "4.15.1"
GOOD = "4.16.0"
ISSUE = "https://github.com/agronholm/anyio/issues/1214"
FINDING = "HF501"
OPTIONS = {"cancel": True}


async def program():
    polls = []

    async def poll():
        for number in range(3):
            with anyio.move_on_after(1):
                await anyio.sleep(10)
            polls.append(number)

    outcome = await victim(poll())
    assert outcome.cancelled or polls == [0, 1, 2]
