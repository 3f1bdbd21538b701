"""Images in bawn's state: one directory each, made beside and renamed into place.

images/lock             held by the one bawn that builds, imports or removes
images/.build-ID/       being made; swept by the next that holds the lock
images/.old-ID/         replaced while a run still used it; swept when none does
images/NAME/oci/        OCI image layout: one uncompressed layer
images/NAME/rootfs/     the same unpacked, for engine gvisor
images/NAME/sbom.json   its packages
images/NAME/image.json  what it is (see `Record`)
images/NAME/lock        every run of engine gvisor holds it, shared
"""

import fcntl
import json
import os
import time

from bawn.effects import process
from bawn.effects.atomic import write_atomic
from bawn.effects.image_tar import Digest, Tree, compare, file_digest, write_layer
from bawn.effects.remove import remove_tree
from bawn.errors import HostError, UsageError
from bawn.plan import image as recipe
from bawn.typed import Any, NamedTuple

_NAME = set("abcdefghijklmnopqrstuvwxyz0123456789.-_")


class Record(NamedTuple):
    """`digest` is the manifest's: it names the content whole. `config` is what docker calls the image."""

    name: str
    digest: str
    config: str
    layer: str
    size: int  # bytes of the layer
    entries: int
    created: str  # UTC
    source: str  # "built from ...", "imported from ..."
    programs: dict[str, str]  # agents and the like -> their path in the image
    findings: list[list[str]]  # rule, text


def checked_name(name: str) -> str:
    """Raises UsageError for what is no name: it is a directory, and docker's name for it."""
    if set(name) - _NAME or not name[:1].isalnum() or len(name) > 100 or ".." in name or name == "host":
        raise UsageError(
            f"{name!r} is no name for an image",
            "a lower-case letter or digit, then letters, digits, '.', '-', '_'; not host",
        )
    return name


class Work:
    """The lock, and a directory for what is being made. A context manager: at the end it is gone."""

    def __init__(self, state: str) -> None:
        self._images = f"{state}/images"

    def __enter__(self) -> "Work":
        """Raises HostError where another bawn is at work."""
        try:
            os.makedirs(self._images, mode=0o755, exist_ok=True)
            self._lock = os.open(f"{self._images}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HostError(f"cannot write {self._images}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise HostError(
                "another bawn builds, imports or removes an image just now", "wait for it"
            ) from None
        _sweep(self._images)
        self.id = f"{time.time_ns() // 1_000_000:011x}{os.urandom(3).hex()}"
        self.directory = f"{self._images}/.build-{self.id}"
        os.mkdir(self.directory, 0o700)
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self.directory)
        os.close(self._lock)

    def place(self, name: str) -> None:
        """Puts what was made in the place of the image `name`."""
        target, old = f"{self._images}/{name}", f"{self._images}/.old-{self.id}"
        with open(f"{self.directory}/lock", "xb"):
            pass
        os.chmod(self.directory, 0o755)
        if os.path.lexists(target):
            os.rename(target, old)
        os.rename(self.directory, target)
        _remove_unused(old)

    def remove(self, name: str) -> None:
        """Raises UsageError where there is none, HostError where a run uses it."""
        target = _there(self._images, name)
        if _used(target):
            raise HostError(f"a run uses the image {name}", "wait for its end")
        os.rename(target, f"{self._images}/.old-{self.id}")
        _remove(f"{self._images}/.old-{self.id}")


def outside(build: str) -> str:
    """Where mmdebstrap works for an ordinary user: the other user ids that it acts as cannot walk
    through a home."""
    return f"/var/tmp/bawn-image-{build}"


def _sweep(images: str) -> None:
    for name in os.listdir(images):
        path = f"{images}/{name}"
        if name.startswith(".build-"):
            _remove(path)
        elif name.startswith(".old-"):
            _remove_unused(path)


def _remove(path: str) -> None:
    if os.path.basename(path).startswith(".build-"):
        _remove_as_others(outside(os.path.basename(path).removeprefix(".build-")))
    _open_up(path)
    remove_tree(path)
    if os.path.lexists(path):
        raise HostError(f"cannot remove {path}", f"rm -rf {path}")


def _open_up(path: str) -> None:
    """A directory of an image may be read-only, which bars its owner from removing what is in it."""
    for at, directories, _ in os.walk(path):
        for name in directories:
            if not os.path.islink(f"{at}/{name}"):
                os.chmod(f"{at}/{name}", 0o700)


