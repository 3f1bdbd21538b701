"""`bawn setup docker`: an edit that touches one entry, and exactly one of three outcomes."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.effects import journal, ledger, setup_docker, snapshot
from bawn.effects.atomic import write_atomic
from bawn.effects.setup_docker import Setup, apply, in_force, prepare, undo, writable_by_others
from bawn.errors import HostError
from bawn.plan.daemon_json import register

PROGRAM = "/usr/local/lib/bawn/runsc-docker"
ENTRY = {"path": PROGRAM}

# The edit


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, '{\n    "runtimes": {\n        "runsc": {\n            "path": "P"\n        }\n    }\n}\n'),
        ("", '{\n    "runtimes": {\n        "runsc": {\n            "path": "P"\n        }\n    }\n}\n'),
        ("{}", '{"runtimes": {"runsc": {"path": "P"}}}'),
        ("{}\n", '{\n    "runtimes": {\n        "runsc": {\n            "path": "P"\n        }\n    }\n}\n'),
        ('{"a": 1}', '{"a": 1, "runtimes": {"runsc": {"path": "P"}}}'),
        (
            '{\n  "a": [1,2,  3],\n  "log-level": "warn"\n}\n',
            '{\n  "a": [1,2,  3],\n  "log-level": "warn",\n  "runtimes": {\n    "runsc": {\n'
            '      "path": "P"\n    }\n  }\n}\n',
        ),
        (
            '{\n\t"runtimes": {\n\t\t"x": {"path": "y"}\n\t},\n\t"n": 1e3, "u": "\\u00e9"\n}',
            '{\n\t"runtimes": {\n\t\t"x": {"path": "y"},\n\t\t"runsc": {\n\t\t\t"path": "P"\n\t\t}\n\t},'
            '\n\t"n": 1e3, "u": "\\u00e9"\n}',
        ),
        (
            '{\r\n  "a": 1\r\n}\r\n',
            '{\r\n  "a": 1,\r\n  "runtimes": {\r\n    "runsc": {\r\n      "path": "P"\r\n'
            "    }\r\n  }\r\n}\r\n",
        ),
        (
            '{\n  "runtimes": {},\n  "a": 1\n}\n',
            '{\n  "runtimes": {\n    "runsc": {\n      "path": "P"\n    }\n  },\n  "a": 1\n}\n',
        ),
    ],
)
def test_only_one_entry_is_put_in(old: str | None, new: str) -> None:
    edit = register(old, "/d.json", "P")
    assert edit.new == new
    assert register(edit.new, "/d.json", "P").changes is False


def test_arguments() -> None:
    assert json.loads(register(None, "", "P", ("--x",)).new)["runtimes"]["runsc"]["runtimeArgs"] == ["--x"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(max_size=8), _JSON, max_size=4),
    st.none() | st.dictionaries(st.sampled_from(["a", "b", 'q"}']), st.just({"path": "/x"}), max_size=3),
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.booleans(),
)
def test_all_else_is_kept(
    data: dict[str, object], runtimes: dict[str, object] | None, indent: int | str | None, plain: bool
) -> None:
    data.pop("runtimes", None)
    if runtimes is not None:
        data["runtimes"] = runtimes
    old = json.dumps(data, indent=indent, ensure_ascii=plain)
    new = register(old, "/d.json", PROGRAM).new
    assert json.loads(new) == {**data, "runtimes": {**(runtimes or {}), "runsc": ENTRY}}
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old))
    rest = len(old) - at  # what stood before and after is there, byte for byte (spaces in {} apart)
    tail = new[len(new) - rest :] if rest else ""
    assert old[at:].lstrip(" \r\n\t") in tail or tail.endswith(old[at:].lstrip(", \r\n\t"))


@pytest.mark.parametrize(
    "text",
    ["[]", "null", "1", "{", '{"a": 1,}', '{"a": 1, "a": 2}', '{"runtimes": []}', "// x\n{}",
     '{"runtimes": {"runsc": {"path": "x"}, "runsc": {"path": "y"}}}', "[" * 100_000],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    with pytest.raises(HostError, match=r"/d\.json"):
        register(text, "/d.json", PROGRAM)


def test_another_runsc_is_named_and_kept() -> None:
    with pytest.raises(HostError) as error:
        register('{"runtimes": {"runsc": {"path": "/other"}}}', "/d.json", PROGRAM)
    assert "/other" in error.value.message
    assert PROGRAM in error.value.message


# Applying and undoing

OLD = '{\n  "log-level": "warn"\n}\n'


class World:
    """A daemon.json and a state directory."""

    def __init__(self, top: Path, text: str | None) -> None:
        self.top, self.state = top, str(top / "state")
        self.config = top / "etc/docker/daemon.json"
        self.before = None if text is None else text.encode()
        if text is not None:
            self.config.parent.mkdir(parents=True)
            self.config.write_text(text)
            self.config.chmod(0o640)
        self.calls: list[str] = []

    def setup(self) -> Setup:
        return prepare(
            str(self.config), str(self.top / "lib/bawn"), "/usr/bin/runsc", True, "/usr/bin/python3"
        )

    def apply(
        self, verify: Callable[[], None] = lambda: None, settle: Callable[[], None] = lambda: None
    ) -> str:
        return apply(self.setup(), self.state, verify, settle)

    def undo(self, force: bool = False) -> str:
        return undo(str(self.config), self.state, force)

    def as_before(self) -> bool:
        """Restored, and nothing is kept or open."""
        copies = list((self.top / "state/ledger").glob("*/before-*"))
        return self.restored() and not copies and not in_force(self.state, str(self.config))

    def restored(self) -> bool:
        """Byte for byte, mode and all; nothing of bawn's is left."""
        if self.before is None:
            same = not self.config.exists() and not self.config.parent.exists()
        else:
            mode = stat.S_IMODE(self.config.stat().st_mode)
            same = self.config.read_bytes() == self.before and mode == 0o640
        return same and not (self.top / "lib").exists()

    def journal(self) -> Path:
        """Where the newest change is journalled."""
        return Path(journal.folder(self.state, journal.entries(self.state)[-1].number))

    def in_force(self) -> bool:
        runtimes = json.loads(self.config.read_text())["runtimes"]
        return bool(runtimes == {"runsc": {"path": f"{self.top}/lib/bawn/runsc-docker"}})


