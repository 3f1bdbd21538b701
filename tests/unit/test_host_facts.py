"""The machine: control groups of every layout, who the person is, user namespaces."""

import os
from pathlib import Path

import pytest

from bawn.facts import host

V1 = """\
22 27 0:21 / /proc rw - proc proc rw
31 23 0:28 / {top} rw - tmpfs tmpfs rw
32 31 0:29 / {top}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / {top}/memory rw - cgroup cgroup rw,memory
39 31 0:36 / {top}/pids rw - cgroup cgroup rw,pids
40 31 0:37 / {top}/systemd rw - cgroup cgroup rw,name=systemd
41 31 0:38 / {top}/unified rw - cgroup2 cgroup2 rw
"""
V2 = "31 23 0:28 / {top} rw - cgroup2 cgroup2 rw\n"


def group(path: Path, enabled: str = "", mode: int = 0o755) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.procs").write_text("")
    (path / "cgroup.procs").chmod(mode & 0o666)
    (path / "cgroup.controllers").write_text(enabled)
    (path / "cgroup.subtree_control").write_text(enabled)
    path.chmod(mode)


def reading(monkeypatch: pytest.MonkeyPatch, writable: tuple[Path, ...]) -> None:
    """access(2) as an ordinary user would have it: the tests may be root."""
    every = {str(p) for p in writable} | {f"{p}/cgroup.procs" for p in writable}
    monkeypatch.setattr(host, "_writable", lambda path: path in every)


def test_version_1(tmp_path: Path) -> None:
    for name in ("cpu,cpuacct", "memory", "pids"):
        (tmp_path / name).mkdir()
    assert host.cgroups(V1.format(top=tmp_path), "", 0) == (1, (
        ("memory", f"{tmp_path}/memory"), ("pids", f"{tmp_path}/pids"), ("cpu", f"{tmp_path}/cpu,cpuacct"),
    ))  # fmt: skip


def test_version_1_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading(monkeypatch, ())
    assert host.cgroups(V1.format(top=tmp_path), "", 1000) == (1, ())


def test_version_2_as_root(tmp_path: Path) -> None:
    group(tmp_path, "cpuset cpu io memory pids")
    found = host.cgroups(V2.format(top=tmp_path), "0::/init.scope\n", 0)
    assert found == (2, tuple((c, str(tmp_path)) for c in ("memory", "pids", "cpu")))


def test_version_2_without_a_controller(tmp_path: Path) -> None:
    group(tmp_path, "memory")
    assert host.cgroups(V2.format(top=tmp_path), "0::/\n", 0) == (2, (("memory", str(tmp_path)),))


def test_version_2_delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd-run --user --scope: the highest group above us that is ours and passes something on."""
    own = tmp_path / "user.slice/user-1000.slice/user@1000.service/app.slice/run.scope"
    group(tmp_path, "memory pids cpu")
    for path in (*reversed(own.parents), own):
        if path.is_relative_to(tmp_path):
            group(path, "memory pids" if path != own else "")
    ours = (own.parents[1], own.parents[0], own)
    reading(monkeypatch, ours)
    text = f"0::{str(own).removeprefix(str(tmp_path))}\n"
    service = str(own.parents[1])
    assert host.cgroups(V2.format(top=tmp_path), text, 1000) == (2, (("memory", service), ("pids", service)))


def test_version_2_a_login_session_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """user@1000.service is writable, but not above us: the kernel would not let a process move there."""
    group(tmp_path / "user.slice/user-1000.slice/session-2.scope")
    service = tmp_path / "user.slice/user-1000.slice/user@1000.service"
    group(service, "memory pids")
    reading(monkeypatch, (service,))
    text = "0::/user.slice/user-1000.slice/session-2.scope\n"
    assert host.cgroups(V2.format(top=tmp_path), text, 1000) == (2, ())


def test_a_directory_without_its_procs_file_is_not_delegated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group(tmp_path / "a", "memory")
    monkeypatch.setattr(host, "_writable", lambda path: path == f"{tmp_path}/a")
    assert host.cgroups(V2.format(top=tmp_path), "0::/a\n", 1000) == (2, ())


def test_none() -> None:
    assert host.cgroups("22 27 0:21 / /proc rw - proc proc rw\n", "", 0) == (0, ())


# The person


@pytest.mark.parametrize(
    ("uid", "sudo", "person"),
    [
        (0, ("1000", "1001"), (1000, 1001)),
        (0, ("", ""), (0, 0)),
        (0, ("1000", ""), (0, 0)),
        (0, ("-1", "1"), (0, 0)),
        (0, ("4294967295", "1"), (0, 0)),
        (0, ("99999999999", "1"), (0, 0)),
        (0, ("\u00b2", "1"), (0, 0)),
        (0, ("1e3", "1"), (0, 0)),
        (1000, ("0", "0"), (1000, 1000)),
        (1000, ("1001", "1001"), (1000, 1000)),
    ],
)
def test_sudo_counts_for_root_only(
    uid: int, sudo: tuple[str, str], person: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(("SUDO_UID", "SUDO_GID"), sudo, strict=True):
        monkeypatch.setenv(name, value)
    assert host._invoker(uid, uid) == person


def test_an_unknown_person_has_no_home() -> None:
    assert host._home(0, 3_999_999_999) == "/nonexistent"


# User namespaces


@pytest.mark.parametrize(
    ("values", "allowed"),
    [
        ({}, True),
        ({"user/max_user_namespaces": "0\n"}, False),
        ({"user/max_user_namespaces": "15000\n"}, True),
        ({"kernel/unprivileged_userns_clone": "0\n"}, False),
        ({"kernel/unprivileged_userns_clone": "1\n"}, True),
        ({"kernel/apparmor_restrict_unprivileged_userns": "1\n"}, False),
        ({"kernel/apparmor_restrict_unprivileged_userns": "0\n"}, True),
    ],
)
def test_userns(values: dict[str, str], allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "text", lambda path: values.get(path.removeprefix("/proc/sys/"), ""))
    assert host.userns() is allowed


def test_profile_that_install_writes_lifts_ubuntus_restriction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    monkeypatch.setattr(host, "text", lambda path: "1" if path == restricted else "")
    monkeypatch.setattr(host, "APPARMOR", str(tmp_path / "bawn"))
    assert not host.userns()
    (tmp_path / "bawn").write_text("")
    assert host.userns()


def test_this_machine() -> None:
    fact = host.observe()
    assert (fact.uid, fact.kernel) == (os.getuid(), os.uname().release)
    assert fact.cgroup in (0, 1, 2)
    assert fact.memory > 0
    assert fact.cpus >= 1
    for _, directory in fact.cgroup_roots:
        assert os.access(directory, os.W_OK)
