"""Where npm, pip and apt fetch from, read from their configuration. Hosts are *.test names only."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bawn.errors import HostError
from bawn.facts import package_config as config
from bawn.facts.model import RegistryFact
from bawn.facts.registries import Machine, observe
from bawn.policy.hosts import HostPattern

PIP_SOURCE = 'PyPI = PackageIndex(\n    "https://index.test/", file_storage_domain="files.test"\n)\n'


class Answer(NamedTuple):
    code: int
    text: str
    complaint: str = ""


class World:
    """A machine in a directory, and what its npm would answer."""

    def __init__(self, root: Path) -> None:
        self.root, self.env, self.npm = root, dict[str, str](), Answer(1, "")
        self.asked: list[Sequence[str]] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
        cap: int = 1 << 20,
    ) -> Answer:
        self.asked.append(argv)
        if self.npm.code == 127:
            raise HostError("npm is not installed", "install it")
        return self.npm

    def write(self, path: str, text: str) -> None:
        place = Path(f"{self.root}{path}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def fact(self, group: str) -> RegistryFact:
        (fact,) = observe([group], Machine("/home/me", self.env, self.run, str(self.root)))
        return fact


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# npm


def test_npmrc() -> None:
    text = (
        "; registry=https://comment.test/\n#registry=https://comment.test\nregistry = https://one.test/\n"
        "//one.test/:_authToken=secret\nregistry=\"https://two.test:8443/npm/\"\n@corp:registry=${CORP}/x\n"
        "registry-other=https://no.test/\n@x:registry = ${UNSET}\n"
    )  # fmt: skip
    assert config.npmrc(text, {"CORP": "https://corp.test"}) == (
        "https://two.test:8443/npm/",
        ("https://corp.test/x", "${UNSET}"),
    )


def test_npm_order(world: World) -> None:
    world.write("/etc/npmrc", "registry=https://machine.test/\n@m:registry=https://scope.test/\n")
    assert world.fact("@npm").hosts == ("machine.test:443", "scope.test:443")
    world.write("/home/me/.npmrc", "registry=https://user.test/\n")
    assert world.fact("@npm").hosts == ("user.test:443", "scope.test:443")
    world.env["NPM_CONFIG_REGISTRY"] = "http://env.test/"
    fact = world.fact("@npm")
    assert fact.hosts == ("env.test:80", "scope.test:443")
    assert fact.sources == ("$npm_config_registry", "/etc/npmrc")
    assert (fact.problem, world.asked) == ("", [])


def test_npm_is_asked_last_and_not_in_a_project(world: World) -> None:
    world.npm = Answer(0, "https://default.test/\n")
    assert world.fact("@npm").hosts == ("default.test:443",)
    assert world.asked == [["npm", "--prefix", "/", "config", "get", "registry"]]


@pytest.mark.parametrize(
    "answer", [Answer(127, ""), Answer(1, "https://default.test/"), Answer(0, "undefined")]
)
def test_no_registry_is_a_problem_with_a_fix(world: World, answer: Answer) -> None:
    world.npm = answer
    fact = world.fact("@npm")
    assert fact.hosts == () and fact.problem and fact.fix


def test_a_project_does_not_decide(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may write there."""
    world.write("/.npmrc", "registry=https://evil.test/\n")
    world.write("/home/me/.npmrc", "registry=https://user.test/\n")
    assert "evil.test:443" not in world.fact("@npm").hosts
    monkeypatch.chdir(tmp_path)
    assert Machine("/home/me", {}, world.run).text(".npmrc") == ""
    world.env["NPM_CONFIG_USERCONFIG"] = "/.npmrc"  # the person's own word
    assert "evil.test:443" in world.fact("@npm").hosts


# pip


