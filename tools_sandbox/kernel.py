"""System calls that Python has no functions for, as functions that raise `OSError`.

Also part of the supervisor, which starts before every command of two tiers: hence no modules that
take long to import.
"""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# landlock(7), the same numbers on every machine.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION_FLAG = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS, _RESOLVE_BENEATH = 0x02, 0x08
_SETFSUID, _SETFSGID = {"aarch64": (151, 152)}.get(os.uname().machine, (122, 123))

# mount(2) takes these; the first two are also what a private, recursive remount of `/` needs.
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000


def prctl(option: int, value: int = 0, pointer: object = 0) -> None:
    """Change an attribute of this process."""
    third = pointer if pointer else ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(value), third, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def unshare(flags: int) -> None:
    """Leave the caller's namespaces for new ones."""
    _check(_libc.unshare(flags))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _check(_libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data) if data else None))


def unmount(target: str) -> None:
    """Take a mount out of the tree, even while something still uses it."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH))


def raise_permitted_capabilities() -> None:
    """Make every capability that this process may have effective."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))

    class Data(ctypes.Structure):
        _fields_ = tuple(
            (name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")
        )

    header, data = Header(0x20080522, 0), (Data * 2)()
    _check(_libc.capget(ctypes.byref(header), data))
    for half in data:
        half.effective = half.permitted
    _check(_libc.capset(ctypes.byref(header), data))


def load_filter(program: bytes) -> None:
    """Put a filter of system calls on this process, for good."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    prctl(PR_SET_SECCOMP, 2, ctypes.byref(Program(len(program) // 8, program)))


def landlock_abi() -> int:
    """The version of Landlock that the kernel offers; 0 where it offers none."""
    found: int = _libc.syscall(
        ctypes.c_long(_LANDLOCK_CREATE_RULESET),
        ctypes.c_void_p(None),
        ctypes.c_size_t(0),
        ctypes.c_uint32(_LANDLOCK_VERSION_FLAG),
    )
    return max(0, found)


def landlock_ruleset(attributes: bytes) -> int:
    """A descriptor of a new rule set that handles the access rights in `attributes`."""
    return _check(
        _libc.syscall(
            ctypes.c_long(_LANDLOCK_CREATE_RULESET),
            ctypes.c_char_p(attributes),
            ctypes.c_size_t(len(attributes)),
            ctypes.c_uint32(0),
        )
    )


def landlock_allow(ruleset_fd: int, access: int, path_fd: int) -> None:
    """Add to a rule set: everything beneath `path_fd` may be used with these rights."""
    rule = access.to_bytes(8, "little") + path_fd.to_bytes(4, "little")
    _check(
        _libc.syscall(
            ctypes.c_long(_LANDLOCK_ADD_RULE),
            ctypes.c_int(ruleset_fd),
            ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH),
            ctypes.c_char_p(rule),
            ctypes.c_uint32(0),
        )
    )


def landlock_restrict_self(ruleset_fd: int) -> None:
    """Put this process and all that it starts under a rule set, for good."""
    _check(
        _libc.syscall(
            ctypes.c_long(_LANDLOCK_RESTRICT_SELF), ctypes.c_int(ruleset_fd), ctypes.c_uint32(0)
        )
    )


def open_beneath(directory_fd: int, path: str, flags: int, mode: int = 0) -> int:
    """Open a path that can't leave a directory: no `..` out of it, no link out of it.

    Raises:
        OSError: EXDEV for a path that leads out; ENOSYS before Linux 5.6.
    """
    how = b"".join(
        value.to_bytes(8, "little")
        for value in (flags | os.O_CLOEXEC, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    )
    while True:
        try:
            return _check(
                _libc.syscall(
                    ctypes.c_long(_OPENAT2),
                    ctypes.c_int(directory_fd),
                    ctypes.c_char_p(os.fsencode(path)),
                    ctypes.c_char_p(how),
                    ctypes.c_size_t(len(how)),
                )
            )
        except BlockingIOError:
            # The kernel says so where a rename elsewhere keeps it from being sure.
            continue


class FilesAs:
    """Within the block, this thread uses files as another user, with that user's rights only.

    Other threads are not concerned. The system calls never fail; they answer the value before.
    """

    def __init__(self, uid: int, gid: int) -> None:
        self._user, self._before = (uid, gid), (os.geteuid(), os.getegid())

    def __enter__(self) -> None:
        _filesystem_ids(*self._user)

    def __exit__(self, *exc: object) -> None:
        _filesystem_ids(*self._before)


def _filesystem_ids(uid: int, gid: int) -> None:
    # The group first: without the rights of root it could not be changed any more.
    groups_first = ((_SETFSGID, gid), (_SETFSUID, uid))
    for number, value in groups_first if uid else reversed(groups_first):
        _libc.syscall(ctypes.c_long(number), ctypes.c_uint(value))


def _check(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
