"""YAML as PyYAML's safe_load reads it, which is what Hermes uses: version 1.1, the last of two keys. Pure."""

import io

from bawn.edit.yaml_tree import MAPPING, Node, read
from bawn.errors import HostError
from bawn.typed import Any


def load(text: str, name: str) -> Any:
    """Its value. Raises HostError for what PyYAML would not read."""
    read(text, name)  # says what is wrong, and where
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.error import YAMLError

    class Last(SafeConstructor):
        """Of a key that stands twice the last one counts."""

        def check_mapping_key(self, *_: Any) -> bool:
            return True

    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    yaml.Constructor = Last
    try:
        return yaml.load(io.StringIO(text, newline=""))
    except (YAMLError, ValueError, RecursionError) as error:
        raise HostError(f"{name} cannot be read: {str(error).splitlines()[0]}", f"mend {name}") from None


def doubles(text: str, name: str) -> tuple[str, ...]:
    """Keys that stand twice in the document or in one of its sections: section.key."""
    root = read(text, name)
    if root is None or root.kind != MAPPING:
        return ()
    found = _twice(root, "")
    for pair in root.pairs:
        found += _twice(pair.value, f"{pair.key.text}.")
    return tuple(found)


def _twice(node: Node, prefix: str) -> list[str]:
    keys = [pair.key.text for pair in node.pairs]
    return [f"{prefix}{key}" for key in dict.fromkeys(keys) if keys.count(key) > 1]
