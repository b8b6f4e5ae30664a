"""A filter refuses the calls it is there for, on both kinds of machine, and no others."""

import errno
import struct

import pytest

from tools_sandbox.seccomp import (
    bubblewrap_filter,
    fingerprint,
    guard_filter,
    landlock_filter,
    supported,
)

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = "allowed"
NEW_USER = 0x10000000
CREATE, SET_USER_ID = 0o100, 0o4000


def verdict(program: bytes, architecture: int, number: int, *words: int) -> str:
    """What the kernel would do: classic BPF, run over the data of one call."""
    arguments = [word & 0xFFFFFFFFFFFFFFFF for word in words] + [0] * (6 - len(words))
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments)
    code = list(struct.iter_unpack("<HBBI", program))
    place, value = 0, 0
    while True:
        operation, if_true, if_false, operand = code[place]
        place += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x06:
            return ALLOWED if operand == 0x7FFF0000 else errno.errorcode[operand & 0xFFFF]
        else:
            holds = {
                0x15: value == operand,
                0x35: value >= operand,
                0x45: bool(value & operand),
            }[operation]
            place += if_true if holds else if_false


@pytest.mark.parametrize(
    ("x86_64", "aarch64", "words", "expected"),
    [
        pytest.param(0, 63, (0, 0, 100), ALLOWED, id="read"),
        pytest.param(59, 221, (), ALLOWED, id="execve"),
        pytest.param(101, 117, (16, 1), "EPERM", id="ptrace"),
        pytest.param(272, 97, (NEW_USER,), "EPERM", id="unshare"),
        pytest.param(308, 268, (3,), "EPERM", id="setns"),
        pytest.param(56, 220, (NEW_USER | 17,), "EPERM", id="clone for a namespace"),
        pytest.param(56, 220, (0x01200011,), ALLOWED, id="fork"),
        pytest.param(56, 220, (0x003D0F00,), ALLOWED, id="clone for a thread"),
        pytest.param(435, 435, (0, 88), "ENOSYS", id="clone3"),
        pytest.param(425, 425, (1, 0), "ENOSYS", id="io_uring_setup"),
        pytest.param(310, 270, (1,), "EPERM", id="process_vm_readv"),
        pytest.param(321, 280, (0,), "EPERM", id="bpf"),
        pytest.param(250, 219, (0, -3), "EPERM", id="keyctl"),
        pytest.param(16, 29, (0, 0x5412), "EPERM", id="ioctl TIOCSTI"),
        pytest.param(16, 29, (0, 0xFFFFFFFF00005412), "EPERM", id="ioctl TIOCSTI disguised"),
        pytest.param(16, 29, (0, 0x541C), "EPERM", id="ioctl TIOCLINUX"),
        pytest.param(16, 29, (0, 0x5413), ALLOWED, id="ioctl for the size of a window"),
        pytest.param(41, 198, (1, 1), ALLOWED, id="socket AF_UNIX"),
        pytest.param(41, 198, (2, 1), ALLOWED, id="socket AF_INET"),
        pytest.param(41, 198, (16, 3), ALLOWED, id="socket AF_NETLINK"),
        pytest.param(41, 198, (38, 5), "EAFNOSUPPORT", id="socket AF_ALG"),
        pytest.param(41, 198, (40, 1), "EAFNOSUPPORT", id="socket AF_VSOCK"),
        pytest.param(91, 52, (3, 0o755), ALLOWED, id="fchmod"),
        pytest.param(91, 52, (3, 0o2775), ALLOWED, id="fchmod set-group-id"),
        pytest.param(91, 52, (3, 0o4755), "EPERM", id="fchmod set-user-id"),
        pytest.param(257, 56, (3, 0, CREATE, SET_USER_ID | 0o755), "EPERM", id="openat to make"),
        pytest.param(257, 56, (3, 0, CREATE, 0o644), ALLOWED, id="openat to make a plain file"),
        pytest.param(257, 56, (3, 0, 0, 0xDEADBEEF), ALLOWED, id="openat to read, garbage mode"),
        pytest.param(62, 129, (-1, 9), ALLOWED, id="kill within the namespace"),
    ],
)
def test_the_filter_of_bubblewrap(
    x86_64: int, aarch64: int, words: tuple[int, ...], expected: str
) -> None:
    for machine, number in (("x86_64", x86_64), ("aarch64", aarch64)):
        program = bubblewrap_filter(machine)
        assert verdict(program, ARCHITECTURES[machine], number, *words) == expected, machine


