"""Attacks on the host's files from a command."""

import os
import stat
from pathlib import Path
from shlex import quote

from tools_sandbox.promises import Attack, isolated, isolated_or_other_user, walled
from tools_sandbox.scene import AttackNotRun, Scene


def _read_host_secret(scene: Scene) -> bool:
    return scene.token not in scene.bash(f"cat {quote(str(scene.secret))}").output


def _read_host_accounts(scene: Scene) -> bool:
    accounts = Path("/etc/passwd").read_text(errors="replace").splitlines()
    inside = scene.bash("cat /etc/passwd").output.splitlines()
    # An account line that any machine has proves nothing.
    if len(accounts) < 3:
        raise AttackNotRun("the host has fewer than three accounts")
    return len(set(accounts) & set(inside)) < 3


def _list_home(scene: Scene) -> bool:
    home = Path.home()
    try:
        itself = home.stat()
    except OSError:
        raise AttackNotRun("the user has no home directory") from None
    found = scene.bash(f"cd {quote(str(home))} && ls -A >/dev/null && stat -c %d:%i .").output
    return found.strip() != f"{itself.st_dev}:{itself.st_ino}"


def _write_outside(scene: Scene) -> bool:
    target = scene.outside / "written"
    scene.bash(f"mkdir -p {quote(str(scene.outside))}; echo x > {quote(str(target))}")
    return not target.exists()


def _truncate_outside(scene: Scene) -> bool:
    scene.bash(f"truncate -s 0 {quote(str(scene.secret))}")
    scene.python("import os, sys; os.truncate(sys.argv[1], 0)", str(scene.secret))
    return scene.secret.read_text() == scene.token


def _delete_outside(scene: Scene) -> bool:
    scene.bash(f"rm -f {quote(str(scene.secret))}; mv {quote(str(scene.secret))} taken")
    return scene.secret.exists()


def _change_mode_outside(scene: Scene) -> bool:
    scene.secret.chmod(0o600)
    scene.bash(f"chmod 644 {quote(str(scene.secret))}")
    return stat.S_IMODE(scene.secret.stat().st_mode) == 0o600


def _change_times_outside(scene: Scene) -> bool:
    os.utime(scene.secret, ns=(1, 1))
    scene.bash(f"touch -c {quote(str(scene.secret))}")
    return scene.secret.stat().st_mtime_ns == 1


def _stat_outside(scene: Scene) -> bool:
    inode = str(scene.secret.stat().st_ino)
    return scene.bash(f"stat -c %i {quote(str(scene.secret))}").output.strip() != inode


def _symlink_read(scene: Scene) -> bool:
    output = scene.bash(f"ln -sf {quote(str(scene.secret))} link-read && cat link-read").output
    return scene.token not in output


def _symlink_write(scene: Scene) -> bool:
    target = scene.outside / "written-through-link"
    scene.bash(f"ln -sf {quote(str(target))} link-write && echo x > link-write")
    return not target.exists()


def _directory_symlink_write(scene: Scene) -> bool:
    scene.bash(f"ln -sfn {quote(str(scene.outside))} link-directory && echo x > link-directory/new")
    return not (scene.outside / "new").exists()


def _hard_link_read(scene: Scene) -> bool:
    output = scene.bash(f"ln -f {quote(str(scene.secret))} hard-link && cat hard-link").output
    return scene.token not in output


def _write_system(scene: Scene) -> bool:
    places = [
        f"{top}/{scene.token}" for top in ("/usr", "/usr/bin", "/usr/lib", "/etc", "/", "/dev")
    ]
    try:
        scene.bash("; ".join(f"echo x > {place}" for place in places))
        return not any(Path(place).exists() for place in places)
    finally:
        for place in places:
            Path(place).unlink(missing_ok=True)


def _plant_set_user_id(scene: Scene) -> bool:
    scene.bash(
        "cp /bin/true planted; chmod u+s planted; chmod 4755 planted; install -m 4755 planted other"
    )
    files = [scene.sandbox.workspace / name for name in ("planted", "other")]
    modes = [path.stat().st_mode for path in files if path.exists()]
    return not any(mode & stat.S_ISUID for mode in modes)


def _make_device(scene: Scene) -> bool:
    disks = [path for path in Path("/dev").iterdir() if path.is_block_device()]
    if not disks:
        raise AttackNotRun("the host shows no disk to make a device of")
    number = disks[0].stat().st_rdev
    made = scene.bash(
        f"mknod disk b {os.major(number)} {os.minor(number)} && head -c 1 disk | wc -c"
    )
    return made.exit_code != 0 or made.output.strip() != "1"


ATTACKS = (
    Attack("read_host_secret", _read_host_secret, walled),
    Attack("read_host_accounts", _read_host_accounts, walled),
    Attack("list_home", _list_home, walled),
    Attack("write_outside", _write_outside, walled),
    Attack("truncate_outside", _truncate_outside, walled),
    Attack("delete_outside", _delete_outside, walled),
    Attack("change_mode_outside", _change_mode_outside, isolated_or_other_user),
    Attack("change_times_outside", _change_times_outside, isolated_or_other_user),
    Attack("stat_outside", _stat_outside, isolated),
    Attack("symlink_read", _symlink_read, walled),
    Attack("symlink_write", _symlink_write, walled),
    Attack("directory_symlink_write", _directory_symlink_write, walled),
    Attack("hard_link_read", _hard_link_read, walled),
    Attack("write_system", _write_system, walled, harmless=False),
    Attack("plant_set_user_id", _plant_set_user_id, walled, harmless=False),
    Attack("make_device", _make_device, walled, harmless=False),
)
