"""Check what a program saw against a model: is there one order of its operations that explains it?

`operation` is one recorded call, `history` records them and is what a user makes, `watched` is the
object that records its calls, `ordering` looks for the order, `model_state` copies and compares the
state of a model, and `history_text` puts a history that has no order into words.
"""
