"""runsc: where it is, how old it is, and whether this kernel and user can run it.

`runsc --version` costs 25 ms, so the answer is remembered for the file's exact identity (path,
device, inode, size, times) and the kernel; `effects.cache` writes what `key` and `observe` read.
"""

import json
import os
import re

from bawn.errors import HostError
from bawn.facts.model import HostFact, RunscFact
from bawn.facts.runner import Runner

_VERSION = re.compile(r"runsc version (\S+)")
_DATE = re.compile(r"(20\d{6})")
# The systrap platform became usable and default in June 2023; before it there is only ptrace, and
# KVM, which hangs on some virtual machines.
OLDEST = 20230605
# Until some time before this one, the Sentry takes orders only from its own uid, which bawn as root
# does not have in the box's user namespace ("Control auth failure"): measured with 20230807, the one of
# Ubuntu 24.04, against 20240729.
AS_ROOT = 20240729
# From then on the network check does not mistake a network namespace for the root one on new
# kernels; needed by engine docker only (engine gvisor never gives runsc a network).
NETWORK_FIXED = 20250101

INSTALL = """sudo ./install   (in bawn's repository), or by hand:
    Debian 12: u=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 debian/) &&
      echo "deb $u bookworm-backports main" | sudo tee /etc/apt/sources.list.d/backports.list &&
      sudo apt-get update && sudo apt-get install -t bookworm-backports runsc
    Debian 13, Ubuntu 24.04: sudo apt-get install runsc"""


def find(path: str) -> str:
    """The first executable runsc on `path` (a PATH value), resolved; "" where there is none."""
    for directory in [*path.split(":"), "/usr/local/bin", "/usr/bin"]:
        candidate = f"{directory}/runsc"
        if directory.startswith("/") and os.access(candidate, os.X_OK):
            return os.path.realpath(candidate)
    return ""


def key(path: str) -> str:
    """What the remembered answer holds for."""
    info = os.stat(path)
    kernel = os.uname().release
    stamp = (path, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return repr((stamp, kernel))


def remembered(cache: str, path: str) -> str:
    """The version that was remembered for this very file; "" where none was."""
    try:
        with open(cache) as file:
            data = json.load(file)
    except (OSError, ValueError):
        return ""
    if not isinstance(data, dict) or data.get("key") != key(path):
        return ""
    return str(data.get("version", ""))


def observe(run: Runner, cache: str, host: HostFact) -> RunscFact:
    """What is there. `problem` says why engine gvisor cannot run here."""
    path = find(os.environ.get("PATH", ""))
    if not path:
        return RunscFact("", "", (), "runsc (gVisor) is not installed", INSTALL)
    version = remembered(cache, path)
    if not version:
        try:
            version = parse_version(run([path, "--version"], timeout=10).text)
        except HostError as error:
            return RunscFact(path, "", (), error.message, INSTALL)
    return judge(path, version, host)


def parse_version(text: str) -> str:
    """ "runsc version 0.0~20240729.0" or "release-20240729.0"; "" for anything else."""
    match = _VERSION.search(text)
    return match[1] if match else ""


def release_date(version: str) -> int:
    """20240729 of "0.0~20240729.0"; 0 where the version holds no date."""
    match = _DATE.search(version)
    return int(match[1]) if match else 0


def judge(path: str, version: str, host: HostFact) -> RunscFact:
    """Pure: can this runsc do the work on this host?"""
    date = release_date(version)
    if not version or not date:
        problem = f"{path} did not tell its version (got {version!r})"
        return RunscFact(path, version, (), problem, INSTALL)
    if date < OLDEST:
        problem = f"runsc {version} is too old: it has no systrap platform (needs {OLDEST})"
        return RunscFact(path, version, ("ptrace",), problem, INSTALL)
    if host.uid == 0 and date < AS_ROOT:
        problem = f"runsc {version} is too old for bawn as root (needs {AS_ROOT})"
        fix = "run bawn as an ordinary user, or put a later release of gVisor at /usr/local/bin/runsc"
        return RunscFact(path, version, ("systrap", "ptrace"), problem, fix)
    if host.uid != 0 and not host.userns:
        problem = "an ordinary user may not make user namespaces on this machine"
        fix = (
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 "
            "kernel.unprivileged_userns_clone=1 (what your kernel knows of them), or use sudo bawn"
        )
        return RunscFact(path, version, ("systrap", "ptrace"), problem, fix)
    return RunscFact(path, version, ("systrap", "ptrace"))
