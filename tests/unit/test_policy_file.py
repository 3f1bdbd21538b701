"""Which policy counts, and which may not be believed."""

import os
import stat
from pathlib import Path

import pytest

from bawn.digest import sha256_hex
from bawn.errors import PolicyError, UsageError
from bawn.facts.policy_file import LIMIT, Found, check, find

TEXT = "version = 1\n[profile.default]\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "src" / "shop" / "lib").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    return tmp_path.resolve() / "home"


def put(folder: Path, text: str = TEXT, mode: int = 0o644) -> Path:
    path = folder / "bawn.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def seek(start: Path, explicit: str | None = None) -> Found | None:
    config = start
    while config.name != "home":
        config = config.parent
    return find(str(start), str(config.parent / "config"), explicit)


def refused(start: Path, explicit: str | None = None) -> str:
    with pytest.raises(PolicyError) as caught:
        seek(start, explicit)
    return "\n".join(caught.value.diagnostics())


def test_none(home: Path) -> None:
    assert seek(home / "src") is None


def test_the_nearest_counts(home: Path) -> None:
    outer, inner = put(home / "src"), put(home / "src/shop", TEXT + "# inner\n")
    put(home.parent / "config")
    assert seek(home / "src/shop/lib") == Found(str(inner), inner.read_bytes())
    assert seek(home / "src") == Found(str(outer), TEXT.encode())


def test_your_own_counts_last(home: Path) -> None:
    own = put(home.parent / "config")
    assert seek(home) == Found(str(own), TEXT.encode())


def test_the_hash_is_of_the_bytes_that_were_read(home: Path) -> None:
    path = put(home)
    found = seek(home)
    assert found
    path.write_text("version = 1\n[profile.other]\n")
    assert found.text == TEXT
    assert found.sha256 == sha256_hex(TEXT.encode())


def test_no_variable_names_a_policy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAWN_POLICY", str(put(home.parent)))
    (home.parent / "bawn.toml").rename(home.parent / "x.toml")
    assert seek(home) is None


def test_an_explicit_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home)
    (home / "other.toml").write_text(TEXT)
    found = seek(home / "src", str(home / "other.toml"))
    assert found
    assert found.path == str(home / "other.toml")
    monkeypatch.chdir(home)
    assert seek(home / "src", "other.toml") == found
    with pytest.raises(UsageError, match="no policy file"):
        seek(home, str(home / "missing.toml"))


def test_a_directory_reached_through_a_link_is_no_second_policy(home: Path) -> None:
    path = put(home / "src")
    (home / "link").symlink_to("src")
    assert seek(home / "link") == Found(str(path), TEXT.encode())
    assert seek(home, str(home / "link" / "bawn.toml")) == Found(str(path), TEXT.encode())


def test_a_policy_that_is_a_link_says_so(home: Path) -> None:
    path = put(home / "src/shop")
    (home / "bawn.toml").symlink_to(path)
    link = str(home / "bawn.toml")
    assert seek(home) == Found(str(path), TEXT.encode(), link)
    assert seek(home, link) == Found(str(path), TEXT.encode(), link)
    found = seek(home)
    assert found
    assert found.name == link


def test_a_dangling_link_is_not_skipped(home: Path) -> None:
    put(home / "src")
    (home / "src/shop/bawn.toml").symlink_to("/nonexistent/bawn.toml")
    assert "cannot read the policy" in refused(home / "src/shop")


def test_a_directory_named_so_is_not_skipped(home: Path) -> None:
    put(home / "src")
    (home / "src/shop/bawn.toml").mkdir()
    assert "not a regular file" in refused(home / "src/shop")


def test_a_fifo_does_not_hang(home: Path) -> None:
    os.mkfifo(home / "bawn.toml")
    assert "not a regular file" in refused(home)


def test_a_device_is_no_policy(home: Path) -> None:
    assert "not a regular file" in refused(home, "/dev/null")


def test_too_large(home: Path) -> None:
    put(home, "#" * (LIMIT + 1))
    assert "larger than" in refused(home)
    put(home, "#" * LIMIT)
    assert seek(home)


def test_not_utf_8(home: Path) -> None:
    (home / "bawn.toml").write_bytes(b"version = 1\n# \xff\n")
    found = seek(home)
    assert found
    with pytest.raises(PolicyError, match=r"bawn\.toml:2: not UTF-8"):
        _ = found.text


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_unreadable_is_not_skipped(home: Path) -> None:
    put(home)
    put(home / "src", mode=0)
    assert "cannot read the policy" in refused(home / "src")


def test_where_it_cannot_be_seen_it_is_not_skipped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(home)
    lstat = os.lstat

    def barred(path: str) -> os.stat_result:
        if str(path) == str(home / "src/bawn.toml"):
            raise PermissionError(13, "Permission denied")
        return lstat(path)

    monkeypatch.setattr(os, "lstat", barred)
    said = refused(home / "src/shop")
    assert "cannot see whether there is a policy" in said
    assert "--policy" in said


def test_a_file_that_anybody_can_write(home: Path) -> None:
    path = put(home, mode=0o646)
    said = refused(home)
    assert "mode 0646" in said
    assert f"chmod o-w {path}" in said


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_directory_that_anybody_can_write(home: Path, mode: int) -> None:
    put(home / "src")
    (home / "src").chmod(mode)
    said = refused(home / "src")
    assert f"mode {mode:04o}" in said
    assert f"chmod o-w {home}/src" in said


def about(uid: int, mode: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, uid, uid, 0, 0, 0, 0))


FILE, FOLDER = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755


@pytest.mark.parametrize(
    ("me", "sudo", "owner", "folder", "believed"),
    [
        (1000, "", 1000, 1000, True),
        (1000, "", 0, 0, True),
        (1000, "", 1001, 1000, False),
        (1000, "", 1001, 1001, False),
        (1000, "1001", 1001, 1001, False),  # anybody can set the variable
        (0, "", 0, 0, True),
        (0, "", 1000, 1000, True),  # root in a person's directory acts for that person
        (0, "", 1000, 0, False),
        (0, "1000", 1000, 0, True),
        (0, "1000", 1001, 0, False),
        (0, "x", 1001, 0, False),
    ],
)
def test_owners(
    monkeypatch: pytest.MonkeyPatch, me: int, sudo: str, owner: int, folder: int, believed: bool
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: me)
    monkeypatch.setenv("SUDO_UID", sudo)
    if believed:
        check("/p/bawn.toml", about(owner, FILE), about(folder, FOLDER))
        return
    with pytest.raises(PolicyError, match=f"belongs to uid {owner}, not to you"):
        check("/p/bawn.toml", about(owner, FILE), about(folder, FOLDER))
