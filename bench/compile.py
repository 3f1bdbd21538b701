"""How long observing and compiling the mounts takes, in trees that it makes itself.

    PYTHONPATH=src python bench/compile.py            a table of medians
    PYTHONPATH=src python bench/compile.py --quick    smaller trees, for a first look

`large` is 500 mounts with 5,000 masks over 100,000 files, `half` the half of each: twice the time
for twice the names is what "linear" means. `repository` is the ordinary case of `bawn run`.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from bawn.facts import mountinfo, paths, tree
from bawn.facts.dirs import Dirs
from bawn.facts.model import Facts, HostFact, ImageFact, RunscFact
from bawn.plan.model import Identity
from bawn.plan.mounts import compile_mounts
from bawn.policy.model import DEFAULT_MASK, Limits, Mode, Mount, Place, Profile

HERE = Place(1, "profile.bench")
RUNS = 5


def make_profile(workdir: str = "", mounts: tuple[Mount, ...] = ()) -> Profile:
    none: tuple[str, ...] = ()
    return Profile(
        name="bench", agent="", command=("true",), workdir=workdir, workdir_mode="rw",
        mask=DEFAULT_MASK, write=none, engine="gvisor", image="host", egress="none", allow=none,
        secrets=(), credentials=none, env=(), pass_env=none, limits=Limits(), mounts=mounts,
        overrides=(), host_exec=none, git_links=False, place=HERE,
    )  # fmt: skip


def fill(directory: str, files: int, masked: bool) -> None:
    """`files` files below `directory`, fifty to a directory; one of them a `.env` where masked."""
    for number in range(files):
        folder = f"{directory}/d{number // 50}"
        if number % 50 == 0:
            os.makedirs(folder, exist_ok=True)
        name = ".env" if masked and number == 0 else f"file{number}.py"
        os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY, 0o644))


def many(top: str, mounts: int, masks: int, files: int) -> Profile:
    """`mounts` sources, each with its share of `masks` patterns of every kind and of `files`."""
    made = []
    for number in range(mounts):
        source = f"{top}/m{number}"
        fill(source, files // mounts, masked=True)
        share = masks // mounts - 2
        kinds = ("s{}.key", "k{}-*", "*.p{}", "d0/x{}", "**/c{}/y")
        patterns = [kinds[n % 5].format(f"{number}_{n}") for n in range(share)]
        mode: Mode = "rw" if number % 2 else "ro"
        made.append(Mount(source, mode, (), (*DEFAULT_MASK, *patterns), False, HERE))
    return make_profile(mounts=tuple(made))


def repository(top: str, files: int) -> Profile:
    """A repository as it is met every day: sources, git's own files, agent instructions."""
    fill(f"{top}/repo", files, masked=True)
    for name in (".git/hooks", ".git/objects/ab", ".git/refs/heads", ".claude"):
        os.makedirs(f"{top}/repo/{name}")
    for name in (".git/config", ".git/HEAD", "CLAUDE.md"):
        os.close(os.open(f"{top}/repo/{name}", os.O_CREAT | os.O_WRONLY, 0o644))
    return make_profile(workdir=f"{top}/repo")


def measure(top: str, profile: Profile) -> tuple[list[float], list[float], list[float]]:
    """Seconds of RUNS times: paths, tree, compile."""
    home = f"{top}/home"
    os.makedirs(home, exist_ok=True)
    own = Dirs(f"{home}/c", f"{home}/s", f"{home}/r")
    uid, gid = os.getuid(), os.getgid()
    host = HostFact(uid, gid, uid, gid, home, "h", "6", "m", 2, (), True, 1, 1, 1)
    runsc, image = RunscFact("", "", ()), ImageFact("host", "")
    identity = Identity(1000, 1000, uid, gid, False)
    times: tuple[list[float], list[float], list[float]] = ([], [], [])

    def timed(into: list[float], call: Callable[[], object]) -> object:
        begin = time.perf_counter()
        result = call()
        into.append(time.perf_counter() - begin)
        return result

    for _ in range(RUNS + 1):
        seen = paths.observe(profile, home, top, own)
        timed(times[0], lambda: paths.observe(profile, home, top, own))
        table = mountinfo.read()
        trees = tree.observe(profile, seen, table)
        timed(times[1], lambda seen=seen, table=table: tree.observe(profile, seen, table))  # type: ignore[misc]
        facts = Facts(host, runsc, None, image, None, top, own.state, own.runtime, seen, trees)
        timed(times[2], lambda facts=facts: compile_mounts(profile, facts, identity))  # type: ignore[misc]
    return tuple(several[1:] for several in times)  # type: ignore[return-value]


def main() -> None:
    scale = 10 if "--quick" in sys.argv else 1
    with tempfile.TemporaryDirectory() as top:
        cases = {
            "repository": repository(f"{top}/a", 2000),
            "half": many(f"{top}/b", 250 // scale, 2500 // scale, 50_000 // scale),
            "large": many(f"{top}/c", 500 // scale, 5000 // scale, 100_000 // scale),
        }
        print(f"{'median of ' + str(RUNS) + ', ms':<20}{'paths':>9}{'tree':>9}{'compile':>9}{'all':>9}")
        for name, profile in cases.items():
            several = [statistics.median(times) * 1000 for times in measure(top, profile)]
            print(f"{name:<20}" + "".join(f"{value:9.1f}" for value in (*several, sum(several))))


if __name__ == "__main__":
    main()
