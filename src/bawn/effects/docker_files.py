"""What engine docker writes before a run, and how it calls the client."""

import json
import os

from bawn.effects import gvisor
from bawn.effects.names import RunPaths
from bawn.effects.no_way import NoWay
from bawn.errors import HostError
from bawn.facts.model import DockerFact
from bawn.plan.docker import OWN, Files
from bawn.plan.model import Plan
from bawn.plan.oci import WAY

# The sequence of keys that makes the client let go of a running container: one that nobody types
# (the default holds back every ^P).
_NO_DETACH = ",".join(["ctrl-^", "ctrl-@"] * 4)


def prepare_files(plan: Plan, paths: RunPaths, init: str, secrets: dict[str, str], way: NoWay) -> Files:
    """Writes what the box is shown of bawn's own."""
    gvisor.write(paths.empty, b"", 0o444)
    try:
        os.mkdir(paths.own, 0o755)
        os.chmod(paths.own, 0o755)
        os.link(init, f"{paths.own}/init")
        if way.door:
            os.mkdir(paths.own + WAY.removeprefix(OWN))  # the mount point, in what is shown read-only
    except OSError as error:
        raise HostError(f"cannot prepare {paths.own}: {error.strerror}") from None
    seed = gvisor.write_seed(plan, f"{paths.own}/seed", secrets)
    return Files(paths.own, paths.empty, seed, gvisor.write_way(paths, way.door, way.address), way.network)


def client(docker: DockerFact, paths: RunPaths) -> tuple[list[str], dict[str, str]]:
    """The first words of a `docker` command for this run, and its environment without the secrets (of
    which no policy has one that the client would obey: policy.checks.HOST_ENV).

    Its configuration is the run's own: the person's may add variables to every container (`proxies`)
    or name another daemon. Raises HostError.
    """
    config = f"{paths.directory}/client"
    try:
        os.mkdir(config, 0o700)
    except OSError as error:
        raise HostError(f"cannot make {config}: {error.strerror}") from None
    gvisor.write(f"{config}/config.json", json.dumps({"detachKeys": _NO_DETACH}).encode(), 0o600)
    base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": config, "LC_ALL": "C"}
    term = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
    return [docker.cli, "--host", docker.endpoint, "--config", config], {**base, **term}
