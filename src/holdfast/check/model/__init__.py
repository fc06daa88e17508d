"""Source to facts: what a module and its classes are made of, and what they do to their tasks.

names       what a name stands for
module      modules, classes, inheritance
function    functions, and where their values come from
flow        the ways through a function, with its suspension points
tasks       where tasks are made, and who keeps them
deeds       what functions do to what they hold: cancel, join, put, take, clear, use
effects     the same, with what is done for a function by those that it runs
guards      looks before a use, locks that are held
owned       the tasks of an object, and what of the object they use
slots       dicts of tasks: stores, removals, what runs at the end
teardown    how a method ends a task: where it cancels, where it joins
holders     the local names that hold a task, and where it gets out of their hands
services    tasks that run for ever, and whether anybody ends them
memo        what was worked out once, kept with what it is about
roles       bodies of tasks, close methods, code on threads
project     what is known over all files
"""
