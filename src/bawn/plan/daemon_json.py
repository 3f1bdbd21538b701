"""The edit of docker's daemon.json: one runtime entry put in, every other byte kept. Pure."""

import json

from bawn.edit.json_text import put
from bawn.edit.text import Set
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


def register(text: str | None, path: str, program: str, args: tuple[str, ...] = ()) -> Edit:
    """daemon.json with the runtime registered.

    Raises HostError for what is not a JSON object, has a key twice, or registers another runsc.
    """
    wanted: dict[str, Any] = {"path": program} | ({"runtimeArgs": list(args)} if args else {})
    if text is None or not text.strip():
        return Edit(text, json.dumps({"runtimes": {RUNTIME: wanted}}, indent=4) + "\n")
    data = _load(text, path)
    runtimes = data.get("runtimes", {})
    if not isinstance(runtimes, dict):
        raise HostError(f"{path}: runtimes is {runtimes!r}; wanted an object", f"mend {path}")
    present = runtimes.get(RUNTIME)
    if present == wanted:
        return Edit(text, text)
    if present is not None:
        raise HostError(
            f"{path} registers another {RUNTIME}: {json.dumps(present)}; "
            f"bawn would write {json.dumps(wanted)}",
            f"remove that entry from {path} yourself, if nothing else needs it",
        )
    new = put(text, path, Set(("runtimes", RUNTIME), wanted))
    if json.loads(new) != {**data, "runtimes": {**runtimes, RUNTIME: wanted}}:
        raise HostError(f"{path} cannot be edited without touching the rest", f"register {RUNTIME} by hand")
    return Edit(text, new)


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
    except RecursionError:
        raise HostError(f"{path} is nested too deeply", f"mend {path}") from None
    if not isinstance(data, dict):
        raise HostError(f"{path} is not a JSON object", f"mend {path}")
    return data
