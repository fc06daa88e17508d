"""`handfast lsp` with a real client, over the standard input and output of a process of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handfast.catalogue import kind
from handfast.explore import explore
from tests.conftest import MEASURED

pytest.importorskip("pygls.lsp.client", reason="pygls 2 is not installed")

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.workspace import Workspace

from handfast._lsp.server import _Server

# pygls 2.1 calls it.
DEPRECATED = "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"
pytestmark = pytest.mark.filterwarnings(DEPRECATED)

# The character in the last line counts two in UTF-16, the default of the protocol.
BOT = """\
import asyncio


class Bot:
    def __init__(self, send):
        self._send = send

    def notify(self, message):
        asyncio.create_task(self._send(message))

    def start(self):
        self._poller = asyncio.create_task(self._poll())

    async def _poll(self):
        while True:
            await self._session.fetch()

    async def close(self):
        session, self._session = self._session, None
        await session.say_goodbye()
        self._poller.cancel()
        await asyncio.wait({self._poller})


NAME = "\N{ROBOT FACE}"  # noqa: HF999
"""
BASE = """\
import asyncio


class Base:
    def start(self):
        self._poller = asyncio.create_task(self._poll())

    async def _poll(self):
        while "\N{ROBOT FACE}": await self._session.fetch()
"""
CLOSE = BOT[BOT.index("    async def close") : BOT.index("NAME")]
DROPPED = "        asyncio.create_task(self._send(message))\n"


class Editor:
    """A client with one document, and the diagnostics that the server has published for it."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client, self.uri, self.version = client, uri, 0
        self.published = asyncio.Queue[types.PublishDiagnosticsParams]()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda params: self.published.put_nowait(params)
        )

    async def open(self, text: str) -> list[types.Diagnostic]:
        self.version += 1
        item = types.TextDocumentItem(self.uri, "python", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def change(self, text: str) -> list[types.Diagnostic]:
        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))
        return await self.diagnostics()

    async def save(self) -> list[types.Diagnostic]:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(self._document))
        return await self.diagnostics()

    async def close(self) -> list[types.Diagnostic]:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(self._document))
        published = await self.published.get()
        assert published.version is None
        return list(published.diagnostics)

    async def diagnostics(self) -> list[types.Diagnostic]:
        published = await self.published.get()
        assert (published.uri, published.version) == (self.uri, self.version)
        return list(published.diagnostics)

    async def fixes(self, found: types.Diagnostic) -> list[types.CodeAction]:
        params = types.CodeActionParams(
            self._document, found.range, types.CodeActionContext([found])
        )
        actions = await self.client.text_document_code_action_async(params) or []
        return [each for each in actions if isinstance(each, types.CodeAction)]

    async def hover(self, line: int, character: int) -> str | None:
        position = types.Position(line, character)
        params = types.HoverParams(self._document, position)
        found = await self.client.text_document_hover_async(params)
        if found is None:
            return None
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    @property
    def _document(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)


