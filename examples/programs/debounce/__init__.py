"""Save a document one second after its last edit; an edit meanwhile starts the second anew."""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    saved: list[tuple[str, str]] = []

    async def save(document: str, text: str) -> None:
        await asyncio.sleep(0.1)
        saved.append((document, text))

    async with version.autosave(save) as edit:
        await edit("a", "a1")
        await asyncio.sleep(0.6)
        await edit("b", "b1")
        await edit("a", "a2")
        await asyncio.sleep(0.6)
        await asyncio.gather(edit("a", "a3"), edit("a", "a4"))
    return saved
