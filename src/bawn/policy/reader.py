"""Walks TOML data along the table of fields: values, and every problem on the way. Pure."""

from bawn.policy.kinds import REQUIRED, Field, Kind
from bawn.policy.units import NotAllowed
from bawn.typed import Any, NamedTuple

Path = tuple[str | int, ...]
# What stands for a value that could not be read. It is false, equal to no allowed value, and can be
# iterated over, so that checks of several values together say nothing about it.
BAD: tuple[()] = ()


class Problem(NamedTuple):
    """`problems.render` makes the line a person reads."""

    path: Path
    got: str
    allowed: str
    fix: str


class Reader:
    """Collects problems; a value that is read is of its kind, or BAD."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def say(self, path: Path, got: str, allowed: str, fix: str) -> None:
        self.problems.append(Problem(path, got, allowed, fix))

    def read(self, kind: Kind, value: Any, path: Path) -> Any:
        """A scalar as its kind reads it; a list as a tuple; a map as pairs; a table as a dict."""
        if kind.fields and (isinstance(value, dict) or not kind.read):
            return self.table(kind, value, path)
        if kind.key:
            return self._map(kind, kind.key, value, path)
        if kind.item:
            if not isinstance(value, list):
                self._wrong(kind, value, path, NotAllowed("not a list", _as_list(kind, value)))
                return BAD
            return tuple(self.read(kind.item, each, (*path, n)) for n, each in enumerate(value))
        assert kind.read
        try:
            return kind.read(value)
        except NotAllowed as error:
            self._wrong(kind, value, path, error)
            return BAD

    def table(self, kind: Kind, data: Any, path: Path) -> dict[str, Any]:
        """The fields that are set. Unknown keys and missing ones are problems."""
        if not isinstance(data, dict):
            self._wrong(kind, data, path, NotAllowed("not a table"))
            return {}
        known = {field.name: field for field in kind.fields}
        values = {}
        for name, value in data.items():
            field = known.get(name)
            if field is None:
                self._unknown(name, list(known), path)
            else:
                values[name] = self.read(field.kind, value, (*path, name))
        for field in kind.fields:
            if field.default is REQUIRED and field.name not in data:
                self._missing(field, path)
                values[field.name] = BAD
        return values

    def _map(self, kind: Kind, key: Kind, data: Any, path: Path) -> tuple[tuple[str, Any], ...]:
        assert kind.item
        if not isinstance(data, dict):
            self._wrong(kind, data, path, NotAllowed("not a table"))
            return BAD
        pairs = []
        for name, value in data.items():
            self._name(key, name, (*path, name))
            pairs.append((name, self.read(kind.item, value, (*path, name))))
        return tuple(pairs)

    def _name(self, key: Kind, name: str, path: Path) -> None:
        assert key.read
        try:
            key.read(name)
        except NotAllowed as error:
            from bawn.policy import problems

            self.problems.append(problems.of_name(key, name, path, error))

    def _wrong(self, kind: Kind, value: Any, path: Path, error: NotAllowed) -> None:
        from bawn.policy import problems

        self.problems.append(problems.of_value(kind, value, path, error))

    def _unknown(self, name: str, known: list[str], path: Path) -> None:
        from bawn.policy import problems

        self.problems.append(problems.of_key(name, known, path))

    def _missing(self, field: Field, path: Path) -> None:
        from bawn.policy import problems

        self.problems.append(problems.of_missing(field, path))


def _as_list(kind: Kind, value: Any) -> str:
    from bawn.policy.problems import shown

    one_word = isinstance(value, str) and " " not in value
    return f"[{shown(value)}]" if one_word and kind.item and kind.item.read else ""
