"""runsc: where it is, how old it is, and whether this kernel and user can run it.

`runsc --version` costs 25 ms, so the answer is remembered for the file's exact identity (path,
device, inode, size, times) and the kernel; `effects.cache` writes what `key` and `observe` read.
"""

import json
import os
import re

from bawn.errors import HostError
from bawn.facts import programs
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
RMEM = "/proc/sys/net/core/rmem_default"  # what those look at (DESIGN 10)

# Debian 12's own runsc is too old; backports has one. Its address is read from the machine's sources.
_BACKPORTS = """u=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' |
        awk '$2 == "bookworm" {print $1; exit}') &&
      k=/usr/share/keyrings/debian-archive-keyring.gpg &&
      echo "deb [signed-by=$k] $u bookworm-backports main" |
      sudo tee /etc/apt/sources.list.d/bawn-backports.list &&
      sudo apt-get update && sudo apt-get install -y -t bookworm-backports runsc"""
_PACKAGED = "sudo apt-get update && sudo apt-get install -y runsc"
_RELEASE = (
    "install a release of gVisor (https://gvisor.dev/docs/user_guide/install/): "
    "this system has no package that is new enough"
)


def install_command(os_release: str) -> str:
    """How this system (the text of /etc/os-release) gets a runsc that is new enough."""
    values = dict(line.partition("=")[::2] for line in os_release.splitlines())
    system = values.get("ID", "").strip('"')
    number = values.get("VERSION_ID", "").strip('"').split(".")[0]
    version = int(number) if number.isdigit() else 0
    if system == "debian":
        return _BACKPORTS if version == 12 else _PACKAGED if version == 0 or version > 12 else _RELEASE
    return _PACKAGED if system == "ubuntu" and version >= 25 else _RELEASE


def _install() -> str:
    try:
        with open("/etc/os-release") as file:
            return install_command(file.read())
    except OSError:
        return install_command("")


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
    path = programs.find("runsc", os.environ.get("PATH", ""))
    if not path:
        return RunscFact("", "", (), "runsc (gVisor) is not installed", _install())
    version = remembered(cache, path)
    if not version:
        try:
            version = parse_version(run([path, "--version"], timeout=10).text)
        except HostError as error:
            return RunscFact(path, "", (), error.message, _install())
    fact = judge(path, version, host)
    return fact._replace(fix=_install()) if fact.problem and not fact.fix else fact


def parse_version(text: str) -> str:
    """ "0.0~20240729.0" of "runsc version 0.0~20240729.0"; "" for anything else."""
    match = _VERSION.search(text)
    return match[1] if match else ""


def release_date(version: str) -> int:
    """20240729 of "0.0~20240729.0"; 0 where the version holds no date."""
    match = _DATE.search(version)
    return int(match[1]) if match else 0


def judge(path: str, version: str, host: HostFact) -> RunscFact:
    """Pure: can this runsc do the work on this host?"""
    date = release_date(version)
    if not date:
        return RunscFact(path, version, (), f"{path} did not tell its version (got {version!r})")
    if date < OLDEST:
        problem = f"runsc {version} is too old: it has no systrap platform (needs {OLDEST})"
        return RunscFact(path, version, ("ptrace",), problem)
    platforms = ("systrap", "ptrace")
    if host.uid == 0 and date < AS_ROOT:
        problem = f"runsc {version} is too old for bawn as root (needs {AS_ROOT})"
        fix = "run bawn as an ordinary user, or put a later release of gVisor at /usr/local/bin/runsc"
        return RunscFact(path, version, platforms, problem, fix, usable=True)
    if host.uid != 0 and not host.userns:
        problem = "an ordinary user may not make user namespaces on this machine"
        fix = "bawn doctor tells which setting forbids it; or use sudo bawn"
        return RunscFact(path, version, platforms, problem, fix, usable=True)
    return RunscFact(path, version, platforms, usable=True)


def mistakes_netns(run: Runner, version: str) -> bool:
    """Does this runsc take every network namespace of this kernel for the machine's own (DESIGN 10)?

    Old ones do where a fresh namespace shows RMEM, as kernels do since 2024. Where that cannot be
    tried, they are taken to: the remedy does no harm.
    """
    if release_date(version) >= NETWORK_FIXED:
        return False
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    try:
        return run(["unshare", *user, "--net", "test", "-e", RMEM], timeout=10).code != 1
    except HostError:
        return True
