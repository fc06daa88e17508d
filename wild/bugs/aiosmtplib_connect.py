"""A connect that is cancelled keeps the client's lock: the next connect waits for ever."""

import asyncio
import contextlib

import aiosmtplib

from handfast.explore import victim

PACKAGE = "aiosmtplib"
BAD = "5.1.2"
GOOD = "5.1.3"
ISSUE = "https://github.com/cole/aiosmtplib/blob/main/CHANGELOG.rst"
FINDING = "HF431"
OPTIONS = {"cancel": True}


async def serve(reader, writer):
    with contextlib.suppress(ConnectionError):
        writer.write(b"220 ready\r\n")
        while line := await reader.readline():
            writer.write(b"221 bye\r\n" if line.startswith(b"QUIT") else b"250 ok\r\n")
    writer.close()


async def program():
    server = await asyncio.start_server(serve, "127.0.0.1", 2525)
    client = aiosmtplib.SMTP(
        hostname="127.0.0.1",
        port=2525,
        local_hostname="me",
        start_tls=False,
        use_tls=False,
        timeout=5,
    )
    await victim(client.connect())
    if not client.is_connected:
        await client.connect()
    await client.quit()
    server.close()
