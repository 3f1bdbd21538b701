"""Edits of configuration text: a few keys get new values, every other byte stays. Pure.

`edit(data, name, changes)` of `yaml_text`, `toml_text` and `json_text` gives the new bytes; `by_name`
finds the right one. The result is read again: it equals what was there before but for the keys.
What cannot be edited so is refused with a HostError that says why.
"""

from collections.abc import Callable

from bawn.edit.text import Set
from bawn.errors import HostError

Editor = Callable[[bytes, str, tuple[Set, ...]], bytes]


def by_name(path: str) -> Editor:
    """The editor for a file, by its suffix. Raises HostError for any other."""
    suffix = path.rpartition(".")[2].lower()
    if suffix in ("yaml", "yml"):
        from bawn.edit.yaml_text import edit
    elif suffix == "toml":
        from bawn.edit.toml_text import edit
    elif suffix in ("json", "json5", "jsonc"):
        from bawn.edit.json_text import edit
    else:
        raise HostError(f"{path} is none of YAML, TOML, JSON, JSON5", "edit it by hand")
    return edit


__all__ = ["Editor", "Set", "by_name"]
