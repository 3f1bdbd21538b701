"""Trust: what `bawn run` may obey, and who may say so."""

import json
import os
from pathlib import Path

import pytest

from bawn.effects import trust as effects
from bawn.errors import PolicyError, TrustError
from bawn.facts import policy_file
from bawn.facts import trust as facts
from bawn.facts.dirs import Dirs
from bawn.facts.policy_file import Found
from bawn.facts.trust import Trust

TEXT = "version = 1\n[profile.default]\nlimits = { cpus = 1.5 }\n"
WIDER = TEXT + "mask = []\n"


class World:
    """A repository, and bawn's own directories."""

    def __init__(self, top: Path) -> None:
        self.repo, self.config, self.state = top / "repo", top / "config", top / "state"
        for folder in (self.repo, self.config):
            folder.mkdir(mode=0o755)
        self.dirs = Dirs(str(self.config), str(self.state), str(top / "run"))
        self.file = self.repo / "bawn.toml"
        self.write(TEXT)

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def find(self, start: str = "repo") -> Found:
        found = policy_file.find(str(self.repo.parent / start), str(self.config), None)
        assert found
        return found

    def status(self) -> Trust:
        return facts.status(self.find(), str(self.state), str(self.config))

    def trust(self) -> None:
        effects.trust(self.find(), str(self.state))

    def entry(self) -> Path:
        return Path(facts.entry(str(self.state), self.find()))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


def test_never_trusted(world: World) -> None:
    assert world.status() == Trust(False, None, "it was never trusted")


def test_trusted_as_it_is(world: World) -> None:
    world.trust()
    state = world.status()
    assert state.trusted
    assert state.previous == TEXT.encode()
    assert state.toml == {"version": 1, "profile": {"default": {"limits": {"cpus": 1.5}}}}


@pytest.mark.parametrize("text", [WIDER, TEXT + "\n", TEXT + "# é", TEXT.replace("\n", "\r\n"), ""])
def test_every_change_is_seen(world: World, text: str) -> None:
    world.trust()
    world.write(text)
    state = world.status()
    assert not state.trusted
    assert state.previous == TEXT.encode()
    assert state.why == "it has changed since you trusted it"
    assert state.toml is None


def test_what_was_trusted_before_counts_no_more(world: World) -> None:
    world.trust()
    world.write(WIDER)
    world.trust()
    world.write(TEXT)
    assert not world.status().trusted


def test_the_same_text_elsewhere_is_not_trusted(world: World) -> None:
    world.trust()
    other = world.repo / "sub"
    other.mkdir()
    (other / "bawn.toml").write_text(TEXT)
    found = world.find("repo/sub")
    assert found.path == str(other / "bawn.toml")  # nearer by, and never fallen through
    assert not facts.status(found, str(world.state), str(world.config)).trusted


def test_a_link_to_a_trusted_policy_is_not_trusted(world: World) -> None:
    """An agent makes sub/bawn.toml point to a wider policy that a person trusts elsewhere."""
    world.trust()
    other = world.repo / "sub"
    other.mkdir()
    (other / "bawn.toml").symlink_to(world.file)
    found = world.find("repo/sub")
    assert not facts.status(found, str(world.state), str(world.config)).trusted
    effects.trust(found, str(world.state))
    assert facts.status(found, str(world.state), str(world.config)).trusted
    (other / "bawn.toml").unlink()
    (world.repo / "third.toml").write_text(TEXT)
    (other / "bawn.toml").symlink_to(world.repo / "third.toml")
    assert not facts.status(world.find("repo/sub"), str(world.state), str(world.config)).trusted


def test_a_directory_reached_through_a_link_is_the_same(world: World) -> None:
    world.trust()
    (world.repo.parent / "alias").symlink_to("repo")
    assert facts.status(world.find("alias"), str(world.state), str(world.config)).trusted


def own(world: World) -> Trust:
    path = world.config / "bawn.toml"
    path.write_text(TEXT)
    found = policy_file.find("/", str(world.config), None)
    assert found
    return facts.status(found, str(world.state), str(world.config))


def test_your_own_needs_none(world: World) -> None:
    assert own(world).trusted
    assert own(world).why == "it lies in your own config directory"


def test_your_own_that_others_can_write_needs_it(world: World) -> None:
    world.config.chmod(0o775)
    assert not own(world).trusted


def test_a_link_to_your_own_is_not_your_own(world: World) -> None:
    own(world)
    world.file.unlink()
    world.file.symlink_to(world.config / "bawn.toml")
    assert not world.status().trusted


def test_a_directory_below_your_own_is_not_your_own(world: World) -> None:
    (world.config / "sub").mkdir()
    (world.config / "sub" / "bawn.toml").write_text(TEXT)
    assert not facts.status(world.find("config/sub"), str(world.state), str(world.config)).trusted