def test_pip_order(world: World) -> None:
    world.write("/usr/lib/python3/dist-packages/pip/_internal/models/index.py", PIP_SOURCE)
    assert world.fact("@pypi").hosts == ("index.test:443", "files.test:443")
    world.write("/etc/pip.conf", "[global]\nindex-url = https://machine.test/simple\nextra-index-url =\n"
                "  https://a.test/s\n  https://b.test:8443/s\nfind-links = /srv/wheels\n")  # fmt: skip
    extra = ("a.test:443", "b.test:8443")
    assert world.fact("@pypi").hosts == ("machine.test:443", *extra)
    world.write("/home/me/.config/pip/pip.conf", "[global]\nindex_url=https://user.test/\ntimeout=60\n")
    assert world.fact("@pypi").hosts == ("user.test:443", *extra)
    world.write("/srv/pip.conf", "[install]\nindex-url=https://chosen.test/\n")
    world.env["PIP_CONFIG_FILE"] = "/srv/pip.conf"
    assert world.fact("@pypi").hosts == ("chosen.test:443", *extra)
    world.env["PIP_INDEX_URL"] = "https://env.test/"
    assert world.fact("@pypi").hosts == ("env.test:443", *extra)
    world.env["PIP_CONFIG_FILE"] = os.devnull
    fact = world.fact("@pypi")
    assert (fact.hosts, fact.sources) == (("env.test:443",), ("$PIP_INDEX_URL",))


@pytest.mark.parametrize("text", ["", "index-url = https://x.test/\n", "[global\n"])
def test_no_index_is_a_problem_with_a_fix(world: World, text: str) -> None:
    world.write("/etc/pip.conf", text)
    fact = world.fact("@pypi")
    assert fact.hosts == () and fact.problem and fact.fix


# apt


def test_apt(world: World) -> None:
    world.write("/etc/apt/sources.list", "# deb http://no.test/ x main\ndeb [arch=amd64 signed-by=/k.gpg] "
                "http://one.test/debian stable main # c\ndeb-src https://src.test/debian stable main\n"
                "deb cdrom:[Debian]/ stable main\ndeb file:/srv/repo ./\n")  # fmt: skip
    world.write("/etc/apt/sources.list.d/a.list", "deb mirror+https://list.test:8443/m stable main\n")
    world.write("/etc/apt/sources.list.d/b.sources",
                "Types: deb\nURIs: http://two.test/debian\n https://three.test/debian\nSuites: stable\n"
                "# URIs: http://no.test/\n\nEnabled: no\nURIs: http://off.test/\n \n"
                "Uris: http://four.test/\nSigned-By:\n -----KEY-----\n URIs: http://no.test/\n")  # fmt: skip
    world.write("/etc/apt/sources.list.d/c.sources.disabled", "URIs: http://no.test/\n")
    fact = world.fact("@debian")
    assert fact.hosts == ("one.test:80", "src.test:443", "list.test:8443", "two.test:80", "three.test:443",
                          "four.test:80")  # fmt: skip
    assert fact.problem == ""


def test_no_source_is_a_problem_with_a_fix(world: World) -> None:
    world.write("/etc/apt/sources.list", "deb file:/srv/repo ./\n")
    fact = world.fact("@debian")
    assert fact.hosts == () and fact.problem and fact.fix


# URLs


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.test", "a.test:443"),
        ("http://A.test./x?y", "a.test:80"),
        ("https://me:hunter2@a.test:8443/x", "a.test:8443"),
        ("https://me:p@ss@a.test/", "a.test:443"),
        ("HTTPS://bücher.test/", "xn--bcher-kva.test:443"),
        ("file:///srv/x", ""),
        ("/srv/x", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_url(url: str, host: str) -> None:
    assert config.host_of(url) == (host, "")


@pytest.mark.parametrize(
    "url",
    ["https://10.0.0.5/npm", "http://localhost:4873/", "https://[::1]/", "https://*.a.test./*", "https://",
     "ftp://a.test/", "https://a.test:0/", "https://*/", "https://2130706433/",
     "https://hunter2@127.1/"],
)  # fmt: skip
def test_a_url_that_no_list_can_hold_is_said(world: World, url: str) -> None:
    world.env["npm_config_registry"] = url
    fact = world.fact("@npm")
    assert fact.problem.startswith("$npm_config_registry: ")
    assert fact.hosts == () and fact.fix
    assert "hunter2" not in str(fact)


@given(st.text(max_size=60) | st.from_regex(r"(https?://)?[a-z:@/.*\[\]0-9]{0,20}", fullmatch=True))
def test_no_url_raises(url: str) -> None:
    host, why = config.host_of(url)
    assert not host or not why
    assert not host or (str(HostPattern.parse(host)) == host and "*" not in host)


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    config.npmrc(text, {})
    config.sources_list(text)
    config.deb822(text)
    config.pip_built_in(text)
