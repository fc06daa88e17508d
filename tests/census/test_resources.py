"""Things of libraries that must be closed (HF743), and the transports that are theirs."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import aiohttp
import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from holdfast.census import Thing, owned_by, recording, register, resources, take
from holdfast.census.connections import ServerOpen, TransportOpen
from holdfast.census.resources import Collected, ResourceOpen


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


def opened(resource: object) -> list[ResourceOpen]:
    """What a census tells of one resource."""
    found = [thing for thing in take(["resources"]).things if isinstance(thing, ResourceOpen)]
    return [thing for thing in found if thing.resource is resource]


def lost() -> list[Thing]:
    return [thing for thing in take(["resources"]).things if isinstance(thing, Collected)]


class Pool:
    """As a library has one."""

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that a program has imported, with a type that nobody has registered."""
    module = ModuleType("a_library")
    module.Pool = type("Pool", (Pool,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_library", module)
    monkeypatch.setattr(resources, "_KINDS", dict(resources._KINDS))
    return module


def made_known(**options: Any) -> None:
    register("a_library.Pool", is_open=lambda pool: not pool.closed, **options)
    take(["resources"])  # looks again


def test_an_open_session_is_told_until_it_is_closed() -> None:
    async def main() -> None:
        session = aiohttp.ClientSession()  # made here
        [thing] = opened(session)
        assert (thing.check, thing.code) == ("resources", "HF743")
        assert thing.what == "aiohttp.ClientSession, open"
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# made here")
        assert thing.owner == "the test"
        assert not thing.over()
        await session.close()
        assert thing.over()
        assert thing.what == "aiohttp.ClientSession, over"
        assert opened(session) == []

    with owned_by("the test"):
        asyncio.run(main())


def test_a_client_of_httpx_is_told_once_it_is_in_use() -> None:
    async def main() -> None:
        transport = httpx.MockTransport(lambda request: httpx.Response(200))
        client = httpx.AsyncClient(transport=transport)
        assert opened(client) == []
        await client.get("http://localhost/")
        [thing] = opened(client)
        assert thing.what == "httpx.AsyncClient, open"
        await client.aclose()
        assert opened(client) == []

    asyncio.run(main())


def test_one_that_is_collected_while_it_is_open_is_told_in_words() -> None:
    async def main() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            session: Any = aiohttp.ClientSession()  # made here
            gone = weakref.ref(session)
            del session
            gc.collect()
        assert gone() is None

    with owned_by("the test"):
        asyncio.run(main())
    [thing] = lost()
    assert thing.code == "HF743"
    assert thing.what == "aiohttp.ClientSession, collected while it was open"
    assert thing.birth is not None
    assert thing.birth.origin.source.endswith("# made here")
    assert not thing.over()
    assert thing.key == lost()[0].key
    resources.forget()
    assert lost() == []


def test_one_in_a_cycle_is_told_with_its_birth(library: Any) -> None:
    made_known()
    pool = library.Pool()  # made here
    pool.itself = pool
    del pool
    gc.collect()
    [thing] = lost()
    assert thing.birth is not None
    assert thing.birth.origin.source.endswith("# made here")


def test_one_that_is_collected_after_its_close_is_not_told(library: Any) -> None:
    made_known()
    pool = library.Pool()
    pool.closed = True
    del pool
    gc.collect()
    assert lost() == []


def test_the_words_and_the_code_are_those_that_were_registered(library: Any) -> None:
    made_known(code="HF742", what=lambda pool: f"pool {pool.name}")
    pool = library.Pool()
    pool.name = "of tests"
    [thing] = opened(pool)
    assert (thing.code, thing.what) == ("HF742", "pool of tests, open")
    del pool.name
    assert thing.what == "a_library.Pool, open"


def test_a_type_is_seen_when_its_module_comes_later(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "a_library")
    made_known()
    unseen = library.Pool()
    assert opened(unseen) == []
    monkeypatch.setitem(sys.modules, "a_library", library)
    take(["resources"])
    pool = library.Pool()
    assert len(opened(pool)) == 1
    assert opened(unseen) == []


def test_a_module_that_is_half_imported_is_looked_at_again(library: Any) -> None:
    kind = library.Pool
    del library.Pool
    made_known()
    library.Pool = kind
    take(["resources"])
    pool = kind()
    assert len(opened(pool)) == 1


def test_a_subclass_is_seen_once_whether_it_is_registered_itself_or_not(library: Any) -> None:
    class Derived(library.Pool):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.more = 1

    made_known()
    pool = Derived()
    assert [thing.what for thing in opened(pool)] == ["a_library.Pool, open"]
    library.Derived = Derived
    register("a_library.Derived", is_open=lambda pool: not pool.closed)
    take(["resources"])
    pool = Derived()
    assert [thing.what for thing in opened(pool)] == ["a_library.Derived, open"]


def test_one_that_cannot_say_whether_it_is_open_is_not(library: Any) -> None:
    made_known()
    pool = library.Pool()
    del pool.closed
    assert opened(pool) == []
    del pool
    gc.collect()
    assert lost() == []


def test_one_whose_making_failed_is_none(library: Any) -> None:
    made_known()
    with pytest.raises(TypeError):
        library.Pool(1, 2, 3)
    gc.collect()
    assert lost() == []


def test_a_type_that_compares_and_has_no_hash_is_told_by_identity(library: Any) -> None:
    library.Pool.__eq__ = lambda self, other: True
    library.Pool.__hash__ = None
    made_known()
    pools = [library.Pool(), library.Pool()]
    assert len({thing.key for pool in pools for thing in opened(pool)}) == 2


def test_a_type_with_its_own_mind_about_attributes_is_left_alone(library: Any) -> None:
    class Strict(Pool):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            assert name == "closed", f"nobody has asked for {name}"
            super().__setattr__(name, value)

    library.Pool = Strict
    made_known()
    pool = Strict()
    assert len(opened(pool)) == 1
    assert vars(pool) == {"closed": False}


def test_types_that_take_no_weak_references_or_no_hooks_do_no_harm(library: Any) -> None:
    class Slotted:
        __slots__ = ("closed",)

        def __init__(self) -> None:
            self.closed = False

    library.Pool = Slotted
    made_known()
    assert opened(Slotted()) == []
    library.Native = int
    register("a_library.Native", is_open=bool)
    take(["resources"])
    assert opened(1) == []


def test_what_was_there_before_is_there_again_afterwards(library: Any) -> None:
    register("a_library.Pool", is_open=bool)
    before = dict(vars(library.Pool)), vars(aiohttp.ClientSession)["__init__"]
    take(["resources"])
    assert "__del__" in vars(library.Pool)
    resources._WATCH.take_out()
    assert (dict(vars(library.Pool)), vars(aiohttp.ClientSession)["__init__"]) != before
    assert "__del__" not in vars(library.Pool)
    resources._WATCH.put_in()


@pytest.mark.parametrize(
    ("path", "options", "error", "words"),
    [
        ("Session", {}, ValueError, "'Session' is no dotted path of a type"),
        ("a b.Session", {}, ValueError, "no dotted path"),
        ("a..Session", {}, ValueError, "no dotted path"),
        (3, {}, ValueError, "3 is no dotted path"),
        ("a.Session", {"is_open": None}, TypeError, "is_open of a.Session cannot be called"),
        ("a.Session", {"what": "words"}, TypeError, "what of a.Session cannot be called"),
        ("a.Session", {"code": "743"}, ValueError, "'743' is no code of the catalogue"),
    ],
)
def test_what_cannot_be_registered_is_refused_with_the_way_out(
    path: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    known = dict(resources._KINDS)
    with pytest.raises(error, match=words):
        register(path, **{"is_open": bool, **options})
    assert known == resources._KINDS


# --- the transports of a session ---------------------------------------------------------------


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


def application() -> web.Application:
    app = web.Application()
    app.router.add_get("/", hello)
    return app


def alive(*checks: str) -> list[Thing]:
    return list(take(checks, loop=asyncio.get_running_loop()).things)


@pytest.mark.parametrize(
    "checks", [("resources", "connections"), ("connections", "resources")], ids=["", "reversed"]
)
def test_the_transport_of_an_open_session_is_part_of_it(checks: tuple[str, ...]) -> None:
    async def main() -> None:
        async with TestServer(application()) as server:
            session = aiohttp.ClientSession()
            async with session.get(server.make_url("/")) as response:
                await response.text()
            [thing] = opened(session)
            things = alive(*checks)
            served = [thing for thing in things if isinstance(thing, ServerOpen)]
            parts = [thing.part_of for thing in things if isinstance(thing, TransportOpen)]
            assert sorted(parts, key=str) == sorted([thing.key, served[0].key], key=str)
            await session.close()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_the_transport_of_a_client_of_httpx_is_part_of_it() -> None:
    async def main() -> None:
        async with TestServer(application()) as server:
            client = httpx.AsyncClient(trust_env=False)
            await client.get(str(server.make_url("/")))
            [thing] = opened(client)
            parts = [each.part_of for each in alive("connections")]
            assert thing.key in parts
            await client.aclose()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_a_transport_that_the_program_opened_is_no_part_of_a_session() -> None:
    async def main() -> None:
        async with TestServer(application()) as server, aiohttp.ClientSession():
            _, writer = await asyncio.open_connection(server.host, server.port)
            [mine] = [
                thing
                for thing in alive("connections")
                if isinstance(thing, TransportOpen) and thing.transport is writer.transport
            ]
            assert mine.part_of is None
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())


def test_of_two_sessions_the_transport_belongs_to_the_one_of_its_owner() -> None:
    async def main() -> None:
        async with TestServer(application()) as server:
            with owned_by("another"):
                other = aiohttp.ClientSession()
            with owned_by("mine"):
                session = aiohttp.ClientSession()
                async with session.get(server.make_url("/")) as response:
                    await response.text()
            [mine] = [
                thing
                for thing in alive("connections")
                if isinstance(thing, TransportOpen) and thing.owner == "mine"
            ]
            assert mine.part_of == opened(session)[0].key
            await session.close()
            await other.close()

    asyncio.run(main())


def test_a_server_that_a_library_made_for_the_program_is_told_with_both() -> None:
    async def main() -> None:
        server = TestServer(application())
        await server.start_server()  # made here
        [thing] = alive("connections")
        assert isinstance(thing, ServerOpen)
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# made here")
        assert thing.birth.package == "aiohttp"
        await server.close()
        assert alive("connections") == []

    asyncio.run(main())
