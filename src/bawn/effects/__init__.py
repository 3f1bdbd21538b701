"""Doing it: a `Plan` becomes a running box. The undo of each step is registered before the step.

Only `process` starts programs. Names of everything made here derive from the run id
(`names`), so that `sweep` finds what a killed bawn left behind.
"""