def _remove_as_others(path: str) -> None:
    """Removes a directory of mmdebstrap's in which other user ids own files."""
    if not os.path.lexists(path) or os.lstat(path).st_uid != os.getuid():
        return
    remove_tree(path)
    if os.path.lexists(path):
        map_ids = ["unshare", "--map-auto", "--map-root-user"] if os.getuid() else []
        process.run([*map_ids, "rm", "-rf", "--one-file-system", path], timeout=120)


def _used(path: str) -> bool:
    try:
        lock = os.open(f"{path}/lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _remove_unused(path: str) -> None:
    if os.path.lexists(path) and not _used(path):
        _remove(path)


def write(work: Work, tree: Tree, config: dict[str, Any], sbom: Any, record: Record) -> Record:
    """Layout, configuration, package list and record beside the finished tree (at `work`/rootfs); the
    record with its digests. `config` is made by plan.image.config with an empty layer; `sbom` is
    called with the digest."""
    blobs = f"{work.directory}/oci/blobs/sha256"
    os.makedirs(blobs, 0o755)
    layer = write_layer(tree.root, tree.merge.entries, f"{blobs}/layer")
    _settle(blobs, "layer", layer)
    config = {**config, "rootfs": {"type": "layers", "diff_ids": [layer.digest]}}
    made = _blob(blobs, config)
    manifest = _blob(blobs, recipe.manifest(made.digest, made.size, layer.digest, layer.size))
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": manifest.digest, "size": manifest.size,
            "annotations": {"org.opencontainers.image.ref.name": record.name},
            "platform": {"architecture": config["architecture"], "os": "linux"},
        }],
    }  # fmt: skip
    write_json(f"{work.directory}/oci/index.json", index)
    write_json(f"{work.directory}/oci/oci-layout", {"imageLayoutVersion": "1.0.0"})
    record = record._replace(
        digest=manifest.digest, config=made.digest, layer=layer.digest, size=layer.size,
        entries=len(tree.merge.entries),
    )  # fmt: skip
    write_json(f"{work.directory}/sbom.json", sbom(manifest.digest))
    write_json(f"{work.directory}/image.json", {"bawn_image": 1, **record._asdict()})
    return record


def _settle(blobs: str, name: str, digest: Digest) -> None:
    os.chmod(f"{blobs}/{name}", 0o644)
    os.rename(f"{blobs}/{name}", f"{blobs}/{digest.digest.removeprefix('sha256:')}")


def _blob(blobs: str, data: dict[str, Any]) -> Digest:
    write_json(f"{blobs}/new", data)
    digest = file_digest(f"{blobs}/new")
    _settle(blobs, "new", digest)
    return digest


def write_json(path: str, data: Any) -> None:
    write_atomic(path, (json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n").encode(), 0o644)


def names(state: str) -> list[str]:
    """The images that are here."""
    try:
        found = os.listdir(f"{state}/images")
    except FileNotFoundError:
        return []
    return sorted(name for name in found if os.path.exists(f"{state}/images/{name}/image.json"))


def read(state: str, name: str) -> Record:
    """Raises UsageError where there is no such image, HostError for a record that cannot be read."""
    path = f"{_there(f'{state}/images', name)}/image.json"
    try:
        with open(path) as file:
            data = json.load(file)
        if data.pop("bawn_image") != 1:
            raise ValueError("not of this version")
        return Record(**data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HostError(f"cannot read {path}: {error}", f"bawn image rm {name}, and make it again") from None


def _there(images: str, name: str) -> str:
    path = f"{images}/{checked_name(name)}"
    if not os.path.isdir(path) or os.path.islink(path):
        raise UsageError(f"there is no image {name!r}", "bawn image ls")
    return path


def verify(state: str, name: str) -> list[str]:
    """Everything about an image that is not as it was made; [] where it holds."""
    record = read(state, name)
    base = f"{state}/images/{name}"
    wrong = []
    for what, digest in (("manifest", record.digest), ("config", record.config), ("layer", record.layer)):
        path = f"{base}/oci/blobs/sha256/{digest.removeprefix('sha256:')}"
        if not os.path.isfile(path) or file_digest(path).digest != digest:
            wrong.append(f"the {what} is not {digest}")
    if wrong:
        return wrong
    with open(f"{base}/oci/blobs/sha256/{record.digest.removeprefix('sha256:')}") as file:
        manifest = json.load(file)
    named = [part["digest"] for part in (manifest["config"], *manifest["layers"])]
    if named != [record.config, record.layer]:
        return ["the manifest names other parts than the record"]
    return compare(f"{base}/rootfs", f"{base}/oci/blobs/sha256/{record.layer.removeprefix('sha256:')}")
