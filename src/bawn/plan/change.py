"""A change to files of this machine, as the ledger makes it (`effects/ledger.py`). Pure.

A change is a list of frozen steps; all of them hold afterwards, or none.
"""

from bawn.typed import NamedTuple


class FileStep(NamedTuple):
    """One file with new content. `new` None removes it; `old` is what the plan saw (None: no file),
    and where the file is no longer that, nothing is changed.

    `mode` is for a file that is not there yet: one that is keeps its own. `owned`: the whole file is
    bawn's, so that an undo takes it away whatever it holds.
    """

    path: str
    old: bytes | None
    new: bytes | None
    does: str
    mode: int = 0o644
    owned: bool = False

    @property
    def changes(self) -> bool:
        return self.old != self.new

    def describe(self) -> str:
        """One line: what, and where."""
        return f"{self.path}: {self.does}"


class Change(NamedTuple):
    """Steps under one title. `kind` names who made it ("setup docker"); `readers` are programs that
    read these files when they start, and so go on with the old text."""

    kind: str
    title: str
    steps: tuple[FileStep, ...]
    readers: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        return [self.title, *(f"  {step.describe()}" for step in self.steps)]
