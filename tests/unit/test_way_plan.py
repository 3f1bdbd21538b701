"""The way out in the plan: variables, the two mounts and PID 1's option, in both engines; and nothing
of it where there is none."""

from pathlib import Path
from typing import Any

import pytest

from bawn.effects import docker_stage, gvisor
from bawn.effects.names import run_paths
from bawn.plan import oci, way
from bawn.plan.docker import docker_argv
from bawn.plan.inspect import compare
from bawn.plan.model import Plan, Way
from tests.golden.test_plans import made
from tests.unit.docker_world import FILES, NAME, PLAN, inspected

WAY = Way("/R/resolv.conf", "/R/way")


def bundle(plan: Plan, out: Way | None) -> dict[str, Any]:
    return oci.bundle(
        plan, rootfs="/ROOT", image=[("/IMAGE/etc", "/etc")], empty=oci.Empty("/EMPTY", "/EMPTY.D"),
        init="/INIT", seed="", tty=False, secrets={}, way=out,
    )  # fmt: skip


def test_the_variables() -> None:
    """Both cases of each; no scheme but http, no port but PID 1's (E23)."""
    assert dict(way.VARIABLES) == {
        **dict.fromkeys(
            ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"],
            "http://127.0.0.1:3128",
        ),
        **dict.fromkeys(["NO_PROXY", "no_proxy"], "localhost,127.0.0.1,::1"),
        "NODE_USE_ENV_PROXY": "1",
    }


@pytest.mark.parametrize("uid", [0, 1001])
def test_the_bundle(tmp_path: Path, uid: int) -> None:
    """Two mounts and two words more; all else is byte for byte the same."""
    plan = made(tmp_path, "", uid)
    without, got = bundle(plan, None), bundle(plan, WAY)
    options = ["rbind", "ro", "nosuid", "nodev"]
    added = [
        {"destination": "/run/bawn/way", "type": "bind", "source": "/R/way", "options": options},
        {"destination": "/etc/resolv.conf", "type": "bind", "source": "/R/resolv.conf", "options": options},
    ]
    assert got["mounts"] == [*without["mounts"], *added]
    words, before = got["process"].pop("args"), without["process"].pop("args")
    at = before.index("--")
    assert words == [*before[:at], "-p", "/run/bawn/way/proxy.sock", *before[at:]]
    assert not any(got["process"]["capabilities"].values())
    del got["mounts"], without["mounts"]
    assert got == without
    assert oci.targets(plan, "", WAY) == {**oci.targets(plan, ""), "/run/bawn/way": True}
    image = plan._replace(rootfs="/I")  # whose resolv.conf may be a link
    assert oci.targets(image, "", WAY) == {**oci.targets(plan, "", WAY), "/etc/resolv.conf": False}


def test_the_flags(tmp_path: Path) -> None:
    plan = made(tmp_path, "", 0)
    assert "--host-uds=none" in oci.flags(plan)
    assert [f for f in oci.flags(plan, way=True) if f not in oci.flags(plan)] == ["--host-uds=open"]
    assert "--network=none" in oci.flags(plan, way=True)


def test_the_files(tmp_path: Path) -> None:
    paths = run_paths(str(tmp_path), "R")
    Path(paths.directory).mkdir(parents=True)
    assert gvisor.write_way(paths, "") is None
    assert gvisor.write_way(paths, "/R/way") == Way(paths.resolver, "/R/way")
    text = Path(paths.resolver).read_text()
    assert text == "nameserver 127.0.0.1\noptions ndots:0 timeout:5 attempts:2\n"


def test_docker_argv() -> None:
    """In the place of bawn's own mounts; --network stays none, and there is no --dns (G09: the file itself
    is shown, which no docker rewrites)."""
    before, got = (docker_argv(PLAN, NAME, files, tty=False) for files in (FILES, FILES._replace(way=WAY)))
    assert all("/etc/resolv.conf" not in w or FILES.empty in w for w in before)
    tail = "readonly,bind-propagation=rprivate"
    resolver = before.index(f"type=bind,source={FILES.empty},target=/etc/resolv.conf,{tail}")
    words = list(before)
    words[resolver : resolver + 1] = [
        f"type=bind,source=/R/way,target=/run/bawn/way,{tail}", "--mount",
        f"type=bind,source=/R/resolv.conf,target=/etc/resolv.conf,{tail}",
    ]  # fmt: skip
    at = words.index("--", words.index("agent-base"))
    words[at:at] = ["-p", "/run/bawn/way/proxy.sock"]
    assert list(got) == words
    assert got[got.index("--network") + 1] == "none"


def test_docker_inspect() -> None:
    """With a way out its mounts must be there; without one they must not."""
    files = FILES._replace(way=WAY)
    made = inspected(PLAN, files)
    assert compare(PLAN, NAME, files, made, ("PATH=/bin",), tty=False) == ()
    assert len(compare(PLAN, NAME, FILES, made, ("PATH=/bin",), tty=False)) == 4
    assert len(compare(PLAN, NAME, files, inspected(), ("PATH=/bin",), tty=False)) == 4


WORDS = ["/usr/bin/runsc", "--root", "/r", "create", "--bundle", "/b", "ID"]


@pytest.mark.parametrize(
    ("mount", "opens"),
    [
        ({"destination": "/run/bawn/way", "type": "bind", "options": ["rbind", "ro"]}, True),
        ({"destination": "/run/bawn/way", "type": "bind", "options": ["rbind", "rw"]}, False),
        ({"destination": "/run/bawn/way", "type": "tmpfs", "options": ["ro"]}, False),
        ({"destination": "/run/bawn/way2", "type": "bind", "options": ["ro"]}, False),
        ({"destination": "/run/bawn", "type": "bind", "options": ["ro"]}, False),
        ({"destination": "/run/bawn/way", "type": "bind"}, False),
    ],
)
def test_dockers_runtime_opens_sockets_for_a_way_only(mount: dict[str, object], opens: bool) -> None:
    got = docker_stage.opened(WORDS, {"mounts": [{"destination": "/x"}, mount]})
    assert got == [WORDS[0], *(["--host-uds=open"] if opens else []), *WORDS[1:]]


@pytest.mark.parametrize("config", [{}, {"mounts": None}, {"mounts": []}])
def test_a_container_without_mounts(config: dict[str, object]) -> None:
    assert docker_stage.opened(WORDS, config) == WORDS
