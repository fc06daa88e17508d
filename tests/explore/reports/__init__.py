"""The five systems of the first bug reports, each cut down to the part that breaks: as reported, as
the report would mend it, and as it should be (on the runtime).
"""
