"""`./install` on a system whose own runsc is too old, Ubuntu 24.04 by its files: the machine's root as the
lower layer of an overlay, with an apt archive in it that was made here (no packet leaves the machine).

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
OS_RELEASE = 'PRETTY_NAME="Ubuntu 24.04 LTS"\nID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n'
# The archive is not signed.
APT = """
Acquire::AllowInsecureRepositories "1";
APT::Get::AllowUnauthenticated "1";
APT::Sandbox::User "root";
"""
OLD_AT_HAND = "apt-get update && apt-get install -y --allow-downgrades runsc=0.0~20230807.0-1 bawn-lab"
ADDING = "install: adding resolute, for runsc alone"


# In a chroot no user namespace can be made: the root is changed for good.
ENTER = """
for part in proc sys dev; do mount --rbind /$part "$0/$part"; done
cd "$0" && mkdir -p old && pivot_root . old && umount --lazy /old && rmdir /old
cd /srv/lab/work && exec env -i PATH=$PATH HOME=/root "$@"
"""


class System:
    """A root file system that can be entered, and thrown away."""

    def __init__(self, root: Path) -> None:
        self.root = root

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


def suite(archive: Path, name: str, components: dict[str, list[dict[str, str]]]) -> None:
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
        f"Origin: lab\nSuite: {name}\nCodename: {name}\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n"
        f"Components: {' '.join(components)}\nArchitectures: {architecture()}\nSHA256:\n{sums}"
    )


def architecture() -> str:
    done = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def ubuntu(tmp_path: Path) -> Iterator[System]:
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
            make_noble(root)
            yield System(root)
        finally:
            subprocess.run(["umount", "--lazy", str(root)], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(scratch)], check=True)


def make_noble(root: Path) -> None:
    """Its own package lists, os-release and archive, an old runsc at hand, and no bawn."""
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
    (root / "etc/os-release").write_text(OS_RELEASE)
    archive = root / "srv/lab/archive"
    old = package(archive, "runsc", "0.0~20230807.0-1", OLD.encode())
    new = package(archive, "runsc", "0.0~29990101.0-1", runsc)
    other = package(archive, "bawn-lab", "1", b"#!/bin/sh\n")
    newer = package(archive, "bawn-lab", "2", b"#!/bin/sh\n")
    suite(archive, "noble", {"main": [other], "universe": [old]})
    suite(archive, "resolute", {"main": [newer], "universe": [new, newer]})
    (root / "etc/apt/apt.conf").write_text(APT)
    (root / "etc/apt/sources.list.d/lab.sources").write_text(
        "Types: deb\nURIs: file:/srv/lab/archive\nSuites: noble\nComponents: main universe\n"
    )


def test_a_newer_runsc_and_nothing_else_of_a_newer_release(ubuntu: System) -> None:
    at_hand = ubuntu.run("sh", "-c", OLD_AT_HAND)
    assert at_hand.returncode == 0, at_hand.stdout + at_hand.stderr
    assert "20230807" in ubuntu.run("runsc", "--version").stdout

    done = ubuntu.run("/srv/lab/bawn/install")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ADDING in done.stdout
    assert "hello from gVisor" in done.stdout
    assert "20230807" not in ubuntu.run("runsc", "--version").stdout
    assert "bawn-lab" not in ubuntu.run("apt-get", "--simulate", "dist-upgrade").stdout

    again = ubuntu.run("/srv/lab/bawn/install")
    assert again.returncode == 0
    assert ADDING not in again.stdout

    # The control: what a newer release does to this system where nothing holds it back.
    ubuntu.run("rm", "/etc/apt/preferences.d/bawn-runsc")
    assert "Inst bawn-lab" in ubuntu.run("apt-get", "--simulate", "dist-upgrade").stdout

    assert ubuntu.run("/srv/lab/bawn/install", "--uninstall").returncode == 0
    assert ubuntu.run("ls", "/etc/apt/sources.list.d", "/etc/apt/preferences.d").stdout.split() == [
        "/etc/apt/preferences.d:", "/etc/apt/sources.list.d:", "lab.sources",
    ]  # fmt: skip


@pytest.mark.parametrize("there", [True, False], ids=["without-runsc", "no-such-suite"])
def test_a_newer_release_without_one_is_told(ubuntu: System, there: bool) -> None:
    archive = ubuntu.root / "srv/lab/archive"
    shutil.rmtree(archive / "dists/resolute")
    if there:
        suite(archive, "resolute", {"main": [], "universe": [package(archive, "bawn-lab", "3", b"")]})
    assert ubuntu.run("sh", "-c", OLD_AT_HAND).returncode == 0
    done = ubuntu.run("/srv/lab/bawn/install")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "put a release of gVisor at /usr/local/bin/runsc" in done.stderr
    if there:
        assert "the runsc of Ubuntu 24.04 LTS is of 20230807" in done.stderr
    else:
        assert "resolute cannot be had" in done.stderr
        assert ubuntu.run("ls", "/etc/apt/sources.list.d").stdout.split() == ["lab.sources"]
    assert not (ubuntu.root / "opt/bawn").exists()
