"""`bawn policy schema`: the JSON Schema of the policy file."""

import argparse
import json

HELP = "The JSON Schema of bawn.toml, so that an editor can complete and check it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["schema"])


def run(args: argparse.Namespace) -> int:
    from bawn.policy.schema import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0
