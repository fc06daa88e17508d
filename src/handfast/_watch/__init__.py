"""`handfast.watch`: what is alive in a live process, what grows, what can never wake.

`snapshot` is the data that everything else stands on: the agent in the watched process makes
snapshots, the views in the commands show them.

    recording/      reads the watched process: its tasks, loops and scopes
    agent/          the thread that does so, and when
    growth/         tells a leak from load
    never_wakes/    tasks that only a cancel can end
    connection/     the socket to other processes of the same user
    attach/         starts the agent in a process that was not prepared for it
    views/          tables, the tree, the page, the live screen
    metrics/        Prometheus and OpenTelemetry
    snapshot        the data
    diff            what changed between two
    error           WatchError
"""
