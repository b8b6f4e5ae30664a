"""Finds a way to run commands in a workspace that works on this machine, by trying."""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from tools_sandbox import kernel, seccomp
from tools_sandbox.binaries import Bwrap
from tools_sandbox.bubblewrap import FORMS, Bubblewrap, Form
from tools_sandbox.errors import InvalidRequest, SandboxError, SandboxUnavailable
from tools_sandbox.info import SandboxInfo
from tools_sandbox.limits import Limits
from tools_sandbox.mounting import CannotMount, Mounts, Program
from tools_sandbox.places import Copied, Direct, Overlay, Place
from tools_sandbox.private import PrivateDirectory
from tools_sandbox.process import Launch, execute
from tools_sandbox.requests import checked_words
from tools_sandbox.result import Tier
from tools_sandbox.supervised import Supervised
from tools_sandbox.users import User, caller, command_user

# By its absolute path, which must be reachable too.
_PROBE = 'if [ -w "$PWD" ]; then echo writable; else echo read-only; fi'
_PROBE_TIMEOUT_S = 30.0
_DOCS = "see docs/sandbox.md"


View = Literal["best", "overlay", "overlay-disk", "copy"]
"""`overlay` keeps changes in memory and `overlay-disk` in the directory for temporary files; `best`
takes the first of the three that works, in this order."""


class Backend(Protocol):
    """What a tier provides."""

    def info(self) -> SandboxInfo:
        """What the tier is, and how it keeps the limits."""

    def launch(self, words: Sequence[str], status_fd: int) -> AbstractContextManager[Launch]:
        """Prepare to start a program."""

    def close(self) -> None:
        """Release what outlives single commands."""


@dataclass(frozen=True)
class Opened:
    """A way that works."""

    place: Place
    backend: Backend
    info: SandboxInfo
    backend_for: Callable[[Place], Backend]
    """The same way for another workspace."""


@dataclass(frozen=True)
class Wish:
    """What a caller wants opened."""

    directory: Path
    limits: Limits
    view: View | None
    """None to use the directory itself; or how to make a view of it, which then is pristine."""


def open_supervised(wish: Wish, tier: Tier) -> Opened:
    """Open a workspace in tier `landlock` or `none`.

    Raises:
        SandboxUnavailable: the tier does not work here.
        InvalidRequest: the workspace can't be used.
    """
    check_machine()
    user = caller() if tier is Tier.NONE else command_user(wish.directory)
    if wish.view in ("overlay", "overlay-disk"):
        raise SandboxUnavailable(f"tier {tier.value} has no overlay: ask for a copy")
    place = Copied(wish.directory, user) if wish.view else Direct(wish.directory, user)

    def backend_for(place: Place) -> Backend:
        return Supervised(place, wish.limits, tier)

    try:
        opened, problem = _tried(place, backend_for)
    except BaseException:
        place.close()
        raise
    if opened:
        return opened
    place.close()
    raise SandboxUnavailable(f"tier {tier.value} can't run a command: {problem}")


def open_bubblewrap(wish: Wish, bwraps: Sequence[Bwrap]) -> Opened:
    """Open a workspace in tier `bubblewrap`, with the first program, view and form that work.

    Raises:
        SandboxUnavailable: none works here.
        InvalidRequest: the workspace can't be used.
    """
    check_machine()
    if not bwraps:
        raise SandboxUnavailable(
            "no bubblewrap answers on this machine: apt install bubblewrap or "
            f"pip install 'edge-agentic[sandbox]'{_weaker()}"
        )
    refused: list[str] = []
    views_refused: list[str] = []
    verdicts: list[str] = []
    for bwrap in bwraps:
        for kind, make in _places(wish, bwrap):
            try:
                place = make()
            except CannotMount as error:
                views_refused.append(f"{kind}: {error}")
                refused.append(f"{_name(bwrap)}: {error}")
                continue
            try:
                opened = _first_form(place, wish, bwrap, refused)
            except BaseException:
                place.close()
                raise
            if opened:
                info = replace(opened.info, views_refused=tuple(views_refused))
                return replace(opened, info=info)
            place.close()
        # The least demanding form fails for the reason that the others can't avoid either.
        verdicts.append(refused[-1])
    raise SandboxUnavailable(f"{'; '.join(verdicts)}; {_remedy(verdicts[0])}{_weaker()}")


def check_machine() -> None:
    """Refuse a machine on which no tier works.

    Raises:
        SandboxUnavailable: the kernel is too old, or the machine of another kind.
    """
    if not seccomp.supported():
        raise SandboxUnavailable(
            f"this machine is a {platform.machine()}: an x86-64 or aarch64 one is needed"
        )
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        raise SandboxUnavailable(
            f"process descriptors don't work here ({error.strerror}): Linux 5.3 or later is needed"
        ) from None