@pytest.fixture(params=[OLD, None], ids=["a file", "no file"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(setup_docker, "writable_by_others", lambda path: "")
    return World(tmp_path, request.param)


def replace_writing(monkeypatch: pytest.MonkeyPatch, by: Callable[..., None]) -> None:
    for module in (journal, ledger, snapshot):
        monkeypatch.setattr(module, "write_atomic", by)


def fail() -> None:
    raise HostError("the box did not run")


def test_apply_and_undo(world: World) -> None:
    assert world.apply() == "applied"
    assert world.in_force()
    wrapper = world.top / "lib/bawn/runsc-docker"
    assert "/usr/bin/runsc" in wrapper.read_text()
    assert wrapper.stat().st_mode & 0o111
    assert not world.setup().changes
    assert world.undo() == "restored and verified"
    assert world.as_before()
    assert world.undo() == "nothing to undo"
    assert world.as_before()


def test_preparing_changes_nothing(world: World) -> None:
    assert world.setup().changes
    assert world.as_before()


def test_a_failed_verification_restores_and_settles(world: World) -> None:
    settled: list[bool] = []
    with pytest.raises(HostError, match="restored and verified: the box did not run"):
        world.apply(fail, lambda: settled.append(world.restored()))
    assert settled == [True]  # docker is told after the file is back
    assert world.as_before()


def test_a_daemon_that_does_not_come_back_is_a_failed_rollback(world: World) -> None:
    def dead() -> None:
        raise HostError("docker does not start")

    with pytest.raises(HostError, match=r"ROLLBACK FAILED.*docker does not start.*the box did not run"):
        world.apply(fail, dead)


def test_an_interrupt_restores(world: World) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(HostError, match="restored"):
        world.apply(interrupted)
    assert world.as_before()


@pytest.mark.parametrize("step", range(9))
def test_a_disk_that_fails_at_each_write(world: World, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, journal, three files, daemon.json, journal: whatever fails, all is as it was, or done."""
    count = -1

    def failing(path: str, data: bytes, mode: int, *rest: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise OSError(28, "No space left on device")
        write_atomic(path, data, mode, *rest, **named)

    replace_writing(monkeypatch, failing)
    writes = 6 if world.before is None else 7
    if step < writes:
        with pytest.raises(HostError, match="restored and verified"):
            world.apply()
        assert world.as_before()
    else:
        assert world.apply() == "applied"
        assert world.in_force()


def test_a_rollback_that_fails_says_what_lies_where(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.apply()

    def failing(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    replace_writing(monkeypatch, failing)
    monkeypatch.setattr(os, "unlink", failing)
    with pytest.raises(HostError) as error:
        world.undo()
    assert error.value.message.startswith("ROLLBACK FAILED")
    assert "Read-only" in error.value.message
    assert str(world.config) in error.value.message
    where = world.journal()
    assert (where / "entry.json").exists()  # kept until it is verified
    if world.before is not None:
        assert (where / "before-4").read_bytes() == world.before
        assert str(where / "before-4") in error.value.message
    monkeypatch.undo()
    assert undo(str(world.config), world.state) == "restored and verified"
    assert world.as_before()


def test_both_reasons_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_and_fail() -> None:
        monkeypatch.setattr(ledger, "restore", lambda *_: (_ for _ in ()).throw(OSError("disk")))
        fail()

    with pytest.raises(HostError, match=r"ROLLBACK FAILED: disk.*\(it had failed: the box did not run\)"):
        world.apply(break_and_fail)


def test_a_file_that_changed_since_is_not_overwritten(world: World) -> None:
    world.apply()
    changed = world.config.read_text().replace("{", '{"mine": 1, ', 1)
    world.config.write_text(changed)
    with pytest.raises(HostError, match="has changed since"):
        world.undo()
    assert world.config.read_text() == changed
    assert world.undo(force=True) == "restored and verified"
    assert world.as_before()


def test_a_file_that_was_taken_away_since(world: World) -> None:
    world.apply()
    world.config.unlink()
    if world.before is None:
        assert world.undo() == "restored and verified"
    else:
        with pytest.raises(HostError, match="has changed since"):
            world.undo()
        world.undo(force=True)
    assert world.as_before()


def test_killed_between_the_journal_and_the_file(world: World) -> None:
    with journal.locked(world.state):
        ledger._register(setup_docker._change(world.setup()), world.state)
    assert world.undo() == "restored and verified"
    assert world.as_before()


def test_a_kept_copy_that_was_damaged(world: World) -> None:
    if world.before is None:
        pytest.skip("nothing is kept")
    world.apply()
    (world.journal() / "before-4").write_text("{}")
    with pytest.raises(HostError, match="ROLLBACK FAILED"):
        world.undo()
    assert world.in_force() or "log-level" in world.config.read_text()


def test_a_journal_that_was_damaged(world: World) -> None:
    world.apply()
    (world.journal() / "entry.json").write_text("{")
    with pytest.raises(HostError, match="cannot be read"):
        world.undo()


def test_a_second_setup_does_not_overwrite_the_only_good_copy(world: World) -> None:
    world.apply()
    text = json.loads(world.config.read_text())
    del text["runtimes"]
    world.config.write_text(json.dumps(text))
    with pytest.raises(HostError, match="in force already"):
        world.apply()
    if world.before is not None:
        assert (world.journal() / "before-4").read_bytes() == world.before


def test_an_upgrade_puts_the_new_program_in(world: World) -> None:
    world.apply()
    wrapper = world.top / "lib/bawn/runsc-docker"
    wrapper.write_text("#!/bin/sh\n# of an older bawn\n")
    assert world.setup().changes
    assert world.apply() == "applied"
    assert "older" not in wrapper.read_text()
    assert world.undo() == "restored and verified"
    assert world.as_before()


def test_a_file_of_somebody_else_is_not_overwritten(world: World) -> None:
    (world.top / "lib/bawn").mkdir(parents=True)
    (world.top / "lib/bawn/launch").write_text("mine")
    with pytest.raises(HostError, match="not bawn's"):
        world.apply()
    assert (world.top / "lib/bawn/launch").read_text() == "mine"


def test_a_linked_daemon_json_stays_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_docker, "writable_by_others", lambda path: "")
    world = World(tmp_path, OLD)
    link = tmp_path / "link.json"
    link.symlink_to(world.config)
    apply(prepare(str(link), f"{tmp_path}/lib/bawn", "/usr/bin/runsc", False, "/usr/bin/python3"),
          world.state, lambda: None, lambda: None)  # fmt: skip
    assert link.is_symlink()
    assert world.in_force()
    assert undo(str(link), world.state) == "restored and verified"
    assert link.is_symlink()
    assert world.as_before()


def test_no_temporary_file_is_left(world: World) -> None:
    with pytest.raises(HostError):
        world.apply(fail)
    assert [p for p in world.top.rglob("*.new")] == []


def test_not_text(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(HostError, match="cannot read"):
        prepare(str(tmp_path / "d.json"), "/usr/local/lib/bawn", "/bin/sh", False, "/bin/sh")


@pytest.mark.parametrize("name", ["a b", "a'b", "a$(b)", "a;b", "a\nb"])
def test_a_path_that_a_shell_would_take_apart(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_docker, "writable_by_others", lambda path: "")
    with pytest.raises(HostError, match="shell script"):
        prepare(str(tmp_path / "d.json"), f"/opt/{name}", "/bin/sh", False, "/bin/sh")


def test_what_root_would_run_for_others(tmp_path: Path) -> None:
    """dockerd is root: a runsc or an interpreter that a user can change is root for that user."""
    assert writable_by_others("/bin/sh") == ""
    if os.geteuid() != 0:
        assert "belongs to uid" in writable_by_others(str(tmp_path))
        return
    open_dir = tmp_path / "open"
    open_dir.mkdir()
    (open_dir / "runsc").write_text("")
    assert writable_by_others(str(open_dir / "runsc")) == ""
    open_dir.chmod(0o777)
    assert "written by others" in writable_by_others(str(open_dir / "runsc"))
    open_dir.chmod(0o755)
    os.chown(open_dir / "runsc", 1000, 1000)
    assert "belongs to uid 1000" in writable_by_others(str(open_dir / "runsc"))
    (tmp_path / "link").symlink_to(open_dir / "runsc")
    assert "belongs to uid 1000" in writable_by_others(str(tmp_path / "link"))
    assert "cannot be looked at" in writable_by_others(str(tmp_path / "none"))
