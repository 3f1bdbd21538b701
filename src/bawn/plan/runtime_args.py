"""What docker's daemon and its runtime entry do to every box, whatever bawn asks for. Pure.

Both `bawn plan` (which refuses) and `bawn doctor` (which tells) ask here.
"""

from bawn.facts.model import DockerFact, DockerRuntime
from bawn.plan.model import Severity
from bawn.typed import NamedTuple

RUNTIME = "runsc"
STAGE = "docker_stage.py"  # what the runtime program of `bawn setup docker` starts
SETUP = "sudo bawn setup docker --apply --restart"
_SETUP_AGAIN = f"take the other runsc entry out of daemon.json, then: {SETUP}"
# Programs that share the host's kernel, whatever name they are registered under.
BARE = ("runc", "crun", "youki", "railcar", "kata-runtime", "sysbox-runc")
# Argument of runsc -> (severity, what it does).
OPENERS: dict[str, tuple[Severity, str]] = {
    "network=host": ("error", "every box has the host's own network"),
    "ignore-cgroups": ("error", "no memory, CPU or process limit holds"),
    "host-uds=all": ("error", "a box may make and open Unix sockets in its mounts"),
    "host-uds=create": ("error", "a box may make Unix sockets in its mounts"),
    "fsgofer-host-uds": ("error", "a box may open Unix sockets in its mounts"),
    "net-raw": ("error", "a box may send raw packets"),
    "TESTONLY-unsafe-nonroot": ("error", "the sandbox is not confined"),
    "file-access-mounts=exclusive": ("error", "a box does not see what changes on the host"),
    "host-uds=open": ("note", "a box may open the Unix sockets in its mounts; bawn refuses such mounts"),
    "host-fifo=open": ("note", "a box may open the named pipes in its mounts; bawn refuses such mounts"),
    "platform=ptrace": ("note", "the slow platform; systrap is the default"),
    "platform=kvm": ("note", "hangs on some virtual machines"),
}


class Fault(NamedTuple):
    """Something about the daemon; `rule` is a key of `plan.rules.RULES`."""

    rule: str
    severity: Severity
    text: str
    fix: str


def faults(docker: DockerFact) -> tuple[Fault, ...]:
    """All that is wrong with a daemon that answers, for engine docker; errors stop a run."""
    found = [Fault("BWN712", "error", *pair) for pair in _daemon(docker)]
    runtime = next((r for r in docker.runtimes if r.name == RUNTIME), None)
    if runtime is None:
        text = f"docker does not know the runtime {RUNTIME}"
        return (*found, Fault("BWN706", "error", text, SETUP))
    if wrong := impostor(runtime):
        found.append(Fault("BWN713", "error", wrong, _SETUP_AGAIN))
    elif STAGE not in runtime.script:
        text = f"docker's runtime {RUNTIME} is {runtime.path}, not the one of bawn setup docker"
        found.append(Fault("BWN711", "error", text, _SETUP_AGAIN))
    for argument, severity, why in openers(runtime):
        text = f"runtime {RUNTIME} has {argument}: {why}"
        found.append(Fault("BWN710", severity, text, f"take {argument} out of docker's daemon.json"))
    return tuple(found)


def _daemon(docker: DockerFact) -> list[tuple[str, str]]:
    """(text, fix) of what no runtime entry can mend."""
    found = []
    if docker.remote:
        text = f"the daemon at {docker.endpoint} runs on another machine or in a VM: its paths are not ours"
        found.append((text, "run bawn where the daemon runs, or use engine gvisor"))
    mapped = "rootless" if docker.rootless else "userns-remap" if docker.userns else ""
    if mapped:
        text = f"the daemon maps user ids ({mapped}): what a box writes would belong to a subordinate id"
        found.append((text, "use engine gvisor, which maps only your own id"))
    if docker.lacks:
        text = f"the daemon cannot hold these limits here: {', '.join(docker.lacks)}"
        found.append((text, "mount their cgroup controllers, or use engine gvisor"))
    return found


def impostor(runtime: DockerRuntime) -> str:
    """Why this entry is not runsc, as far as can be seen; PID 1 proves it again inside. "" if it is."""
    if runtime.kind:
        return f"runtime {runtime.name} is the containerd shim {runtime.kind}: its arguments cannot be seen"
    for path in (runtime.path, runtime.real):
        if path.rpartition("/")[2] in BARE:
            return f"runtime {runtime.name} is {path}, which is not gVisor"
    return ""


def openers(runtime: DockerRuntime) -> list[tuple[str, Severity, str]]:
    """(argument, severity, what it does), of the entry and of a script that it names.

    runsc reads flags as Go does: one dash or two, `a=b`, `a b`, `a`, `a=true`.
    """
    words = [w.strip("\"'") for w in (*runtime.args, *_code(runtime.script).split())]
    given: set[tuple[str, str]] = set()
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("-"):
            flag, equals, value = word.lstrip("-").partition("=")
            given |= {(flag, value)} if equals else {(flag, after), (flag, "true")}
    return [
        (f"--{argument}", severity, why)
        for argument, (severity, why) in OPENERS.items()
        if given & _spellings(argument)
    ]


def _spellings(argument: str) -> set[tuple[str, str]]:
    flag, equals, value = argument.partition("=")
    return {(flag, value)} if equals else {(flag, yes) for yes in ("true", "TRUE", "True", "t", "T", "1")}


def _code(script: str) -> str:
    """A shell script without its comment lines."""
    return "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