def _first_form(place: Place, wish: Wish, bwrap: Bwrap, refused: list[str]) -> Opened | None:
    for form in FORMS:
        so_far = tuple(refused)

        def backend_for(
            place: Place, form: Form = form, so_far: tuple[str, ...] = so_far
        ) -> Backend:
            return Bubblewrap(place, wish.limits, bwrap, form, so_far)

        opened, problem = _tried(place, backend_for)
        if opened:
            return opened
        refused.append(f"{_name(bwrap)}, {form.name}: {problem}")
    return None


def _places(wish: Wish, bwrap: Bwrap) -> Iterator[tuple[str, Callable[[], Place]]]:
    """The ways to provide the files, the best first."""
    user = command_user(wish.directory)
    program = _carried(bwrap)

    def bound(directory: Path, user: User) -> Mounts:
        return Mounts(directory, user, program=program)

    through = None if user.is_caller else bound
    if wish.view is None:
        yield "direct", lambda: _direct(wish.directory, user, through)
    if wish.view in ("best", "overlay"):
        yield "overlay", lambda: _overlay(wish, user, program)
    if wish.view in ("best", "overlay-disk"):
        yield "overlay-disk", lambda: _overlay_on_disk(wish, user, program)
    if wish.view in ("best", "copy"):
        yield "copy", lambda: Copied(wish.directory, user, through)


def _direct(directory: Path, user: User, through: Callable[[Path, User], Mounts] | None) -> Place:
    return Direct(directory, user, through(directory, user) if through else None)


def _overlay(wish: Wish, user: User, program: Program | None) -> Place:
    limits = wish.limits
    mounts = Mounts(
        wish.directory,
        user,
        size_bytes=limits.workspace_bytes,
        files=limits.workspace_files,
        program=program,
    )
    return _over(mounts, user, None)


def _overlay_on_disk(wish: Wish, user: User, program: Program | None) -> Place:
    scratch = PrivateDirectory()
    try:
        layers = scratch.path / "layers"
        layers.mkdir(mode=0o700)
        os.chown(layers, user.uid, user.gid)
        mounts = Mounts(wish.directory, user, scratch=layers, program=program)
        return _over(mounts, user, scratch)
    except BaseException:
        scratch.remove()
        raise


def _over(mounts: Mounts, user: User, scratch: PrivateDirectory | None) -> Place:
    try:
        return Overlay(mounts, user, scratch)
    except SandboxError as error:
        mounts.close()
        raise CannotMount(str(error)) from None


def _carried(bwrap: Bwrap) -> Program | None:
    """A bubblewrap to be shown beside the views: any but the one that everybody can reach.

    That one also has to stay where it is, since AppArmor knows it by its path.
    """
    if bwrap.path.is_relative_to("/usr"):
        return None
    # The package from pip keeps a library beside itself.
    directory = bwrap.path.parents[2] if bwrap.origin == "wheel" else bwrap.path.parent
    return Program(directory, str(bwrap.path.relative_to(directory)))


def _tried(
    place: Place, backend_for: Callable[[Place], Backend]
) -> tuple[Opened | None, str | None]:
    """Run a command; the reason why that does not work, if it does not."""
    backend = backend_for(place)
    try:
        problem = _problem(place, backend)
        if problem is None:
            launch = execute(
                lambda fd: backend.launch(checked_words(["/bin/true"]), fd),
                timeout_s=_PROBE_TIMEOUT_S,
                limits=Limits(),
            )
            info = replace(backend.info(), launch_ns=launch.duration_ns)
            return Opened(place, backend, info, backend_for), None
    except BaseException:
        backend.close()
        raise
    backend.close()
    return None, problem


def _problem(place: Place, backend: Backend) -> str | None:
    try:
        result = execute(
            lambda fd: backend.launch(checked_words(_PROBE), fd),
            timeout_s=_PROBE_TIMEOUT_S,
            limits=Limits(),
        )
    except SandboxError as error:
        if "Can't chdir to" not in str(error):
            return str(error)
    else:
        if result.output == "writable\n":
            return None
        if result.output != "read-only\n":
            return result.output.strip() or "no answer to a test command"
    who = f"user {place.user.uid}, who runs its commands"
    raise InvalidRequest(
        f"workspace {place.source!r}: not writable inside the sandbox; it must belong to {who}, "
        "and every directory above it be open to him"
    )


def _name(bwrap: Bwrap) -> str:
    return f"{bwrap.path} {bwrap.version} ({bwrap.origin})"


def _weaker() -> str:
    """What else could be asked for."""
    if kernel.landlock_abi() == 0:
        return ""
    return "; or ask for tier landlock by name, which works here and stops less"


def _remedy(problem: str) -> str:
    if "setting up uid map: Permission denied" in problem or "RTM_NEWADDR" in problem:
        return (
            "AppArmor forbids user namespaces: "
            f"load a profile that grants userns to /usr/bin/bwrap, {_DOCS}"
        )
    if "max_*_namespaces" in problem or "non-privileged user namespaces" in problem:
        return (
            "user namespaces are switched off: set user.max_user_namespaces, or on older Debian "
            f"kernels kernel.unprivileged_userns_clone, by sysctl, {_DOCS}"
        )
    return f"for what a machine or a container must allow, {_DOCS}"
