"""agent-base, really built from this machine's packages, and run under both engines by each kind of user.

One build (about a minute of two processors) serves all: the ordinary user imports its OCI layout.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.conftest import BAWN, Person, need
from tests.system.lab import IMAGE, Lab, runsc_of

pytestmark = pytest.mark.system
STATE = Path("/var/lib/bawn/images")
NAME = "agent-base"
VERSIONS = {"claude": "2.1.332", "codex": "0.145.0", "node": "v24.", "npm": "11.", "git": "git version",
            "rg": "ripgrep", "python3": "Python 3"}  # fmt: skip


@pytest.fixture(scope="module")
def layout(users: dict[str, Person]) -> Iterator[Path]:
    """The layout of the built image, where every user can read it."""
    need("mmdebstrap", "npm", "setpriv", "unshare")
    root = users["root"]
    here = (STATE / NAME).exists()
    # The tester's own settings of npm, certificates among them, and npm's cache.
    kept = ("HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    own: dict[str, Any] = {name: os.environ[name] for name in kept if name in os.environ}
    own |= {name: value for name, value in os.environ.items() if name.lower().startswith("npm_config_")}
    done = root.bawn("image", "build", NAME, "--json", cwd=root.home, timeout=600, **own)
    assert done.returncode == 0, done.stderr
    copy = Path("/var/tmp") / f"bawn-test-oci-{os.getpid()}"
    try:
        shutil.copytree(STATE / NAME / "oci", copy, copy_function=os.link)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)
        if not here:
            root.bawn("image", "rm", NAME, cwd=root.home)


def test_contents(layout: Path, users: dict[str, Person]) -> None:
    root = users["root"]
    (listed,) = [
        one
        for one in json.loads(root.bawn("image", "ls", "--json", cwd=root.home).stdout)
        if one["name"] == NAME
    ]
    assert listed["digest"].startswith("sha256:")
    tree = STATE / NAME / "rootfs"
    assert not any(p.lstat().st_mode & 0o6000 for p in tree.rglob("*"))
    for empty in ("var/log", "var/cache", "tmp", "dev"):
        assert not any((tree / empty).iterdir()), empty
    assert not (tree / "etc/apt").exists() and not (tree / "usr/bin/apt-get").exists()
    assert (tree / "etc/ssl/certs/ca-certificates.crt").stat().st_size > 100_000
    components = json.loads((STATE / NAME / "sbom.json").read_text())["components"]
    assert {"git", "ripgrep", "ca-certificates", "@anthropic-ai/claude-code-linux-x64", "npm"} <= {
        component["name"] for component in components
    }
    names = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True
    )
    hosts = {uri.split("/")[2] for uri in names.stdout.split() if "://" in uri}
    for path in (p for p in (tree / "etc").rglob("*") if p.is_file() and not p.is_symlink()):
        assert not any(host.encode() in path.read_bytes() for host in hosts), path


def test_it_holds_and_a_change_is_seen(layout: Path, users: dict[str, Person]) -> None:
    root = users["root"]
    assert root.bawn("image", "verify", NAME, cwd=root.home).returncode == 0
    tool = STATE / NAME / "rootfs/usr/bin/rg"
    tool.chmod(0o4755)
    try:
        done = root.bawn("image", "verify", NAME, cwd=root.home)
        assert done.returncode == 1 and "/usr/bin/rg: mode 4755" in done.stdout
    finally:
        tool.chmod(0o755)


@pytest.mark.parametrize("who", ["root", "rootless"])
def test_every_program_runs(layout: Path, users: dict[str, Person], who: str) -> None:
    person = users[who]
    work = person.make(person.home / f"image-{os.urandom(4).hex()}")
    if who == "rootless":
        done = person.bawn("image", "import", str(layout), NAME, "--json", cwd=work, timeout=300)
        assert done.returncode == 0, done.stderr
        assert (
            json.loads(done.stdout)["layer"] == json.loads((STATE / NAME / "image.json").read_text())["layer"]
        )
    script = "; ".join(f"{name} --version | head -n 1" for name in VERSIONS)
    done = person.sh(f"{script}; touch /usr/x /x /etc/x || echo read-only", work, "--image", NAME)
    lines = done.stdout.splitlines()
    assert len(lines) == len(VERSIONS) + 1, done.stderr
    for line, version in zip(lines, VERSIONS.values(), strict=False):
        assert version in line
    assert lines[-1] == "read-only"
    # The agent of a profile is the image's own; none of the host's programs is mounted.
    (work / "bawn.toml").write_text(f'version = 1\n[profile.x]\nagent = "claude"\nimage = "{NAME}"\n')
    assert person.bawn("trust", "--yes", cwd=work).returncode == 0
    plan = json.loads(person.bawn("plan", "--json", cwd=work).stdout)
    assert not [bind for bind in plan["binds"] if bind["role"] in ("agent", "system")]
    assert plan["image_digest"].startswith("sha256:")
    done = person.bawn("claude", "--version", cwd=work)
    assert done.stdout == "2.1.332 (Claude Code)\n", done.stderr


def test_docker(layout: Path, users: dict[str, Person]) -> None:
    """The same image by docker, the check that it is the same, and an image of docker's own taken in."""
    need("dockerd", "ip", "nsenter", "runsc", BAWN)
    root = users["root"]
    work = users["rootless"].make(users["rootless"].home / f"image-{os.urandom(4).hex()}")
    with Lab() as lab:
        runsc_of(lab, BAWN)
        there: dict[str, Any] = {**lab.environment}
        done = root.bawn("image", "load", NAME, cwd=work, timeout=300, **there)
        assert done.returncode == 0, done.stderr
        docker = ("run", "-q", "--engine", "docker", "--image")
        done = root.bawn(
            *docker, NAME, "--", "sh", "-c", "claude --version; codex --version; id -un", cwd=work,
            **there,
        )  # fmt: skip
        assert "2.1.332" in done.stdout and "0.145.0" in done.stdout, done.stderr
        lab.import_image()
        done = root.bawn("image", "import", IMAGE, "bawn-test-small", cwd=work, **there)
        assert done.returncode == 1 and "BWN754" in done.stderr
        done = root.bawn("image", "import", IMAGE, "bawn-test-small", "--accept", "BWN754", cwd=work, **there)
        assert done.returncode == 0, done.stderr
        try:
            done = root.sh("echo from $(uname -r)", work, "--image", "bawn-test-small")
            assert done.stdout == "from 4.4.0\n", done.stderr
            lab.docker("tag", IMAGE, f"{NAME}:latest")  # another image in its place
            done = root.bawn(*docker, NAME, "--", "true", cwd=work, **there)
            assert done.returncode == 125 and "not the one that bawn keeps" in done.stderr
        finally:
            root.bawn("image", "rm", "bawn-test-small", cwd=work)


def test_a_run_keeps_its_image(layout: Path, users: dict[str, Person]) -> None:
    root = users["root"]
    work = root.make(root.home / f"image-{os.urandom(4).hex()}")
    script = "echo up; read x; rg --version"
    words = ("run", "-q", "--image", NAME, "--", "sh", "-c", script)
    child = root.start(*words, cwd=work, stdin=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    done = root.bawn("image", "rm", NAME, cwd=root.home)
    assert done.returncode == 1 and "a run uses the image" in done.stderr
    out, _ = child.communicate("\n", timeout=30)
    assert "ripgrep" in out
