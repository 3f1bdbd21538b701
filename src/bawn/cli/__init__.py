"""The face: one file a verb, and the only code that prints or exits.

Exit codes of `run` and the agent verbs: the command's own; 124 time-out; 125 bawn could not run
it; 126 not executable; 127 not found; 128+n signal. Other verbs: 0 holds, 1 does not hold, 2 bad
usage or policy.
"""