def test_the_store_is_private(world: World) -> None:
    old = os.umask(0)
    try:
        world.trust()
    finally:
        os.umask(old)
    assert world.state.stat().st_mode & 0o777 == 0o700
    assert (world.state / "trust").stat().st_mode & 0o777 == 0o700
    assert world.entry().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (world.state / "trust").iterdir()] == [world.entry().name]
    kept = json.loads(world.entry().read_text())
    assert (kept["path"], kept["text"], kept["sha256"]) == (str(world.file), TEXT, world.find().sha256)


@pytest.mark.parametrize("what", ["state", "state/trust", "entry"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_a_store_that_others_can_write_is_not_believed(world: World, what: str, mode: int) -> None:
    world.trust()
    path = world.entry() if what == "entry" else world.repo.parent / what
    path.chmod(path.stat().st_mode | mode)
    with pytest.raises(TrustError, match="can be written by others") as caught:
        world.status()
    assert f"chmod go-w {path}" in caught.value.fix
    if what != "entry":
        with pytest.raises(TrustError):
            world.trust()


@pytest.mark.parametrize("what", ["state", "state/trust", "entry"])
def test_a_store_of_somebody_else_is_not_believed(
    world: World, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.trust()
    found = world.find()
    if os.getuid() == 0:
        path = world.entry() if what == "entry" else world.repo.parent / what
        os.chown(path, 4711, 4711)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(TrustError, match="can be written by others"):
        facts.status(found, str(world.state), str(world.config))


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"bawn_trust": 1',
        b'{"bawn_trust":1,"text":1,"sha256":""}',
        b"[" * 10**6,
    ],
)
def test_a_damaged_entry_trusts_nothing(world: World, damage: bytes) -> None:
    world.trust()
    world.entry().write_bytes(damage)
    with pytest.raises(TrustError, match="damaged"):
        world.status()


@pytest.mark.parametrize(
    "change",
    [
        {"text": WIDER},
        {"sha256": "0" * 64},
        {"bawn_trust": 2},
        {"toml": None},
        {"toml": []},
        {"text": "\ud800"},
    ],
)
def test_an_entry_that_contradicts_itself_trusts_nothing(world: World, change: dict[str, object]) -> None:
    world.trust()
    kept = json.loads(world.entry().read_text())
    world.entry().write_text(json.dumps({**kept, **change}))
    with pytest.raises(TrustError, match="damaged"):
        world.status()


def test_an_entry_that_is_a_link_trusts_nothing(world: World) -> None:
    world.trust()
    entry = world.entry()
    entry.rename(entry.with_suffix(".real"))
    entry.symlink_to(entry.with_suffix(".real"))
    with pytest.raises(TrustError, match="cannot read"):
        world.status()


def test_a_store_that_is_no_directory(world: World) -> None:
    world.state.write_text("")
    with pytest.raises(TrustError, match="not a directory"):
        world.status()


def test_what_does_not_load_is_not_trusted(world: World) -> None:
    for text in ("version = 2\n", "version = \n", "\x1b"):
        world.write(text)
        with pytest.raises(PolicyError):
            world.trust()
    world.file.write_bytes(b"\xff")
    with pytest.raises(PolicyError):
        world.trust()
    assert not world.state.exists()


def test_a_failed_write_leaves_the_old_trust(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from bawn.errors import HostError

    world.trust()
    before = world.entry().read_bytes()

    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    world.write(WIDER)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(HostError, match="No space left"):
        world.trust()
    assert world.entry().read_bytes() == before
    assert len(list((world.state / "trust").iterdir())) == 1


def test_revoke(world: World) -> None:
    assert not effects.revoke(world.find(), str(world.state))
    world.trust()
    assert effects.revoke(world.find(), str(world.state))
    assert not world.status().trusted
    assert world.status().previous is None


def test_require_lets_a_trusted_policy_pass_and_says_what_it_says(world: World) -> None:
    world.trust()
    found = effects.require(world.find(), world.dirs, None)
    assert found.toml == world.status().toml
    assert found.data == TEXT.encode()


def test_require_refuses_without_a_terminal(world: World) -> None:
    for why in ("never trusted", "has changed since"):
        with pytest.raises(TrustError, match=why) as caught:
            effects.require(world.find(), world.dirs, None)
        assert caught.value.exit_code == 125
        assert caught.value.fix == f"read it, then: bawn trust {world.file}"
        world.trust()
        world.write(WIDER)


def test_require_asks(world: World) -> None:
    asked: list[tuple[Found, Trust]] = []

    def no(found: Found, state: Trust) -> bool:
        asked.append((found, state))
        return False

    def yes(found: Found, state: Trust) -> bool:
        world.write("version = 1\n[profile.swapped]\n")  # meanwhile: what was shown is what counts
        return True

    with pytest.raises(TrustError, match="was not trusted"):
        effects.require(world.find(), world.dirs, no)
    assert asked == [(world.find(), Trust(False, None, "it was never trusted"))]
    assert not world.status().trusted

    found = effects.require(world.find(), world.dirs, yes)
    assert found.data == TEXT.encode()
    assert found.toml
    assert not world.status().trusted
    world.write(TEXT)
    assert world.status().trusted
