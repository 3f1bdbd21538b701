"""`bawn policy schema|fields`: what may stand in a policy, for editors and for people."""

import argparse
import json

HELP = "What may stand in bawn.toml: its JSON Schema, or every field with its meaning."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", required=True, metavar="schema|fields")
    verbs.add_parser("schema", help="the JSON Schema (draft 2020-12), for editors")
    verbs.add_parser("fields", help="every field: default, what is allowed, meaning (Markdown)")


def run(args: argparse.Namespace) -> int:
    if args.what == "schema":
        from bawn.policy.schema import json_schema

        print(json.dumps(json_schema(), indent=2))
    else:
        from bawn.policy.reference import reference

        print(reference(), end="")
    return 0
