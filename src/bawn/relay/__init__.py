"""The relay: a small C program that has the sockets of the way out, and nothing to decide.

Its figures chose it (docs/performance.md): bytes go by splice(2) from socket to socket, without a
copy into any program, and Python sees a connection only until it is joined. What is decided on, and
how, stands in `bawn.egress`; between the two go the frames of `frames.py`.
"""

from bawn import box

RELAY = box.BIN + "/relay"
