"""A read-only vault with a write root: a shell writes in the root and nowhere else, by any way."""

import os
from pathlib import Path

import pytest

from tests.system.conftest import Person, policy

pytestmark = pytest.mark.system

WAYS = r"""
cd "$VAULT"
echo x > note.txt; echo x >> note.txt; : > new.txt; mkdir made; rm -f note.txt; mv note.txt moved.txt
chmod 777 note.txt; touch -d 2001-01-01 note.txt; ln note.txt hard.txt; ln -s /etc link.txt
echo x > out/../note.txt; echo x > ./out/.././out/../new2.txt
ln note.txt out/hard.txt && echo x >> out/hard.txt
ln -s ../note.txt out/sym.txt && echo x > out/sym.txt
ln -s .. out/up && echo x > out/up/new3.txt
mv sub out/sub; mv out out2; rmdir out; rm -rf sub; mv out/keep.txt sub/stolen.txt
echo x > /proc/self/root$VAULT/new4.txt; echo x > /proc/1/root$VAULT/new5.txt
exec 9<note.txt; echo x > /proc/self/fd/9; echo x > /dev/fd/9
truncate -s 0 note.txt; dd if=/dev/zero of=note.txt bs=1 count=1
cp /usr/bin/true note.txt; sed -i s/a/b/ note.txt
mount --bind out sub; mount -o remount,rw "$VAULT"; mount -t tmpfs none sub; umount "$VAULT"; umount -l out
unshare -rm sh -c "mount -o remount,rw,bind $VAULT; echo x > note.txt"; unshare -U sh -c "echo x > note.txt"
python3 - <<'PY'
import os
for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT):
    try: os.write(os.open("note.txt", flags), b"x")
    except OSError: pass
d = os.open("out", os.O_RDONLY)
for name in ("../note.txt", "../new6.txt"):
    try: os.write(os.open(name, os.O_RDWR | os.O_CREAT, dir_fd=d), b"x")
    except OSError: pass
for call in (lambda: os.rename("out/keep.txt", "keep2.txt"), lambda: os.replace("out/keep.txt", "note.txt"),
             lambda: os.link("note.txt", "out/l2"), lambda: os.symlink("a", "s"), lambda: os.mkfifo("p"),
             lambda: os.truncate("note.txt", 0), lambda: os.utime("note.txt", (0, 0)),
             lambda: os.setxattr("note.txt", "user.x", b"1"), lambda: os.chown("note.txt", 0, 0)):
    try: call()
    except OSError: pass
PY
echo allowed > out/made-in-root.txt
"""


def tree(path: Path) -> dict[str, tuple[str, int, int]]:
    """Path -> (content or kind, mode, mtime) of everything but the write root."""
    found = {}
    for entry in sorted(path.rglob("*")):
        relative = str(entry.relative_to(path))
        if relative.split("/")[0] == "out":
            continue
        info = entry.lstat()
        content = entry.read_text() if entry.is_file() else str(info.st_mode >> 12)
        found[relative] = (content, info.st_mode, info.st_mtime_ns)
    return found


def test_writes_in_the_root_and_nowhere_else(person: Person, work: Path, users: dict[str, Person]) -> None:
    owner = users["rootless"] if work.is_relative_to(users["rootless"].home) else person
    vault = owner.make(owner.home / f"vault-{work.name}")
    for name in ("note.txt", "sub/deep.txt", "out/keep.txt"):
        owner.make(vault / name, name)
    before = tree(vault)
    policy(
        work,
        f'[profile.default]\n[[profile.default.mount]]\nsource = "{vault}"\nmode = "ro"\nwrite = ["out"]\n',
        person,
    )
    done = person.bawn("run", "-q", "--", "bash", "-c", f"VAULT={vault}\n{WAYS}", cwd=work, timeout=120)
    assert tree(vault) == before
    assert (vault / "out/made-in-root.txt").read_text() == "allowed\n", done.stderr
    assert (vault / "out/keep.txt").read_text() == "out/keep.txt"


def test_a_missing_write_root_is_an_error_and_nothing_is_made(person: Person, work: Path) -> None:
    vault = person.make(work.parent / f"vault-{work.name}")
    os.chown(vault, work.stat().st_uid, work.stat().st_gid)
    row = f'[profile.default]\n[[profile.default.mount]]\nsource = "{vault}"\nwrite = ["out"]\n'
    policy(work, row, person)
    done = person.sh("true", work)
    assert done.returncode == 125
    assert "BWN230" in done.stderr
    assert list(vault.iterdir()) == []
    policy(work, row + "create = true\n", person)
    done = person.sh(f"echo x > {vault}/out/f", work)
    assert (vault / "out/f").read_text() == "x\n", done.stderr


def test_a_missing_source_is_an_error_and_nothing_is_made(person: Person, work: Path) -> None:
    missing = person.home / f"none-{work.name}"
    policy(work, f'[profile.default]\n[[profile.default.mount]]\nsource = "{missing}"\n', person)
    done = person.sh("true", work)
    assert done.returncode == 125
    assert "BWN202" in done.stderr
    assert not missing.exists()


def test_read_only_work_directory(person: Person, work: Path) -> None:
    (work / "f").write_text("old")
    os.chown(work / "f", work.stat().st_uid, work.stat().st_gid)
    policy(work, '[profile.default]\nworkdir_mode = "ro"\n', person)
    done = person.sh("echo new > f; echo x > g; sed -i s/o/x/ f; cat f", work)
    assert done.stdout == "old"
    assert (work / "f").read_text() == "old"
    assert not (work / "g").exists()
