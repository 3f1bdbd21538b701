"""The octets of the way out: wire.c, compiled with the sanitizers, fed with mutations; and word for word."""

import ctypes
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

BOX = Path(__file__).parents[2] / "src/bawn/box"
STRICT = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-O1"]
FORMERR, NXDOMAIN, NOTIMP, REFUSED, BADVERS, IGNORE = 1, 3, 4, 5, 16, -1
ANSWER_SIZE = 12 + 259 + 16 + 11


class Question(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 254), ("id", ctypes.c_uint16), ("type", ctypes.c_uint16),
        ("recursion", ctypes.c_ubyte), ("edns", ctypes.c_ubyte), ("raw", ctypes.c_ubyte * 259),
        ("raw_length", ctypes.c_uint16),
    ]  # fmt: skip


def test_two_hundred_thousand_mutations(tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("missing: cc")
    program = tmp_path / "fuzz"
    subprocess.run(
        ["cc", *STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{BOX}",
         "-o", program, Path(__file__).with_name("wire_fuzz.c"), BOX / "wire.c"],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program, "250000"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    asked, refused, listed = map(int, done.stdout.split())
    assert min(asked, refused, listed) > 5000  # the mutations reach every outcome


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not shutil.which("cc"):
        pytest.skip("missing: cc")
    path = tmp_path_factory.mktemp("wire") / "wire.so"
    subprocess.run(["cc", *STRICT, "-shared", "-fPIC", "-o", path, BOX / "wire.c"], check=True)
    library = ctypes.CDLL(str(path))
    library.write_answer.restype = library.head_length.restype = ctypes.c_size_t
    library.write_answer.argtypes = [ctypes.POINTER(Question), ctypes.c_int, ctypes.c_uint32, ctypes.c_char_p]
    return library


def name(text: bytes) -> bytes:
    return b"".join(bytes([len(label)]) + label for label in text.split(b".") if label) + b"\0"


def packet(
    text: bytes = b"web.test", type: int = 1, flags: int = 0x100, tail: bytes = b"", klass: int = 1,
    counts: tuple[int, int, int, int] = (1, 0, 0, 0),
) -> bytes:  # fmt: skip
    return struct.pack("!6H", 7, flags, *counts) + name(text) + struct.pack("!HH", type, klass) + tail


def edns(version: int = 0, data: bytes = b"", length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    return b"\0" + struct.pack("!HHBBHH", 41, 4096, 0, version, 0, size) + data


def read(wire: ctypes.CDLL, data: bytes) -> tuple[int, Question]:
    question = Question()
    return wire.read_question(data, ctypes.c_size_t(len(data)), ctypes.byref(question)), question


def answer(wire: ctypes.CDLL, data: bytes, code: int, address: int) -> bytes:
    _, question = read(wire, data)
    out = ctypes.create_string_buffer(ANSWER_SIZE)
    length = wire.write_answer(ctypes.byref(question), code, address, out)
    return out.raw[:length]


LONG = b".".join([b"a" * 63] * 3 + [b"b" * 61])  # 253 octets of text: the longest there is


@pytest.mark.parametrize(
    ("data", "code", "asked"),
    [
        (packet(), 0, b"web.test"),
        (packet(b"WeB.TeST"), 0, b"web.test"),
        (packet(b"_dmarc.a-b.test"), 0, b"_dmarc.a-b.test"),
        (packet(LONG), 0, LONG),
        (packet(tail=edns(), counts=(1, 0, 0, 1)), 0, b"web.test"),
        (packet(tail=edns(data=b"\0\x0a\0\x0812345678"), counts=(1, 0, 0, 1)), 0, b"web.test"),
        (packet(tail=edns(version=1), counts=(1, 0, 0, 1)), BADVERS, None),
        (packet(tail=edns(length=9), counts=(1, 0, 0, 1)), FORMERR, None),
        (packet(LONG + b".c"), FORMERR, None),
        (packet(b""), NXDOMAIN, None),
        (packet(b"a\r\nx"), NXDOMAIN, None),
        (packet(b"a b.test"), NXDOMAIN, None),
        (struct.pack("!6H", 7, 256, 1, 0, 0, 0) + b"\7web.com\4test\0\0\1\0\1", NXDOMAIN, None),
        (packet(b"1.0.64.127.in-addr.arpa", 12), NXDOMAIN, None),
        (packet(klass=3), REFUSED, None),
        (packet(flags=0x2800), NOTIMP, None),
        (packet(flags=0x8180), IGNORE, None),
        (packet()[:11], IGNORE, None),
        (packet()[:-1], FORMERR, None),
        (packet()[:15], FORMERR, None),
        (packet(counts=(2, 0, 0, 0)), FORMERR, None),
        (packet(counts=(1, 1, 0, 0)), FORMERR, None),
        (struct.pack("!6H", 7, 256, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", FORMERR, None),
    ],
)  # fmt: skip
def test_questions(wire: ctypes.CDLL, data: bytes, code: int, asked: bytes | None) -> None:
    got, question = read(wire, data)
    assert got == code
    assert asked is None or question.name == asked


def test_answers_word_for_word(wire: ctypes.CDLL) -> None:
    """The question comes back as it was written; A has an address, all other types none."""
    asked = packet(b"WeB.TeST")
    fields = struct.pack("!HHHIH", 0xC00C, 1, 1, 1, 4) + b"\x7f\x40\0\1"
    assert (
        answer(wire, asked, 0, 0x7F400001) == struct.pack("!6H", 7, 0x8180, 1, 1, 0, 0) + asked[12:] + fields
    )
    for other in (28, 65, 255, 15):
        asked = packet(type=other)
        assert answer(wire, asked, 0, 0x7F400001) == struct.pack("!6H", 7, 0x8180, 1, 0, 0, 0) + asked[12:]
    asked = packet(tail=edns(version=1), counts=(1, 0, 0, 1))
    opt = b"\0" + struct.pack("!HHIH", 41, 1232, 1 << 24, 0)
    assert answer(wire, asked, BADVERS, 0) == struct.pack("!6H", 7, 0x8180, 1, 0, 0, 1) + packet()[12:] + opt
    broken = packet(counts=(2, 0, 0, 0))
    assert answer(wire, broken, FORMERR, 0) == struct.pack("!6H", 7, 0x8181, 0, 0, 0, 0)
    assert answer(wire, packet(b"a.LocalHost"), 0, 0)[-4:] == b"\x7f\0\0\1"
    assert answer(wire, packet(b"notlocalhost"), NXDOMAIN, 0)[7] == 0


def ports(wire: ctypes.CDLL, head: bytes) -> list[int] | None:
    found = (ctypes.c_uint16 * 64)()
    count = wire.head_ports(head, ctypes.c_size_t(len(head)), found)
    return None if count < 0 else list(found[:count])


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (b"Bawn-Ports: 443,80", [443, 80]),
        (b"Via: x\r\nBAWN-PORTS:1 ,\t65535 ", [1, 65535]),
        (b"Bawn-Ports: 443,443", [443]),
        (b"Bawn-Ports: " + b",".join(b"%d" % p for p in range(1, 65)), list(range(1, 65))),
        (b"Bawn-Ports: " + b",".join(b"%d" % p for p in range(1, 66)), None),
        (b"Bawn-Ports: 0", None),
        (b"Bawn-Ports: 65536", None),
        (b"Bawn-Ports: 4294967739", None),
        (b"Bawn-Ports:", None),
        (b"Bawn-Ports: 443,", None),
        (b"Bawn-Ports: -1", None),
        (b"Bawn-Ports: 443 80", None),
        (b"Bawn-Ports: 443\r\nBawn-Ports: 80", None),
        (b"X-Bawn-Ports: 443", None),
        (b"Via: Bawn-Ports: 443", None),
    ],
)  # fmt: skip
def test_ports(wire: ctypes.CDLL, fields: bytes, wanted: list[int] | None) -> None:
    assert ports(wire, b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\n") == wanted


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200),
        (b"HTTP/1.1 403\r\n\r\n", 403),
        (b"HTTP/1.0 200 \r\n\r\n", 200),
        (b"HTTP/2 200 OK\r\n\r\n", -1),
        (b"HTTP/1.1 2000\r\n\r\n", -1),
        (b"HTTP/1.1  200\r\n\r\n", -1),
        (b"HTTP/1.1 20\r\n\r\n", -1),
        (b"\r\n\r\n", -1),
        (b"", -1),
    ],
)
def test_status(wire: ctypes.CDLL, head: bytes, wanted: int) -> None:
    size = ctypes.c_size_t(len(head))
    assert wire.head_length(head + b"body", ctypes.c_size_t(len(head) + 4)) == len(head)
    assert wire.head_length(head[:-1], ctypes.c_size_t(max(0, len(head) - 1))) == 0
    assert wire.head_status(head, size) == wanted