@asynccontextmanager
async def editor(folder: Path, uri: str) -> AsyncIterator[Editor]:
    """Start the server as an editor does; it must end with status 0 and print no error."""
    client = LanguageClient("test", "1")
    one = Editor(client, uri)
    command = ("-W", "error", "-W", DEPRECATED, "-m", "handfast", "lsp", "--stdio")
    await client.start_io(sys.executable, *command, cwd=folder, env={**os.environ, **MEASURED})
    process = client._server
    assert process is not None
    assert process.stderr is not None
    try:
        answer = await client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri())
        )
        assert answer.server_info is not None
        assert answer.server_info.name == "handfast"
        client.initialized(types.InitializedParams())
        yield one
        await client.shutdown_async(None)
        client.exit(None)
        assert (await process.stderr.read(), await process.wait()) == (b"", 0)
    finally:
        if process.returncode is None:
            process.kill()
        await client.stop()  # type: ignore[no-untyped-call]


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """Apply edits as a client does: places are those of the text before all of them."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda each: each.range.start, reverse=True):
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line
        line = lines[start.line].encode("utf-16-le")
        part = line[: start.character * 2], line[end.character * 2 :]
        lines[start.line] = edit.new_text.join(each.decode("utf-16-le") for each in part)
    return "".join(lines)


def edits_of(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    assert action.edit is not None
    assert action.edit.changes is not None
    assert list(action.edit.changes) == [uri]
    return list(action.edit.changes[uri])


def test_an_editing_session(tmp_path: Path) -> None:
    # An editor may encode more characters of a path than others do.
    uri = f"{tmp_path.as_uri()}/a%20b%2Epy"

    async def session() -> None:
        async with editor(tmp_path, uri) as one:
            found = await one.open(BOT)
            dropped, cleared, unused = found
            assert [each.code for each in found] == ["HF101", "HF301", "HF001"]

            assert dropped.range == types.Range(types.Position(8, 8), types.Position(8, 48))
            assert (dropped.source, dropped.severity) == ("handfast", 2)
            assert "No reference is kept" in dropped.message
            assert dropped.code_description is not None
            assert dropped.code_description.href.endswith("/pages/HF101.md")

            assert [
                (each.location.uri, each.location.range.start.line, each.message)
                for each in cleared.related_information or ()
            ] == [
                (uri, 15, "the body of the task uses it here"),
                (uri, 11, "the task is created here"),
            ]

            # The columns count UTF-16 units: 11 characters and one that counts two come before it.
            assert unused.range.start == types.Position(24, 13)
            assert (unused.severity, unused.code_description) == (4, None)

            page = await one.hover(8, 20)
            assert page is not None
            assert page.startswith("# HF101 task-dropped\n")
            assert kind("HF101").right in page
            assert "noqa-unused" in (await one.hover(24, 20) or "")
            assert await one.hover(0, 0) is None

            (unsafe,) = await one.fixes(dropped)
            assert (unsafe.is_preferred, unsafe.kind) == (False, "quickfix")
            assert "(unsafe: review the change)" in unsafe.title
            (safe,) = await one.fixes(unused)
            assert (safe.is_preferred, safe.title) == (True, "Remove the comment")
            assert await one.fixes(cleared) == []
            everything = types.Range(types.Position(0, 0), types.Position(99, 0))
            both = await one.fixes(types.Diagnostic(everything, ""))
            assert [each.title for each in both] == [safe.title, unsafe.title]

            text = applied(BOT, [*edits_of(safe, uri), *edits_of(unsafe, uri)])
            assert [each.code for each in await one.change(text)] == ["HF301"]
            assert text.endswith('NAME = "\N{ROBOT FACE}"\n')

            (broken,) = await one.change("import asyncio\nasync def f(:\n")
            assert (broken.code, broken.severity) == ("HF000", 3)
            assert await one.change("import asyncio\n") == []

            # The settings apply, and wrong ones are shown in the document.
            (dropped,) = await one.change(f"import asyncio\nclass A:\n    def f(self):\n{DROPPED}")
            settings = tmp_path / "pyproject.toml"
            settings.write_text("[tool.handfast.check]\nignor = []\n")
            (broken,) = await one.save()
            assert "there is no setting 'ignor'" in broken.message
            settings.write_text("[tool.handfast.check]\nexclude = ['a b.py']\n")
            assert await one.save() == []
            settings.unlink()
            assert await one.save() == [dropped]

            assert await one.close() == []
            assert await one.hover(3, 10) is None
            assert await one.fixes(dropped) == []

            # Related places in another file of the package.
            base = tmp_path / "pkg" / "base.py"
            base.parent.mkdir()
            base.with_name("__init__.py").touch()
            base.write_text(BASE, encoding="utf-8")
            one.uri = base.with_name("bot.py").as_uri()
            head = "import asyncio\nfrom pkg.base import Base\nclass Bot(Base):\n"
            (cleared,) = await one.open(head + CLOSE)
            places = [each.location for each in cleared.related_information or ()]
            assert [each.uri for each in places] == [base.as_uri()] * 2
            assert [each.range.start for each in places] == [
                types.Position(8, 26),
                types.Position(5, 23),
            ]
            await one.close()

            # A document that has no file yet.
            one.uri = "untitled:Untitled-1"
            assert [each.code for each in await one.open(BOT)] == ["HF101", "HF301", "HF001"]

    asyncio.run(asyncio.wait_for(session(), 60))


class Published:
    """A writer that keeps what the server sends."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.messages.append(data)

    def close(self) -> None:
        pass


def test_the_newest_version_is_published_last_and_a_closed_document_has_no_diagnostics() -> None:
    uri = "untitled:a.py"
    bug = f"import asyncio\nclass A:\n    def f(self):\n{DROPPED}"

    async def session(text: str | None) -> list[bytes]:
        """Open a document, and change or close it at some point of the first check."""
        server, published = _Server(), Published()
        server.protocol.set_writer(published)
        server.protocol._workspace = workspace = Workspace(None)
        workspace.put_text_document(types.TextDocumentItem(uri, "python", 1, bug))
        first = asyncio.create_task(server.check(uri))
        await asyncio.sleep(0.001)
        if text is None:
            workspace.remove_text_document(uri)
            server.forget(uri)
            await first
        else:
            document = types.VersionedTextDocumentIdentifier(2, uri)
            workspace.update_text_document(
                document, types.TextDocumentContentChangeWholeDocument(text)
            )
            await asyncio.gather(first, server.check(uri), server.check(uri))
        return published.messages

    outcomes = set()

    async def changed() -> None:
        messages = await session("import asyncio\n")
        assert b'"diagnostics":[]' in messages[-1].replace(b" ", b"")
        outcomes.add(len(messages))

    async def closed() -> None:
        messages = await session(None)
        assert b'"diagnostics":[]' in messages[-1].replace(b" ", b"")

    for program in (changed, closed):
        result = explore(program, schedules=30)
        assert result.counterexample is None, str(result.counterexample)
    assert outcomes == {1, 2}


def test_without_pygls_the_command_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['pygls'] = None; sys.argv = ['handfast', 'lsp']; "
        "from handfast.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **MEASURED},
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "handfast: the language server needs pygls 2: "
        "pip install 'handfast[lsp]', or in a clone pip install '.[lsp]'\n"
    )
