"""`bawn outbound serve`: the file guard as a service for a gateway, on a Unix socket."""

import argparse
import os
import signal

from bawn.cli.prepare import say
from bawn.effects import trust
from bawn.effects.outbound.load import load, mounts
from bawn.effects.outbound.service import Service
from bawn.errors import BawnError, UsageError
from bawn.facts import dirs, policy_file
from bawn.facts.paths import Resolver
from bawn.policy import parse
from bawn.policy.model import Policy
from bawn.policy.pathtext import within
from bawn.typed import TYPE_CHECKING

if TYPE_CHECKING:  # `bawn send` needs no server
    from bawn.effects.outbound.serve import Server

HELP = "Serve the outbound file guard: HTTP on a Unix socket, verdicts, copies and open descriptors."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="serve")
    one = verbs.add_parser("serve", help="until SIGTERM; SIGHUP reads the policy anew")
    one.add_argument("--socket", required=True, metavar="PATH", help="where to listen, mode 0600")
    add_guard_arguments(one)


def add_guard_arguments(parser: argparse.ArgumentParser) -> None:
    """What `bawn send` takes too."""
    parser.add_argument("--policy", default="", help="the policy file")
    parser.add_argument("--hide-denied", action="store_true", help="answers do not name denied files")


def run(args: argparse.Namespace) -> int:
    """0 when it was stopped. A policy that does not load is 2, one that is not trusted 1."""
    from bawn.effects.outbound.serve import Server

    server = Server(args.socket, service(args, args.socket), _Say())
    again = []
    signal.signal(signal.SIGHUP, lambda *_: again.append(True))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(server, "stopped", True))

    def tick() -> None:
        if again:
            again.clear()
            _reload(server, args)

    say(f"listening at {server.path}")
    server.serve(tick)
    return 0


def _reload(server: "Server", args: argparse.Namespace) -> None:
    """A policy that does not load, or that nobody trusts, leaves the old one in force."""
    try:
        fresh = service(args, args.socket)
    except BawnError as error:
        for line in error.diagnostics():
            say(line)
        say("the old policy stays in force")
        return
    server.service = fresh
    say("the policy was read anew")


def service(args: argparse.Namespace, socket: str = "") -> Service:
    """The guard of the policy that counts here. Raises PolicyError, TrustError, UsageError, HostError."""
    where = dirs.observe()
    found = policy_file.find(dirs.working(), where.config, args.policy or None)
    if found:
        found = trust.require(found, where, None)
    policy = parse.parse_policy(found.text, found.path, found.toml) if found else parse.default_policy()
    base = os.path.dirname(policy.path) or dirs.working()
    if socket:
        _private(policy, os.path.realpath(os.path.dirname(os.path.abspath(socket))), base)
    guard = load(policy, where, found.text if found else "", base)
    return Service(guard, where.state, policy.outbound.scan_secrets, args.hide_denied)


def _private(policy: Policy, folder: str, base: str) -> None:
    """A box that can reach the socket could ask the guard for the files that it may not read."""
    for source, _, label in mounts(policy, Resolver(os.path.expanduser("~")), base):
        if within(folder, source):
            raise UsageError(
                f"a socket in {folder} would be inside a mount of {label}", "put it below $XDG_RUNTIME_DIR"
            )


class _Say:
    """An observer that speaks on stderr."""

    def step(self, text: str) -> None:
        say(text)

    def warn(self, text: str) -> None:
        say(text)
