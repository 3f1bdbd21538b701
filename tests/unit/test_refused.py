"""`plan.refused`: both directions of containment, by every name a path can have."""

import os
from pathlib import Path

import pytest

from bawn.facts.model import Component, Facts, PathFact
from bawn.facts.mountinfo import MountTable, parse
from bawn.plan.model import Identity
from bawn.plan.mounts import compile_mounts
from bawn.plan.refused import Refusals
from bawn.policy.refused import REFUSED, REFUSED_ENV
from tests.unit.mount_world import PROFILE, World, effect, found, mount, override, rules


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def refused(plan: object) -> list[str]:
    return [rule for rule in rules(plan) if rule.startswith("BWN1")]  # type: ignore[arg-type]


def hits(facts: Facts, path: str) -> set[tuple[str, str]]:
    """(rule, relation) for an absolute path, as if it existed and nothing more were known."""
    fact = PathFact(path, path, "dir", facts.host.uid, would_be=path)
    found_hits = Refusals(PROFILE, facts, facts.host.uid).hits(fact)
    return {(hit.row.rule, hit.relation) for hit in found_hits}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.path.replace("/", "_"))
def test_every_row_in_both_directions(world: World, row: object) -> None:
    facts = world.facts(PROFILE)
    path: str = row.path  # type: ignore[attr-defined]
    path = world.home + path[1:] if path.startswith("~") else path
    rule: str = row.rule  # type: ignore[attr-defined]
    assert (rule, "is") in hits(facts, path)
    if path != "/":
        assert (rule, "holds") in hits(facts, os.path.dirname(path))
    if row.scope == "tree":  # type: ignore[attr-defined]
        assert (rule, "lies in") in hits(facts, f"{path}/a/b")
    assert (rule, "is") not in hits(facts, path + "-x")  # whole components


@pytest.mark.parametrize("path", ["/srv/app", "/var/www", "/opt/x", "/data", "/mnt/disk/src"])
def test_ordinary_places(world: World, path: str) -> None:
    assert hits(world.facts(PROFILE), path) == set()


def test_a_project_in_the_home_is_ordinary(world: World) -> None:
    world.dir("home/src/shop")
    assert rules(world.plan(mount("~/src/shop", "rw"))) == []
    assert refused(world.plan(mount("~"))) != []
    assert "BWN105" in rules(world.plan(mount(world.path(""))))  # what holds it


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("~/.ssh", "BWN106"),
        ("~/.ssh/keys/deep", "BWN106"),
        ("~/.config", "BWN107"),
        ("~/.config/gcloud/x", "BWN106"),
        ("~/.mozilla/firefox", "BWN107"),
        ("~/Library/Application Support/Google", "BWN107"),
        ("~/.local/share", "BWN108"),
        ("~/.claude", "BWN111"),
        ("~/.docker/run", "BWN109"),
        ("~/.local", "BWN108"),
    ],
)
def test_in_the_home(world: World, source: str, rule: str) -> None:
    os.makedirs(world.home + source[1:])
    plan = world.plan(mount(source))
    assert rule in rules(plan)
    assert plan.binds == ()


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("/", "BWN101"), ("/run", "BWN104"), ("/var/run", "BWN104"), ("/var", "BWN109"),
        ("/proc/1", "BWN103"), ("/sys", "BWN103"), ("/dev", "BWN103"), ("/var/lib", "BWN109"),
        ("/etc/ssl", "BWN102"),
    ],
)  # fmt: skip
def test_on_the_machine(world: World, source: str, rule: str) -> None:
    """M16: `/run` read-only still hands over docker.sock."""
    plan = world.plan(mount(source))
    assert rule in rules(plan)
    assert plan.binds == ()


def test_a_refused_path_that_does_not_exist_yet(world: World) -> None:
    """It may appear while the box runs."""
    world.dir("home/.config")
    assert "BWN106" in rules(world.plan(mount("~/.config")))


# Names of the same thing


def test_a_link_to_a_refused_path(world: World) -> None:
    world.dir("home/.ssh", "proj")
    world.link("proj/keys", "../home/.ssh")
    assert "BWN106" in rules(world.plan(mount(world.path("proj/keys"))))
    assert rules(world.plan(mount(world.path("proj")))) == []  # the link itself leads nowhere


def test_a_refused_path_that_is_a_link(world: World) -> None:
    """`~/.ssh` lives on another disk: its place there is refused."""
    world.dir("disk/keys/deep", "home")
    world.link("home/.ssh", "../disk/keys")
    for name in ("disk/keys", "disk/keys/deep", "disk"):
        assert "BWN106" in rules(world.plan(mount(world.path(name)))), name
    assert "BWN106" in rules(world.plan(mount("~/.ssh")))


