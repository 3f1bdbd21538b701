"""The root file system of image "host": a skeleton, made once for each state of the machine.

/usr is mounted over it read-only. /etc is synthesised: only the files of `ETC`, and of those only
what every user may read. Nothing of the home, nothing of /etc's secrets, no machine id.
"""

import os

from bawn import box
from bawn.digest import sha256_hex
from bawn.effects.atomic import write_atomic
from bawn.errors import HostError
from bawn.plan.model import Identity
from bawn.plan.oci import HOME, INIT

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
DIRECTORIES = ("proc", "dev", "sys", "tmp", "usr", "run/bawn", "var", "etc", HOME[1:])
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


def host_rootfs(runtime: str, identity: Identity, hostname: str) -> str:
    """The path of the skeleton for this machine and identity; makes it where it is missing.

    Raises HostError.
    """
    stamp = sha256_hex(repr((identity.uid, identity.gid, hostname, _stamps())).encode())
    path = f"{runtime}/rootfs/host-{stamp[:16]}"
    if not os.path.isdir(path):
        try:
            _make(path, program(runtime), identity, hostname)
        except OSError as error:
            raise HostError(f"cannot make {path}: {error}") from None
    return path


def _stamps() -> list[tuple[str, int]]:
    """The state of everything that is copied."""
    stamps = [("init", os.stat(box.INIT).st_mtime_ns)]
    for name in ETC:
        try:
            stamps.append((name, os.stat(f"/etc/{name}").st_mtime_ns))
        except OSError:
            continue
    return stamps


def _make(path: str, init: str, identity: Identity, hostname: str) -> None:
    """Built beside, then renamed into place: two bawns at once make the same thing."""
    import shutil

    building = f"{path}.{os.getpid()}"
    old = os.umask(0o022)
    try:
        for name in DIRECTORIES:
            os.makedirs(f"{building}/{name}")
        for name in MERGED:
            if os.path.islink(f"/{name}"):
                os.symlink(os.readlink(f"/{name}"), f"{building}/{name}")
            elif os.path.isdir(f"/{name}"):
                os.mkdir(f"{building}/{name}")
        shutil.copy(init, building + INIT)
        os.symlink("../tmp", f"{building}/var/tmp")
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
