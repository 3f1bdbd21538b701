"""What a command sees and may do inside the box, in engine gvisor, for each way of invoking bawn."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.system.conftest import Person, owner_of

pytestmark = pytest.mark.system

LOOK = r"""
import json, os, socket, sys
def tried(action):
    try:
        action(); return "done"
    except OSError as error:
        return error.strerror
status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
print(json.dumps({
  "kernel": os.uname().release, "uid": os.getuid(), "gid": os.getgid(), "cwd": os.getcwd(),
  "env": dict(os.environ), "caps": [status[k].strip() for k in ("CapInh","CapPrm","CapEff","CapBnd")],
  "nnp": status.get("NoNewPrivs", "?").strip(),
  "root": tried(lambda: open("/x", "w")), "etc": tried(lambda: open("/etc/x", "w")),
  "usr": tried(lambda: open("/usr/x", "w")), "home": tried(lambda: open(os.environ["HOME"] + "/x", "w")),
  "tmp": tried(lambda: open("/tmp/x", "w")), "mounts": open("/proc/self/mounts").read(),
  "homes": os.listdir("/home"), "shadow": os.path.exists("/etc/shadow"),
  "interfaces": [name for _, name in socket.if_nameindex()], "etc_names": sorted(os.listdir("/etc")),
}))
"""


def look(person: Person, work: Path) -> dict[str, object]:
    done = person.bawn("run", "-q", "--", "python3", "-c", LOOK, cwd=work)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_inside(person: Person, work: Path) -> None:
    seen = look(person, work)
    assert seen["kernel"] == "4.4.0" or "gvisor" in str(seen["kernel"])
    assert seen["kernel"] != os.uname().release
    assert seen["caps"] == ["0000000000000000"] * 4
    assert seen["uid"] == (0 if person.uid else 1000)
    assert seen["cwd"] == str(work)
    assert "done" not in (seen["root"], seen["etc"], seen["usr"])
    assert seen["home"] == "done"
    assert seen["tmp"] == "done"
    assert not seen["shadow"]
    assert set(seen["interfaces"]) <= {"lo"}  # type: ignore[call-overload]
    secret = {"shadow", "sudoers", "ssh", "gshadow", "machine-id", "docker", "apt", "npmrc"}
    assert not secret & set(seen["etc_names"])  # type: ignore[call-overload]


def test_no_variable_that_was_not_named(person: Person, work: Path) -> None:
    done = person.bawn("run", "-q", "--", "env", cwd=work, MY_TOKEN="leak", AWS_SECRET="leak")
    named = {line.partition("=")[0] for line in done.stdout.splitlines()}
    plan = json.loads(person.bawn("plan", "--json", "--", "env", cwd=work).stdout)
    assert named == {variable["name"] for variable in plan["env"]}
    assert "leak" not in done.stdout


def test_no_mount_that_is_not_in_the_plan(person: Person, work: Path) -> None:
    (work / ".env").write_text("SECRET")
    seen = look(person, work)
    plan = json.loads(person.bawn("plan", "--json", "--", "x", cwd=work).stdout)
    planned = {bind["target"] for bind in plan["binds"]} | {t["target"] for t in plan["tmpfs"]}
    # What every gVisor box has, and bawn's own PID 1 and read-only image.
    own = {"/", "/proc", "/sys", "/dev", "/dev/pts", "/run/bawn/init", "/etc"}
    mounted = {line.split()[1] for line in str(seen["mounts"]).splitlines()}
    assert mounted - own == planned
    for line in str(seen["mounts"]).splitlines():
        _, target, _, options, *_ = line.split()
        mode = next((b["mode"] for b in plan["binds"] if b["target"] == target), None)
        if mode:
            assert options.split(",")[0] == mode, line


def test_every_host_path_in_the_box_is_in_the_plan(person: Person, work: Path) -> None:
    """Walks the box's tree outside of what is mounted: nothing but mount points and bawn's own."""
    walk = "find / -xdev -not -type d -not -path '/proc/*' -not -path '/sys/*' 2>/dev/null"
    done = person.sh(walk, work)
    found = set(done.stdout.split())
    assert found <= {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/run/bawn/init"}


def test_tmp_is_noexec_and_tmpdir_is_not(person: Person, work: Path) -> None:
    script = (
        'cp /usr/bin/true /tmp/t && /tmp/t; echo "tmp $?"; cp /usr/bin/true "$TMPDIR/t" && "$TMPDIR/t"; '
        'echo "tmpdir $?"; case "$TMPDIR" in "$HOME"/*) echo inside;; esac'
    )
    done = person.sh(script, work)
    assert done.stdout.split("\n")[:3] == ["tmp 126", "tmpdir 0", "inside"]


def test_what_it_writes_belongs_to_the_invoker(person: Person, work: Path) -> None:
    done = person.sh("mkdir -p d && echo x > d/f && ln -s f d/l && mkfifo d/p", work)
    assert done.returncode == 0, done.stderr
    for name in ("d", "d/f", "d/l"):
        info = (work / name).lstat()
        assert (info.st_uid, info.st_gid) == owner_of(work), name


def test_other_homes_are_absent(person: Person, work: Path, users: dict[str, Person]) -> None:
    """The way to the work directory is there, and nothing beside it."""
    other = users["rootless"].make(users["rootless"].home / "secret", "S")
    done = person.sh(f"cat {other}; ls -A {other.parent}; cat {Path.home()}/.bashrc", work)
    inside = [work.name] if work.is_relative_to(other.parent) else []
    assert done.stdout.split() == inside


def test_setuid_gains_nothing(person: Person, work: Path) -> None:
    shell = work / "suid-sh"
    shell.write_bytes(Path("/bin/sh").resolve().read_bytes())
    os.chmod(shell, 0o4755)
    done = person.sh("./suid-sh -c 'grep -E \"Uid|CapEff\" /proc/self/status'", work)
    plain = person.sh("sh -c 'grep -E \"Uid|CapEff\" /proc/self/status'", work)
    assert done.stdout == plain.stdout
    assert stat.S_ISREG(shell.stat().st_mode)


def test_nothing_persists(person: Person, work: Path) -> None:
    person.sh("echo tracer > ~/t; echo tracer > /tmp/t; echo tracer > /dev/shm/t", work)
    done = person.sh("cat ~/t /tmp/t /dev/shm/t", work)
    assert "tracer" not in done.stdout


def test_dangerous_files_of_proc_tell_nothing_of_the_host(person: Person, work: Path) -> None:
    done = person.sh("cat /proc/1/root/etc/shadow /proc/self/root/etc/shadow; ls /proc/1/root/root", work)
    assert done.stdout == ""