def test_a_home_that_is_a_link(world: World) -> None:
    world.dir("disk/me/.aws", "disk/me/src")
    os.rmdir(world.home)
    world.link("home", "disk/me")
    assert "BWN106" in rules(world.plan(mount(world.path("disk/me/.aws"))))
    assert "BWN105" in rules(world.plan(mount(world.path("disk/me"))))
    assert "BWN105" in rules(world.plan(mount(world.path("disk"))))
    assert rules(world.plan(mount("~/src"))) == []


@pytest.mark.parametrize(
    ("root", "source", "rule"),
    [
        ("home/.ssh", "m", "BWN106"),  # is
        ("home/.ssh", "m/deep", "BWN106"),  # lies in
        ("home", "m", "BWN105"),  # is the home
        ("home", "m/.ssh/deep", "BWN106"),
        ("home/.ssh/deep", "m", "BWN106"),  # a part of it
        ("", "m/home/.ssh", "BWN106"),
        ("", "m", "BWN105"),  # holds
    ],
)
def test_a_bind_mount_is_no_new_name(world: World, root: str, source: str, rule: str) -> None:
    world.dir("home/.ssh/deep", "m", source)
    inside = world.path(root) if root else str(world.top)
    text = f"1 0 8:1 / / rw - ext4 d rw\n2 1 8:1 {inside} {world.path('m')} rw - ext4 d rw\n"
    world.table = MountTable(parse(text))
    assert rule in rules(world.plan(mount(world.path(source))))


def test_by_inode_where_the_mount_table_says_nothing(world: World) -> None:
    world.dir("home/.ssh", "m")
    profile = PROFILE._replace(mounts=(mount(world.path("m")),))
    facts = world.facts(profile)
    keys = os.stat(world.path("home/.ssh"))
    paths = tuple(
        fact._replace(dev=keys.st_dev, ino=keys.st_ino) if fact.path == world.path("m") else fact
        for fact in facts.paths
    )
    plan = compile_mounts(profile, facts._replace(paths=paths), world.identity())
    assert rules(plan) == ["BWN106"]


def test_a_hard_link_to_a_key_file(world: World) -> None:
    world.file("home/.netrc", "v/x")
    os.link(world.path("home/.netrc"), world.path("v/readme.txt"))
    assert "BWN106" in rules(world.plan(mount(world.path("v/readme.txt"))))


def test_in_another_case_on_an_insensitive_tree(world: World) -> None:
    """M15: `~/.SSH`"""
    world.dir("home/.SSH", "home/src")
    world.probe = lambda fd, entries: True
    assert "BWN106" in rules(world.plan(mount("~/.SSH")))
    assert rules(world.plan(mount("~/src"))) == []


def test_places_that_the_environment_names(world: World) -> None:
    world.dir("secrets/kube", "docker/sock", "agent")
    world.environ = {
        "KUBECONFIG": f"{world.path('secrets/kube/a')}:{world.path('secrets/kube/b')}",
        "DOCKER_HOST": f"unix://{world.path('docker/sock/d.sock')}",
        "CLAUDE_CONFIG_DIR": world.path("agent"),
        "GNUPGHOME": "relative",
        "SSH_AUTH_SOCK": "",
    }
    assert rules(world.plan(mount(world.path("secrets")))) == ["BWN106"]
    assert rules(world.plan(mount(world.path("docker/sock")))) == ["BWN109"]
    assert rules(world.plan(mount(world.path("agent")))) == ["BWN111"]
    assert "$KUBECONFIG" in found(world.plan(mount(world.path("secrets"))), "BWN106").message
    assert {name for name, *_ in REFUSED_ENV} >= set(world.environ)


def test_what_was_not_observed_still_counts(world: World) -> None:
    """Fails closed: facts without the refused paths refuse by their text."""
    world.dir("home/.ssh")
    profile = PROFILE._replace(mounts=(mount("~/.ssh"), mount("/etc")))
    facts = world.facts(profile)
    few = tuple(fact for fact in facts.paths if fact.asked in ("~/.ssh", "/etc"))
    plan = compile_mounts(profile, facts._replace(paths=few, trees=facts.trees), world.identity())
    assert {"BWN106", "BWN102"} <= set(rules(plan))


# Root, and other users


def test_root_for_an_ordinary_invoker(world: World) -> None:
    facts = world.facts(PROFILE)
    assert ("BWN102", "lies in") in hits(facts, "/root/src/x")


def test_root_for_root(world: World) -> None:
    facts = world.facts(PROFILE)
    paths = tuple(
        fact._replace(path="/root", would_be="/root") if fact.asked == "~" else fact
        for fact in facts.paths
        if not fact.asked.startswith("~/")
    )
    facts = facts._replace(host=facts.host._replace(home="/root"), paths=paths)
    assert hits(facts, "/root/src/x") == set()
    assert ("BWN105", "is") in hits(facts, "/root")
    assert ("BWN106", "is") in hits(facts, "/root/.ssh")


