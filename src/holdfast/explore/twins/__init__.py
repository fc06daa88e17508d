"""Twins of the outside: what a program reaches for beyond its loop, played in memory.

One package for each: every one is a mixin for the explored loop which overrides calls of the stock
loop, and lets what comes from outside arrive as a choice.
"""
