"""The two static C programs of a box, and where to find them.

`init.c` is PID 1 inside: it proves that its kernel is gVisor's, seeds the home, reaps, forwards
signals and runs the command; with a way out it serves its loopback end (`way.c`). `launch.c` is the
last step outside: it makes the cage that runsc itself starts in (cgroup, namespaces, seccomp), so that
nothing outlives bawn.
"""

import os

BIN = os.path.dirname(os.path.abspath(__file__)) + "/bin"
INIT = BIN + "/init"
LAUNCH = BIN + "/launch"
