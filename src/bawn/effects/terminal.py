"""The terminal as it was: a client that is killed leaves it raw, without echo."""

import signal


class Terminal:
    """A context: where `tty`, the settings of stdin's terminal at its start are those at its end."""

    def __init__(self, tty: bool) -> None:
        self._tty = tty

    def __enter__(self) -> None:
        if self._tty:
            import termios

            self._saved = termios.tcgetattr(0)

    def __exit__(self, *_: object) -> None:
        if self._tty:
            import termios

            # The child may still be the foreground group; then setting the terminal would stop us.
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
            signal.signal(signal.SIGTTOU, before)
