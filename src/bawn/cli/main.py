"""`bawn VERB ...`: finds the verb's file, hands over, and turns an error into lines and a code.

A verb's file has HELP (one line), `add_arguments(parser)` and `run(args) -> exit code`. `run`,
`claude` and `codex` parse their own words instead (`main(words) -> exit code`): they are the hot
path and import no argparse.
"""

import os
import sys

from bawn import __version__
from bawn.errors import BawnError

# verb -> what it does; the module of the same name in bawn.cli does it.
VERBS = {
    "run": "run a command in a box: bawn run [OPTIONS] [--] [COMMAND...]",
    "claude": "run Claude Code in a box, the current repository as its one mount",
    "codex": "run Codex in a box, the current repository as its one mount",
    "init": "write a starter policy (bawn.toml) for this directory and trust it",
    "trust": "show a policy file and trust it, or what changed in it",
    "check": "show what an agent can read, write and never see, and what is wrong",
    "plan": "show everything a run would do",
    "why": "whether a box may reach a host, by which line, or which line is missing",
    "egress": "what the ways out were asked, and what runs now; reload; what @groups mean",
    "send": "which files of a reply may leave the machine; staged copies of them",
    "outbound": "serve the outbound file guard to a messaging gateway",
    "policy": "the policy's JSON Schema, for editors",
    "doctor": "what this machine has, what is missing, and how to mend it",
    "wall": "the wall of bridge mode: apply it, look at it, send packets against it",
    "setup": "register runsc with docker (and undo it)",
    "team": "audit and harden a Hermes team: its tools' reach, its gateway's",
    "history": "the changes bawn made to this machine, and how each ended",
    "diff": "what a change of the history did to its files",
    "rollback": "take a change back: the exact bytes, modes and links from before",
    "image": "images for boxes: build agent-base, import your own, check and remove them",
    "runs": "the runs of the past",
    "sweep": "remove what killed runs left behind",
}
HOT = ("run", "claude", "codex")
EPILOG = """\
With no policy file, the defaults hold and the working directory is the one mount.
Exit codes of run, claude and codex: the command's own; 124 time-out; 125 bawn could not run it;
126 not executable; 127 not found; 128+n signal n.
Of the other verbs: 0 holds, 1 does not hold, 2 bad usage or policy."""


def usage() -> str:
    """The text of `bawn --help`."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {text}" for verb, text in VERBS.items())
    return f"""\
usage: bawn VERB [...]      bawn VERB --help

Runs coding agents in hardened gVisor boxes.

{verbs}

{EPILOG}"""


def console() -> None:
    """The console script. Ends without the interpreter's own tidying, which costs 5 ms of a run."""
    _fill_stdio()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:  # closed by the caller
                stream.flush()
        except BrokenPipeError:
            code = code or 1
    os._exit(code)


def _fill_stdio() -> None:
    """A closed standard descriptor becomes /dev/null: else the next file opened would be stdout."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def main(words: list[str] | None = None) -> int:
    """The exit code. Never raises BawnError."""
    words = sys.argv[1:] if words is None else words
    verb = words[0] if words else "--help"
    if verb in ("--help", "-h", "help"):
        print(usage())
        return 0 if words else 2
    if verb == "--version":
        print(f"bawn {__version__}")
        return 0
    if verb not in VERBS:
        print(f"bawn: no verb {verb!r}; the verbs are {', '.join(VERBS)}", file=sys.stderr)
        return 2
    try:
        return _call(verb, words[1:])
    except BawnError as error:
        from bawn.cli.text import escape

        for number, line in enumerate(error.diagnostics()):
            print(escape("bawn: " + line if number == 0 else "  " + line), file=sys.stderr)
        return error.exit_code if verb in HOT or error.exit_code == 2 else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except Exception:  # a fault of bawn's own: never the command's exit code
        import traceback

        traceback.print_exc()
        return 125 if verb in HOT else 1


def _call(verb: str, words: list[str]) -> int:
    module = __import__(f"bawn.cli.{verb}", fromlist=["run"])
    if verb in HOT:
        return int(module.main(words))
    import argparse

    parser = argparse.ArgumentParser(prog=f"bawn {verb}", description=module.HELP)
    module.add_arguments(parser)
    return int(module.run(parser.parse_args(words)))
