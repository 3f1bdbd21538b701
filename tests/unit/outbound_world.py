"""A vault that files may leave from, and everything beside it that may not, for the outbound tests."""

import os
from collections.abc import Iterator
from pathlib import Path

from bawn.effects.outbound.guard import Guard
from bawn.effects.outbound.load import load
from bawn.facts.dirs import Dirs
from bawn.outbound.model import Verdict
from bawn.policy.parse import parse_policy
from bawn.typed import Any

SECRET = b"the secret that must not leave"


class World:
    """`vault` is the root; `outside` holds secrets; `home` is $HOME (set by the fixture)."""

    def __init__(self, top: Path) -> None:
        self.top = Path(os.path.realpath(top))
        self.home = self.top / "home"
        self.vault = self.home / "vault"
        self.outside = self.top / "outside"
        for folder in (self.vault / "sub", self.outside, self.home / "state"):
            folder.mkdir(parents=True)
        self.own = Dirs(str(self.home / "config"), str(self.home / "state"), str(self.home / "run"))
        self.write(self.outside / "secret.md", SECRET)
        self.write(self.vault / "a.md", b"a report")
        self.write(self.vault / "sub/b.md", b"another")

    @staticmethod
    def write(path: Path, data: bytes = b"text") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def guard(self, more: str = "", roots: str = "", profile: str = "") -> Guard:
        roots = roots or f'"{self.vault}"'
        text = f"version = 1\n[profile.default]\n{profile}\n[outbound]\nroots = [{roots}]\n{more}\n"
        policy = parse_policy(text, str(self.top / "bawn.toml"))
        return load(policy, self.own, text, str(self.top), {})

    def verdicts(self, data: Any, guard: Guard | None = None) -> list[Verdict]:
        """Each verdict; a descriptor of an allowed file must not read the secret."""
        found = []
        with guard or self.guard() as one:
            for verdict, fd in one.files(data):
                assert (fd >= 0) == verdict.allowed
                if fd >= 0:
                    assert os.pread(fd, 100, 0) != SECRET, verdict
                    os.close(fd)
                found.append(verdict)
        return found

    def one(self, data: Any, guard: Guard | None = None) -> Verdict:
        found = self.verdicts(data, guard)
        assert len(found) == 1, found
        return found[0]


def opened(guard: Guard, data: Any) -> Iterator[tuple[Verdict, int]]:
    for verdict, fd in guard.files(data):
        try:
            yield verdict, fd
        finally:
            if fd >= 0:
                os.close(fd)
