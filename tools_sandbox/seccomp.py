"""Filters of system calls: what no command needs, and what would lead out of a sandbox."""

import errno
import hashlib
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Classic BPF: load a word; jump if equal, greater or equal, or if bits are set; return.
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH = 0, 4
_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000
_NEW_NAMESPACES |= 0x10000000 | 0x20000000 | 0x40000000
_SET_USER_ID = 0o4000
# Without these flags a call that opens a file does not look at its mode.
_CREATES = 0o100 | 0o20000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_ALL = 0xFFFFFFFF
_FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink

# The number of each call on x86-64 and on aarch64; None where a machine does not have it.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chmod": (90, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "creat": (85, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fsopen": (430, 430),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "mount": (165, 40),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setns": (308, 268),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "syslog": (103, 116),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}

# Calls that an unprivileged process may make, and that reach into other processes, the kernel's
# own state or new namespaces. What needs a capability needs no rule: a command has none.
_FORBIDDEN = (
    "add_key",
    "bpf",
    "fsopen",
    "keyctl",
    "mount",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "request_key",
    "setns",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
)
# Programs fall back where a call does not exist. A filter can't see into the structures that
# clone3 and openat2 take; the memory behind the others belongs to no process that is watched.
_ABSENT = (
    "clone3",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "memfd_create",
    "memfd_secret",
    "openat2",
    "shmget",
)
# The host's own, in a tier without namespaces. What is there already needs no `…get`, since the
# numbers of System V objects are small and easily guessed.
_HOST_OBJECTS = (
    "mq_open",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "shmat",
    "shmctl",
)
_MODE_ARGUMENTS = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "creat": 1,
    "mkdir": 1,
    "mkdirat": 2,
    "mknod": 1,
    "mknodat": 2,
}
_FLAG_ARGUMENTS = {"open": 1, "openat": 2}


@dataclass(frozen=True)
class _Rule:
    """One call that fails: always, or depending on the low half of one argument."""

    call: str
    code: int = errno.EPERM
    argument: int = 0
    test: Literal["always", "any_bit", "equal", "not_equal"] = "always"
    values: tuple[int, ...] = ()
    unless_no_bit: tuple[int, int] | None = None
    """Another argument, and the bits of it without which the call is allowed."""


def bubblewrap_filter(machine: str | None = None) -> bytes:
    """The filter of tier `bubblewrap` for a machine, this one unless given.

    It is in the form that the kernel takes. All filters are for x86-64 and aarch64 only.
    """
    return _assemble(_common(), machine)


def landlock_filter(abi: int, machine: str | None = None) -> bytes:
    """The filter of tier `landlock`, which has no namespaces to rely on.

    Sockets, System V objects and message queues are the host's there, so there are none; nor can
    the limits of another process be set. Before version 3, Landlock does not see a truncation by
    name.
    """
    rules = [rule for rule in _common() if rule.call != "socket"]
    rules += [_Rule("socket"), _Rule("kill", argument=0, test="equal", values=(_ALL,))]
    rules.append(_Rule("prlimit64", argument=0, test="not_equal", values=(0,)))
    rules += [_Rule(call, errno.ENOSYS) for call in _HOST_OBJECTS]
    if abi < 3:
        rules.append(_Rule("truncate"))
    return _assemble(rules, machine)


def guard_filter(machine: str | None = None) -> bytes:
    """The filter of tier `none`: a signal to every process of the user can't be sent."""
    return _assemble([_Rule("kill", argument=0, test="equal", values=(_ALL,))], machine)


def fingerprint(program: bytes) -> str:
    """A filter's SHA-256, for the record."""
    return hashlib.sha256(program).hexdigest()


def supported(machine: str | None = None) -> bool:
    """Whether filters can be made for a machine; for this one unless given."""
    return (machine or os.uname().machine) in _AUDIT_ARCH


def _common() -> list[_Rule]:
    rules = [_Rule(call) for call in _FORBIDDEN]
    rules += [_Rule(call, errno.ENOSYS) for call in _ABSENT]
    rules += [
        _Rule("clone", argument=0, test="any_bit", values=(_NEW_NAMESPACES,)),
        _Rule("ioctl", argument=1, test="equal", values=(_TIOCSTI, _TIOCLINUX)),
        _Rule("socket", errno.EAFNOSUPPORT, argument=0, test="not_equal", values=_FAMILIES),
    ]
    rules += [
        _Rule(call, argument=argument, test="any_bit", values=(_SET_USER_ID,))
        for call, argument in _MODE_ARGUMENTS.items()
    ]
    rules += [
        _Rule(
            call,
            argument=flags + 1,
            test="any_bit",
            values=(_SET_USER_ID,),
            unless_no_bit=(flags, _CREATES),
        )
        for call, flags in _FLAG_ARGUMENTS.items()
    ]
    return rules


def _assemble(rules: Iterable[_Rule], machine: str | None) -> bytes:
    machine = machine or os.uname().machine
    column = list(_AUDIT_ARCH).index(machine)
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_JEQ, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_LOAD, 0, 0, _NR),
    ]
    if machine == "x86_64":
        program += [(_JGE, 0, 1, _X32_BIT), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for rule in rules:
        number = _NUMBERS[rule.call][column]
        if number is not None:
            body = _body(rule)
            program += [(_JEQ, 0, len(body), number), *body]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _body(rule: _Rule) -> list[tuple[int, int, int, int]]:
    """The instructions for a call that is at hand; they end with its number loaded again."""
    refuse = (_RETURN, 0, 0, _ERRNO | rule.code)
    if rule.test == "always":
        return [refuse]
    body = [_load(rule.argument)]
    count = len(rule.values)
    for index, value in enumerate(rule.values):
        rest = count - index - 1
        if rule.test == "not_equal":
            body.append((_JEQ, rest + 1, 0, value))
        else:
            body.append((_JSET if rule.test == "any_bit" else _JEQ, rest, int(rest == 0), value))
    body.append(refuse)
    if rule.unless_no_bit:
        argument, bits = rule.unless_no_bit
        body = [_load(argument), (_JSET, 0, len(body), bits), *body]
    return [*body, (_LOAD, 0, 0, _NR)]


def _load(argument: int) -> tuple[int, int, int, int]:
    # Both machines are little-endian, so that the low half of an argument comes first.
    return (_LOAD, 0, 0, 16 + 8 * argument)
