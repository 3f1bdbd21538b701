"""Images of others: an OCI layout or docker's archive -> one layer of bawn's own, checked.

Every digest is checked, every name is judged (`plan.layer`), the layers are merged, and what comes
out is held to the contract (`plan.image_rules`). Labels, history and entry point stay behind.
"""

import json
import os
import re
import tarfile
from collections.abc import Callable
from typing import IO

from bawn.effects import image_docker, image_store
from bawn.effects.image_build import now
from bawn.effects.image_tar import Tree
from bawn.errors import ImageError, UsageError
from bawn.evidence.events import Observer
from bawn.plan import image as recipe
from bawn.plan.image_rules import ACCEPTABLE, IMAGE_RULES, check, left_out, variables
from bawn.plan.layer import LayerError, Member
from bawn.plan.sbom import sbom
from bawn.typed import Any, NamedTuple

_JSON = 4 << 20  # bytes of an index, manifest or configuration
_LAYERS = 200
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OWN = {"proc": 0o755, "sys": 0o755, "dev": 0o755, "run": 0o755, "tmp": 0o1777, "var/tmp": 0o1777,
        "home": 0o755, "home/agent": 0o755}  # fmt: skip


class _Source(NamedTuple):
    """Parts by name, and the image they make. `layers` are (name, digest of the file, of the plain tar);
    "" for a digest that the source does not tell."""

    open: Callable[[str], IO[bytes]]
    config: dict[str, Any]
    layers: tuple[tuple[str, str, str], ...]


def take(
    state: str, source: str, name: str, accept: tuple[str, ...], machine: str, observer: Observer
) -> image_store.Record:
    """The image in its place. Raises UsageError, ImageError, HostError; then the old one stays."""
    image_store.checked_name(name)
    for rule in accept:
        if rule not in ACCEPTABLE:
            raise UsageError(f"--accept {rule}: only {', '.join(ACCEPTABLE)} can be accepted")
    with image_store.Work(state) as work:
        try:
            if ("/" in source and os.path.isdir(source)) or source in (".", ".."):
                found = _layout(source, recipe.OCI_ARCHITECTURES.get(machine, machine))
            else:
                observer.step(f"docker save {source}")
                image_docker.save(source, f"{work.directory}/saved.tar")
                found = _archive(f"{work.directory}/saved.tar")
            record = _merge(work, found, source, name, accept, machine, observer)
        except LayerError as error:
            _refuse(source, [f"BWN751: {error}"])
        except (KeyError, TypeError, AttributeError, ValueError, tarfile.TarError, OSError) as error:
            raise ImageError(f"{source} is no image that can be read: {error!r}") from None
        work.place(name)
        return record


def _refuse(source: str, problems: list[str]) -> None:
    rules = {problem[:6]: IMAGE_RULES[problem[:6]] for problem in problems}
    fixes = "; ".join(row.fix for row in rules.values() if row.fix != "none")
    raise ImageError(f"{source} was not imported", tuple(problems), fixes)


def _merge(
    work: image_store.Work, found: _Source, source: str, name: str, accept: tuple[str, ...], machine: str,
    observer: Observer,
) -> image_store.Record:  # fmt: skip
    tree = Tree(f"{work.directory}/rootfs")
    for number, (part, digest, plain) in enumerate(found.layers, 1):
        observer.step(f"layer {number} of {len(found.layers)}")
        with found.open(part) as stream:
            if digest and _sha256(stream) != digest:
                raise LayerError(f"{part} is not {digest}")
            stream.seek(0)
            unpacked = tree.unpack(stream)
        if plain and unpacked.digest != plain:
            raise LayerError(f"{part} unpacks to {unpacked.digest}, and the image says {plain}")
    entries = tree.merge.entries
    architecture = recipe.OCI_ARCHITECTURES.get(machine, machine)
    findings = [
        *check(name, found.config, architecture, entries),
        *left_out(name, tree.merge.special, tree.merge.devices),
    ]
    wrong = [f"{f.rule} {f.message}" for f in findings if f.severity == "error" and f.rule not in accept]
    if wrong:
        _refuse(source, wrong)
    for path, mode in _OWN.items():
        if path not in entries:
            owner = 1000 if path == "home/agent" else 0
            tree.add(Member(path, "dir", mode, owner, owner))
    epoch = max((entry.mtime for entry in entries.values()), default=0)
    tree.finish(epoch)
    env = {k: v for k, v in variables(found.config.get("config") or {}).items() if k != "HOME"}
    env.setdefault("PATH", recipe.IMAGE_PATH)
    config = recipe.config(machine, (*sorted(env.items()), ("HOME", "/home/agent")), "", now(epoch))
    record = image_store.Record(
        name, "", "", "", 0, 0, now(), f"imported from {source}", _programs(tree),
        [[f.rule, f.message] for f in findings],
    )  # fmt: skip
    status = tree.text("var/lib/dpkg/status")
    distro = next(
        (line[3:].strip('"') for line in tree.text("etc/os-release").splitlines() if line[:3] == "ID="), ""
    )

    def listed(digest: str) -> Any:
        return sbom(name, digest, status, {}, (), distro or "debian")

    return image_store.write(work, tree, config, listed, record)


