"""The record: what happened, as typed events in an append-only JSON Lines log.

Every room may import `events`; it imports none of them.
"""