@pytest.mark.parametrize(
    ("x86_64", "aarch64", "words", "expected"),
    [
        pytest.param(41, 198, (1, 1), "EPERM", id="socket"),
        pytest.param(53, 199, (1, 1), ALLOWED, id="socketpair"),
        pytest.param(62, 129, (-1, 9), "EPERM", id="kill everybody"),
        pytest.param(62, 129, (0xFFFFFFFF, 9), "EPERM", id="kill everybody, half a word"),
        pytest.param(62, 129, (1234, 9), ALLOWED, id="kill one"),
        pytest.param(29, 194, (1, 1, 0), "ENOSYS", id="shmget"),
        pytest.param(30, 196, (5, 0, 0), "ENOSYS", id="shmat by number"),
        pytest.param(31, 195, (5, 0), "ENOSYS", id="shmctl by number"),
        pytest.param(70, 188, (5,), "ENOSYS", id="msgrcv by number"),
        pytest.param(65, 193, (5,), "ENOSYS", id="semop by number"),
        pytest.param(241, 181, (), "ENOSYS", id="mq_unlink"),
        pytest.param(302, 261, (0, 7), ALLOWED, id="prlimit64 of itself"),
        pytest.param(302, 261, (1234, 0), "EPERM", id="prlimit64 of another"),
        pytest.param(101, 117, (16, 1), "EPERM", id="ptrace"),
    ],
)
def test_the_filter_of_landlock(
    x86_64: int, aarch64: int, words: tuple[int, ...], expected: str
) -> None:
    for machine, number in (("x86_64", x86_64), ("aarch64", aarch64)):
        program = landlock_filter(3, machine)
        assert verdict(program, ARCHITECTURES[machine], number, *words) == expected, machine


def test_truncation_by_name_is_refused_where_landlock_does_not_see_it() -> None:
    assert verdict(landlock_filter(2, "x86_64"), ARCHITECTURES["x86_64"], 76) == "EPERM"
    assert verdict(landlock_filter(3, "x86_64"), ARCHITECTURES["x86_64"], 76) == ALLOWED


def test_without_isolation_only_a_signal_to_everybody_is_refused() -> None:
    for machine, kill, socket in (("x86_64", 62, 41), ("aarch64", 129, 198)):
        program, architecture = guard_filter(machine), ARCHITECTURES[machine]
        assert verdict(program, architecture, kill, -1, 9) == "EPERM"
        assert verdict(program, architecture, kill, 5, 9) == ALLOWED
        assert verdict(program, architecture, socket, 38) == ALLOWED


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_of_another_architecture_are_refused(machine: str) -> None:
    i386, arm = 0x40000003, 0x40000028
    for other in (i386, arm, *(set(ARCHITECTURES.values()) - {ARCHITECTURES[machine]})):
        assert verdict(bubblewrap_filter(machine), other, 0) == "EPERM"


def test_the_second_set_of_numbers_of_x86_is_refused() -> None:
    assert verdict(bubblewrap_filter("x86_64"), ARCHITECTURES["x86_64"], 0x40000000) == "ENOSYS"


def test_a_filter_has_a_fingerprint_and_fits_what_the_kernel_takes() -> None:
    for machine in ARCHITECTURES:
        assert len(landlock_filter(1, machine)) // 8 < 4096
    assert fingerprint(bubblewrap_filter("x86_64")) != fingerprint(bubblewrap_filter("aarch64"))
    assert not supported("riscv64")
