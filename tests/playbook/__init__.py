"""Bytes in, bytes out of the way out: no socket, no clock."""
