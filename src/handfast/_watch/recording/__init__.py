"""What is read of the watched process: its tasks, their places, its loops and scopes.

task_creation      the hook: each new task knows its place and its time
places, ages       the lines that create tasks; age buckets
event_loops        the loops, and the pending tasks on them
loop_lag           how late the loops are, and what blocks them
waiting, scopes    where a task waits; the scopes of the runtime
collect            makes a snapshot of all that
shown_text         names and lines, cut and cleaned
"""
