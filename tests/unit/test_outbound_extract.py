"""Text -> paths: every way a gateway finds one, and what is none. Hostile text takes linear time."""

import time

import pytest

from bawn.outbound.extract import MAX_CANDIDATES, extract
from bawn.outbound.structured import MAX_DEPTH, Unreadable, candidates


def readings(text: str) -> set[str]:
    return {reading for one in extract(text) for reading in one.readings}


@pytest.mark.parametrize(
    ("text", "path", "form"),
    [
        ("MEDIA:/v/a.md", "/v/a.md", "tag"),
        ("media: /v/a.md", "/v/a.md", "tag"),
        ("MEDIA:/v/my report.pdf and more", "/v/my report.pdf", "tag"),
        ("MEDIA:/v/Caddyfile", "/v/Caddyfile", "tag"),
        ("MEDIA:`/v/a b.md`", "/v/a b.md", "tag"),
        ("MEDIA: \"/v/a b.md\"", "/v/a b.md", "tag"),
        ("MEDIA:'~/a b.md'", "~/a b.md", "tag"),
        ("MEDIA:file:///v/a%20b.md", "/v/a b.md", "tag"),
        ("MEDIA:out/a.md", "out/a.md", "tag"),
        ("MEDIA:secret.txt", "secret.txt", "tag"),
        ("it is in /v/a.md", "/v/a.md", "bare"),
        ("it is in ~/v/a.md.", "~/v/a.md", "bare"),
        ("saved to:/v/a.md", "/v/a.md", "bare"),
        ("--out=/v/a.md", "/v/a.md", "bare"),
        ("/v/a.py:12:5", "/v/a.py", "bare"),
        ("see /v/my report.pdf", "/v/my report.pdf", "bare"),
        ('"/v/a b.md"', "/v/a b.md", "quoted"),
        ("`/v/a b.md`", "/v/a b.md", "code"),
        ("```\n/v/a.md\n```", "/v/a.md", "code"),
        ("(/v/a.md).", "/v/a.md", "quoted"),
        ("**/v/a.md**", "/v/a.md", "quoted"),
        ("_/v/a.md_", "/v/a.md", "quoted"),
        ("「/v/a b.md」", "/v/a b.md", "quoted"),
        ("[x](/v/a.md)", "/v/a.md", "link"),
        ("![x](/v/a (1).png)", "/v/a (1).png", "link"),
        ("[x](</v/a b.md>)", "/v/a b.md", "link"),
        ("[x](docs/a.md)", "docs/a.md", "link"),
        ("[x](../a.md)", "../a.md", "link"),
        ("[x](/v/a.md),[y](/v/b.md)", "/v/b.md", "link"),
        ("<file:///v/a.md>", "/v/a.md", "url"),
        ("file:/v/a.md", "/v/a.md", "url"),
        ("FILE://localhost/v/a", "/v/a", "url"),
        ("file:///v/%252e%252e/x", "/v/%2e%2e/x", "url"),
        ("file:///v/%E5%A0%B1.md", "/v/報.md", "url"),
        ("file:///v/a.md?x=1#y", "/v/a.md", "url"),
        ("/v/%2e%2e/x.md", "/v/%2e%2e/x.md", "bare"),
        ("/v/報告.pdf（782 KB）", "/v/報告.pdf", "bare"),
        ("/v/報告（最終）.pdf", "/v/報告（最終）.pdf", "bare"),
        ("文件在/v/報告.pdf里", "/v/報告.pdf", "bare"),
        ("報告は/v/a.md。", "/v/a.md", "bare"),
        ('{"p": "/v/a.md"}', "/v/a.md", "quoted"),
        ('"{\\"p\\": \\"/v/a.md\\"}"', "/v/a.md", "quoted"),
        ("/v/a.md…", "/v/a.md", "bare"),
        ("<img src='/v/a.png'/>", "/v/a.png", "quoted"),
        ("\u200b/v/a.md", "/v/a.md", "bare"),
    ],
)  # fmt: skip
def test_found(text: str, path: str, form: str) -> None:
    found = [one for one in extract(text) if path in one.readings]
    assert [one.form for one in found] == [form]
    assert not found[0].problem


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("~root/.ssh/id", "BWN921"),
        ("$HOME/x", "BWN921"),
        ("${HOME}/x.md", "BWN921"),
        ("C:\\x\\a.md", "BWN921"),
        ("d:/x/a.md", "BWN921"),
        ("file://host/v/a", "BWN922"),
        ("file:////host/v/a", ""),  # an absolute path, whatever a Windows reader makes of it
        ("file:///v/%ff.md", "BWN922"),
    ],
)
def test_found_as_what_cannot_be(text: str, rule: str) -> None:
    assert [one.problem for one in extract(text)] == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "https://a.test/b/c.md", "and/or, 1/2, w/o", "a relative ./b.md or ../c.md or d/e.md", "// comment",
        "[x](https://a.test/b.md) [y](#part) [z](mailto:a@b.test)", "MEDIA:https://a.test/a.png",
        "MEDIA:<path>", "use MEDIA: to send", "a / b", "", "~ 5 %", "s/a/b/",
        "\\\\host\\share\\a.md",
    ],
)  # fmt: skip
def test_nothing_found(text: str) -> None:
    assert extract(text) == []


