"""A release that is cancelled forgets the token, so that nobody can release the lock again."""

import asyncio

from redis.asyncio.lock import Lock

from handfast.explore import victim

PACKAGE = "redis"
BAD = "7.1.0"
GOOD = "7.2.0"
ISSUE = "https://github.com/redis/redis-py/issues/3847"
FINDING = "HF441"
OPTIONS = {"cancel": True}


class Script:
    """The only script that the lock runs here: delete the key if the token is ours."""

    async def __call__(self, keys, args, client):
        await asyncio.sleep(0.01)
        return client.keys.pop(keys[0], None) == args[0]


class Server:
    """As much of a client as the lock uses; each command takes a while."""

    def __init__(self):
        self.keys = {}

    def register_script(self, _text):
        return Script()

    async def set(self, name, token, nx, px):
        await asyncio.sleep(0.01)
        return self.keys.setdefault(name, token) == token

    async def get(self, name):
        await asyncio.sleep(0.01)
        return self.keys.get(name)


async def program():
    server = Server()
    lock = Lock(server, "job", thread_local=False)
    assert await lock.acquire()
    outcome = await victim(lock.release())
    if outcome.cancelled and await lock.locked():
        await lock.release()  # as a caller does in its own clean-up
    assert not server.keys
