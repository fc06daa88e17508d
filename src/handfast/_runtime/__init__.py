"""The runtime: owns tasks, resources, processes and streams. Standard library only.

scope/          Scope
    states              the states of a scope, as a table
    task_wrapper        the coroutine around every task: the hot path
    task_creation       how tasks are created, and the hook to observe it
    live_tasks          the live tasks, and waiting for their end
    task_registry       adds how they are created, fail and are cancelled
    live_scopes         the scopes with live tasks, for a tool that shows them
    failure_reports     where the failure of a task goes
    task_ends           how a task has ended, beyond its result
    shutdown_order      in which order tasks are cancelled
    shutdown            grace, one cancel, join, report
    ending              the end of a block, a close, a scope that was dropped
    ancestry            which tasks wait for a task
    cancel_in_progress  no second cancel for a task that cleans up
    turns               the places of a scope with a limit, and tasks that block each other
    gc_pause            no garbage collection while very many tasks are closed
    scope               the public class
keyed_tasks, key_queue  KeyedTasks: one task per key
restart                 services that are started again, and periodic jobs
readiness, race         Scope.start; the first success of several coroutines
map, merge              Scope.map: a function for each item; the items of several streams
report, failure, errors     results and errors as values
cancel_reason           who has cancelled a task, and where
covered_failure         the error of a task that was cancelled after it had failed
arguments               checks of arguments, and the default deadline
uncancellable, shield   waiting that a cancel does not interrupt; shielded
hosting/        what runs in an owner task
    owner_task, held_resource   the task, and the resources of a scope
    stream, nested_generators   a generator, and those inside it
    stage                       a stream that reads other streams
process/        Process, run_process
    command, stdio, launch      what to start, its standard streams, and an uninterrupted start
    child, group        events and teardown of a child; its process group
    live_groups         the groups that are killed when the interpreter exits
    output_pipe, output_buffer, output_readers      its output, in bounded memory
    process, run_process, exit_status               the public names
fork                    what a forked child has inherited, and cannot use
threads/        submit_queue, submit_future, cross_thread_call: work from other threads
program/        run, BackgroundLoop
    run, background_loop    the public names
    signals                 SIGINT and SIGTERM
    loop_shutdown           ends what is left on a loop
    thread_pool             the default executor, with a deadline
"""
