"""The agent in the watched process.

serving        serve() and snapshot(), the public functions
agent          the thread that watches the loops and answers
autostart      starts it if HANDFAST_WATCH is set
dump           snapshots in files: on SIGTERM, on a close that is late, on a hang
findings       which places grow, which tasks can never wake: at a pace of its own
stuck_tasks    which tasks have not moved for a minute
kept           finished tasks that a container keeps
pacing         work in small pieces
"""
