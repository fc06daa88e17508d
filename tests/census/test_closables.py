"""Library objects that must be closed (HF743), and their transports."""

from __future__ import annotations

import asyncio
import gc
import inspect
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

from handfast._census import LiveObject, owned_by, recording, register, take
from handfast._census.kinds import closables as resources


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


def opened(resource: object) -> list[LiveObject]:
    """The entries of one object in a snapshot."""
    found = [live for live in take(["resources"]).objects if live.target is not None]
    return [live for live in found if live.target() is resource]


def lost() -> list[LiveObject]:
    return [live for live in take(["resources"]).objects if live.target is None]


class Pool:
    """A type of a library."""

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that a program has imported, with a type that is not registered."""
    module = ModuleType("a_library")
    module.Pool = type("Pool", (Pool,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_library", module)
    monkeypatch.setattr(resources, "_TYPES", dict(resources._TYPES))
    return module


def made_known(**options: Any) -> None:
    register("a_library.Pool", is_open=lambda pool: not pool.closed, **options)
    take(["resources"])  # looks again


def test_an_open_session_is_listed_until_it_is_closed() -> None:
    async def main() -> None:
        session = aiohttp.ClientSession()  # made here
        [live] = opened(session)
        assert (live.check, live.code) == ("resources", "HF743")
        assert live.what == "aiohttp.ClientSession, open"
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# made here")
        assert live.owner == "the test"
        assert not live.ended()
        await session.close()
        assert live.ended()
        assert opened(session) == []

    with owned_by("the test"):
        asyncio.run(main())


def test_a_client_of_httpx_is_listed_once_it_is_in_use() -> None:
    async def main() -> None:
        transport = httpx.MockTransport(lambda request: httpx.Response(200))
        client = httpx.AsyncClient(transport=transport)
        assert opened(client) == []
        await client.get("http://localhost/")
        [live] = opened(client)
        assert live.what == "httpx.AsyncClient, open"
        await client.aclose()
        assert opened(client) == []

    asyncio.run(main())


def test_one_that_is_collected_while_it_is_open_is_listed() -> None:
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
    [live] = lost()
    assert live.code == "HF743"
    assert live.what == "aiohttp.ClientSession, collected while it was open"
    assert live.creation is not None
    assert live.creation.origin.source.endswith("# made here")
    assert not live.ended()
    assert live.key == lost()[0].key
    resources.KIND.clear()
    assert lost() == []


def test_one_in_a_cycle_is_listed_with_its_creation(library: Any) -> None:
    made_known()
    pool = library.Pool()  # made here
    pool.itself = pool
    del pool
    gc.collect()
    [live] = lost()
    assert live.creation is not None
    assert live.creation.origin.source.endswith("# made here")


def test_one_that_is_collected_after_its_close_is_not_listed(library: Any) -> None:
    made_known()
    pool = library.Pool()
    pool.closed = True
    del pool
    gc.collect()
    assert lost() == []


def test_the_text_and_the_code_are_those_that_were_registered(library: Any) -> None:
    made_known(code="HF742", what=lambda pool: f"pool {pool.name}")
    pool = library.Pool()
    pool.name = "of tests"
    [live] = opened(pool)
    assert (live.code, live.what) == ("HF742", "pool of tests, open")
    del pool.name
    [live] = opened(pool)
    assert live.what == "a_library.Pool, open"


def test_a_type_is_patched_when_its_module_is_imported_later(
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


def test_a_module_that_is_half_imported_is_patched_later(library: Any) -> None:
    kind = library.Pool
    del library.Pool
    made_known()
    library.Pool = kind
    take(["resources"])
    pool = kind()
    assert len(opened(pool)) == 1


def test_a_subclass_is_listed_once_whether_it_is_registered_itself_or_not(library: Any) -> None:
    class Derived(library.Pool):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.more = 1

    made_known()
    pool = Derived()
    assert [live.what for live in opened(pool)] == ["a_library.Pool, open"]
    library.Derived = Derived
    register("a_library.Derived", is_open=lambda pool: not pool.closed)
    take(["resources"])
    pool = Derived()
    assert [live.what for live in opened(pool)] == ["a_library.Derived, open"]


def test_one_whose_is_open_fails_is_not_open(library: Any) -> None:
    made_known()
    pool = library.Pool()
    del pool.closed
    assert opened(pool) == []
    del pool
    gc.collect()
    assert lost() == []


def test_one_whose_init_failed_is_not_listed(library: Any) -> None:
    made_known()
    with pytest.raises(TypeError):
        library.Pool(1, 2, 3)
    gc.collect()
    assert lost() == []


def test_a_type_that_compares_and_has_no_hash_is_listed_by_identity(library: Any) -> None:
    library.Pool.__eq__ = lambda self, other: True
    library.Pool.__hash__ = None
    made_known()
    pools = [library.Pool(), library.Pool()]
    assert len({live.key for pool in pools for live in opened(pool)}) == 2


def test_a_type_that_rejects_attributes_is_listed(library: Any) -> None:
    class Strict(Pool):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            assert name == "closed", f"{name} was not expected"
            super().__setattr__(name, value)

    library.Pool = Strict
    made_known()
    pool = Strict()
    assert len(opened(pool)) == 1
    assert vars(pool) == {"closed": False}


def test_types_without_weak_references_or_patches_are_not_listed(library: Any) -> None:
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


def test_the_signature_stays() -> None:
    # Libraries look at it: aiohttp-client-cache passes on what the session takes.
    assert "cookies" in inspect.signature(aiohttp.ClientSession.__init__).parameters


def test_uninstalling_restores_the_original_methods(library: Any) -> None:
    register("a_library.Pool", is_open=bool)
    before = dict(vars(library.Pool)), vars(aiohttp.ClientSession)["__init__"]
    take(["resources"])
    assert "__del__" in vars(library.Pool)
    resources._PATCHES.uninstall()
    assert (dict(vars(library.Pool)), vars(aiohttp.ClientSession)["__init__"]) != before
    assert "__del__" not in vars(library.Pool)
    resources._PATCHES.install()


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
def test_wrong_arguments_of_register_are_refused(
    path: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    known = dict(resources._TYPES)
    with pytest.raises(error, match=words):
        register(path, **{"is_open": bool, **options})
    assert known == resources._TYPES


# --- the transports of a session ---------------------------------------------------------------


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


def application() -> web.Application:
    app = web.Application()
    app.router.add_get("/", hello)
    return app


def alive(*checks: str) -> list[LiveObject]:
    return list(take(checks, loop=asyncio.get_running_loop()).objects)


@pytest.mark.parametrize(
    "checks", [("resources", "connections"), ("connections", "resources")], ids=["", "reversed"]
)
def test_the_transport_of_an_open_session_is_part_of_it(checks: tuple[str, ...]) -> None:
    async def main() -> None:
        async with TestServer(application()) as server:
            session = aiohttp.ClientSession()
            async with session.get(server.make_url("/")) as response:
                await response.text()
            [live] = opened(session)
            objects = alive(*checks)
            served = [live for live in objects if live.code == "HF741"]
            parts = [live.part_of() for live in objects if live.code == "HF742"]
            assert sorted(parts, key=str) == sorted([live.key, served[0].key], key=str)
            await session.close()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_the_transport_of_a_client_of_httpx_is_part_of_it() -> None:
    async def main() -> None:
        async with TestServer(application()) as server:
            client = httpx.AsyncClient(trust_env=False)
            await client.get(str(server.make_url("/")))
            [live] = opened(client)
            parts = [each.part_of() for each in alive("connections")]
            assert live.key in parts
            await client.aclose()
        await asyncio.sleep(0)

    asyncio.run(main())


def test_a_transport_that_the_program_opened_is_no_part_of_a_session() -> None:
    async def main() -> None:
        async with TestServer(application()) as server, aiohttp.ClientSession():
            _, writer = await asyncio.open_connection(server.host, server.port)
            [mine] = [
                live
                for live in alive("connections")
                if live.code == "HF742" and live.target is writer.transport
            ]
            assert mine.part_of() is None
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
                live
                for live in alive("connections")
                if live.code == "HF742" and live.owner == "mine"
            ]
            assert mine.part_of() == opened(session)[0].key
            await session.close()
            await other.close()

    asyncio.run(main())


def test_a_server_that_a_library_made_for_the_program_is_listed_with_both() -> None:
    async def main() -> None:
        server = TestServer(application())
        await server.start_server()  # made here
        [live] = alive("connections")
        assert live.code == "HF741"
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# made here")
        assert live.creation.package == "aiohttp"
        await server.close()
        assert alive("connections") == []

    asyncio.run(main())
