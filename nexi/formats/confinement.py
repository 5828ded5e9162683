"""Takes from the process that parses a stranger's document what it does not need: the network, files, and its life without us.

Above sits `worker`, which calls it before the first byte is parsed; below, the Linux kernel by `ctypes`: seccomp, landlock and
the signal at a parent's death. Each protection is tried by itself, and those in force are returned: a sandbox around nexi, an
old kernel or another system may have none. What is parsed is not known here.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
import sysconfig
from pathlib import Path

import msgspec

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 1, 38, 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_SET_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # EPERM
_X32_BIT = 0x40000000

# By machine: how the kernel calls it, and the numbers of what is refused. io_uring could connect without a call of its own.
_CALLS = Path(__file__).with_suffix(".json").read_bytes()
_SYSTEM_CALLS = msgspec.json.decode(_CALLS, type=dict[str, tuple[int, dict[str, int]]])

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_FILE_RIGHTS_BY_VERSION = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_SYSTEM_FOLDERS = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/opt", "/nix/store", "/etc/ld.so.cache", "/etc/ld.so.conf.d")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def die_with_parent() -> None:
    """Let the kernel kill this process when the one that started it ends, however that ends."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    _set_process(ctypes.CDLL(None, use_errno=True), _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel knew
        os.kill(os.getpid(), signal.SIGKILL)


def confine_process(readable: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Give up network and files but those of the system and the `readable` ones; the names of the protections in force."""
    if sys.platform != "linux":
        return ()
    libc = ctypes.CDLL(None, use_errno=True)
    if not _set_process(libc, _PR_SET_NO_NEW_PRIVS, 1):
        return ()
    steps = {"files": _restrict_files(libc, readable), "network": _refuse_network(libc)}
    return tuple(name for name, is_in_force in steps.items() if is_in_force)


def _set_process(libc: ctypes.CDLL, option: int, value: int, argument: int = 0) -> bool:
    """Call prctl, whose arguments are all as long as an address. Whether the kernel agreed."""
    arguments = [ctypes.c_ulong(number) for number in (value, argument, 0, 0)]
    return bool(libc.prctl(ctypes.c_int(option), *arguments) == 0)


def _refuse_network(libc: ctypes.CDLL) -> bool:
    """Install a filter of system calls: those of the network and of other processes' memory fail."""
    if platform.machine() not in _SYSTEM_CALLS or struct.calcsize("P") != 8:
        return False
    architecture, numbers = _SYSTEM_CALLS[platform.machine()]
    calls = sorted(numbers.values())
    # A program of the kernel's packet filter: other architectures end the process, the refused calls get EPERM.
    steps = [(_LOAD, 0, 0, 4), (_JUMP_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    steps += [(_JUMP_SET_BITS, len(calls) + 1, 0, _X32_BIT)]
    steps += [(_JUMP_EQUAL, len(calls) - place, 0, number) for place, number in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    buffer = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer)))
    return _set_process(libc, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header))


def _restrict_files(libc: ctypes.CDLL, readable: tuple[str, ...]) -> bool:
    """Leave files of the system, of Python and of nexi to read, and nothing to write but devices."""
    version = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return False
    rights = _FILE_RIGHTS_BY_VERSION[min(version, 5)]
    # Files; from version 4 also TCP; from version 6 signals to processes outside and abstract sockets.
    attributes = struct.pack("QQQ", rights, 3, 3)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    # Where the interpreter and its libraries are; of a folder that holds a home, only what Python needs.
    paths = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *filter(None, sys.path)}
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - one that cannot be known is no error here
    python_folders = {path for path in paths if not home.is_relative_to(Path(path).resolve())}
    try:
        for path in {*_SYSTEM_FOLDERS, *python_folders, *readable}:
            _allow_path(libc, ruleset, path, _EXECUTE | _READ_FILE | _READ_FOLDER)
        for path in _DEVICES:
            _allow_path(libc, ruleset, path, _READ_FILE | _WRITE_FILE)
        return bool(libc.syscall(_LANDLOCK_RESTRICT, ruleset, ctypes.c_uint32(0)) == 0)
    finally:
        os.close(ruleset)


def _allow_path(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this system
    try:
        access = rights if Path(path).is_dir() else rights & ~_READ_FOLDER
        libc.syscall(_LANDLOCK_ADD, ruleset, ctypes.c_uint32(1), struct.pack("=Qi", access, handle), ctypes.c_uint32(0))
    finally:
        os.close(handle)
