"""The edit of docker's daemon.json: one runtime entry added, every other byte's meaning kept. Pure."""

import json

from bawn.errors import HostError
from bawn.typed import Any, NamedTuple

RUNTIME = "runsc"


class Edit(NamedTuple):
    """Old and new text of the file; `old` None where there was no file."""

    old: str | None
    new: str

    @property
    def changes(self) -> bool:
        return self.old != self.new


def register(text: str | None, path: str, program: str, args: tuple[str, ...]) -> Edit:
    """daemon.json with the runtime registered.

    Raises HostError for what is not a JSON object, has a key twice, or registers another runsc.
    """
    data = _load(text, path) if text is not None and text.strip() else {}
    runtimes = data.get("runtimes", {})
    if not isinstance(runtimes, dict):
        raise HostError(f"{path}: runtimes is {runtimes!r}; wanted an object", f"mend {path}")
    wanted: dict[str, Any] = {"path": program} | ({"runtimeArgs": list(args)} if args else {})
    present = runtimes.get(RUNTIME)
    if present == wanted and text is not None:
        return Edit(text, text)
    if present is not None and present != wanted:
        raise HostError(
            f"{path} registers another {RUNTIME}: {json.dumps(present)}; "
            f"bawn would write {json.dumps(wanted)}",
            f"remove that entry from {path} yourself, if nothing else needs it",
        )
    data["runtimes"] = {**runtimes, RUNTIME: wanted}
    return Edit(text, json.dumps(data, indent=_indent(text), ensure_ascii=False) + "\n")


def _load(text: str, path: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise HostError(f"{path} has the key {twice[0]!r} twice", f"mend {path}")
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except ValueError as error:
        raise HostError(f"{path} is not JSON: {error}", f"mend {path}") from None
    if not isinstance(data, dict):
        raise HostError(f"{path} is not a JSON object", f"mend {path}")
    return data


def _indent(text: str | None) -> int | str:
    """The indentation the file has: that of its first indented line, else four spaces."""
    for line in (text or "").splitlines():
        body = line.lstrip(" \t")
        if body != line and body:
            space = line[: len(line) - len(body)]
            return space if "\t" in space else len(space)
    return 4
