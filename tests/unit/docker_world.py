"""A plan for engine docker, and what dockerd 20.10 shows of a container that is just as planned."""

import copy
from typing import Any

from bawn.plan.docker import Files, command, effective_binds, tmpfs_word
from bawn.plan.model import Bind, EgressPlan, EnvVar, Identity, LimitPlan, Plan, Tmpfs
from bawn.plan.oci import EMPTY

NAME = "bawn-0123456789abcdef0"
FILES = Files("/run/bawn/runs/0123456789abcdef0/own", "/run/bawn/runs/0123456789abcdef0/empty", True)
LIMITS = {"memory": 2 << 30, "cpus": 2000, "pids": 512, "tmp": 64 << 20, "home": 256 << 20,
          "open_files": 4096, "time": 7200}  # fmt: skip
PLAN = Plan(
    profile="build", policy="", policy_sha256="", engine="docker", runsc="", image="agent-base",
    image_digest="", rootfs="", kernel="6.18", hostname="bawn",
    identity=Identity(1000, 1000, 1000, 1000, False), command=("sh", "-c", "true"), workdir="/home/u/src",
    egress=EgressPlan("none"),
    binds=(
        Bind("/home/u/src", "/home/u/src", "rw", True, "workdir"),
        Bind(EMPTY, "/home/u/src/.env", "ro", False, "mask"),
        Bind("/home/u/notes", "/home/u/notes", "ro", True, "mount"),
    ),
    tmpfs=(Tmpfs("/tmp", 64 << 20, 0o1777, True), Tmpfs("/home/agent", 256 << 20, 0o700, False)),
    guards=(), scan=(),
    env=(EnvVar("HOME", "/home/agent"), EnvVar("KEY", secret=True)),
    limits=tuple(LimitPlan(name, value, "docker", True) for name, value in LIMITS.items()),
    seed=(), settings=(), overrides=(), home_dirs=(".tmp",), creates=(), host_exec=(), findings=(),
)  # fmt: skip

# HostConfig of `docker inspect`, 20.10.24, captured; what a plan says is put in by `inspected`.
_HOST: dict[str, Any] = {
    "Binds": None, "ContainerIDFile": "", "LogConfig": {"Type": "none", "Config": {}},
    "NetworkMode": "none", "PortBindings": {}, "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
    "AutoRemove": True, "VolumeDriver": "", "VolumesFrom": None, "CapAdd": None, "CapDrop": ["ALL"],
    "CgroupnsMode": "host", "Dns": [], "DnsOptions": [], "DnsSearch": [], "ExtraHosts": None,
    "GroupAdd": None, "IpcMode": "private", "Cgroup": "", "Links": None, "OomScoreAdj": 0, "PidMode": "",
    "Privileged": False, "PublishAllPorts": False, "ReadonlyRootfs": True,
    "SecurityOpt": ["no-new-privileges"], "UTSMode": "", "UsernsMode": "", "ShmSize": 67108864,
    "Runtime": "runsc", "ConsoleSize": [0, 0], "Isolation": "", "CpuShares": 0, "CgroupParent": "",
    "BlkioWeight": 0, "BlkioWeightDevice": [], "CpuPeriod": 0, "CpuQuota": 0, "CpusetCpus": "",
    "Devices": [], "DeviceCgroupRules": None, "DeviceRequests": None, "KernelMemory": 0,
    "MemoryReservation": 0, "MemorySwappiness": None, "OomKillDisable": False,
    "MaskedPaths": ["/proc/kcore"], "ReadonlyPaths": ["/proc/sys"],
}  # fmt: skip


def inspected(plan: Plan = PLAN, files: Files = FILES) -> dict[str, Any]:
    """One object of `docker inspect`."""
    init, *arguments = command(plan, files)
    memory, nofile = plan.limit("memory").value, plan.limit("open_files").value
    return {
        "Id": "f" * 64,
        "HostConfig": {
            **copy.deepcopy(_HOST), "Memory": memory, "MemorySwap": memory,
            "NanoCpus": plan.limit("cpus").value * 1_000_000, "PidsLimit": plan.limit("pids").value,
            "Ulimits": [{"Name": "nofile", "Hard": nofile, "Soft": nofile}],
            "Tmpfs": dict(tmpfs_word(t).split(":", 1) for t in plan.tmpfs),
        },
        "Mounts": [
            {"Type": "bind", "Source": b.source, "Destination": b.target, "Mode": "",
             "RW": b.mode == "rw", "Propagation": "rprivate"}
            for b in effective_binds(plan, files)
        ],
        "Config": {
            "User": "1000:1000", "Tty": False, "Env": ["HOME=/home/agent", "KEY=hunter2", "PATH=/bin"],
            "Cmd": arguments, "Entrypoint": [init], "Image": plan.image, "Volumes": None,
            "WorkingDir": plan.workdir, "Labels": {"bawn.run": NAME, "maintainer": "somebody"},
            "Healthcheck": {"Test": ["NONE"]},
        },
        "NetworkSettings": {"Ports": {}, "Networks": {"none": {"NetworkID": ""}}},
    }  # fmt: skip
