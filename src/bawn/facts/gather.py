"""All the facts that one plan may depend on."""

import json
import os
from collections.abc import Callable

from bawn.facts import agents, dirs, docker, host, paths, runsc, secrets, tree
from bawn.facts.dirs import Dirs
from bawn.facts.model import DockerFact, Facts, ImageFact, RegistryFact
from bawn.facts.runner import Runner
from bawn.policy.model import Policy, Profile

TERMINAL = ("TERM", "COLORTERM")  # what a program at a terminal draws by


def gather(
    policy: Policy,
    profile: Profile,
    where: Dirs,
    run: Runner,
    wait: float,
    tell: Callable[[str], None] | None = None,
) -> Facts:
    """Observes what `profile` asks for. `wait` is seconds for a docker daemon that is down; `tell` is
    told of that.

    Raises HostError where the machine cannot even be looked at.
    """
    machine = host.observe()
    cwd = dirs.working()
    base = os.path.dirname(policy.path) or cwd
    asked = paths.observe(profile, machine.home, base, where)
    engine: DockerFact | None = None
    if profile.engine == "docker":
        engine = docker.observe(run, wait, tell)
    return Facts(
        host=machine,
        runsc=runsc.observe(run, f"{where.runtime}/runsc.json", machine),
        docker=engine,
        image=_image(profile, where),
        agent=agents.find(profile.agent, machine.home, uid=machine.invoker_uid) if profile.agent else None,
        cwd=cwd,
        state=where.state,
        runtime=where.runtime,
        paths=asked,
        trees=tree.observe(profile, asked),
        environ=tuple((n, os.environ[n]) for n in (*TERMINAL, *profile.pass_env) if n in os.environ),
        have_secrets=tuple(s.name for s in profile.secrets if secrets.have(s, machine.home)),
        registries=_registries(profile, machine.home, run),
    )


def _registries(profile: Profile, home: str, run: Runner) -> tuple[RegistryFact, ...]:
    """Where the clients of this machine fetch from, for the groups that a way out names."""
    if profile.egress == "none" or not any(line.startswith("@") for line in profile.allow):
        return ()
    from bawn.facts import registries

    return registries.observe(profile.allow, registries.Machine(home, os.environ, run))


def _image(profile: Profile, where: Dirs) -> ImageFact:
    """An unpacked image lies below the state directory, in itself and not behind a link (a root file
    system that is really `/` would show the host); engine docker keeps its own, and where bawn made
    it the record says what it is."""
    if profile.image == "host":
        return ImageFact("host", "")
    directory = f"{where.state}/images/{profile.image.removesuffix(':latest')}"
    rootfs = f"{directory}/rootfs"
    here = (
        os.path.isdir(rootfs)
        and os.path.realpath(rootfs) == os.path.realpath(where.state) + rootfs[len(where.state) :]
    )
    fact = ImageFact(profile.image, rootfs if here and profile.engine == "gvisor" else "")
    try:
        with open(f"{directory}/image.json") as file:
            record = json.load(file)
        programs = tuple(sorted((str(name), str(path)) for name, path in record["programs"].items()))
        digest = str(record["layer" if profile.engine == "docker" else "digest"])
        return fact._replace(digest=digest, programs=programs)
    except FileNotFoundError:  # docker's own, or one that a person unpacked here
        return fact
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return fact._replace(rootfs="", problem=f"{directory}/image.json cannot be read: {error}")


def repository_root(start: str) -> str:
    """The nearest directory upwards that holds `.git`; `start` itself where none does.

    Only looks: git is never run in a tree that an agent may have written (its config runs things).
    """
    at = os.path.realpath(start)
    while at != "/":
        if os.path.lexists(f"{at}/.git"):
            return at
        at = os.path.dirname(at)
    return os.path.realpath(start)


def worktree_of(directory: str) -> str:
    """Where the `.git` file of a worktree points to; "" where `.git` is a directory or absent."""
    try:
        with open(f"{directory}/.git", errors="replace") as file:
            first = file.readline(4096).strip()
    except OSError:
        return ""
    return first.removeprefix("gitdir:").strip() if first.startswith("gitdir:") else ""
