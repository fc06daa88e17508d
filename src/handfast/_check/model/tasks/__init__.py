"""Where tasks are created, kept, awaited and ended.

awaited         what an `await` waits for
cancel_catches  places that catch the cancellation of their own task
creation        where tasks are created, what they run, what keeps them
endless         tasks that run until cancelled, and whether anything cancels them
first_completed tasks that are lost in a `wait` for the first
future_fields   futures in fields of other objects
handed_futures  futures that other code sets than the function that waits
local_holders   local names that hold a task
makers          functions that return the task that they create
method_roles    close and start methods, by name
owned           tasks that an object keeps, and the attributes that they use
records         tasks in fields of records that an object holds
task_dicts      dicts of tasks: store, remove, replace
ways_out        where an exception leaves a function while its task runs
"""
