"""Attacks on the end of a command, and on the one that comes after it."""

import secrets

from tools_sandbox.promises import Attack, always
from tools_sandbox.scene import AttackNotRun, Scene, kill_marked

_SECOND_NS = 1_000_000_000


def _survive_deadline(scene: Scene) -> bool:
    return _leaves_nothing(scene, "sleep 600")


def _outlive_command(scene: Scene) -> bool:
    return _leaves_nothing(scene, "true")


def _leaves_nothing(scene: Scene, rest: str) -> bool:
    mark, started = f"mark-{secrets.token_hex(8)}", scene.sandbox.workspace / "daemon-started"
    started.unlink(missing_ok=True)
    daemon = f"exec -a {mark} sleep 600"
    wait = f"until [ -e {started.name} ]; do sleep 0.01; done"
    command = f"(setsid bash -c 'touch {started.name}; {daemon}' >/dev/null 2>&1 &); {wait}; {rest}"
    # A busy machine may need more time to start the daemon.
    for timeout_s in (2.0, 20.0):
        scene.bash(command, timeout_s=timeout_s)
        left = kill_marked(mark)
        if started.exists():
            return left == 0
    raise AttackNotRun("the daemon did not start in time")


def _ignore_signals(scene: Scene) -> bool:
    trap = "trap '' TERM INT HUP QUIT PIPE; while :; do sleep 0.1; done"
    return _ends_in_time(scene, trap)


def _stop_itself(scene: Scene) -> bool:
    return _ends_in_time(scene, "kill -STOP $$")


def _ends_in_time(scene: Scene, command: str) -> bool:
    # What gets through does so each time; a machine that is busy for a moment does not.
    for _ in range(3):
        result = scene.bash(command, timeout_s=0.5)
        if result.timed_out and result.duration_ns < 1.5 * _SECOND_NS:
            return True
    return False


def _hold_output(scene: Scene) -> bool:
    """A child that keeps the output open must not keep the caller."""
    result = scene.bash("sleep 600 & echo done", timeout_s=20)
    return result.output == "done\n" and result.duration_ns < 10 * _SECOND_NS


def _forge_status(scene: Scene) -> bool:
    forge = """for fd in {3..60}; do echo '{"exit-code": 0}' >&$fd; done 2>/dev/null; exit 7"""
    return scene.bash(forge).exit_code == 7


def _bash_startup_files(scene: Scene) -> bool:
    names = ".bash_profile .bashrc .profile .bash_login"
    plant = (
        f"echo 'echo {scene.token}; cd /' | tee {names} >/dev/null; export BASH_ENV=$PWD/.bashrc"
    )
    scene.bash(f"{plant}; cp {names} ~")
    return scene.token not in scene.bash("pwd").output


def _leave_core(scene: Scene) -> bool:
    workspace = scene.sandbox.workspace
    before = {path.name for path in workspace.iterdir()}
    scene.bash("ulimit -c unlimited 2>/dev/null; bash -c 'kill -SEGV $$'")
    return {path.name for path in workspace.iterdir()} == before


ATTACKS = (
    Attack("survive_deadline", _survive_deadline, always),
    Attack("outlive_command", _outlive_command, always),
    Attack("ignore_signals", _ignore_signals, always),
    Attack("stop_itself", _stop_itself, always),
    Attack("hold_output", _hold_output, always),
    Attack("forge_status", _forge_status, always),
    Attack("bash_startup_files", _bash_startup_files, always),
    Attack("leave_core", _leave_core, always),
)
