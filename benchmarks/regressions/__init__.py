"""The same work for ASV: handfast against its own past, one file for each work.

ASV builds an environment without the other libraries, so nothing in this package imports one.
"""
