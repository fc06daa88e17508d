"""Which schedules to run, and the smallest one that fails.

`plan` has the data: options, plans and records. `run` runs one plan, `workers` and `cluster` many.
`strategies` choose the plans, `deciders` answer the choice points of one run, `cancel_points` finds
where a task can be cancelled, `trail` records what a run did for the first time, `states` recognises
states that were reached before, `watchdog` cuts a run that never ends, and `shrink` makes a failing
plan small.
"""
