"""The guard, on real files: every case of class U of the corpus by its number, and each rule."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bawn.effects.outbound import guard as guard_module
from bawn.effects.outbound.openat2 import openat2
from bawn.effects.outbound.stage import Stage
from bawn.errors import PolicyError
from bawn.outbound.extract import MAX_CANDIDATES
from tests.unit.outbound_world import SECRET, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.mark.parametrize(
    "form", ["{}", '"{}"', "`{}`", "MEDIA:{}", "MEDIA:`{}`", "[x]({})", "file://{}", "({})"]
)
def test_u01_a_path_outside_in_every_form(world: World, form: str) -> None:
    for path in (world.outside / "secret.md", "/etc/passwd"):
        verdict = world.one(form.format(path))
        assert not verdict.allowed and verdict.rule == "BWN901"
        assert verdict.asked.removeprefix("file://") == str(path)
    assert world.one(form.format(world.vault / "a.md")).rule == "BWN900"


def test_u03_the_final_list_of_uploads_is_judged_too(world: World) -> None:
    data = {"reply": "nothing here", "uploads": [str(world.outside / "secret.md"), str(world.vault / "a.md")]}
    assert [(one.rule, one.where) for one in world.verdicts(data)] == [
        ("BWN901", "uploads[0]"),
        ("BWN900", "uploads[1]"),
    ]
    hidden = {"reply": "clean", "stream": [{"tool": {"output": f"MEDIA:{world.outside}/secret.md"}}]}
    assert world.one(hidden).rule == "BWN901"


def test_u04_every_carrier_of_a_task(world: World) -> None:
    secret = str(world.outside / "secret.md")
    for data in (
        {"summary": f"done: {secret}"},
        {"result": f"done: {secret}"},
        {"artifacts": [secret]},
        {"artifacts": secret},
        {"metadata": {"artifacts": secret}},
        {"metadata": {"artifacts": [{"path": secret}]}},
    ):
        assert world.one(data).rule == "BWN901", data
    world.write(world.vault / ".work/state.json")
    guard = world.guard('deny = [".work"]')
    assert world.one({"artifacts": [f"{world.vault}/.work/state.json"]}, guard).rule == "BWN910"


def test_u06_deny_wins_inside_a_root(world: World) -> None:
    names = [".env", ".env.local", ".git/config", "sub/.git/a.md", "credentials.json", "sub/.ENV"]
    for name in names:
        world.write(world.vault / name)
        assert world.one(f"MEDIA:{world.vault}/{name}").rule == "BWN910", name
    for name in ("tokenizer.json", "sub/environment.md", "gitignore.md"):
        world.write(world.vault / name)
        assert world.one(f"{world.vault}/{name}").rule == "BWN900", name


@pytest.mark.parametrize("root", ["/", "~", "/proc", "/dev/shm", "~/.local/state"])
def test_u06_a_root_that_is_everything_is_an_error(world: World, root: str) -> None:
    with pytest.raises(PolicyError) as caught:
        world.guard(roots=f'"{root}"')
    assert "outbound.roots[0]" in caught.value.problems[0]
    assert "bawn.toml:5" in caught.value.problems[0]


def test_u06_the_same_by_another_name(world: World) -> None:
    """Only the machine knows: the home, what holds it, and what holds bawn's own files."""
    (world.top / "link").symlink_to(world.home)
    (world.home / "state/deep").mkdir()
    (world.home / ".ssh").mkdir()
    for root in (world.home, world.top, world.top / "link", world.home / "state", world.home / "state/deep",
                 world.home / ".ssh"):  # fmt: skip
        with pytest.raises(PolicyError) as caught:
            world.guard(roots=f'"{root}"')
        assert "outbound.roots[0]" in caught.value.problems[0] and "fix:" in caught.value.problems[0]
    for root, words in ((world.top / "none", "no such directory"), (world.vault / "a.md", "not a directory")):
        with pytest.raises(PolicyError) as caught:
            world.guard(roots=f'"{root}"')
        assert words in caught.value.problems[0]


def test_u06_masks_hold_on_the_host_path(world: World) -> None:
    """A mask of any profile's mount, though the file has another name in no box."""
    world.write(world.vault / "private/plan.md")
    world.write(world.vault / "key.pem.md")
    profile = f'workdir = "{world.vault}"\nmask = ["private", "*.pem.md"]'
    guard = world.guard(profile=profile)
    text = f"{world.vault}/private/plan.md and {world.vault}/key.pem.md and {world.vault}/a.md"
    assert [one.rule for one in world.verdicts(text, guard)] == ["BWN911", "BWN911", "BWN900"]
    mount = f'workdir = "/usr"\n[[profile.default.mount]]\nsource = "{world.home}/vault/sub"\nmask = ["b.*"]'
    assert world.one(f"{world.vault}/sub/b.md", world.guard(profile=mount)).rule == "BWN911"


