"""The runtime: owns tasks, resources, processes and streams. Standard library only.

A file is one concept. Where a change belongs:

    the scope, from the inside out
        lifecycle     the states of a scope, as a table
        tracking      the coroutine around every task: the hot path
        roster        who is alive, how each is born, where its failure goes
        waves         in which order they are asked to end
        closing       the way down: grace, one cancel, join, report
        scope         the public face
        report, failure, errors, stacks       endings, as values and in words
        restart       services that are started again
    one task per key          slots, waiting
    what is hosted in an owner task           keeping; holding (resources), streams (generators)
    what no cancel cuts short                 patience, shielding
    child processes
        command, launching    what to start, and starting it whole
        child, process_group  its events and its teardown; all that it has started
        pipes, output_record  its output, in bounded memory
        process, exit_status  the public face
    threads           submission, answer (work from any thread), threads (waiting for a loop)
    whole programs    runner, signals, winding, pool, background
    small things      durations, collector
"""
