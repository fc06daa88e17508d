"""The server: checks a document when it is opened, changed or saved, and answers the editor.

A check runs in a worker thread, so that the server can answer meanwhile, and one at a time. Changes
that arrive during a check are checked together, as the newest version of the document.
"""

from __future__ import annotations

import asyncio
from urllib.parse import unquote

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from handfast import __version__
from handfast._lsp.document import CheckedDocument, checked

__all__ = ["serve"]


class _Server(LanguageServer):
    """A language server, and the documents that it has checked."""

    def __init__(self) -> None:
        # Not incremental: pygls counts a form feed as the end of a line, editors do not.
        super().__init__("handfast", __version__, types.TextDocumentSyncKind.Full)
        self._documents: dict[str, CheckedDocument] = {}
        self._one_at_a_time = asyncio.Lock()

    def current(self, uri: str) -> CheckedDocument | None:
        """Return what is known about a document, unless it has changed since it was checked."""
        known, document = self._documents.get(uri), self._open(uri)
        return known if known and document and known.version == document.version else None

    async def check(self, uri: str, *, again: bool = False) -> None:
        """Check a document, unless this version was checked, and publish what was found."""
        async with self._one_at_a_time:
            document = self._open(uri)
            if document is None or (self.current(uri) and not again):
                return
            version, codec = document.version, document.position_codec
            result = await asyncio.to_thread(
                checked, uri, version, to_fs_path(uri), document.source, codec
            )
            # If it has changed meanwhile, the call for that change is waiting for the lock.
            document = self._open(uri)
            if document is not None and document.version == version:
                self._documents[uri] = result
                self._publish(uri, version, result.diagnostics)

    async def check_all(self) -> None:
        """Check every open document again: one file may end what another starts."""
        for document in list(self.workspace.text_documents.values()):
            await self.check(document.uri, again=True)

    def forget(self, uri: str) -> None:
        """Remove the diagnostics of a document that was closed."""
        self._documents.pop(uri, None)
        self._publish(uri, None, [])

    def _open(self, uri: str) -> TextDocument | None:
        # Not `get_text_document`, which reads a file that is not open.
        document: TextDocument | None = self.workspace.text_documents.get(unquote(uri))
        return document

    def _publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, found, version=version)
        )


def serve() -> None:
    """Serve one editor over standard input and output, until it ends the session."""
    _server().start_io()


def _server() -> _Server:
    server = _Server()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: types.DidOpenTextDocumentParams) -> None:
        await server.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: types.DidChangeTextDocumentParams) -> None:
        await server.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveTextDocumentParams) -> None:
        await server.check_all()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.current(params.text_document.uri)
        return document.quick_fixes(params.range) if document else []

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.current(params.text_document.uri)
        return document.hover(params.position) if document else None

    return server
