"""The same work for ASV: holdfast against its own past, one file for each work.

ASV builds an environment of its own without our peers, so nothing in this package imports one.
"""
