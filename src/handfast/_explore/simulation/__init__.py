"""Simulations of what a program uses outside its event loop, in memory.

- `network`    sockets, servers, TLS and name resolution
- `processes`  child processes that follow a script
- `threads`    real threads of which one runs at a time, executors and locks

Each package has a mixin for the explored loop. It overrides calls of the stock loop, and every
event from outside arrives as a choice.
"""
