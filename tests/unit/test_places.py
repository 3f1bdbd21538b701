"""`policy.lines.with_line`: a finding's place gets its line when it is shown."""

import pytest

from bawn.policy.lines import with_line

TEXT = """version = 1
[profile.b]
workdir = "."

[[profile.b.mount]]
source = "/a"
[[profile.b.mount]]
source = "/b"
write = ["x y"]
"""


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("bawn.toml profile.b.mount[1]", "bawn.toml:7 profile.b.mount[1]"),
        ("bawn.toml profile.b.mount[1] write 'x y'", "bawn.toml:7 profile.b.mount[1] write 'x y'"),
        ("bawn.toml profile.b.mount[0].source", "bawn.toml:6 profile.b.mount[0].source"),
        ("bawn.toml profile.b.workdir", "bawn.toml:3 profile.b.workdir"),
        ("bawn.toml profile.b.git_links", "bawn.toml:2 profile.b.git_links"),
        ("/p/bawn.toml profile.b", "/p/bawn.toml:2 profile.b"),
        ("/other/bawn.toml profile.b", "/other/bawn.toml profile.b"),
        ("/v/my profile.b x", "/v/my profile.b x"),
        ("engine docker", "engine docker"),
    ],
)
def test_places(place: str, shown: str) -> None:
    assert with_line(place, TEXT, "/p/bawn.toml") == shown
