"""What is wanted: `bawn.toml` text becomes a `Policy`, or every problem of it at once. Pure.

    text --tomllib--> data --reader, along the table of fields--> values --parse--> Policy
                               kinds: what a value may be (units, hosts, patterns, pathtext)
                               problems, lines: what is wrong, where, and what to write instead
    the same table --schema--> JSON Schema     --reference--> docs/policy.md
    what is around --starter--> the text of `bawn init`

Nothing here reads a file, the clock or the environment. `bawn.facts.policy_file` finds and reads
the text; `bawn.facts.trust` says whether it is trusted.
"""
