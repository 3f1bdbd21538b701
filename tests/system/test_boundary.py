"""The compiled mount list in a real box: what is held in place, and what the next run still hides."""

import subprocess
from pathlib import Path

import pytest

from tests.system.conftest import BAWN, Person, need, owner_of, policy

pytestmark = pytest.mark.system

MASKS = 'mask = [".env", "secrets", "conf/deep/key"]'


def make(work: Path, name: str, text: str) -> None:
    """A file that belongs, with its directories, to the owner of `work`."""
    Person("owner", *owner_of(work), work).make(work / name, text)


def test_moving_things_about_unmasks_nothing_now_or_next_time(person: Person, work: Path) -> None:
    for name in ("conf/deep/key", "p/secrets/k", "p/.env"):
        make(work, name, "SECRET")
    policy(work, f"[profile.default]\n{MASKS}\n", person)
    moved = person.sh(
        "mkdir q; mv conf q/c; mv conf/deep q/d; mv conf/deep/key k; ln conf/deep/key l; mv p q/p; "
        "cp -r q q2; ls -R; grep -r SECRET . ; echo end",
        work,
    )
    assert "SECRET" not in moved.stdout
    assert moved.stdout.endswith("end\n"), moved.stderr
    assert (work / "conf/deep/key").read_text() == "SECRET"  # where its pattern looks for it
    again = person.sh("grep -r SECRET . ; echo end", work)
    assert again.stdout == "end\n", again.stderr


def test_what_the_host_runs_is_read_only_and_stays_where_it_is(person: Person, work: Path) -> None:
    names = (
        ".git/config", ".git/hooks/pre-commit", "vendor/sub/.git/hooks/pre-commit", "CLAUDE.md",
        ".git/modules/m/HEAD", ".git/modules/m/objects/x", ".git/modules/m/config", ".vscode/tasks.json",
    )  # fmt: skip
    for name in names:
        make(work, name, "host")
    files = " ".join(names[:3]) + " CLAUDE.md .git/modules/m/config .vscode/tasks.json .git/hooks/new"
    folders = ".git .git/modules .git/modules/m .git/hooks vendor/sub/.git .vscode"
    done = person.sh(
        f"for f in {files}; do echo evil > $f; true > $f; rm -f $f; ln -f /bin/sh $f; done; "
        f"for d in {folders}; do mv $d $d.x && echo moved $d; done; "
        "sed -i s/host/evil/ CLAUDE.md; echo ok > .git/index; echo end",
        work,
    )
    assert done.stdout == "end\n", done.stderr
    assert [name for name in names if (work / name).read_text() != "host"] == []
    assert (work / ".git/index").read_text() == "ok\n"
    assert sorted(path.name for path in (work / ".git/hooks").iterdir()) == ["pre-commit"]


def test_what_was_put_in_its_place_is_reported(person: Person, work: Path) -> None:
    """Not held: a directory that holds such a file may be renamed, and another one be made."""
    make(work, "sub/CLAUDE.md", "host")
    done = person.bawn(
        "run", "--", "sh", "-c", "mv sub old; mkdir sub; echo evil > sub/CLAUDE.md; mkdir -p n/.git/hooks",
        cwd=work,
    )  # fmt: skip
    assert f"{work}/sub/CLAUDE.md: replaced" in done.stderr
    assert f"{work}/n/.git/hooks: new" in done.stderr


def in_namespace(person: Person, script: str, work: Path) -> "subprocess.CompletedProcess[str]":
    """A script of root in a mount namespace of its own; nothing it mounts outlives it."""
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script]
    env = person.environment(BAWN=BAWN)
    return subprocess.run(argv, cwd=work, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def root(users: dict[str, Person], tmp_path: Path) -> Person:
    need("unshare", "mount")
    return users["root"]


def test_read_only_all_the_way_down(root: Person, tmp_path: Path) -> None:
    """M05: a file system that is mounted below a read-only source."""
    vault = root.make(root.home / "vault/out").parent
    root.make(vault / "data")
    policy(vault, '[profile.default]\nworkdir_mode = "ro"\nwrite = ["out"]\n', root)
    script = "cat data/f; echo x > data/g; rm -f data/f; mkdir data/d; echo y > out/w; echo end"
    done = in_namespace(
        root,
        f"mount -t tmpfs none data; echo inner > data/f; $BAWN run -q -- sh -c '{script}'; ls data",
        vault,
    )
    assert done.stdout == "inner\nend\nf\n", done.stderr
    assert (vault / "out/w").read_text() == "y\n"


def test_a_bind_mount_is_no_new_name_for_keys(root: Person) -> None:
    """The mount table of this very kernel says where a directory really lies."""
    root.make(root.home / ".ssh/id", "KEY")
    work = root.make(root.home / "bound/keys").parent
    for where in ("keys", "."):
        source = root.home / ".ssh" if where == "keys" else root.home
        done = in_namespace(root, f"mount --bind {source} {work}/{where}; cd .; cd {work}; $BAWN check", work)
        assert done.returncode == 1
        assert "BWN106" in done.stdout, done.stdout + done.stderr
    assert (
        "KEY"
        not in in_namespace(
            root, f"mount --bind {root.home}/.ssh keys; $BAWN run -- cat keys/id || true", work
        ).stdout
    )
