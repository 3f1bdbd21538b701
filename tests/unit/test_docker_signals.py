"""Signals as something to poll, who sent them, and that none is swallowed afterwards.

In processes of their own: a test's threads would take them.
"""

import fcntl
import os
import subprocess
import sys
import termios

HEAD = """
import os, select, signal, time
from bawn.effects.signals import Signals
def wait(signals):
    select.select([signals], [], [], 5)
    return [(int(c.number), c.from_terminal) for c in signals.read()]
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def told(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script], env=ENVIRONMENT, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def test_a_signal_of_somebody() -> None:
    script = """
with Signals() as signals:
    print(signals.read())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(os.getpid(), number)
        print(wait(signals))
"""
    assert told(script) == ["[]", "[(15, False)]", "[(2, False)]", "[(1, False)]"]


def test_the_end_of_a_child() -> None:
    script = """
with Signals() as signals:
    pid = os.posix_spawn("/bin/true", ["true"], {}, setsigmask=())
    print(wait(signals))
    os.waitpid(pid, 0)
"""
    assert told(script) == ["[(17, False)]"]


def test_none_is_swallowed_afterwards() -> None:
    script = """
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
for _ in range(50):
    with Signals():
        pass
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.05)
print(seen, signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""
    assert told(script) == ["[1] False"]


def test_a_terminals_signal_is_told_apart() -> None:
    """^C on a terminal of its own: the kernel sends it, to the whole foreground group."""
    script = "with Signals() as signals:\n    print('up', flush=True)\n    print(wait(signals), flush=True)\n"
    main, child = os.openpty()

    def take_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + script], stdin=child, stdout=subprocess.PIPE, text=True,
        preexec_fn=take_the_terminal, env=ENVIRONMENT,
    )  # fmt: skip
    os.close(child)
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    os.write(main, b"\x03")
    assert process.stdout.readline() == "[(2, True)]\n"
    process.wait(10)
    process.stdout.close()
    os.close(main)
