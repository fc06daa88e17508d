"""The event loops of the explorer.

`stepping` counts steps and applies cancels, and `stepped_loop` connects a loop to it. `explored_loop`
is the loop in virtual time, with `timer_queue`, `timer_lateness`, `external_events` and
`virtual_clock`; `real_io_loop` is the one for `real_io=True`. `task_table` numbers the tasks,
`unsupported` refuses calls that cannot be controlled, and `determinism` holds still what no loop
controls.
"""
