"""sha256 without `hashlib`, whose import loads OpenSSL (4 ms of every `bawn run`)."""

try:
    from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]  # CPython 3.11
except ImportError:
    try:
        from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]  # 3.12 and later
    except ImportError:
        from hashlib import sha256


def sha256_hex(data: bytes) -> str:
    """The digest in lower-case hex."""
    return str(sha256(data).hexdigest())