def _programs(tree: Tree) -> dict[str, str]:
    """The agents that the image brings, at the usual places."""
    entries = tree.merge.entries
    return {
        agent: f"/{directory}/{agent}"
        for agent in ("claude", "codex")
        for directory in ("usr/bin", "usr/local/bin")
        if f"{directory}/{agent}" in entries
    }


def _layout(directory: str, architecture: str) -> _Source:
    """https://github.com/opencontainers/image-spec/blob/main/image-layout.md"""

    def part(digest: str) -> IO[bytes]:
        if not _DIGEST.fullmatch(digest):
            raise LayerError(f"{digest!r} is no sha256 digest")
        return _regular(f"{directory}/blobs/sha256/{digest.removeprefix('sha256:')}")

    def read(digest: str) -> Any:
        with part(digest) as stream:
            if _sha256(stream) != digest:
                raise LayerError(f"the blob {digest} has other content")
            stream.seek(0)
            return json.loads(stream.read(_JSON))

    with _regular(f"{directory}/index.json") as stream:
        found = json.loads(stream.read(_JSON))
    for _ in range(4):  # an index may name indexes
        if "manifests" not in found:
            break
        fits = [m for m in found["manifests"] if _fits(m.get("platform"), architecture)]
        if len(fits) != 1:
            raise LayerError(f"the layout holds {len(fits)} images for linux/{architecture}, not one")
        found = read(fits[0]["digest"])
    layers = [layer["digest"] for layer in found["layers"]]
    config = read(found["config"]["digest"])
    return _source(part, config, [(digest, digest) for digest in layers])


def _fits(platform: Any, architecture: str) -> bool:
    return platform is None or (platform.get("os"), platform.get("architecture")) == ("linux", architecture)


def _archive(path: str) -> _Source:
    """What `docker save` writes: manifest.json names the parts."""
    archive = tarfile.open(path, "r:")  # noqa: SIM115  # read until the import ends

    def part(name: str) -> IO[bytes]:
        info = archive.getmember(name)
        if info.issym():  # a layer that is there already: docker before 25 writes it so
            info = archive.getmember(os.path.normpath(f"{os.path.dirname(name)}/{info.linkname}"))
        stream = archive.extractfile(info) if info.isreg() else None
        if stream is None:
            raise LayerError(f"{name} in docker's archive is no file")
        return stream

    with part("manifest.json") as stream:
        manifests = json.loads(stream.read(_JSON))
    if len(manifests) != 1:
        raise LayerError(f"docker saved {len(manifests)} images, not one")
    with part(manifests[0]["Config"]) as stream:
        config = json.loads(stream.read(_JSON))
    return _source(part, config, [(name, "") for name in manifests[0]["Layers"]])


def _source(part: Callable[[str], IO[bytes]], config: Any, layers: list[tuple[str, str]]) -> _Source:
    plain = config["rootfs"]["diff_ids"]
    if len(plain) != len(layers) or len(layers) > _LAYERS:
        raise LayerError(f"{len(layers)} layers, and the configuration names {len(plain)}; at most {_LAYERS}")
    if not all(_DIGEST.fullmatch(digest) for digest in plain):
        raise LayerError("a layer without a sha256 digest")
    return _Source(part, config, tuple((*layer, digest) for layer, digest in zip(layers, plain, strict=True)))


def _regular(path: str) -> IO[bytes]:
    """A file that is one, and no link."""
    import stat

    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise LayerError(f"{path} is not a regular file")
    return open(fd, "rb")


def _sha256(stream: IO[bytes]) -> str:
    import hashlib

    sha = hashlib.sha256()
    while data := stream.read(1 << 20):
        sha.update(data)
    return f"sha256:{sha.hexdigest()}"