@pytest.mark.parametrize(
    ("text", "claimed"),
    [("/help", False), ("/v/notes", False), ("/help me with a.md", False), ("/v/my report.pdf", True)],
)
def test_what_is_but_mentioned(text: str, claimed: bool) -> None:
    assert [one.claimed for one in extract(text)] == [claimed]


def test_each_path_once() -> None:
    assert len(extract("/v/a.md and /v/a.md, /v/a.md")) == 2  # the last two with what may follow


def test_both_in_one_pair_of_quotes() -> None:
    assert {"/v/a.md", "/etc/x.md"} <= readings('"/v/a.md and /etc/x.md"')


HOSTILE = {
    "slashes": "/" * 1_000_000,
    "commas": "/a," * 333_333,
    "apostrophes": "'/a " * 250_000,
    "corner brackets": "「/a " * 250_000,
    "tags": "MEDIA:" * 166_666,
    "tags of words": ("MEDIA:/a " + "b.c " * 10) * 20_000,
    "tags of a word": "MEDIA: a" * 125_000,
    "tags of lines": "MEDIA:\n" * 140_000,
    "schemes": "MEDIA:abcdefghijklmnopqrst" * 40_000,
    "links": "](" * 500_000,
    "a long link": "](/" + "a" * 1_000_000,
    "variables": "$A" * 500_000,
    "homes": "~a" * 500_000,
    "dots": "/a" + "." * 1_000_000,
    "brackets": "/a" + ")" * 1_000_000,
    "spaces": "/a" + " " * 1_000_000,
    "spaces after tags": ("MEDIA:" + " " * 60) * 15_000,
    "urls": "file:/" * 166_666,
    "fences": "\n```" * 250_000,
    "ideographs": "/報" * 500_000,
    "extensions": "/a.b報" * 200_000,
    "drives": "C:/" * 333_333,
    "long words in quotes": ('"/' + "a" * 4000) * 250,
    "numbers": ",".join(f"/{n}" for n in range(150_000)),
    "numbers in brackets": "".join(f"「/{n}」、" for n in range(120_000)),
    "all openers": "\"/a`/b'/c(/d[/e" * 66_666,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name: str) -> None:
    """Some microseconds a character at the most; by its square a megabyte would take hours."""
    text = HOSTILE[name]
    start = time.process_time()
    found = extract(text)
    assert time.process_time() - start < 8
    assert len(found) <= MAX_CANDIDATES + 1
    assert sum(len(reading) for one in found for reading in one.readings) < 40 << 20


def test_more_paths_than_a_reply_may_have() -> None:
    found = extract(" ".join(f"/v/{n}.md" for n in range(MAX_CANDIDATES + 10)))
    assert len(found) == MAX_CANDIDATES + 1
    assert extract("MEDIA: " * 50_000)[-1].problem == "BWN938"


def where(data: object) -> dict[str, str]:
    return {one.readings[0]: one.where for one in candidates(data)}


def test_carriers() -> None:
    data = {
        "summary": "done, see /v/1.md",
        "result": "MEDIA:/v/2.md",
        "artifacts": "/v/3 with spaces.md",
        "metadata": {"artifacts": ["/v/4.md", "5.md", ["/v/6.md", True]], "note": "/v/7.md"},
        "media_files": [{"path": "/v/8.md"}, 9, None],
        "tasks": [{"artifacts": "file:///v/10.md\n/v/11.md"}],
        "tool_output": ["seen: /v/12.md"],
    }
    found = where(data)
    assert found == {
        "/v/1.md": "summary", "/v/2.md": "result", "/v/3 with spaces.md": "artifacts",
        "/v/4.md": "metadata.artifacts[0]", "5.md": "metadata.artifacts[1]",
        "/v/6.md": "metadata.artifacts[2][0]", "/v/7.md": "metadata.note", "/v/8.md": "media_files[0].path",
        "9": "media_files[1]", "/v/10.md": "tasks[0].artifacts", "/v/11.md": "tasks[0].artifacts",
        "/v/12.md": "tool_output[0]",
    }  # fmt: skip
    assert where(["/v/a b.md"]) == {"/v/a b.md": "files[0]"}
    assert list(where({"artifacts": "/v/a.md, /v/b.md"})) == ["/v/a.md,", "/v/b.md"]


def test_too_deep() -> None:
    data: object = "/v/a.md"
    for _ in range(MAX_DEPTH + 2):
        data = [data]
    with pytest.raises(Unreadable):
        candidates(data)
