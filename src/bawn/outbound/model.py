"""The values of the guard. Pure."""

from bawn.outbound.rules import RULES
from bawn.typed import Any, Literal, NamedTuple

# How a path was written: a tag (`MEDIA:`), a file: URL, the target of a Markdown link, between
# quotes or brackets, in code, in the running text; or an item of a list of files.
Form = Literal["tag", "url", "link", "quoted", "code", "bare", "given"]


class Candidate(NamedTuple):
    """One place where a path is named. `readings`: what it may mean, to be tried in this order."""

    text: str  # as it was written
    readings: tuple[str, ...]
    form: Form
    claimed: bool = True  # False: perhaps only mentioned, so nothing is said where nothing is there
    problem: str = ""  # the rule by which no reading can be a path of this machine
    where: str = "text"  # the carrier: "text", "metadata.artifacts[0]"


class Verdict(NamedTuple):
    """One file, allowed or denied. `path` is the object's own path where it was opened, else ""."""

    allowed: bool
    rule: str
    reason: str
    asked: str
    path: str = ""
    size: int = 0  # bytes
    form: Form = "given"
    where: str = "text"

    def as_data(self, hide: bool = False) -> dict[str, Any]:
        """For an answer. `hide`: a denied path is not named, in case the answer reaches the chat."""
        data: dict[str, Any] = dict(self._asdict())
        if hide and not self.allowed:
            data |= {"asked": "", "path": "", "size": 0, "reason": RULES[self.rule].what}
        return data


def denied(
    rule: str, asked: str, reason: str = "", path: str = "", form: Form = "given", where: str = "text"
) -> Verdict:
    return Verdict(False, rule, reason or f"{asked}: {RULES[rule].what}", asked, path, 0, form, where)
