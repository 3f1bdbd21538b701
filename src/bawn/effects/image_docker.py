"""An image of bawn's into docker, and one of docker's out of it."""

import json
import os
import tarfile

from bawn.effects import image_store, process
from bawn.errors import EngineError, HostError
from bawn.evidence.events import Observer
from bawn.facts import docker, programs
from bawn.typed import Any

_DEADLINE = 600.0


def load(state: str, record: image_store.Record, observer: Observer) -> None:
    """`docker load`, as NAME:latest; then docker's layer is compared. Raises HostError, EngineError.

    The archive names the blobs of the layout by `manifest.json`, which every docker reads.
    """
    cli = _client()
    observer.step(f"loading {record.name}:latest into docker")
    layout = f"{state}/images/{record.name}/oci"
    with image_store.Work(state) as work:
        archive = f"{work.directory}/docker.tar"
        with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
            config, layer = (
                f"blobs/sha256/{d.removeprefix('sha256:')}" for d in (record.config, record.layer)
            )
            manifest = [{"Config": config, "RepoTags": [f"{record.name}:latest"], "Layers": [layer]}]
            _json(work, tar, "manifest.json", manifest)
            for name in (config, layer):
                tar.add(f"{layout}/{name}", name, recursive=False)
        answer = process.run([cli, "load", "--quiet", "--input", archive], timeout=_DEADLINE)
    if answer.code != 0:
        raise EngineError(f"docker load failed: {answer.complaint}")
    seen = process.run(
        [cli, "image", "inspect", "--format", "{{json .RootFS.Layers}}", f"{record.name}:latest"], timeout=60
    )
    if seen.text.strip() != json.dumps([record.layer]):
        raise EngineError(f"docker has other layers than were loaded: {seen.text.strip() or seen.complaint}")


def _json(work: image_store.Work, tar: tarfile.TarFile, name: str, data: Any) -> None:
    image_store.write_json(f"{work.directory}/{name}", data)
    tar.add(f"{work.directory}/{name}", name, recursive=False)


def save(name: str, target: str) -> None:
    """`docker save` to the file `target`. Raises HostError, EngineError."""
    answer = process.run([_client(), "save", "--output", target, "--", name], timeout=_DEADLINE)
    if answer.code != 0:
        raise EngineError(f"docker save {name}: {answer.complaint}", f"docker pull {name}")


def _client() -> str:
    cli = programs.find("docker", os.environ.get("PATH", ""))
    if not cli:
        raise HostError("docker is not installed", "sudo apt-get install docker.io")
    fact = docker.observe(process.run)
    if fact.problem:
        raise HostError(fact.problem, fact.fix)
    return cli
