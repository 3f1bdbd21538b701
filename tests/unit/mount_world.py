"""A small world in a temp dir for tests of the mount compiler: a home, trees, a policy, a plan."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from bawn.facts import mountinfo, paths, tree
from bawn.facts.dirs import Dirs
from bawn.facts.model import Facts, HostFact, ImageFact, RunscFact
from bawn.facts.walker import CaseProbe, detect_casefold
from bawn.plan.model import Bind, Finding, Identity, Tmpfs
from bawn.plan.mounts import MountPlan, compile_mounts
from bawn.policy.model import DEFAULT_MASK, Limits, Mode, Mount, Override, Place, Profile

HERE = Place(7, "profile.t")


def mount(
    source: str,
    mode: Mode = "ro",
    write: tuple[str, ...] = (),
    mask: tuple[str, ...] = DEFAULT_MASK,
    create: bool = False,
) -> Mount:
    return Mount(source, mode, write, mask, create, HERE)


def override(path: str) -> Override:
    return Override(path, "a reason that is long enough", HERE)


PROFILE = Profile(
    name="t",
    agent="",
    command=("true",),
    workdir="",
    workdir_mode="rw",
    mask=DEFAULT_MASK,
    write=(),
    engine="gvisor",
    image="host",
    egress="none",
    allow=(),
    secrets=(),
    credentials=(),
    env=(),
    pass_env=(),
    limits=Limits(),
    mounts=(),
    overrides=(),
    host_exec=(),
    git_links=False,
    place=HERE,
)


class World:
    """Files below `top`, the invoker's home at `top`/home, and plans made from them."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.home = str(top / "home")
        os.makedirs(self.home, exist_ok=True)
        self.table: mountinfo.MountTable | None = None
        self.probe: CaseProbe = detect_casefold
        self.environ: Mapping[str, str] = {}
        self.uid = os.getuid()
        self.gid = os.getgid()
        self.own = Dirs(f"{self.home}/.config/bawn", f"{self.home}/.state/bawn", f"{top}/runtime")
        self.image = "host"
        self.policy = f"{top}/bawn.toml"

    def path(self, name: str) -> str:
        return f"{self.top}/{name}" if name else str(self.top)

    def dir(self, *names: str) -> str:
        """Makes directories; the path of the first."""
        for name in names:
            os.makedirs(self.path(name), exist_ok=True)
        return self.path(names[0])

    def file(self, *names: str, text: str = "x") -> str:
        """Makes files with their directories; the path of the first."""
        for name in names:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            Path(self.path(name)).write_text(text)
        return self.path(names[0])

    def link(self, name: str, to: str) -> str:
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(to, self.path(name))
        return self.path(name)

    def socket(self, name: str) -> str:
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        here = os.open(os.path.dirname(self.path(name)), os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as made:  # sun_path holds 107 bytes: a short way there
            made.bind(f"/proc/self/fd/{here}/{os.path.basename(name)}")
        os.close(here)
        return self.path(name)

    def facts(self, profile: Profile) -> Facts:
        table = self.table or mountinfo.read()
        seen = paths.observe(profile, self.home, self.path(""), self.own, self.environ, table)
        home = next(fact.path for fact in seen if fact.asked == "~")
        host = HostFact(
            self.uid, self.gid, self.uid, self.gid, home, "h", "6", "x86_64", 2, (), True, 9, 9, 2
        )
        trees = tree.observe(profile, seen, table, self.probe)
        own = (self.own.state, self.own.runtime)
        image = ImageFact(self.image, "")
        return Facts(host, RunscFact("", "", ()), None, image, None, "/", *own, seen, trees)

    def identity(self) -> Identity:
        return Identity(1000, 1000, self.uid, self.gid, False)

    def plan(self, *mounts: Mount, **fields: object) -> MountPlan:
        profile = PROFILE._replace(mounts=mounts, image=self.image, **fields)  # type: ignore[arg-type]
        return compile_mounts(profile, self.facts(profile), self.identity(), self.policy)


def rules(plan: MountPlan, severity: str = "error") -> list[str]:
    return [one.rule for one in plan.findings if one.severity == severity]


def found(plan: MountPlan, rule: str) -> Finding:
    several = [one for one in plan.findings if one.rule == rule]
    assert several, f"no {rule} in {[(one.rule, one.message) for one in plan.findings]}"
    return several[0]


def at(plan: MountPlan, path: str) -> Bind | Tmpfs | None:
    """The mount whose target is `path`."""
    return next((one for one in ordered(plan) if one.target == path), None)


def effect(plan: MountPlan, path: str) -> str:
    """What a box may do with `path`: "rw", "ro", "masked" or "absent".

    Applies the mounts one after the other, as an engine does: each hides what lay at its target.
    """
    state = "absent"
    for one in ordered(plan):
        if path == one.target or path.startswith(one.target.rstrip("/") + "/"):
            state = "masked" if one.role == "mask" else one.mode if isinstance(one, Bind) else "rw"
    return state


def ordered(plan: MountPlan) -> list[Bind | Tmpfs]:
    return [*plan.binds, *plan.tmpfs]  # the order that plan.oci uses
