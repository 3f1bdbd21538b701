"""Fixtures for every test (pytest wants a plugin named at the top)."""

pytest_plugins = ["tests.system.packages"]
