"""An agent that writes a policy changes nothing: read-only where it is, refused where it is new."""

import os
from pathlib import Path

import pytest

from tests.system.conftest import Person, policy

pytestmark = pytest.mark.system

WIDER = "version = 1\\n[profile.default]\\nmask = []\\n"


def test_the_policy_in_force_is_read_only(person: Person, work: Path) -> None:
    (work / ".env").write_text("SECRET")
    policy(work, "[profile.default]\n", person)
    before = (work / "bawn.toml").read_bytes()
    ways = (
        f"printf '{WIDER}' > bawn.toml; printf '{WIDER}' > new; mv new bawn.toml; rm -f bawn.toml; "
        "sed -i s/1/2/ bawn.toml; ln -f new bawn.toml; cp new bawn.toml; : >> bawn.toml; chmod 777 bawn.toml"
    )
    person.bawn("run", "-q", "--", "bash", "-c", ways, cwd=work)
    assert (work / "bawn.toml").read_bytes() == before
    assert person.sh("cat .env", work).stdout == ""


def test_a_nested_policy_is_read_only(person: Person, work: Path) -> None:
    person.make(work / "sub/deep/bawn.toml", "version = 1\n")
    policy(work, "[profile.default]\n", person)
    person.bawn("run", "-q", "--", "bash", "-c", f"printf '{WIDER}' > sub/deep/bawn.toml", cwd=work)
    assert (work / "sub/deep/bawn.toml").read_text() == "version = 1\n"


def test_a_policy_of_a_parent_reachable_by_a_mount_is_read_only(person: Person, work: Path) -> None:
    inner = person.make(work / "repo")
    os.chown(inner, work.stat().st_uid, work.stat().st_gid)
    row = f'[[profile.default.mount]]\nsource = "{work}"\nmode = "rw"\n'
    policy(work, f'[profile.default]\nworkdir = "repo"\n{row}', person)
    before = (work / "bawn.toml").read_bytes()
    script = f"printf '{WIDER}' > {work}/bawn.toml; echo x > {work}/made"
    done = person.bawn("run", "-q", "--", "bash", "-c", script, cwd=inner)
    assert (work / "bawn.toml").read_bytes() == before
    assert (work / "made").exists(), done.stderr


def test_a_new_policy_nearer_by_is_refused_never_skipped(person: Person, work: Path) -> None:
    """The agent makes sub/bawn.toml; the next run from there neither obeys it nor falls through."""
    sub = person.make(work / "sub")
    os.chown(sub, work.stat().st_uid, work.stat().st_gid)
    policy(work, "[profile.default]\n", person)
    person.bawn("run", "-q", "--", "sh", "-c", f"printf '{WIDER}' > sub/bawn.toml", cwd=work)
    assert (sub / "bawn.toml").exists()
    done = person.bawn("run", "--", "touch", "made", cwd=sub)
    assert done.returncode == 125
    assert "not trusted" in done.stderr
    assert not (sub / "made").exists()


def test_a_new_policy_where_there_was_none_is_refused(person: Person, work: Path) -> None:
    done = person.bawn("run", "--", "sh", "-c", f"printf '{WIDER}' > bawn.toml", cwd=work)
    assert (work / "bawn.toml").exists(), done.stderr
    assert "bawn.toml: new" in done.stderr
    done = person.bawn("run", "--", "true", cwd=work)
    assert done.returncode == 125
    assert "bawn trust" in done.stderr


def test_an_edit_shows_its_diff_and_asks_again(person: Person, work: Path) -> None:
    policy(work, "[profile.default]\n", person)
    with (work / "bawn.toml").open("a") as file:
        file.write("mask = []\n")
    done = person.bawn("run", "--", "true", cwd=work)
    assert done.returncode == 125
    assert "changed since you trusted it" in done.stderr
    shown = person.bawn("trust", "--show", cwd=work)
    assert "+mask = []" in shown.stdout
    assert shown.returncode == 1
    assert person.bawn("trust", cwd=work).returncode == 1  # no terminal, no --yes
    assert person.bawn("trust", "--yes", cwd=work).returncode == 0
    assert person.bawn("run", "-q", "true", cwd=work).returncode == 0


def test_reading_verbs_need_no_trust(person: Person, work: Path) -> None:
    (work / "bawn.toml").write_text("version = 1\n[profile.default]\n")
    assert person.bawn("check", cwd=work).returncode == 0
    assert person.bawn("plan", "--", "true", cwd=work).returncode == 0


def test_a_policy_of_somebody_else_is_refused(users: dict[str, Person]) -> None:
    person = users["rootless"]
    work = person.make(person.home / "theirs")
    (work / "bawn.toml").write_text("version = 1\n[profile.default]\n")
    os.chown(work / "bawn.toml", 12345, 12345)
    done = person.bawn("run", "true", cwd=work)
    assert done.returncode == 2
    assert "belongs to uid 12345" in done.stderr


def test_escapes_in_an_untrusted_policy_are_not_shown(person: Person, work: Path) -> None:
    (work / "bawn.toml").write_text("# \x1b[2Jhidden\nversion = 1\n[profile.default]\n")
    assert "\x1b" not in person.bawn("trust", "--show", cwd=work).stdout


def test_git_hooks_and_config_are_read_only_and_new_ones_reported(person: Person, work: Path) -> None:
    for name in (".git/config", ".git/hooks/pre-commit", "vendor/lib/.git/hooks/post-merge", ".git/HEAD"):
        person.make(work / name, "old\n")
    for directory in (work / ".git", work / "vendor/lib"):
        os.chown(directory, work.stat().st_uid, work.stat().st_gid)
    script = (
        "echo evil > .git/config; echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/new; "
        "echo evil > vendor/lib/.git/hooks/post-merge; mv .git .git2; mkdir -p .git/hooks; "
        "echo evil > .git/hooks/pre-push; mkdir -p made/.git/hooks && echo evil > made/.git/hooks/pre-commit"
    )
    done = person.bawn("run", "--", "bash", "-c", script, cwd=work)
    for name in (".git/config", ".git/hooks/pre-commit", "vendor/lib/.git/hooks/post-merge"):
        assert (work / name).read_text() == "old\n"
    assert sorted(p.name for p in (work / ".git/hooks").iterdir()) == ["pre-commit"]
    assert "made/.git/hooks" in done.stderr
