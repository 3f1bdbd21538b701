"""Masked names are never read: there at the start, behind links, made later, or replaced by a save."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.system.conftest import Person, policy

pytestmark = pytest.mark.system

READ = "for i in $(seq 12); do cat {names} 2>/dev/null; sleep 0.2; done; echo end"


def test_what_is_there_at_the_start(person: Person, work: Path) -> None:
    names = [".env", ".env.local", "deep/er/.env", "deep/.env.d/key"]
    for name in names:
        person.make(work / name, "SECRET")
    done = person.sh(
        f"cat {' '.join(names)}; grep -r SECRET . ; cp .env x; cat x; mv .env y; cat y; ln .env z; cat z; "
        "mv deep moved; cat moved/er/.env; find . -name '.env*' -exec cat {} +; echo end",
        work,
    )
    assert done.stdout == "end\n", done.stderr
    assert (work / ".env").read_text() == "SECRET"


def test_an_existing_mask_is_an_empty_read_only_file(person: Person, work: Path) -> None:
    (work / ".env").write_text("SECRET")
    done = person.sh("test -f .env && wc -c < .env; echo x > .env; rm -f .env", work)
    assert done.stdout.strip() == "0"
    assert (work / ".env").read_text() == "SECRET"


def test_a_masked_link_hides_its_target(person: Person, work: Path) -> None:
    person.make(work / "shared/settings", "SECRET")
    (work / ".env").symlink_to("shared/settings")
    (work / ".env.gone").symlink_to("nowhere")
    (work / ".env.out").symlink_to("/etc/hostname")
    done = person.sh("cat .env shared/settings .env.gone .env.out; echo end", work)
    assert done.stdout == "end\n", done.stderr


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_name_that_appears_later(person: Person, work: Path, mode: str) -> None:
    """Made, or replaced by an atomic save, on the host, while the box reads without a pause."""
    person.make(work / "sub/x", "")
    (work / ".env").write_text("SECRET-old")
    policy(work, f'[profile.default]\nworkdir_mode = "{mode}"\n', person)
    names = ".env sub/.env .env.late new/.env"
    child = person.start("run", "-q", "--", "sh", "-c", READ.format(names=names), cwd=work)
    time.sleep(1)
    (work / "sub/.env").write_text("SECRET-late")
    (work / ".env.late").write_text("SECRET-late")
    (work / ".save").write_text("SECRET-new")
    os.rename(work / ".save", work / ".env")
    (work / "new").mkdir()
    (work / "new/.env").write_text("SECRET-dir")
    out, err = child.communicate(timeout=60)
    assert out == "end\n", err


def test_a_name_that_is_removed_and_made_again(person: Person, work: Path) -> None:
    (work / ".env").write_text("SECRET-old")
    child = person.start("run", "-q", "--", "sh", "-c", READ.format(names=".env"), cwd=work)
    time.sleep(1)
    (work / ".env").unlink()
    time.sleep(0.5)
    (work / ".env").write_text("SECRET-new")
    out, err = child.communicate(timeout=60)
    assert out == "end\n", err


def test_the_box_cannot_rename_a_late_secret_into_view(person: Person, work: Path) -> None:
    script = (
        "for i in $(seq 12); do mv .env shown; ln .env hard; cp .env copy; ln -s .env sym; "
        "cat shown hard copy sym; sleep 0.2; done 2>/dev/null; echo end"
    )
    child = person.start("run", "-q", "--", "sh", "-c", script, cwd=work)
    time.sleep(1)
    (work / ".env").write_text("SECRET")
    out, err = child.communicate(timeout=60)
    assert out == "end\n", err


def test_a_path_pattern_hides_that_path_only(person: Person, work: Path) -> None:
    for name in ("config/keys.txt", "other/keys.txt"):
        person.make(work / name, name)
    policy(work, '[profile.default]\nmask = ["config/*.txt"]\n', person)
    child = person.start("run", "-q", "--", "sh", "-c", READ.format(names="config/late.txt"), cwd=work)
    time.sleep(1)
    (work / "config/late.txt").write_text("SECRET")
    assert child.communicate(timeout=60)[0] == "end\n"
    done = person.sh("cat config/keys.txt other/keys.txt", work)
    assert done.stdout == "other/keys.txt"


def test_an_empty_list_switches_masks_off(person: Person, work: Path) -> None:
    (work / ".env").write_text("plain")
    policy(work, "[profile.default]\nmask = []\n", person)
    assert person.sh("cat .env", work).stdout == "plain"


def test_masks_cost_no_function(person: Person, work: Path) -> None:
    """With the file opens checked by name, everything else works as ever."""
    script = (
        "mkdir -p a/b && for i in $(seq 200); do echo $i > a/b/f$i; done && cat a/b/* | wc -l && "
        "mv a c && ls c/b | wc -l && rm -r c && ln -s x l && readlink l && ls -la >/dev/null && echo ok"
    )
    done = person.sh(script, work)
    assert done.stdout.split() == ["200", "200", "x", "ok"], done.stderr


def test_a_late_name_very_deep_down(person: Person, work: Path) -> None:
    """Deeper than any bound that a check might have."""
    script = (
        "import os, time\nfor _ in range(600): os.mkdir('d'); os.chdir('d')\nprint('down', flush=True)\n"
        "for _ in range(20):\n  time.sleep(0.1)\n  try: print(open('.env').read(), flush=True)\n"
        "  except OSError: pass\nprint('end')"
    )
    child = person.start("run", "-q", "--", "python3", "-c", script, cwd=work)
    assert child.stdout is not None
    assert child.stdout.readline() == "down\n"
    at = os.open(work, os.O_RDONLY)
    for _ in range(600):
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    secret = os.open(".env", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=at)
    os.write(secret, b"SECRET")
    os.close(secret)
    os.close(at)
    assert child.communicate(timeout=30)[0] == "end\n"
    subprocess.run(["rm", "-rf", work / "d"], check=True)
