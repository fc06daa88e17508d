"""A run recorded in full, as plain data.

`model` is the data, `tracer` records it, `source_lines` collects its lines, `cancel_calls` sees who
cancels which task, and `choice_text` and `cancel_text` put choices and cancels into words.
"""
