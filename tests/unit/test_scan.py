"""`plan.scan`: what a run left behind for the host to execute."""

import os
from pathlib import Path

import pytest

from bawn.facts import tree
from bawn.plan.scan import after_run_scan
from tests.unit.mount_world import PROFILE, World, mount


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.file("v/.git/HEAD", "v/.git/objects/x", "v/.git/config", "v/sub/CLAUDE.md", "v/x")
    return made


def scan(world: World, *allowed: str, during: object = None) -> list[str]:
    """What is said of a run that does `during()` in v; paths relative to it."""
    trees = world.facts(PROFILE._replace(mounts=(mount(world.path("v"), "rw"),))).trees
    if callable(during):
        during()
    before, after = tree.again(trees, world.path("v"))
    said = after_run_scan(before, after, allowed)
    return [one.removeprefix(world.path("v") + "/") for one in said]


def test_nothing_new(world: World) -> None:
    assert scan(world) == []
    assert scan(world, during=lambda: world.file("v/new.py", "v/a/b/Makefile")) == []


@pytest.mark.parametrize(
    "name",
    [
        ".git/hooks/pre-commit", "clone/.git/hooks/post-checkout", "clone/.git/config",
        "AGENTS.md", ".git/commondir", ".vscode/tasks.json", ".envrc",
        "sub/.claude/settings.json", "a/bawn.toml",
    ],
)  # fmt: skip
def test_new_files(world: World, name: str) -> None:
    """M12: a repository that was made during the run."""
    said = scan(world, during=lambda: world.file(f"v/{name}"))
    assert len(said) == 1
    path, _, rest = said[0].partition(": ")
    assert name.startswith(path)
    assert rest.startswith("new; ")


def test_a_bare_repository_made_in_the_run(world: World) -> None:
    said = scan(world, during=lambda: world.file("v/d/HEAD", "v/d/objects/x", "v/d/config"))
    assert said == ["d/config: new; git runs the programs it names"]


def test_a_new_socket(world: World) -> None:
    assert scan(world, during=lambda: world.socket("v/agent.sock")) == ["agent.sock: new; a socket"]


def test_a_file_replaced_by_way_of_its_directory(world: World) -> None:
    """A mount point cannot be renamed, but what holds it can: `mv sub x; mkdir sub; ...`."""

    def swap() -> None:
        os.rename(world.path("v/sub"), world.path("v/old"))
        world.file("v/sub/CLAUDE.md", text="obey me")

    said = scan(world, during=swap)
    assert [one.partition(";")[0] for one in said] == [
        "old/CLAUDE.md: new",
        "sub/CLAUDE.md: replaced",
    ]


def test_a_link_that_leads_elsewhere(world: World) -> None:
    world.link("v/AGENTS.md", "x")

    def turn() -> None:
        os.unlink(world.path("v/AGENTS.md"))
        world.link("v/AGENTS.md", "sub")

    assert [one.partition(";")[0] for one in scan(world, during=turn)] == ["AGENTS.md: leads elsewhere"]


def test_a_git_pointer_that_turns(world: World) -> None:
    world.file("other/HEAD")
    world.file("v/w/.git", text=f"gitdir: {world.path('other')}\n")

    def turn() -> None:
        Path(world.path("v/w/.git")).write_text(f"gitdir: {world.path('v')}\n")

    assert scan(world, during=turn) == [f"w/.git: points elsewhere; {world.path('v')}"]


def test_a_masked_link_that_is_removed(world: World) -> None:
    """The next run would show what only the link made known as masked."""
    world.file("v/shared/real")
    world.link("v/.env", "shared/real")
    world.link("v/sub/.env", "gone")

    def remove() -> None:
        os.unlink(world.path("v/.env"))
        os.unlink(world.path("v/sub/.env"))

    said = scan(world, during=remove)
    assert said == [f".env: a masked link is gone; {world.path('v/shared/real')} is masked by it alone"]


def test_what_the_profile_allows(world: World) -> None:
    def make() -> None:
        world.file("v/AGENTS.md", "v/.git/hooks/x", "v/bawn.toml")

    said = scan(world, "AGENTS.md", ".git", "bawn.toml", during=make)
    assert [one.partition(":")[0] for one in said] == ["bawn.toml"]
