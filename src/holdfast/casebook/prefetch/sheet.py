"""A sheet over HTTP, for threads: each call blocks until the server has answered."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

from holdfast.casebook.prefetch.outside import Rows

__all__ = ["HttpSheet"]


class HttpSheet:
    """Appends rows to the sheet of a server."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc

    def append(self, rows: Rows) -> int:
        """Write rows at the end; how many there were."""
        connection = HTTPConnection(self._address, timeout=5)
        try:
            connection.request("POST", "/sheet", json.dumps(rows))
            return int(connection.getresponse().read())
        finally:
            connection.close()
