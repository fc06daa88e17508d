"""Run a program under many schedules: the engine behind `handfast.explore`.

`campaign` runs the search, `replay` a single schedule again, `result` is what they return, and
`token` a schedule as text. Programs call `victim` and `latency`.

`search` decides which schedules to run, `loop` runs one, `simulation` is the outside that the loop
controls, `verdict` judges a run, `oracles` compares what a program saw with a model, `trace` records
a run, `render` displays the trace, and `corpus` keeps schedules for the next search.
"""
