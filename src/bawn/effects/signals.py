"""Signals as something to poll beside sockets, with who sent them.

A thread takes them from the kernel one by one and writes them to a pipe. `signal.set_wakeup_fd`
would not tell whether a terminal sent one (then the client in the same process group has it too).
"""

import _thread
import os
import signal

from bawn.typed import NamedTuple

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_STOP = signal.SIGRTMIN + 4
_KERNEL = 128  # SI_KERNEL of sigaction(2): a terminal's ^C, or its hang-up


class Caught(NamedTuple):
    """One signal."""

    number: int
    from_terminal: bool


class Signals:
    """While it lasts, `FORWARDED` and SIGCHLD do nothing but appear here. A context manager."""

    def __enter__(self) -> "Signals":
        self._watched = {*FORWARDED, signal.SIGCHLD, _STOP}
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, self._watched)
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._done = _thread.allocate_lock()
        self._done.acquire()
        self._thread = _thread.start_new_thread(self._take, ())
        return self

    def __exit__(self, *_: object) -> None:
        signal.pthread_kill(self._thread, _STOP)
        self._done.acquire()
        os.close(self._read)
        os.close(self._write)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def fileno(self) -> int:
        return self._read

    def read(self) -> list[Caught]:
        """Those that came since the last call."""
        try:
            data = os.read(self._read, 4096)
        except BlockingIOError:
            return []
        return [Caught(data[at], bool(data[at + 1])) for at in range(0, len(data), 2)]

    def _take(self) -> None:
        try:
            while True:
                info = signal.sigwaitinfo(self._watched)
                if info.si_signo == _STOP:
                    return
                os.write(self._write, bytes((info.si_signo, info.si_code == _KERNEL)))
        finally:
            self._done.release()
