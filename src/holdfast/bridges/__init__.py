"""Bridges: the runtime beside the libraries that people already use. One file for each neighbour.

    reactivex/      an operator that maps each item to an async function on a scope
    langgraph       a compiled graph, run on a scope for each message
    rx_langgraph    the two together: `RxLangGraphBridge`
    anyio           a task group of anyio's that a scope owns
    aiohttp         a scope for each application and one for each request
    outcome         how one item ended, as a value
    absent          what is said when a neighbour is not installed

Nothing is imported here: each bridge loads its neighbour, and none of the others.
"""
