"""Bridges between the runtime and other libraries, one file for each library.

    aiohttp         a scope for each application and one for each request
    anyio           a task group of anyio that a scope owns
    langgraph       run a compiled graph on a scope, once for each message
    reactivex/      an operator that maps each item to an async function on a scope
    starlette       a scope for each application, also of FastAPI

Nothing is imported here: each bridge imports its own library and no other.
"""
