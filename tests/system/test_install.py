"""`./install` on systems whose own runsc is too old, Debian 12 and Ubuntu 24.04 by their files: the machine's
root as the lower layer of an overlay, with an apt archive in it that was made here (no packet leaves it).

The archive has two suites. The newer one also holds a newer version of an installed package, which must
stay as it is.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.conftest import need

pytestmark = pytest.mark.system
CLONE = Path(__file__).parents[2]
OLD = "#!/bin/sh\necho 'runsc version 0.0~20230807.0'\n"
# What the system calls itself and its suite, and the suite and component that have a newer runsc.
SYSTEMS = {
    "noble": ("Ubuntu 24.04 LTS", "resolute", "universe", "Suite: resolute\n"),
    "bookworm": (
        "Debian GNU/Linux 12", "bookworm-backports", "main",
        "Suite: stable-backports\nNotAutomatic: yes\nButAutomaticUpgrades: yes\n",
    ),
}  # fmt: skip
# The archive is not signed.
APT = """
Acquire::AllowInsecureRepositories "1";
APT::Get::AllowUnauthenticated "1";
APT::Sandbox::User "root";
"""
OLD_AT_HAND = "apt-get update && apt-get install -y --allow-downgrades runsc=0.0~20230807.0-1 bawn-lab"


# In a chroot no user namespace can be made: the root is changed for good.
ENTER = """
for part in proc sys dev; do mount --rbind /$part "$0/$part"; done
cd "$0" && mkdir -p old && pivot_root . old && umount --lazy /old && rmdir /old
cd /srv/lab/work && exec env -i PATH=$PATH HOME=/root "$@"
"""


class System:
    """A root file system that can be entered, and thrown away."""

    def __init__(self, root: Path, codename: str) -> None:
        self.root, self.codename, self.archive = root, codename, root / "srv/lab/archive"
        self.name, self.newer, self.component, self.release = SYSTEMS[codename]
        self.adding = f"install: adding {self.newer}, for runsc alone"

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        apart = ["unshare", "--mount", "--pid", "--fork", "--propagation", "private"]
        return subprocess.run(
            [*apart, "sh", "-ec", ENTER, str(self.root), *words],
            capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        )  # fmt: skip


def package(archive: Path, name: str, version: str, program: bytes) -> dict[str, str]:
    """A .deb that holds one program; what an index says of it."""
    tree = archive / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/bin").mkdir(parents=True)
    (tree / f"usr/bin/{name}").write_bytes(program)
    (tree / f"usr/bin/{name}").chmod(0o755)
    control = {
        "Package": name, "Version": version, "Architecture": architecture(),
        "Maintainer": "nobody <nobody@lab.test>", "Description": "made for a test",
    }  # fmt: skip
    (tree / "DEBIAN/control").write_text("".join(f"{k}: {v}\n" for k, v in control.items()))
    deb = archive / f"{name}_{version}.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--build", str(tree), str(deb)], check=True, capture_output=True)
    shutil.rmtree(tree)
    data = deb.read_bytes()
    found = {"Filename": deb.name, "Size": str(len(data)), "SHA256": hashlib.sha256(data).hexdigest()}
    return {**control, **found}


def suite(archive: Path, name: str, components: dict[str, list[dict[str, str]]], release: str) -> None:
    """Writes the indexes of one suite."""
    sums = ""
    for component, packages in components.items():
        index = f"{component}/binary-{architecture()}/Packages"
        text = "\n".join("".join(f"{k}: {v}\n" for k, v in entry.items()) for entry in packages)
        data = text.encode()
        path = archive / "dists" / name / index
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        sums += f" {hashlib.sha256(data).hexdigest()} {len(data)} {index}\n"
    (archive / "dists" / name / "Release").write_text(
        f"Origin: lab\n{release}Codename: {name}\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n"
        f"Components: {' '.join(components)}\nArchitectures: {architecture()}\nSHA256:\n{sums}"
    )


def architecture() -> str:
    done = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    need("runsc", "dpkg-deb", "apt-get", "unshare", "cc")
    scratch, root = tmp_path / "scratch", tmp_path / "root"
    scratch.mkdir()
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(scratch)], check=True)
    (scratch / "upper").mkdir()
    (scratch / "work").mkdir()
    layers = f"lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work"
    try:
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(root)], check=True)
        try:
            made = System(root, request.param)
            make(made)
            yield made
        finally:
            subprocess.run(["umount", "--lazy", str(root)], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(scratch)], check=True)


def make(system: System) -> None:
    """Its own package lists, os-release and archive, an old runsc at hand, and no bawn."""
    root, archive = system.root, system.archive
    runsc = Path(shutil.which("runsc") or "").read_bytes()
    for gone in (
        "opt/bawn",
        "usr/local/bin/bawn",
        "usr/local/bin/runsc",
        "var/lib/apt/lists",
        "var/cache/apt",
        "etc/apt",
    ):
        path = root / gone
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for made in (
        "var/lib/apt/lists/partial",
        "var/cache/apt/archives/partial",
        "etc/apt/sources.list.d",
        "etc/apt/preferences.d",
        "srv/lab/archive",
        "srv/lab/work",
    ):
        (root / made).mkdir(parents=True)
    shutil.copytree(CLONE, root / "srv/lab/bawn", ignore=shutil.ignore_patterns(".*", "__pycache__"))
    (root / "etc/os-release").unlink()
    (root / "etc/os-release").write_text(f'PRETTY_NAME="{system.name}"\nVERSION_CODENAME={system.codename}\n')
    old = package(archive, "runsc", "0.0~20230807.0-1", OLD.encode())
    new = package(archive, "runsc", "0.0~29990101.0-1", runsc)
    other = package(archive, "bawn-lab", "1", b"#!/bin/sh\n")
    newer = package(archive, "bawn-lab", "2", b"#!/bin/sh\n")
    suite(archive, system.codename, {"main": [other], "universe": [old]}, f"Suite: {system.codename}\n")
    suite(archive, system.newer, {system.component: [new, newer]}, system.release)
    (root / "etc/apt/apt.conf").write_text(APT)
    (root / "etc/apt/sources.list.d/lab.sources").write_text(
        f"Types: deb\nURIs: file:/srv/lab/archive\nSuites: {system.codename}\nComponents: main universe\n"
    )


def test_a_newer_runsc_and_nothing_else_of_a_newer_release(system: System) -> None:
    at_hand = system.run("sh", "-c", OLD_AT_HAND)
    assert at_hand.returncode == 0, at_hand.stdout + at_hand.stderr
    assert "20230807" in system.run("runsc", "--version").stdout

    done = system.run("/srv/lab/bawn/install")
    assert done.returncode == 0, done.stdout + done.stderr
    assert system.adding in done.stdout
    assert "hello from gVisor" in done.stdout
    assert "20230807" not in system.run("runsc", "--version").stdout
    assert "bawn-lab" not in system.run("apt-get", "--simulate", "dist-upgrade").stdout

    again = system.run("/srv/lab/bawn/install")
    assert again.returncode == 0
    assert system.adding not in again.stdout

    # The control: what a newer release does to this system where nothing holds it back. (A suite of
    # backports is not taken from by itself.)
    system.run("rm", "/etc/apt/preferences.d/bawn-runsc")
    upgraded = "Inst bawn-lab" in system.run("apt-get", "--simulate", "dist-upgrade").stdout
    assert upgraded == ("NotAutomatic" not in system.release)

    assert system.run("/srv/lab/bawn/install", "--uninstall").returncode == 0
    assert system.run("ls", "/etc/apt/sources.list.d", "/etc/apt/preferences.d").stdout.split() == [
        "/etc/apt/preferences.d:", "/etc/apt/sources.list.d:", "lab.sources",
    ]  # fmt: skip


@pytest.mark.parametrize("there", [True, False], ids=["without-runsc", "no-such-suite"])
def test_a_newer_release_without_one_is_told(system: System, there: bool) -> None:
    shutil.rmtree(system.archive / "dists" / system.newer)
    if there:
        other = package(system.archive, "bawn-lab", "3", b"")
        suite(system.archive, system.newer, {system.component: [other]}, system.release)
    assert system.run("sh", "-c", OLD_AT_HAND).returncode == 0
    done = system.run("/srv/lab/bawn/install")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "put a release of gVisor at /usr/local/bin/runsc" in done.stderr
    if there:
        assert f"the runsc of {system.name} is of 20230807" in done.stderr
    else:
        assert f"{system.newer} cannot be had" in done.stderr
        assert system.run("ls", "/etc/apt/sources.list.d").stdout.split() == ["lab.sources"]
    assert not (system.root / "opt/bawn").exists()
