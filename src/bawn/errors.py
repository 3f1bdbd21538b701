"""Every error bawn raises, named by whose fault it is.

`diagnostics()` gives the lines a person reads: what happened, the value got, the value wanted,
the next command to type. Only `bawn.cli` prints them; `exit_code` is what it exits with.
"""


class BawnError(Exception):
    """The root. `message` says what happened and the value got; `fix` what to do next."""

    exit_code = 125

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def diagnostics(self) -> list[str]:
        """The error as lines of text, most important first."""
        return [self.message, *([f"fix: {self.fix}"] if self.fix else [])]


class UsageError(BawnError):
    """The command line cannot be understood."""

    exit_code = 2


class PolicyError(BawnError):
    """The policy is wrong; `problems` holds every problem of the file at once."""

    exit_code = 2

    def __init__(self, message: str, problems: tuple[str, ...] = (), fix: str = "") -> None:
        super().__init__(message, fix)
        self.problems = problems

    def diagnostics(self) -> list[str]:
        return [self.message, *self.problems, *([f"fix: {self.fix}"] if self.fix else [])]


class ImageError(PolicyError):
    """An image cannot be what a box runs on; `problems` holds every reason."""

    exit_code = BawnError.exit_code


class TrustError(BawnError):
    """The policy file is not trusted: an agent could have written it."""


class RefusedError(BawnError):
    """The plan holds a finding of severity error; nothing was started."""


class HostError(BawnError):
    """The machine lacks something the plan needs."""


class EngineError(BawnError):
    """runsc or docker failed, or did something other than the plan."""
