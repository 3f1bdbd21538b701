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
# The oldest that was seen to hold a box. Before June 2023 there is no systrap, only ptrace, and KVM,
# which hangs on some virtual machines; 20230807 (Ubuntu 24.04's own) takes orders only from its own uid,
# which bawn as root does not have in the box's user namespace ("Control auth failure"), and hung rootless.
OLDEST = 20240729
# From then on the network check does not mistake a network namespace for the root one on new
# kernels; needed by engine docker only (engine gvisor never gives runsc a network).
NETWORK_FIXED = 20250101
RMEM = "/proc/sys/net/core/rmem_default"  # what those look at (DESIGN 10)

# Releases whose own runsc is too old: (ID, VERSION_ID) -> codename, and the suite, component and key of one
# that is not. The address is that of the machine's own packages, and nothing else is taken from there; the
# same in ./install.
_NEWER = {
    ("debian", "12"): ("bookworm", "bookworm-backports", "main", "debian-archive-keyring"),
    ("ubuntu", "24.04"): ("noble", "resolute", "universe", "ubuntu-archive-keyring"),
}
_FROM_NEWER = """u=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' |
        awk '$2 == "{codename}" {{print $1; exit}}') &&
      printf '%s\\n' 'Package: *' 'Pin: release n={suite}' 'Pin-Priority: -1' '' \\
        'Package: runsc' 'Pin: release n={suite}' 'Pin-Priority: 990' |
      sudo tee /etc/apt/preferences.d/bawn-runsc &&
      echo "deb [signed-by=/usr/share/keyrings/{key}.gpg] $u {suite} {component}" |
      sudo tee /etc/apt/sources.list.d/bawn-runsc.list &&
      sudo apt-get update && sudo apt-get install -y -t {suite} runsc"""
_PACKAGED = "sudo apt-get update && sudo apt-get install -y runsc"
_RELEASE = (
    "install a release of gVisor (https://gvisor.dev/docs/user_guide/install/): "
    "this system has no package that is new enough"
)


def install_command(os_release: str) -> str:
    """How this system (the text of /etc/os-release) gets a runsc that is new enough."""
    values = dict(line.partition("=")[::2] for line in os_release.splitlines())
    system = values.get("ID", "").strip('"')
    number = values.get("VERSION_ID", "").strip('"')
    if newer := _NEWER.get((system, number)):
        codename, suite, component, key = newer
        return _FROM_NEWER.format(codename=codename, suite=suite, component=component, key=key)
    major = number.partition(".")[0]
    version = int(major) if major.isdigit() else 0  # a Debian without one is testing or unstable
    packaged = {"debian": version == 0 or version > 12, "ubuntu": version >= 25}
    return _PACKAGED if packaged.get(system) else _RELEASE


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
        return RunscFact(path, version, (), f"runsc {version} is too old (needs {OLDEST})")
    platforms = ("systrap", "ptrace")
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
