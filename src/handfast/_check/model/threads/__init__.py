"""Threads beside the event loop's, and the objects that must not cross over.

callbacks       the setting `thread-callbacks`
foreign_threads which functions run on another thread, and why
primitives      which expressions are primitives of asyncio
"""
