"""Schedules that are kept between runs, so that the next search begins where the last one stopped.

`store` has them as files of numbers, `continued` is the search that begins with them.
"""
