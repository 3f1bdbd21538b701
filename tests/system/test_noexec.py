"""Where /run is noexec, as Debian's initramfs mounts it, and with it bawn's own files as root.

The tests of other files are run once more below such a /run, in a mount namespace of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.conftest import BAWN, Person, need

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[2]
NOEXEC = 'mount -t tmpfs -o nosuid,nodev,noexec,mode=755 tmpfs {at} && exec "$@"'


def below(at: str, *words: str, **options: object) -> "subprocess.CompletedProcess[str]":
    apart = ["unshare", "--mount", "--propagation", "private", "sh", "-c", NOEXEC.format(at=at), "sh"]
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*apart, *words], capture_output=True, text=True, timeout=300, **options
    )


@pytest.mark.parametrize("test", ["test_box.py::test_inside", "test_docker.py::test_output_and_input"])
def test_the_same_below_a_noexec_run(test: str) -> None:
    need("unshare", "runsc", "dockerd")
    done = below("/run", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                 f"tests/system/{test}", cwd=ROOT)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "[100%]" in done.stdout


def test_a_noexec_runtime_directory_of_a_user(users: dict[str, Person]) -> None:
    """Without privilege that cannot be lifted: bawn's files lie in the cache directory then."""
    need("unshare", "runsc", "setpriv")
    person = users["rootless"]
    work = person.make(person.home / f"noexec-{os.urandom(4).hex()}")
    at = person.make(person.home / "runtime")
    env = person.environment(XDG_RUNTIME_DIR=str(at))
    become = f"exec setpriv --reuid {person.uid} --regid {person.gid} --clear-groups"
    script = f'chown {person.uid} {at} && {become} "$@"'
    done = below(
        str(at), "sh", "-c", script, "sh", BAWN, "run", "-q", "--", "echo", "hello", cwd=work, env=env
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
