"""Text for a terminal."""


def escape(text: str) -> str:
    """Text of unknown origin, safe on a terminal: all but line ends and what prints is escaped.

    Characters that reorder a line (U+202E) do not print either: what is shown is what is there.
    """
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
