"""Effective and intended, compared both ways: one test for each way a container can be another."""

from typing import Any

import pytest

from bawn.plan.inspect import compare
from tests.unit.docker_world import FILES, NAME, PLAN, inspected

IMAGE_ENV = ("PATH=/bin",)


def wrong(made: dict[str, Any], tty: bool = False) -> list[str]:
    return [d.what for d in compare(PLAN, NAME, FILES, made, IMAGE_ENV, tty=tty)]


def test_as_planned() -> None:
    assert wrong(inspected()) == []


def test_a_newer_docker_as_planned() -> None:
    made = inspected()
    made["HostConfig"] |= {"Annotations": {}, "CgroupnsMode": "private", "ConsoleSize": [24, 80],
                           "RestartPolicy": {"Name": "", "MaximumRetryCount": 0}}  # fmt: skip
    del made["HostConfig"]["KernelMemory"]
    assert wrong(made) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Runtime", "runc"), ("Runtime", ""), ("CapDrop", None), ("CapDrop", ["CHOWN"]),
        ("CapAdd", ["SYS_ADMIN"]),
        ("Privileged", True), ("SecurityOpt", ["no-new-privileges", "seccomp=unconfined"]),
        ("SecurityOpt", None), ("SecurityOpt", ["no-new-privileges:false"]), ("ReadonlyRootfs", False),
        ("Memory", 4 << 30), ("Memory", 0), ("MemorySwap", -1), ("MemorySwap", 4 << 30), ("NanoCpus", 0),
        ("PidsLimit", None), ("PidsLimit", 0), ("PidsLimit", -1), ("Ulimits", None), ("Ulimits", []),
        ("IpcMode", "shareable"), ("IpcMode", "host"), ("PidMode", "host"), ("UTSMode", "host"),
        ("UsernsMode", "host"), ("NetworkMode", "bridge"), ("NetworkMode", "host"),
        ("PortBindings", {"80/tcp": [{"HostPort": "80"}]}), ("PublishAllPorts", True),
        ("Devices", [{"PathOnHost": "/dev/kvm"}]), ("DeviceRequests", [{"Count": -1}]),
        ("DeviceCgroupRules", ["a *:* rwm"]), ("GroupAdd", ["docker"]), ("ExtraHosts", ["h:host-gateway"]),
        ("VolumesFrom", ["other"]), ("Links", ["/a:/b"]), ("Sysctls", {"net.ipv4.ip_forward": "1"}),
        ("OomKillDisable", True), ("CgroupParent", "/elsewhere"), ("Init", True), ("Dns", ["192.0.2.1"]),
        ("AutoRemove", False), ("RestartPolicy", {"Name": "always", "MaximumRetryCount": 0}),
        ("LogConfig", {"Type": "json-file", "Config": {}}), ("Binds", ["/:/host"]),
        ("SomethingNew", "on"), ("MemorySwappiness", 60), ("StorageOpt", {"size": "100G"}),
    ],
)  # fmt: skip
def test_host_config(key: str, value: object) -> None:
    made = inspected()
    made["HostConfig"][key] = value
    assert wrong(made) == [key]


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("User", "", "User"), ("User", "0:0", "User"), ("WorkingDir", "/", "WorkingDir"),
        ("Image", "other", "Image"), ("Tty", True, "Tty"), ("Volumes", {"/data": {}}, "Volumes"),
        ("Labels", {}, "label"), ("Labels", None, "label"), ("Cmd", ["-c", "evil"], "command"),
        ("Entrypoint", ["/evil"], "command"), ("Entrypoint", None, "command"),
    ],
)  # fmt: skip
def test_config(key: str, value: object, what: str) -> None:
    made = inspected()
    made["Config"][key] = value
    assert wrong(made) == [what]


def mount(**more: object) -> dict[str, object]:
    return {"Type": "bind", "Source": "/x", "Destination": "/x", "Mode": "", "RW": False,
            "Propagation": "rprivate", **more}  # fmt: skip


@pytest.mark.parametrize(
    "extra", [mount(), mount(RW=True), mount(Type="volume", Name="v"), mount(Type="npipe")]
)
def test_an_extra_mount(extra: dict[str, object]) -> None:
    made = inspected()
    made["Mounts"].append(extra)
    assert wrong(made) == ["mount"]


@pytest.mark.parametrize(
    "change",
    [{"RW": True}, {"Source": "/elsewhere"}, {"Destination": "/elsewhere"}, {"Propagation": "rshared"},
     {"Type": "volume"}],
)  # fmt: skip
def test_a_changed_mount_is_one_missing_and_one_extra(change: dict[str, object]) -> None:
    made = inspected()
    made["Mounts"][2] |= change
    assert wrong(made) == ["mount", "mount"]


def test_a_missing_mount() -> None:
    for number in range(5):
        made = inspected()
        del made["Mounts"][number]
        assert wrong(made) == ["mount"]


def test_tmpfs() -> None:
    for changed in (
        {},
        {"/tmp": "rw,noexec,nosuid,size=64m"},
        {"/tmp": "rw,exec,nosuid,size=64m", "/home/agent": "rw,exec,nosuid,size=256m"},
        {"/tmp": "rw,noexec,nosuid,size=64m", "/home/agent": "rw,exec,nosuid,size=256m", "/extra": ""},
    ):
        made = inspected()
        made["HostConfig"]["Tmpfs"] = changed
        assert all(what.startswith("tmpfs ") for what in wrong(made))
        assert wrong(made)


@pytest.mark.parametrize(
    ("env", "what"),
    [
        (["HOME=/home/agent", "KEY=x", "HTTP_PROXY=http://user:pass@proxy.test"], "environment HTTP_PROXY"),
        (["HOME=/root", "KEY=x"], "environment HOME"),
        (["HOME=/home/agent"], "environment KEY"),
        (["HOME=/home/agent", "KEY=x", "PATH=/evil"], "environment PATH"),
    ],
)
def test_environment(env: list[str], what: str) -> None:
    made = inspected()
    made["Config"]["Env"] = env
    assert wrong(made) == [what]


def test_no_value_of_a_secret_in_a_difference() -> None:
    made = inspected()
    made["Config"]["Env"] = ["HOME=/home/agent", "KEY=hunter2", "MORE=hunter2"]
    assert "hunter2" not in repr(compare(PLAN, NAME, FILES, made, (), tty=False))


@pytest.mark.parametrize("networks", [{}, {"bridge": {}}, {"none": {}, "bridge": {}}])
def test_networks(networks: dict[str, object]) -> None:
    made = inspected()
    made["NetworkSettings"]["Networks"] = networks
    assert wrong(made) == ["networks"]


def test_an_empty_answer_is_all_wrong() -> None:
    assert len(wrong({})) > 20
    assert "Runtime" in wrong({"HostConfig": None, "Config": None, "Mounts": None})
