"""`except*` is treated like `except`: a rule finds the same, and is silent about the same."""

from __future__ import annotations

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.rules import RULES
from handfast._check.source import parse

FOUND = {
    "HF501": """\
import asyncio
async def poll(self):
    while True:
        try:
            await self.fetch()
        except asyncio.CancelledError:
            pass
""",
    "HF511": """\
async def run(self):
    try:
        await self.read()
    except ValueError:
        pass
    finally:
        await self.flush()
        self.lock.release()
""",
    "HF521": """\
import asyncio
async def serve(self):
    task = asyncio.create_task(self.work())
    try:
        await asyncio.wait_for(task, 5)
    except TimeoutError:
        task.cancel()
""",
    "HF531": """\
async def query(self, pool):
    c = await pool.acquire()
    await self.prepare()
    try:
        return await self.run()
    except BaseException:
        pool.release(c)
""",
    "HF603": """\
import asyncio
async def save(document):
    await document.write()
async def save_all(documents):
    try:
        await prepare()
    except ValueError:
        pass
    finally:
        await asyncio.gather(*[save(each) for each in documents], return_exceptions=True)
""",
    "HF731": """\
async def rows(pool):
    try:
        yield await pool.row()
    except ValueError:
        log()
    finally:
        await pool.release()
async def first(pool):
    async for row in rows(pool):
        break
""",
}

SILENT = {
    "HF311": """\
class Channel:
    async def send(self, data):
        if self._ws is None:
            return
        await self.ready()
        try:
            self._ws.send(data)
        except AttributeError:
            pass
    def close(self):
        self._ws = None
""",
    "HF403": """\
import asyncio, threading
def work():
    try:
        return asyncio.get_event_loop()
    except RuntimeError:
        return None
threading.Thread(target=work)
""",
    "HF511": """\
async def run(self):
    try:
        await self.read()
    finally:
        try:
            await self.flush()
        except BaseException:
            log()
        self.lock.release()
""",
    "HF522": """\
import asyncio
class Rates:
    async def get(self, key):
        if self._task is None:
            self._task = asyncio.create_task(self.fetch(key))
        try:
            rate = await self._task
        except asyncio.CancelledError:
            self._task = None
        return rate
""",
    "HF531": """\
async def query(self, pool):
    try:
        c = await pool.acquire()
        await self.prepare()
        try:
            await self.run()
        finally:
            pool.release(c)
    except BaseException:
        c.abort()
""",
    "HF603": """\
import asyncio
async def save(document):
    try:
        await document.write()
    except Exception:
        log()
async def save_all(documents):
    await asyncio.gather(*[save(each) for each in documents], return_exceptions=True)
""",
    "HF604": """\
import asyncio
class Jobs:
    def start(self, key, job):
        task = asyncio.create_task(job())
        self.live[key] = task
        def done(_):
            try:
                self.live.pop(key)
            except KeyError:
                pass
        task.add_done_callback(done)
    def forget(self):
        self.live.clear()
""",
    "HF622": """\
async def run(job):
    try:
        async with TaskGroup() as group:
            group.create_task(job())
    except ValueError as errors:
        raise errors.exceptions[0]
""",
}


def places(code: str, source: str) -> list[tuple[int, bool]]:
    rule = next(each for each in RULES if each.code == code)
    module = Module(parse("x.py", source.encode()), "x")
    return [(each.place.line, each.pedantic) for each in rule.check(module)]


def starred(source: str) -> str:
    return source.replace("except ", "except* ")


@pytest.mark.parametrize("code", FOUND)
def test_the_same_is_found(code: str) -> None:
    plain = places(code, FOUND[code])
    assert plain
    assert places(code, starred(FOUND[code])) == plain


@pytest.mark.parametrize("code", SILENT)
def test_the_same_is_right(code: str) -> None:
    assert not places(code, SILENT[code])
    assert not places(code, starred(SILENT[code]))


@pytest.mark.parametrize("code", sorted(SILENT.keys() - {"HF622"}))
def test_without_the_handler_it_is_found(code: str) -> None:
    """Each example is silent because of its handler, and for no other reason."""
    silent = SILENT[code]
    for kind in ("AttributeError", "RuntimeError", "BaseException", "asyncio.CancelledError"):
        silent = silent.replace(f"except {kind}", "except LookupError")
    silent = silent.replace("c.abort()", "pass").replace("except Exception", "except LookupError")
    if code == "HF403":
        silent = silent.replace("    try:\n    ", "").split("    except")[0]
        silent += "threading.Thread(target=work)\n"
    if code == "HF604":
        silent = silent.replace("            try:\n    ", "").replace(
            "            except KeyError:\n                pass\n", ""
        )
    assert places(code, silent)
