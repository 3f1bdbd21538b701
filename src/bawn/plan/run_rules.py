"""Findings about a run itself rather than its mounts: BWN7xx. `rules` shows them with the others."""

from bawn.plan.model import Severity
from bawn.typed import NamedTuple


class Rule(NamedTuple):
    severity: Severity
    title: str
    why: str
    fix: str  # a template: its fields are named by the caller of `finding`


RUN_RULES: dict[str, Rule] = {
    "BWN701": Rule("error", "no runsc", "without gVisor nothing runs, never runc or bare", "{fix}"),
    "BWN702": Rule("error", "no docker", "engine docker needs its daemon", "{fix}"),
    "BWN703": Rule(
        "error",
        "nothing to run",
        "there is no command and no agent",
        'bawn run -- COMMAND, or agent = "claude" in the profile',
    ),
    "BWN704": Rule(
        "warning",
        "a secret without a value",
        "the command will not find it",
        "export {name}, or give it a file in the policy",
    ),
    "BWN705": Rule(
        "error",
        "a bridge that cannot be made",
        "bridge mode is a network of docker's behind a wall of root's; the proxy needs neither",
        'egress = "proxy"; or engine = "docker", as root',
    ),
    "BWN706": Rule(
        "error",
        "docker without runsc",
        "runc is no box: bawn never falls back to it",
        "sudo bawn setup docker --apply --restart",
    ),
    "BWN707": Rule(
        "error",
        "image host under docker",
        "docker runs images; this machine's /usr is for engine gvisor",
        'image = "NAME" in the profile, or engine = "gvisor"',
    ),
    "BWN708": Rule(
        "error",
        "an agent that is not installed",
        "its program was not found on this host",
        "{install}",
    ),
    "BWN709": Rule(
        "error",
        "an image that is not there",
        "the root file system of the box is missing",
        "bawn image build agent-base, or bawn image import SOURCE {name}; bawn image ls shows what is there",
    ),
    "BWN710": Rule(
        "error",
        "a runtime that opens the box",
        "an argument of docker's runtime entry weakens every box of it",
        "{fix}",
    ),
    "BWN711": Rule(
        "error",
        "a runtime whose read-only is not the kernel's",
        "an open with O_TRUNC empties files on a mount that runsc calls read-only",
        "{fix}",
    ),
    "BWN712": Rule(
        "error",
        "a docker daemon that cannot hold a box",
        "its paths, user ids or limits are not those of this plan",
        "{fix}",
    ),
    "BWN713": Rule(
        "error",
        "a runtime that is not gVisor's",
        "the name runsc proves nothing: bawn never falls back to the host's kernel",
        "{fix}",
    ),
    "BWN714": Rule(
        "warning",
        "an agent's program that anybody may change",
        "another user of this machine can put a program of theirs in its place",
        "chmod -R o-w {path}",
    ),
    "BWN715": Rule(
        "error",
        "a credential without a place",
        "it is copied into the agent's config directory by its own name",
        "name each file once, in a profile with an agent; a plain file goes in a mount",
    ),
    "BWN719": Rule(
        "error",
        "an agent's program in the midst of a home",
        "mounting its directory would show keys and logins",
        "install the agent with npm's global prefix, or a version manager such as nvm",
    ),
    "BWN720": Rule(
        "warning",
        "a wildcard of hosts",
        "what stands before the star goes out in a DNS question, and whoever answers for the name reads it",
        "name the hosts one by one",
    ),
    "BWN721": Rule(
        "warning",
        "a host that takes anybody's code",
        "whoever has an account there can be sent what the box can read: by a push, an issue, a gist",
        "mount nothing that must not be published; give no token that may write",
    ),
    "BWN722": Rule(
        "warning",
        "a provider's API",
        "it accepts anyone's key, so what the box can read can go to another account than yours",
        "mount nothing that must not be published",
    ),
    "BWN723": Rule(
        "warning",
        "a registry of packages",
        "it may accept packages from anyone with an account, and the names that are asked for are data too",
        "use a mirror that takes no uploads, or fetch in a profile of its own",
    ),
    "BWN724": Rule(
        "warning",
        "a group of hosts without a meaning here",
        "the clients of this machine do not say where they fetch from, so nothing of the group passes",
        "bawn egress groups",
    ),
    "BWN725": Rule(
        "warning",
        "a way out that leads nowhere",
        "the allow-list is empty, and an empty list lets nothing pass",
        'name the hosts in allow, or egress = "none"',
    ),
}
