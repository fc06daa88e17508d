"""What functions do to tasks, containers and locks.

containers      types of containers, and changes to them
effects         operations of a function and of what it calls
guards          checks of an attribute before a use
locks           locks that are held at a node
operations      `Operation`: cancel, join, put, take, clear, read, use, close, signal
state_changes   what a statement changes in an object and takes back
teardown        how a method ends one task
"""
