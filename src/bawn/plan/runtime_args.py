"""Arguments of docker's runtime entry that open every box of it, whatever bawn asks for. Pure."""

import itertools

from bawn.facts.model import DockerRuntime

OPENERS = {
    "--network=host": "every box has the host's own network",
    "--ignore-cgroups": "no memory, CPU or process limit holds",
    "--host-uds=all": "a box may make and open Unix sockets in its mounts",
    "--host-uds=create": "a box may make Unix sockets in its mounts",
    "--net-raw": "a box may send raw packets",
    "--TESTONLY-unsafe-nonroot": "the sandbox is not confined",
}


def openers(runtime: DockerRuntime) -> list[tuple[str, str]]:
    """(argument, what it does) for those that weaken a box. Both `--a=b` and `--a b` are read."""
    words = [w.lstrip("-") for w in runtime.args]
    pairs = set(words) | {f"{a}={b}" for a, b in itertools.pairwise(words)}
    return [(arg, why) for arg, why in OPENERS.items()
            if arg[2:] in pairs or f"{arg[2:]}=true" in pairs]  # fmt: skip
