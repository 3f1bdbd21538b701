"""The root file system of a box: an image, and around it a directory of mount points.

Image "host" is made here, once for each state of the machine.

/usr is mounted over it read-only. /etc is synthesised: only the files of `ETC`, and of those only
what every user may read. Nothing of the home, nothing of /etc's secrets, no machine id.
"""

import json
import os
from collections.abc import Mapping

from bawn import box
from bawn.digest import sha256_hex
from bawn.effects.atomic import write_atomic
from bawn.errors import HostError
from bawn.evidence.events import Observer
from bawn.plan.model import Identity, Plan
from bawn.plan.oci import HOME
from bawn.policy.pathtext import ancestors

# What programs below /usr cannot work without, and why.
ETC = (
    "alternatives",  # /usr/bin/awk, vi, java ... are links through here
    "bash.bashrc",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "inputrc",
    "java-11-openjdk",  # the JDK's own configuration lies here
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "lsb-release",
    "magic",
    "mime.types",
    "os-release",
    "pki/tls/certs",
    "profile",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr on merged systems


def program(runtime: str) -> str:
    """PID 1 where every box can reach it: a copy below the runtime directory, made once.

    bawn itself may be installed in a home that the box's file server cannot walk through. Raises
    HostError.
    """
    try:
        stamp = os.stat(box.INIT)
        path = f"{runtime}/init-{stamp.st_size}-{stamp.st_mtime_ns}"
        if not os.path.exists(path):
            os.makedirs(runtime, mode=0o711, exist_ok=True)
            with open(box.INIT, "rb") as file:
                write_atomic(path, file.read(), 0o755)
    except OSError as error:
        raise HostError(f"cannot place PID 1: {error}", "install bawn again") from None
    return path


def host_image(runtime: str, identity: Identity, hostname: str, observer: Observer) -> str:
    """The image "host" without its /usr, for this machine and identity; made where it is missing.

    Raises HostError.
    """
    stamp = sha256_hex(repr((identity.uid, identity.gid, hostname, _stamps())).encode())
    path = f"{runtime}/rootfs/host-{stamp[:16]}"
    if not os.path.isdir(path):
        observer.step("preparing this machine's root file system for boxes (once)")
        try:
            _make(path, identity, hostname)
        except OSError as error:
            raise HostError(f"cannot make {path}: {error}") from None
    return path


def hold(plan: Plan) -> int | None:
    """Keeps the files of the plan's image where they are, for as long as the descriptor is open: whoever
    builds or removes that image sees it (`effects.image_store`). None where there is nothing to hold.

    Raises HostError for an image that was replaced since the plan was made.
    """
    if not plan.rootfs:
        return None
    import fcntl

    directory = os.path.dirname(plan.rootfs)
    try:
        held = os.open(f"{directory}/lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # unpacked by hand, or being replaced just now: `assemble` will see
        return None
    fcntl.flock(held, fcntl.LOCK_SH)
    try:
        with open(f"{directory}/image.json") as file:
            now = json.load(file)["digest"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        now = f"unknown ({error})"
    if now != plan.image_digest:
        os.close(held)
        raise HostError(
            f"the image {plan.image} is {now}, and was {plan.image_digest} at the plan", "run it again"
        )
    return held


def assemble(root: str, image: str, targets: Mapping[str, bool]) -> list[tuple[str, str]]:
    """Makes the root file system of one run at `root`: a directory of mount points.

    runsc's file server makes missing mount points where its root lies, on the host's disk and
    inside the image. So here every one of `targets` (path -> is it a directory) is made beforehand,
    in a root of the run's own, and the image is mounted around them: (source, target) of each of its
    entries, the larger the better. Raises HostError.
    """
    opened = {path for target in targets for path in ancestors(target)[1:]}
    binds: list[tuple[str, str]] = []

    def fill(relative: str) -> None:
        with os.scandir(image + relative) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                path = f"{relative}/{entry.name}"
                if path in targets:
                    continue
                if path in opened and not entry.is_dir(follow_symlinks=False):
                    raise HostError(f"the image has no directory at {path}, below which a mount goes")
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), root + path)
                elif entry.is_dir():
                    os.mkdir(root + path)
                    if path in opened:
                        fill(path)
                    else:
                        binds.append((entry.path, path))
                elif entry.is_file():
                    _touch(root + path)
                    binds.append((entry.path, path))

    try:
        os.mkdir(root, 0o755)
        fill("")
        for target, is_dir in sorted(targets.items()):
            _mount_point(root + target, is_dir)
    except OSError as error:
        raise HostError(f"cannot make the root file system {root}: {error}") from None
    return binds


def _mount_point(path: str, is_dir: bool) -> None:
    if os.path.lexists(path):
        return
    os.makedirs(path if is_dir else os.path.dirname(path), exist_ok=True)
    if not is_dir:
        _touch(path)


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))


def _stamps() -> list[tuple[str, int]]:
    """The state of everything that is copied."""
    stamps = []
    for name in ETC:
        try:
            stamps.append((name, os.stat(f"/etc/{name}").st_mtime_ns))
        except OSError:
            continue
    return stamps


def _make(path: str, identity: Identity, hostname: str) -> None:
    """Built beside, then renamed into place: two bawns at once make the same thing."""
    import shutil

    building = f"{path}.{os.getpid()}"
    old = os.umask(0o022)
    try:
        os.makedirs(f"{building}/etc")
        for name in MERGED:
            if os.path.islink(f"/{name}"):
                os.symlink(os.readlink(f"/{name}"), f"{building}/{name}")
            elif os.path.isdir(f"/{name}"):
                os.mkdir(f"{building}/{name}")
        os.symlink("/proc/self/mounts", f"{building}/etc/mtab")
        for name in ETC:
            _copy(f"/etc/{name}", f"{building}/etc/{name}")
        for name, text in _synthesised(identity, hostname).items():
            with open(f"{building}/etc/{name}", "w") as file:
                file.write(text)
        try:
            os.rename(building, path)
        except OSError:
            if not os.path.isdir(path):
                raise
    finally:
        os.umask(old)
        shutil.rmtree(building, ignore_errors=True)


def _copy(source: str, target: str) -> None:
    """Copies what every user may read; links stay links."""
    import shutil

    if os.path.islink(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(source):
            _copy(f"{source}/{name}", f"{target}/{name}")
    elif os.path.isfile(source) and os.stat(source).st_mode & 0o004:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)


def _synthesised(identity: Identity, hostname: str) -> dict[str, str]:
    uid, gid = identity.uid, identity.gid
    root = "" if uid == 0 else "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
    root_group = "" if gid == 0 else "root:x:0:\n"
    return {
        "passwd": f"{root}agent:x:{uid}:{gid}:agent:{HOME}:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"{root_group}agent:x:{gid}:\nnogroup:x:65534:\n",
        "hosts": f"127.0.0.1 localhost {hostname}\n::1 localhost\n",
        "hostname": f"{hostname}\n",
        "resolv.conf": "# no network\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "shells": "/bin/sh\n/bin/bash\n",
    }
