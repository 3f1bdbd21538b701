"""A private dockerd: in a network namespace without a uplink, with files and a socket of its own.

Its bridge and rules would live in that namespace; the machine's network is untouched. Several can run
side by side. Everything is removed when the context ends, also after a failure.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from bawn import box
from bawn.effects.journal import folder
from bawn.effects.setup_docker import in_force
from tests.system.conftest import processes

IMAGE = "bawn-test"
PROGRAMS = (  # what the test image takes from this machine
    "bash cat chmod cp cut dash dd df env false find grep head id kill ln ls mkdir mkfifo mv node nproc "
    "npm python3 rm rmdir sed seq setsid sh sleep sort stat touch true truncate uname wc"
)


class Lab:
    """`with Lab() as lab`: `lab.environment` points every docker client and bawn at its daemon."""

    def __init__(self, config: dict[str, object] | None = None, network: str = "") -> None:
        """`network` is a namespace that somebody else made and removes; "" for one of its own."""
        self._network = network
        self.name = network or f"bawn-lab-{os.getpid()}-{os.urandom(2).hex()}"
        self.root = Path(tempfile.mkdtemp(prefix="bawn-lab-", dir="/var/tmp"))
        self.root.chmod(0o755)
        self.config = self.root / "daemon.json"
        self.config.write_text(json.dumps({"bridge": "none", **(config or {})}, indent=2))
        self.socket = self.root / "docker.sock"
        self.environment = {"DOCKER_HOST": f"unix://{self.socket}"}
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Lab":
        try:
            if not self._network:
                subprocess.run(["ip", "netns", "add", self.name], check=True)
                subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.end_processes()
        if not self._network:
            subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        for line in Path("/proc/self/mounts").read_text().splitlines()[::-1]:
            point = line.split()[1]
            if point.startswith(str(self.root)):
                subprocess.run(["umount", "-l", point], check=False)
        for entry in in_force("/var/lib/bawn", str(self.config)):
            shutil.rmtree(folder("/var/lib/bawn", entry.number), ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self) -> None:
        """Starts the daemon and waits until it answers."""
        with (self.root / "log").open("ab") as log:
            self._daemon = subprocess.Popen(
                [
                    "nsenter", f"--net=/run/netns/{self.name}", "dockerd",
                    "--config-file", self.config, "--data-root", self.root / "data",
                    "--exec-root", self.root / "exec", "--pidfile", self.root / "pid",
                    "--host", f"unix://{self.socket}",
                ],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while self.docker("version", check=False).returncode != 0:
            if time.monotonic() > deadline or self._daemon.poll() is not None:
                raise RuntimeError(f"dockerd did not start:\n{(self.root / 'log').read_text()[-3000:]}")
            time.sleep(0.2)

    def stop(self) -> None:
        """Ends the daemon and what it started (containerd is of its session)."""
        if self._daemon and self._daemon.poll() is None:
            self._daemon.terminate()
            try:
                self._daemon.wait(20)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
        if self._daemon:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._daemon.pid, signal.SIGKILL)

    def end_processes(self) -> None:
        """Shims and boxes outlive a daemon that was killed; each names the lab's directory."""
        for _ in range(20):
            ours = [line for line in processes(f"{self.root}/") if int(line.split()[0]) != os.getpid()]
            for line in ours:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(line.split()[0]), signal.SIGKILL)
            if not ours:
                return
            time.sleep(0.05)

    def restart_command(self) -> str:
        """What `bawn setup docker --restart-command` is given: a reload of the runtimes."""
        return f"kill -HUP $(cat {self.root}/pid)"

    def docker(
        self, *words: str, check: bool = True, **options: object
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            ["docker", *words], env={**os.environ, **self.environment}, check=check, text=True,
            **{"capture_output": True, **options},
        )  # fmt: skip

    def runs(self) -> list[Path]:
        """The run directories of bawns that used this daemon; others run beside it."""
        found = []
        for mark in Path("/run/bawn/runs").glob("*/docker"):
            with contextlib.suppress(FileNotFoundError):
                found += [mark.parent] if str(self.socket) in mark.read_text() else []
        return found

    def import_image(self) -> None:
        """Debian's own programs from this machine's /usr would be 4 GiB: what the tests need of it,
        with every shared library that those programs load."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            archive = Path(directory) / "image.tar"
            with tarfile.open(archive, "w") as tar:
                for path in sorted(image_files()):
                    tar.add(path, path.lstrip("/"), recursive=False)
            subprocess.run(
                ["docker", "import", "--change", "ENV FROM_IMAGE=yes", archive, IMAGE],
                env={**os.environ, **self.environment}, check=True, capture_output=True,
            )  # fmt: skip


def image_files() -> set[str]:
    """Paths of this machine that make up the test image."""
    found = {"/bin", "/lib", "/lib64", "/sbin", "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/etc"}
    trees = ["/usr/share/nodejs"]  # Debian's node keeps a part of itself there
    for name in PROGRAMS.split():
        for path in (f"/usr/local/bin/{name}", f"/usr/bin/{name}"):
            if os.path.exists(path):
                found |= {path, os.path.realpath(path)}
                break
        if name == "npm":  # .../npm/bin/npm-cli.js
            trees.append(os.path.dirname(os.path.dirname(os.path.realpath(path))))
        if name == "python3":
            trees.append(f"/usr/lib/{os.path.basename(os.path.realpath(path))}")
    for tree in trees:
        found |= {str(p) for p in Path(tree).rglob("*") if "__pycache__" not in p.parts} | {tree}
    binaries = [p for p in found if os.path.isfile(p) and Path(p).read_bytes()[:4] == b"\x7fELF"]
    agent = shutil.which("claude")  # mounted into a box; its libraries are the image's
    binaries += [os.path.realpath(agent)] if agent else []
    listed = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        for word in line.split():
            if word.startswith("/") and os.path.exists(word):
                found |= {
                    os.path.realpath(word),
                    word.replace("/lib", "/usr/lib", 1) if word.startswith("/lib") else word,
                }
    for path in list(found):
        while path != "/":
            path = os.path.dirname(path)
            found.add(path)
    return {path for path in found if path != "/" and os.path.lexists(path)}


def runsc_of(lab: Lab, bawn: str, **environment: str) -> None:
    """Registers runsc with the lab's daemon, by bawn itself."""
    assert os.path.exists(box.LAUNCH)
    subprocess.run(
        [bawn, "setup", "docker", "--apply", "--restart", "--config", str(lab.config),
         "--directory", str(lab.root / "bawn"), "--restart-command", lab.restart_command()],
        env={**os.environ, **lab.environment, **environment}, check=True,
    )  # fmt: skip
