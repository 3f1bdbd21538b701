"""Engine docker's argv: the contract word for word, and paths that try to be options."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.errors import EngineError
from bawn.plan.docker import cpus_word, docker_argv, mount_word, size_word, tmpfs_word
from bawn.plan.inspect import compare
from bawn.plan.model import Bind, Tmpfs, Way
from tests.unit.docker_world import FILES, NAME, PLAN, inspected

OWN = "/run/bawn/runs/0123456789abcdef0"


def test_the_contract_word_for_word() -> None:
    assert docker_argv(PLAN, NAME, FILES, tty=True) == (
        "run", "--rm", "--interactive", "--tty", "--runtime", "runsc", "--user", "1000:1000",
        "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only",
        "--tmpfs", "/tmp:rw,noexec,nosuid,size=64m",
        "--tmpfs", "/home/agent:rw,exec,nosuid,size=256m",
        "--memory", "2g", "--memory-swap", "2g", "--cpus", "2", "--pids-limit", "512",
        "--ulimit", "nofile=4096:4096", "--ipc", "private", "--workdir", "/home/u/src",
        "--mount", "type=bind,source=/home/u/src,target=/home/u/src,bind-propagation=rprivate",
        "--mount", f"type=bind,source={OWN}/empty,target=/home/u/src/.env,readonly,bind-propagation=rprivate",
        "--mount", "type=bind,source=/home/u/notes,target=/home/u/notes,readonly,bind-propagation=rprivate",
        "--mount", f"type=bind,source={OWN}/own,target=/run/bawn,readonly,bind-propagation=rprivate",
        "--mount", f"type=bind,source={OWN}/empty,target=/etc/resolv.conf,readonly,bind-propagation=rprivate",
        "--network", "none", "--env", "HOME=/home/agent", "--env", "KEY",
        "--name", NAME, "--label", f"bawn.run={NAME}", "--log-driver", "none", "--no-healthcheck",
        "--pull", "never", "--entrypoint", "/run/bawn/init", "agent-base",
        "-w", "/run/bawn/go", "-e", "HOME", "-e", "KEY", "-d", ".tmp", "-s", "/run/bawn/seed",
        "--", "sh", "-c", "true",
    )  # fmt: skip


def test_what_is_optional_stands_in_its_place() -> None:
    argv = docker_argv(PLAN, NAME, FILES, tty=False, stdin=False, seccomp="/p.json", add_host=("a:b",))
    assert argv[:4] == ("run", "--rm", "--runtime", "runsc")
    at = argv.index("seccomp=/p.json")
    assert argv[at - 2 : at + 2] == ("no-new-privileges", "--security-opt", "seccomp=/p.json", "--read-only")
    at = argv.index("--add-host")
    assert argv[at - 1 : at + 3] == ("none", "--add-host", "a:b", "--env")


def test_no_volume_flag_ever() -> None:
    argv = docker_argv(PLAN, NAME, FILES, tty=False)
    assert not {"-v", "--volume", "--privileged", "--device", "--publish", "-p"} & set(argv)


@pytest.mark.parametrize("image", ["", "--privileged", "-v/:/host"])
def test_an_image_that_is_an_option(image: str) -> None:
    with pytest.raises(EngineError):
        docker_argv(PLAN._replace(image=image), NAME, FILES, tty=False)


@pytest.mark.parametrize("path", ["/a\nb", "/a\rb", "/a\udcffb"])
def test_paths_that_docker_cannot_carry(path: str) -> None:
    with pytest.raises(EngineError):
        mount_word(Bind(path, "/x", "ro", True, "mount"))
    with pytest.raises(EngineError):
        mount_word(Bind("/x", path, "ro", True, "mount"))
    with pytest.raises(EngineError):
        tmpfs_word(Tmpfs(path, 1 << 20, 0o700, True))


def test_a_masked_directory_with_a_colon() -> None:
    """`--tmpfs /a:b` would cover /a, with the options "b"."""
    with pytest.raises(EngineError):
        tmpfs_word(Tmpfs("/a:b", 1 << 20, 0o700, True))


def test_a_comma_does_not_add_an_option() -> None:
    word = mount_word(Bind('/a,readonly=false,"x"', "/b", "ro", True, "mount"))
    assert word == 'type=bind,"source=/a,readonly=false,""x""",target=/b,readonly,bind-propagation=rprivate'


_PATHS = st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), max_size=20)


@given(_PATHS, _PATHS, st.sampled_from(["ro", "rw"]))
def test_mount_words_read_back(source: str, target: str, mode: str) -> None:
    word = mount_word(Bind("/" + source, "/" + target, mode, True, "mount"))  # type: ignore[arg-type]
    (fields,) = csv.reader(io.StringIO(word), strict=True)
    assert fields == [
        "type=bind", f"source=/{source}", f"target=/{target}", *(["readonly"] if mode == "ro" else []),
        "bind-propagation=rprivate",
    ]  # fmt: skip


@given(st.integers(1, 1 << 45))
def test_sizes_are_exact(value: int) -> None:
    word = size_word(value)
    units = {"g": 1 << 30, "m": 1 << 20, "k": 1 << 10, "b": 1}
    assert int(word[:-1]) * units[word[-1]] == value


@pytest.mark.parametrize(
    ("value", "word"), [(2000, "2"), (1500, "1.5"), (10, "0.01"), (100, "0.1"), (10000, "10"), (1, "0.001")]
)
def test_cpus(value: int, word: str) -> None:
    assert cpus_word(value) == word


BRIDGED = FILES._replace(way=Way("/r/resolv.conf", address="172.18.0.1:40000"), network=NAME)


def test_bridge_mode_has_its_own_network_and_no_socket() -> None:
    argv = docker_argv(PLAN, NAME, BRIDGED, tty=False)
    assert argv[argv.index("--network") + 1] == NAME and argv.count("--network") == 1
    assert argv[argv.index("-p") + 1] == "172.18.0.1:40000"
    assert not any("/run/bawn/way" in word for word in argv)
    assert any(word.startswith("type=bind,source=/r/resolv.conf,target=/etc/resolv.conf") for word in argv)


def test_another_network_than_planned_differs() -> None:
    made = inspected(PLAN, BRIDGED)
    assert {d.what for d in compare(PLAN, NAME, BRIDGED, made, ("PATH=/bin",), tty=False)} == {
        "NetworkMode", "networks",
    }  # fmt: skip
    made["HostConfig"]["NetworkMode"] = NAME
    made["NetworkSettings"]["Networks"] = {NAME: {}}
    assert compare(PLAN, NAME, BRIDGED, made, ("PATH=/bin",), tty=False) == ()
    made["NetworkSettings"]["Networks"]["bridge"] = {}
    assert [d.what for d in compare(PLAN, NAME, BRIDGED, made, ("PATH=/bin",), tty=False)] == ["networks"]
