"""System tests: real engines, root, users and namespaces of their own.

A test asks for what it needs with `need`; where CI (or BAWN_REQUIRE=all) promises the tool, a skip is
a failure.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PROMISED = os.environ.get("CI") == "true" or os.environ.get("BAWN_REQUIRE") == "all"
BAWN = os.environ.get("BAWN", "/usr/local/bin/bawn")


def need(*tools: str, root: bool = True) -> None:
    """Skips, or fails where the tools are promised."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    missing += ["root"] if root and os.geteuid() != 0 else []
    if missing and PROMISED:
        pytest.fail(f"promised here, but missing: {', '.join(missing)}")
    if missing:
        pytest.skip(f"missing: {', '.join(missing)}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A skip of a system test is a failure where everything is promised."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if PROMISED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"


class Person:
    """Somebody who runs bawn: a uid, a home, and an environment without the tester's own."""

    def __init__(self, name: str, uid: int, gid: int, home: Path) -> None:
        self.name, self.uid, self.gid, self.home = name, uid, gid, home

    def make(self, path: Path, text: str | None = None) -> Path:
        """A directory, or a file with `text`, owned by this person, parents too."""
        missing = [p for p in (path, *path.parents) if not p.exists()]
        if text is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for made in missing:
            os.chown(made, self.uid, self.gid)
        return path

    def environment(self, **more: str) -> dict[str, str]:
        base = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        return {**base, "HOME": str(self.home), "USER": self.name, "LANG": "C.UTF-8", **more}

    def start(self, *words: str, cwd: Path, **options: object) -> "subprocess.Popen[str]":
        """bawn, started as this person."""
        env = options.pop("env", None) or self.environment()
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            [BAWN, *words], cwd=cwd, env=env, user=self.uid, group=self.gid, extra_groups=[],
            text=True, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )  # fmt: skip

    def bawn(
        self, *words: str, cwd: Path, input: str = "", timeout: float = 60, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        """bawn, run to its end as this person."""
        child = self.start(*words, cwd=cwd, stdin=subprocess.PIPE, env=self.environment(**env))
        try:
            out, err = child.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            pytest.fail(f"bawn {words} did not end in {timeout} s: {err}")
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def sh(self, script: str, cwd: Path, *options: str, **more: object) -> "subprocess.CompletedProcess[str]":
        """A shell script in a box."""
        return self.bawn("run", "-q", *options, "--", "sh", "-c", script, cwd=cwd, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Person]]:
    """`rootless`: an ordinary user; `root`: root in its own directory; `owner`: root in a directory
    of the ordinary user, for whom it then acts."""
    need("runsc", "useradd", BAWN)
    name = f"bawn-t{os.getpid()}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    try:
        import pwd

        entry = pwd.getpwnam(name)
        home = Path(entry.pw_dir)
        root_home = Path("/var/tmp") / f"{name}-root"
        root_home.mkdir(mode=0o700)
        yield {
            "rootless": Person(name, entry.pw_uid, entry.pw_gid, home),
            "root": Person("root", 0, 0, root_home),
            "owner": Person("root", 0, 0, root_home),
        }
    finally:
        subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)
        shutil.rmtree(root_home, ignore_errors=True)


@pytest.fixture(params=["root", "owner", "rootless"])
def person(request: pytest.FixtureRequest, users: dict[str, Person]) -> Person:
    """Each way of invoking bawn."""
    return users[request.param]


@pytest.fixture
def work(request: pytest.FixtureRequest, person: Person, users: dict[str, Person]) -> Iterator[Path]:
    """A fresh work directory: the person's own, or (owner) the ordinary user's."""
    owner = users["rootless"] if "owner" in request.node.name else person
    path = owner.make(owner.home / f"work-{os.urandom(4).hex()}")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def owner_of(work: Path) -> tuple[int, int]:
    info = work.stat()
    return info.st_uid, info.st_gid


def policy(work: Path, text: str, person: Person) -> None:
    """Writes and trusts a policy."""
    (work / "bawn.toml").write_text("version = 1\n" + text)
    done = person.bawn("trust", "--yes", cwd=work)
    assert done.returncode == 0, done.stdout + done.stderr


def record(err: str) -> dict[str, object]:
    """The run record that ends the stderr of `bawn run --json`."""
    return dict(json.loads(err.splitlines()[-1]))


def processes(word: str) -> Sequence[str]:
    """Command lines that hold `word`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if word in line:
                found.append(f"{entry.name} {line}")
    return found


def sandbox_of(bawn: int) -> int:
    """The Sentry's process below a running `bawn run` of engine gvisor."""
    queue = [bawn]
    while queue:
        pid = queue.pop()
        if b"runsc-sandbox" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
            return pid
        for task in Path(f"/proc/{pid}/task").iterdir():
            queue += map(int, (task / "children").read_text().split())
    raise AssertionError("no Sentry")


def starve(sandbox: int) -> None:
    """Stops a Sentry and lets the kernel kill something in its memory group: what a box looks like
    whose Sentry does not end when its stub was killed."""
    from bawn.effects.docker_cgroup import limiting

    groups = Path(f"/proc/{sandbox}/cgroup").read_text()
    found = limiting(groups, Path("/proc/self/mountinfo").read_text())
    memory = next(path for controller, path in found if controller in ("memory", ""))
    os.kill(sandbox, signal.SIGSTOP)
    eat = "b = []\nfor _ in range(1024): b.append(b'x' * (1 << 20))"
    script = f'echo $$ > {memory}/cgroup.procs && exec python3 -c "$0"'
    done = subprocess.run(["sh", "-c", script, eat], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done