def other_home(world: World, path: str, owner: int, uid: int) -> set[tuple[str, str]]:
    """What refuses `path` when /home/bob belongs to `owner`, the invoker is 1000, the box `uid`."""
    facts = world.facts(PROFILE)
    facts = facts._replace(host=facts.host._replace(invoker_uid=1000))
    steps = [(p, owner if p.startswith("/home/bob") else 0) for p in ("/", "/home", "/home/bob")]
    chain = tuple(Component(p, u, u, 0o755, 1, n) for n, (p, u) in enumerate(steps, 900))
    fact = PathFact(path, path, "dir", owner, owner, 0o755, 1, 999, would_be=path, chain=chain)
    if path == "/home/bob":
        fact = fact._replace(chain=chain[:-1])
    return {(hit.row.rule, hit.relation) for hit in Refusals(PROFILE, facts, uid).hits(fact)}


def test_another_users_home(world: World) -> None:
    assert ("BWN112", "lies in") in other_home(world, "/home/bob/src", 1001, 1000)
    assert ("BWN112", "is") in other_home(world, "/home/bob", 1001, 1000)
    assert other_home(world, "/home/bob/src", 1000, 1000) == set()  # the invoker's own directory
    assert other_home(world, "/home/bob/src", 0, 1000) == set()  # /home/shared, root's


def test_the_home_of_the_user_for_whom_root_acts(world: World) -> None:
    """As root without sudo the box acts for the owner of the work directory: the table holds."""
    assert other_home(world, "/home/bob/src", 1001, 1001) == set()
    assert ("BWN105", "is") in other_home(world, "/home/bob", 1001, 1001)
    assert ("BWN106", "is") in other_home(world, "/home/bob/.ssh", 1001, 1001)
    assert ("BWN106", "holds") in other_home(world, "/home/bob/.config", 1001, 1001)


# Overrides


def test_an_override_lifts_the_path_it_names(world: World) -> None:
    world.dir("home/.aws", "home/.ssh")
    plan = world.plan(mount("~/.aws"), mount("~/.ssh"), overrides=(override("~/.aws"),))
    assert rules(plan) == ["BWN106"]
    assert effect(plan, world.path("home/.aws/config")) == "ro"
    assert effect(plan, world.path("home/.ssh")) == "absent"
    assert plan.overrides == (("~/.aws", "a reason that is long enough"),)
    assert "BWN122" in rules(plan, "note")


def test_an_override_of_the_source_lifts_what_it_lies_in(world: World) -> None:
    world.dir("home/.aws/cli/cache")
    plan = world.plan(mount("~/.aws/cli/cache"), overrides=(override("~/.aws/cli/cache"),))
    assert rules(plan) == []
    other = world.plan(mount("~/.aws/cli"), overrides=(override("~/.aws/cli/cache"),))
    assert rules(other) == ["BWN106"]


def test_an_override_of_the_home_lifts_nothing_in_it(world: World) -> None:
    world.dir("home/.ssh")
    plan = world.plan(mount("~"), overrides=(override("~"),))
    assert "BWN106" in rules(plan)
    assert "BWN107" in rules(plan)
    assert "BWN105" not in rules(plan)
    assert plan.binds == ()


@pytest.mark.parametrize("path", ["/", "/proc", "/sys", "/dev/shm", "/var/lib/docker", "/run/docker.sock"])
def test_what_no_override_lifts(world: World, path: str) -> None:
    plan = world.plan(mount(path), overrides=(override(path),))
    assert "BWN121" in rules(plan)
    assert plan.binds == ()


def test_an_override_that_nothing_needs(world: World) -> None:
    plan = world.plan(mount(world.dir("v")), overrides=(override("~/.ssh"),))
    assert rules(plan) == []
    assert rules(plan, "warning") == ["BWN120"]
    assert plan.overrides == ()


def test_the_fix_names_the_path(world: World) -> None:
    world.dir("home/.ssh")
    one = found(world.plan(mount("~/.ssh")), "BWN106")
    assert f'path = "{world.path("home/.ssh")}"' in one.fix
    assert one.message == f"{world.path('home/.ssh')} is refused: keys and tokens"
    assert one.place == "bawn.toml:7 profile.t"


def test_one_finding_for_each_rule(world: World) -> None:
    plan = world.plan(mount("~"))
    assert len(refused(plan)) == len(set(refused(plan)))
    assert "more of this kind" in found(plan, "BWN107").message


def test_the_identity_decides_whose_files_are_protected(world: World) -> None:
    profile = PROFILE._replace(mounts=(mount(world.dir("v"), "rw"),))
    facts = world.facts(profile)
    stranger = Identity(1000, 1000, 4242, 4242, False)
    assert "BWN503" in rules(compile_mounts(profile, facts, stranger)) or os.getuid() == 4242
