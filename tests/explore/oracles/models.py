"""Sequential models, and objects that should behave like them: right ones and racy ones."""

from __future__ import annotations

import asyncio
from collections import deque

from handfast.explore import WouldBlock


class CacheModel:
    """Each key is loaded once."""

    def __init__(self) -> None:
        self.loaded: dict[str, int] = {}
        self.loads = 0

    def get(self, key: str) -> int:
        if key not in self.loaded:
            self.loads += 1
            self.loaded[key] = self.loads
        return self.loaded[key]


class RacyCache(CacheModel):
    async def get(self, key: str) -> int:  # type: ignore[override]
        if key not in self.loaded:
            self.loads += 1
            version = self.loads
            await asyncio.sleep(0.01)  # another task loads it too
            self.loaded[key] = version
        return self.loaded[key]


class RightCache(RacyCache):
    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def get(self, key: str) -> int:  # type: ignore[override]
        async with self.lock:
            return await super().get(key)


class QueueModel:
    """First in, first out; `get` waits for an item."""

    def __init__(self) -> None:
        self.items: deque[object] = deque()

    def put(self, item: object) -> None:
        self.items.append(item)

    def get(self) -> object:
        if not self.items:
            raise WouldBlock
        return self.items.popleft()


class RightQueue:
    def __init__(self) -> None:
        self.items: asyncio.Queue[object] = asyncio.Queue()

    async def put(self, item: object) -> None:
        await self.items.put(item)

    async def get(self) -> object:
        return await self.items.get()


class RacyQueue(RightQueue):
    """Reads the next item, waits, and removes it."""

    async def get(self) -> object:
        item = self.items._queue[0]  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        self.items.get_nowait()
        return item


class LockModel:
    def __init__(self) -> None:
        self.held = False

    def acquire(self) -> bool:
        if self.held:
            raise WouldBlock
        self.held = True
        return True

    def release(self) -> None:
        if not self.held:
            raise RuntimeError
        self.held = False


class RacyLock(LockModel):
    """Looks, waits, and takes."""

    async def acquire(self) -> bool:  # type: ignore[override]
        while self.held:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        self.held = True
        return True

    def release(self) -> None:
        self.held = False


class StoreModel:
    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def read(self, key: str) -> int:
        return self.values[key]

    def write(self, key: str, value: int) -> None:
        self.values[key] = value

    def add(self, key: str, value: int) -> int:
        self.values[key] = self.values.get(key, 0) + value
        return self.values[key]


class RightStore:
    """A store behind a simulated network: every operation takes effect on its way."""

    def __init__(self) -> None:
        self.state = StoreModel()

    async def read(self, key: str) -> int:
        await asyncio.sleep(0.01)
        value = self.state.read(key)
        await asyncio.sleep(0.01)
        return value

    async def write(self, key: str, value: int) -> None:
        await asyncio.sleep(0.01)
        self.state.write(key, value)
        await asyncio.sleep(0.01)

    async def add(self, key: str, value: int) -> int:
        await asyncio.sleep(0.01)
        return self.state.add(key, value)


class StaleStore(RightStore):
    """Reads from a copy that is brought up to date after the write has returned."""

    def __init__(self) -> None:
        super().__init__()
        self.copy: dict[str, int] = {"x": 0}

    async def read(self, key: str) -> int:
        return self.copy[key]

    async def write(self, key: str, value: int) -> None:
        await super().write(key, value)
        asyncio.get_running_loop().call_later(0.01, self.copy.update, self.state.values)
