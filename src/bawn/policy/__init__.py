"""What is wanted: `bawn.toml` text becomes a `Policy`, or every problem of it at once. Pure.

    text --parse.parse_policy--> Policy      (units, patterns: the small grammars)
                    schema.json_schema()     (the same table of fields, for editors)

Nothing here reads a file, the clock or the environment. `bawn.facts.policy_file` finds and reads
the text; `bawn.facts.trust` says whether it is trusted.
"""
