"""`bawn why` and `bawn egress groups`: what they say, and that they say what `decide` says."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bawn.cli.main import main
from bawn.egress.decide import compiled, decide_authority
from bawn.evidence.events import Passage
from bawn.facts.dirs import Dirs
from bawn.plan.groups import expand
from bawn.policy import hosts

ALLOW = ("api.allowed.test", "*.wild.test:8443", "bücher.test", "@github")
POLICY = f"""version = 1
[profile.default]
[profile.out]
egress = "proxy"
allow = {json.dumps(ALLOW, ensure_ascii=False)}
[profile.shut]
egress = "proxy"
[profile.pack]
egress = "bridge"
allow = ["@npm", "@pypi"]
[wall]
control_plane = ["9.9.9.0/24"]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "proj"
    project.mkdir()
    (project / "bawn.toml").write_text(POLICY)
    for name in [n for n in os.environ if n.lower().startswith(("npm_", "pip_", "xdg_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("npm_config_registry", "https://me:hunter2@npm.corp.test/x")
    monkeypatch.setenv("PIP_INDEX_URL", "http://10.0.0.5/simple")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.chdir(project)
    return project


def why(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["why", *words])
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "code", "rule", "fix"),
    [
        ("api.allowed.test", 0, "BWN800", ""),
        ("API.allowed.test.:443", 0, "BWN800", ""),
        ("xn--bcher-kva.test", 0, "BWN800", ""),
        ("a.b.wild.test:8443", 0, "BWN800", ""),
        ("github.com", 0, "BWN800", ""),
        ("api.allowed.test:22", 1, "BWN802", "api.allowed.test:22"),
        ("wild.test:8443", 1, "BWN801", "wild.test:8443"),
        ("other.test", 1, "BWN801", "other.test:443"),
        ("127.1", 1, "BWN811", ""),
        ("134744072", 1, "BWN810", ""),
        ("9.9.9.9", 1, "BWN811", ""),
        ("localhost:5432", 1, "BWN812", ""),
        ("metadata.google.internal", 1, "BWN812", ""),
        ("a..test", 1, "BWN813", ""),
        ("api.allowed.test:443junk", 1, "BWN814", ""),
        ("https://api.allowed.test/x", 1, "BWN814", ""),
    ],
)
def test_why(
    project: Path, capsys: pytest.CaptureFixture[str], asked: str, code: int, rule: str, fix: str
) -> None:
    got, out = why(capsys, asked, "--profile", "out", "--json")
    data = json.loads(out)
    assert (got, data["rule"], data["fix"]) == (code, rule, fix)
    assert data["allowed"] is (code == 0)
    got, out = why(capsys, asked, "-p", "out")
    assert got == code
    assert out.startswith(f"{'allowed' if code == 0 else 'denied'} {rule} ")
    assert f'add "{fix}" to allow' in out if fix else "to allow" not in out
    assert "note" not in out


def test_the_line_that_allows_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "by   @github in profile.out" in why(capsys, "api.github.com", "-p", "out")[1]
    assert "by   *.wild.test:8443 in" in why(capsys, "x.wild.test:8443", "-p", "out")[1]


def test_no_network_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = why(capsys, "api.allowed.test")
    assert (code, out.split()[:2]) == (1, ["denied", "BWN803"])
    assert "no network at all" in out
    assert 'egress = "proxy" and allow = ["api.allowed.test:443"]' in out
    (project / "bawn.toml").unlink()
    code, out = why(capsys, "api.allowed.test", "--json")
    data = json.loads(out)
    assert (code, data["egress"], data["policy"]) == (1, "none", "")
    assert 'bawn init; in its bawn.toml: egress = "proxy"' in why(capsys, "api.allowed.test")[1]
    code, out = why(capsys, "127.0.0.1")
    assert code == 1 and "allow =" not in out


def test_an_empty_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = why(capsys, "api.allowed.test", "-p", "shut")
    assert code == 1 and "BWN803" in out and 'add "api.allowed.test:443"' in out


def test_registries_of_this_machine(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why(capsys, "npm.corp.test", "-p", "pack")[0] == 0
    code, out = why(capsys, "other.test", "-p", "pack")
    assert code == 1
    assert "@pypi: $PIP_INDEX_URL" in out and "IP address" in out


@pytest.mark.parametrize(
    "words", [["a.test", "-p", "nobody"], ["a.test", "--policy", "gone.toml"], [], ["a", "b"]]
)
def test_bad_usage_is_2(project: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    try:
        code = main(["why", *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2


def test_what_a_terminal_would_obey_is_escaped(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = why(capsys, "\x1b[31m\u202ea.test\nallowed BWN800", "-p", "out")
    assert code == 1
    assert "\x1b" not in out and "\u202e" not in out and not out.startswith("allowed")
    assert "\nallowed" not in out
    named = project / "a\x1b[31m\nallowed"
    named.mkdir()
    (named / "bawn.toml").write_text(POLICY)
    out = why(capsys, "other.test", "-p", "out", "--policy", str(named / "bawn.toml"))[1]
    assert "a\\x1b[31m\\nallowed/bawn.toml" in out
    assert "\x1b" not in out and "\nallowed" not in out


_asked = (
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
    | st.from_regex(
        r"[a-z0-9.\[\]:]{0,6}(api\.allowed|wild|github|x)\.(test|com)\.?(:[0-9]{1,5})?", fullmatch=True
    )
    | st.sampled_from([*hosts.NEVER, *(line for line in ALLOW), "[::1]:443", "0x7f.1"])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(_asked)
def test_why_and_decide_never_disagree(project: Path, capsys: pytest.CaptureFixture[str], asked: str) -> None:
    """Through the command line, against the function that the way out calls; and the fix it shows works."""
    decision = decide_authority(compiled(expand(ALLOW, ()).lines), asked, hosts.DEFAULT_PORT)
    code, out = why(capsys, "-p", "out", "--json", "--", asked)
    data = json.loads(out)
    assert code == (0 if decision.allowed else 1)
    assert {key: data[key] for key in decision._asdict()} == decision._asdict()
    if data["fix"]:
        with_it = compiled(expand((*ALLOW, data["fix"]), ()).lines)
        assert decide_authority(with_it, asked, hosts.DEFAULT_PORT).allowed


def test_groups(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["egress", "groups", "--json"]) == 0
    out = capsys.readouterr().out
    found = {row["name"]: row for row in json.loads(out)["groups"]}
    assert list(found) == list(hosts.GROUPS)
    assert [m["host"] for m in found["@npm"]["members"]] == ["npm.corp.test:443"]
    assert found["@pypi"]["members"] == [] and found["@pypi"]["fix"]
    assert main(["egress", "groups"]) == 0
    text = capsys.readouterr().out
    assert "  npm.corp.test:443  npm fetches from it" in text
    assert "@anthropic  (from bawn's own table)\n  api.anthropic.com:443  the API\n" in text
    assert "hunter2" not in out + text


def test_check_says_what_is_let_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "bawn.toml").write_text(POLICY)
    main(["check", "-p", "out", "--json"])
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)["findings"]}
    assert rows["BWN720"]["place"] == f"{project}/bawn.toml:5 profile.out.allow[1]"
    assert "BWN721" in rows
    main(["check", "--json"])
    assert "BWN72" not in capsys.readouterr().out


def logged(tmp_path: Path, *names: str) -> None:
    (tmp_path / ".local/state/bawn").mkdir(parents=True, exist_ok=True)
    with (tmp_path / ".local/state/bawn/egress.log").open("a") as file:
        for number, name in enumerate(names):
            good = name.startswith("good")
            one = Passage(
                f"r{number}", "2026-12-04T00:00:00.000Z", "out", "connect", "allowed" if good else "denied",
                "BWN800" if good else "BWN801", name, 443, "", f"{name}: said", "good.test" if good else "",
                "" if good else f"{name}:443", 1, 2, 1500, "closed",
            )  # fmt: skip
            file.write(json.dumps(one._asdict()) + "\n")


def test_the_log(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("bawn.facts.dirs.observe", lambda: Dirs("", f"{tmp_path}/.local/state/bawn", ""))
    assert main(["egress", "log"]) == 0 and capsys.readouterr().out == ""
    logged(tmp_path, "good.test", "evil.test", "e\x1b[31m\nvil")
    main(["egress", "log"])
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 3 and "\x1b" not in out
    assert "r0 out allowed BWN800 connect good.test:443  by good.test, 1 B out, 2 B in, 1.50 s" in out
    main(["egress", "log", "--denied", "--run", "r1"])
    assert (
        capsys.readouterr().out.rstrip().endswith('evil.test: said; allow = ["evil.test:443"] would let it')
    )
    main(["egress", "log", "-n", "1", "--json"])
    assert json.loads(capsys.readouterr().out)["run"] == "r2"


def test_nothing_runs(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(
        "bawn.facts.dirs.observe", lambda: Dirs(f"{tmp_path}/c", f"{tmp_path}/s", f"{tmp_path}/r")
    )
    assert main(["egress", "status"]) == 0
    assert capsys.readouterr().out == "no run has a way out now\n"
    assert main(["egress", "reload"]) == 1, "a policy that is not trusted replaces nothing"
    assert "not trusted" in capsys.readouterr().err
    (tmp_path / "r/runs/r1/way").mkdir(parents=True)
    (tmp_path / "r/runs/r1/way/control").write_text("")
    assert main(["egress", "status", "--json"]) == 1
    assert "does not answer" in capsys.readouterr().out
