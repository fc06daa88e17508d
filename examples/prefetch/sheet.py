"""A sheet over HTTP with a blocking API."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

from examples.prefetch.interfaces import Rows

__all__ = ["HttpSheet"]


class HttpSheet:
    """Appends rows to the sheet of a server."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc

    def append(self, rows: Rows) -> int:
        """Append rows and return their number."""
        connection = HTTPConnection(self._address, timeout=5)
        try:
            connection.request("POST", "/sheet", json.dumps(rows))
            return int(connection.getresponse().read())
        finally:
            connection.close()
