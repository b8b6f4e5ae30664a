"""Tiers `landlock` and `none`: the command runs on the machine itself, under a supervisor."""

import marshal
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tools_sandbox import kernel, landlock, seccomp
from tools_sandbox.environment import fixed_environment
from tools_sandbox.errors import InvalidRequest, SandboxUnavailable
from tools_sandbox.info import SandboxInfo
from tools_sandbox.limits import Limits, limit_statuses, prlimit_argv
from tools_sandbox.places import Place
from tools_sandbox.private import PrivateDirectory
from tools_sandbox.process import Launch, memory_file
from tools_sandbox.removal import remove_tree
from tools_sandbox.result import Tier

_ROOT = Path(__file__).resolve().parent.parent
_PROGRAM = (
    "import marshal, sys; sys.path.insert(0, sys.argv[1]); "
    "from tools_sandbox.supervisor import main; main(**marshal.load(open(int(sys.argv[2]), 'rb')))"
)

# Beside its bytes a word costs an end mark and a pointer.
_WORD_COST_BYTES = 9


class Supervised:
    """Starts commands in a workspace, under Landlock or with no isolation at all."""

    def __init__(self, place: Place, limits: Limits, tier: Tier) -> None:
        if not sys.executable:
            raise SandboxUnavailable(f"tier {tier.value} needs a Python to supervise commands")
        self._abi = kernel.landlock_abi() if tier is Tier.LANDLOCK else None
        if self._abi == 0:
            raise SandboxUnavailable(
                "tier landlock: this kernel has no Landlock, or does not start it; "
                "Linux 5.13 or later with 'landlock' among the lsm= of its command line is needed"
            )
        self._tier = tier
        self._place = place
        self._limits = limits
        self._filter = (
            seccomp.guard_filter() if self._abi is None else seccomp.landlock_filter(self._abi)
        )
        # The kernel counts all processes of a user. Only one of its own has none but commands.
        self._limit_processes = place.user.is_dedicated
        self._private = PrivateDirectory()

    def info(self) -> SandboxInfo:
        """What this tier is, and how it keeps the limits."""
        return SandboxInfo(
            tier=self._tier,
            limits=limit_statuses(
                self._limits,
                sized_tmpfs=False,
                processes=self._limit_processes,
                sized_workspace=self._place.bounded,
            ),
            view=self._place.kind,
            command_uid=self._place.user.uid,
            landlock_abi=self._abi,
            filter_sha256=seccomp.fingerprint(self._filter),
            has_proc=self._abi is None,
            nested_namespaces_blocked=self._abi is not None,
        )

    @contextmanager
    def launch(self, words: Sequence[str], status_fd: int) -> Iterator[Launch]:
        """Prepare to start a program; its home and temporary directory last as long as it does."""
        if sum(len(os.fsencode(word)) + _WORD_COST_BYTES for word in words) > _most_words_bytes():
            raise InvalidRequest("the command's words are too long together")
        with ExitStack() as stack:
            home, tmp = self._private_directories(stack)
            rules = None
            if self._abi is not None:
                rules = landlock.ruleset((self._place.path, home, tmp))
                stack.callback(os.close, rules)
            user = self._place.user
            settings = {
                "words": [*prlimit_argv(self._limits, processes=self._limit_processes), *words],
                "caller": os.getpid(),
                "status_fd": status_fd,
                "uid": user.uid,
                "gid": user.gid,
                "filter": self._filter,
                "rules": rules,
            }
            # Not among the words, one of which may not be longer than 128 KiB.
            settings_fd = memory_file("settings", marshal.dumps(settings), stack)
            program = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT)]
            yield Launch(
                tier=self._tier,
                argv=(*program, str(settings_fd)),
                env=fixed_environment(home=str(home), tmp=str(tmp)),
                cwd=self._place.path,
                inherited_fds=(settings_fd,) if rules is None else (settings_fd, rules),
                stop_signal=signal.SIGTERM,
            )

    def close(self) -> None:
        """Remove the directory that holds the private ones."""
        self._private.remove()

    def _private_directories(self, stack: ExitStack) -> tuple[Path, Path]:
        private = self._private.path / secrets.token_hex(16)
        private.mkdir(mode=0o711)
        stack.callback(remove_tree, private)
        home, tmp = private / "home", private / "tmp"
        for directory in (home, tmp):
            directory.mkdir(mode=0o700)
            if not self._place.user.is_caller:
                os.chown(directory, self._place.user.uid, self._place.user.gid)
        return home, tmp


def _most_words_bytes() -> int:
    # What the fixed environment and the words of prlimit take comes off.
    return os.sysconf("SC_ARG_MAX") - 16 * 1024
