"""openat2(2), Linux 5.6: opens beneath a directory, and the kernel itself refuses what leads out."""

import ctypes
import errno
import os

_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08  # linux/openat2.h
_RESOLVE = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_NUMBER = 437  # the same on every architecture that Python runs on but alpha
_TRIES = 8  # EAGAIN: a rename was going on, and `..` could not be judged

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_syscall.restype = ctypes.c_long


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_How)
_made: dict[int, tuple[_How, int]] = {}  # by flags; a structure must outlive its address


def openat2(directory: int, path: str, flags: int) -> int:
    """A new descriptor, close-on-exec, of what lies beneath `directory` with no link on the way.

    Raises OSError; its errno is ENOSYS where the kernel lacks the call.
    """
    how = _made.get(flags)
    if how is None:
        value = _How(flags | os.O_CLOEXEC, 0, _RESOLVE)
        how = _made[flags] = (value, ctypes.addressof(value))
    name = path.encode(errors="surrogateescape")
    code = 0
    for _ in range(_TRIES):
        fd = _syscall(_NUMBER, directory, name, how[1], _SIZE)
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)
