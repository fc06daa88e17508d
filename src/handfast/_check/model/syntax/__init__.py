"""Modules, classes and functions of the checked source, with their calls and control flow.

ancestors       nodes around a node and below it
call_graph      which functions an expression names, and what runs as part of a function
cancel_scopes   task groups, timeouts; yields inside them
children        fast iteration over child nodes
control_flow    the graph of steps, with suspension points
function        `Function`, and where its values come from (`roots`)
handlers        what an `except` catches, and whether it swallows
memo            cache an answer with its subject
module          `Module` and `Class`
names           imports and dotted names
project         `Project`: names across files
"""