def test_u06_the_mask_of_a_link_masks_its_target(world: World) -> None:
    world.write(world.vault / "real-secrets.md")
    (world.vault / ".env").symlink_to("real-secrets.md")
    assert world.one(f"{world.vault}/real-secrets.md").rule == "BWN911"
    assert world.one(f"MEDIA:{world.vault}/.env").rule == "BWN910"


def test_u06_keys_inside_a_root(world: World) -> None:
    world.write(world.home / ".config/gh/hosts.md")
    world.write(world.home / ".config/app/a.md")
    with pytest.raises(PolicyError):
        world.guard(roots='"~/.config"')
    world.write(world.home / "vault/x/.netrc")
    guard = world.guard(roots=f'"{world.home}/.config/app"')
    assert world.one(f"{world.home}/.config/app/a.md", guard).rule == "BWN900"


def test_u06_a_refused_place_below_a_root(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from bawn.effects.outbound.load import load
    from bawn.policy.parse import parse_policy

    world.write(world.vault / "gpg/key.md")
    text = f'version = 1\n[profile.default]\n[outbound]\nroots = ["{world.vault}"]\n'
    policy = parse_policy(text, "")
    guard = load(policy, world.own, text, str(world.top), {"GNUPGHOME": f"{world.vault}/gpg"})
    assert world.one(f"{world.vault}/gpg/key.md", guard).rule == "BWN912"


@pytest.mark.parametrize("name", ["vault-evil", "vault.bak", "vaultx", "vault evil"])
def test_u07_a_prefix_is_not_a_root(world: World, name: str) -> None:
    path = world.write(world.home / name / "a.md", SECRET)
    for roots in (f'"{world.vault}"', f'"{world.vault}/"'):
        guard = world.guard(roots=roots)
        assert world.one([str(path)], guard).rule == "BWN901"


def links(world: World) -> Iterator[tuple[str, str]]:
    """(path below the vault, the rule it must have)."""
    vault, outside = world.vault, world.outside
    (outside / "back").symlink_to(vault / "a.md")
    (outside / "dir").mkdir()
    world.write(outside / "dir/x.md", SECRET)
    for name, target, rule, rest in (
        ("out.md", str(outside / "secret.md"), "BWN931", ""),
        ("relative.md", "../../outside/secret.md", "BWN931", ""),
        ("outdir", str(outside / "dir"), "BWN931", "/x.md"),
        ("chain.md", "out.md", "BWN931", ""),
        ("there-and-back.md", str(outside / "back"), "BWN931", ""),
        ("in.md", "a.md", "BWN900", ""),
        ("absolute.md", str(vault / "a.md"), "BWN900", ""),
        ("indir", "sub", "BWN900", "/b.md"),
        ("up.md", "sub/../a.md", "BWN900", ""),
        ("chain-in.md", "absolute.md", "BWN900", ""),
        ("out-and-in.md", f"../{vault.name}/a.md", "BWN900", ""),
        ("dangling.md", "nowhere", "BWN930", ""),
        ("circle.md", "circle.md", "BWN931", ""),
        ("zero.md", "/dev/zero", "BWN931", ""),
        ("proc.md", "/proc/self/environ", "BWN931", ""),
        ("through.md", "a.md/../sub/b.md", "BWN930", ""),
        ("denied.md", ".env", "BWN910", ""),
    ):
        (vault / name).symlink_to(target)
        yield f"{name}{rest}", rule
    world.write(vault / ".env")


def test_u08_links(world: World) -> None:
    expected = dict(links(world))
    found = {
        one.asked.removeprefix(f"{world.vault}/"): one.rule
        for one in world.verdicts([f"{world.vault}/{name}" for name in expected])
    }
    assert found == expected


def test_u08_dots_behind_a_link_mean_what_the_kernel_says(world: World) -> None:
    world.write(world.vault / "d1/d2/x.md")
    world.write(world.vault / "d1/a.md", b"the other")
    (world.vault / "link").symlink_to("d1/d2")
    verdict = world.one([f"{world.vault}/link/../a.md"])
    assert verdict.path == f"{world.vault}/d1/a.md"


def test_u08_from_one_root_into_the_other(world: World) -> None:
    world.write(world.home / "second/c.md")
    (world.vault / "c.md").symlink_to(world.home / "second/c.md")
    guard = world.guard(roots=f'"{world.vault}", "{world.home}/second"')
    assert world.one(f"{world.vault}/c.md", guard).path == f"{world.home}/second/c.md"


def test_u10_hard_links(world: World) -> None:
    os.link(world.outside / "secret.md", world.vault / "hard.md")
    verdict = world.one(f"{world.vault}/hard.md")
    assert verdict.rule == "BWN933" and "2 hard links" in verdict.reason


def test_u12_decoded_exactly_once(world: World) -> None:
    world.write(world.vault / "報.md")
    world.write(world.outside.parent / "home/secret", SECRET)
    vault = world.vault
    for text, rule in (
        (f"file://{vault}/%252e%252e/secret", "BWN930"),
        (f"file://{vault}/%2e%2e/secret", "BWN901"),
        (f"file://{vault}/%E5%A0%B1.md", "BWN900"),
        (f"file://localhost{vault}/a.md", "BWN900"),
        (f"file://host{vault}/a.md", "BWN922"),
        (f"MEDIA:{vault}/%2e%2e/secret", "BWN930"),
        (f"file://{vault}/a.md%00.png", "BWN923"),
    ):
        assert world.one(text).rule == rule, text


ENDINGS = ("{}（782 KB）", "({}).", "**{}**", "[x]({})", "<file://{}>", "{}。", "「{}」", "{}, and", "{}!")


def test_u14_what_follows_a_path(world: World) -> None:
    for name in ("報告.pdf", "a.md"):
        path = world.write(world.vault / name)
        other = world.write(world.outside / name, SECRET)
        for form in ENDINGS:
            if "file:" in form and not name.isascii():
                continue
            assert world.one(form.format(path)).path == str(path), form
            verdict = world.one(form.format(other))
            assert (verdict.rule, verdict.asked.removeprefix("file://")) == ("BWN901", str(other)), form


def test_u16_a_root_that_is_a_link(world: World) -> None:
    data = world.top / "data/v"
    world.write(data / "a.md")
    (world.home / "notes").symlink_to(data)
    guard = world.guard(roots='"~/notes"')
    texts = [f"{world.home}/notes/a.md", "~/notes/a.md", f"{data}/a.md"]
    found = [one for text in texts for one in guard.files(text)]
    for _, fd in found:
        os.close(fd)
    assert [verdict.rule for verdict, _ in found] == ["BWN900"] * 3
    assert guard.drifted() == []
    (world.home / "notes").unlink()
    (world.home / "notes").symlink_to(world.outside)
    assert guard.drifted() == ["~/notes"]
    assert [one.rule for one in world.verdicts(" ".join(texts), guard)] == ["BWN903"] * 3


def test_u16_a_root_that_was_replaced(world: World) -> None:
    guard = world.guard()
    world.vault.rename(world.home / "old")
    world.vault.mkdir()
    world.write(world.vault / "a.md", SECRET)
    assert world.one(f"{world.vault}/a.md", guard).rule == "BWN903"


def test_u17_what_is_no_regular_file(world: World) -> None:
    os.mkfifo(world.vault / "fifo.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(world.vault / "socket.md"))
        with open(world.vault / "huge.md", "wb") as file:
            file.truncate(10 << 30)
        (world.vault / "zero.md").symlink_to("/dev/zero")
        expected = {
            "fifo.md": "BWN932", "socket.md": "BWN932", "sub": "BWN932", "huge.md": "BWN934",
            "zero.md": "BWN931", "": "BWN932",
        }  # fmt: skip
        found = world.verdicts([f"{world.vault}/{name}" for name in expected])
        assert [one.rule for one in found] == list(expected.values())
    kernel = ["/proc/self/environ", "/dev/zero", "/sys/x"]
    assert [one.rule for one in world.verdicts(kernel)] == ["BWN901"] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a device")
def test_u17_a_device(world: World) -> None:
    os.mknod(world.vault / "zero.md", 0o666 | 0o020000, os.makedev(1, 5))
    assert world.one(f"{world.vault}/zero.md").rule == "BWN932"


def test_u17_a_growing_file(world: World) -> None:
    path = world.write(world.vault / "log.md", b"x" * 100)
    stage = Stage(str(world.home / "state"))
    with world.guard("max_size = 150") as guard:
        for more in (b"y" * 10, b"y" * 1000):
            for verdict, fd in guard.files(str(path)):
                assert verdict.allowed
                with open(path, "ab") as file:
                    file.write(more)
                row = stage.copy(verdict, fd, guard.max_size)
                os.close(fd)
                assert row.verdict.rule == "BWN937" and not row.path
    assert os.listdir(world.home / "state/outbound") == []


def test_u19_odd_spellings(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.vault)  # the working directory counts for nothing
    vault = world.vault
    for text, rule in (
        ("~/vault/a.md", "BWN900"),
        ("~root/.ssh/id", "BWN921"),
        ("$HOME/vault/a.md", "BWN921"),
        ("../secret", "BWN920"),
        ("a.md", "BWN920"),
        ("./a.md", "BWN920"),
        (f"{vault}/../../outside/secret.md", "BWN901"),
        (f"{vault}/../vault/a.md", "BWN900"),
        (f"{vault}/sub/../a.md", "BWN900"),
        (f"/tmp/../{vault}/a.md", "BWN900"),
        (f"{vault}//a.md", "BWN900"),
        (f"/{vault}/./a.md", "BWN900"),
        (f"{vault}/a.md/", "BWN900"),
        ("C:\\vault\\a.md", "BWN921"),
        (f"{vault}/a\0.md", "BWN923"),
        (f"{vault}/a\n.md", "BWN923"),
        (f"{vault}/\udcff.md", "BWN923"),
        (f"{vault}/" + "x" * 300, "BWN923"),
        (f"{vault}/" + "x/" * 3000, "BWN923"),
        (f"{vault}/" + "../" * 40 + "etc/passwd", "BWN901"),
        (str(vault), "BWN932"),
        ("", "BWN920"),
    ):
        assert world.one([text]).rule == rule, text


def test_u20_the_others_still_go(world: World) -> None:
    text = f"{world.vault}/a.md, {world.outside}/secret.md and {world.vault}/sub/b.md"
    found = world.verdicts(text)
    assert [one.rule for one in found] == ["BWN900", "BWN901", "BWN900"]
    named = found[1].as_data()
    assert "secret.md" in named["reason"]
    hidden = found[1].as_data(hide=True)
    assert "secret" not in str(hidden) and hidden["rule"] == "BWN901"
    assert found[0].as_data(hide=True) == found[0].as_data()


def test_no_roots_means_nothing_leaves(world: World) -> None:
    guard = world.guard(roots=" ")
    assert world.one(f"{world.vault}/a.md", guard).rule == "BWN902"


def test_what_is_but_mentioned_has_no_verdict(world: World) -> None:
    text = f"type /help, look into {world.vault}/sub or {world.vault}/plans; and/or"
    assert world.verdicts(text) == []
    assert world.one(f"{world.vault}/missing.md").rule == "BWN930"
    assert world.one("the file is /etc/passwd").rule == "BWN901"
    world.write(world.vault / "Caddyfile")
    assert world.one(f"see {world.vault}/Caddyfile").rule == "BWN900"


def test_the_reading_that_exists_counts(world: World) -> None:
    for name in ("my report.md", "a(1).md", "報告（最終）.pdf", "it's.md", "a, b.md"):
        path = world.write(world.vault / name)
        found = [one.path for one in world.verdicts(f'see "{path}".') if one.allowed]
        assert found == [str(path)], name
    assert world.one(f"MEDIA:{world.vault}/my report.md here").path == f"{world.vault}/my report.md"


def test_no_openat2_no_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(guard_module, "openat2", lacking)
    assert world.one(f"{world.vault}/a.md").rule == "BWN939"


def test_what_cannot_be_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def barred(*_: object) -> int:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(guard_module, "openat2", barred)
    verdict = world.one(f"{world.vault}/a.md")
    assert verdict.rule == "BWN936" and "Permission denied" in verdict.reason


def test_another_file_system(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def crossing(*_: object) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(guard_module, "openat2", crossing)
    assert world.one(f"{world.vault}/a.md").rule == "BWN935"


def test_moved_out_while_it_was_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The descriptor's own path decides, whatever name it was opened by."""
    real = openat2

    def then_moved(directory: int, path: str, flags: int) -> int:
        fd = real(directory, path, flags)
        target = {"a.md": world.outside / "moved.md", "b.md": world.vault / ".env"}[os.path.basename(path)]
        os.rename(world.vault / path, target)
        return fd

    monkeypatch.setattr(guard_module, "openat2", then_moved)
    assert world.one(f"{world.vault}/a.md").rule == "BWN937"
    assert world.one(f"{world.vault}/sub/b.md").rule == "BWN910"


def test_removed_while_it_was_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = openat2

    def then_gone(directory: int, path: str, flags: int) -> int:
        fd = real(directory, path, flags)
        os.unlink(world.vault / path)
        return fd

    monkeypatch.setattr(guard_module, "openat2", then_gone)
    assert world.one(f"{world.vault}/a.md").rule == "BWN937"


def test_too_many(world: World) -> None:
    found = world.verdicts([f"{world.vault}/{n}.md" for n in range(MAX_CANDIDATES + 5)])
    assert len(found) == MAX_CANDIDATES + 1
    assert found[-1].rule == "BWN938"


def test_descriptors_are_closed(world: World) -> None:
    before = len(os.listdir("/proc/self/fd"))
    links_of = [f"{world.vault}/{name}" for name, _ in links(world)]
    world.verdicts([*links_of, f"{world.vault}/a.md", f"{world.vault}/sub", "/etc/passwd"])
    assert len(os.listdir("/proc/self/fd")) == before
