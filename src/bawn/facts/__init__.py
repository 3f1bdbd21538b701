"""What is there: read-only observation of the machine. Never writes, never decides.

`model` holds the values; every other file fills one of them. Parsers of tool output are pure
functions next to the call, so that they are tested on captured text.
"""
