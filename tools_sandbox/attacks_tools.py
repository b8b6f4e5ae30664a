"""Attacks on the host's files through the file tools."""

from shlex import quote

from tools_sandbox.promises import Attack, always
from tools_sandbox.scene import Scene


def _tool_symlink_read(scene: Scene) -> bool:
    scene.bash(f"ln -sfn {quote(str(scene.secret))} tool-link")
    return scene.token not in scene.sandbox.files.read_file("tool-link").output


def _tool_symlink_write(scene: Scene) -> bool:
    scene.bash(f"ln -sfn {quote(str(scene.secret))} tool-link")
    scene.sandbox.files.write_file("tool-link", "x")
    scene.sandbox.files.str_replace("tool-link", scene.token, "x")
    return scene.secret.read_text() == scene.token


def _tool_dangling_link(scene: Scene) -> bool:
    target = scene.outside / "made-by-tool"
    scene.bash(f"ln -sfn {quote(str(target))} tool-dangling")
    scene.sandbox.files.write_file("tool-dangling", "x")
    return not target.exists()


def _tool_directory_link(scene: Scene) -> bool:
    files = scene.sandbox.files
    scene.bash(f"ln -sfn {quote(str(scene.outside))} tool-directory")
    files.write_file("tool-directory/through", "x")
    shown = (
        files.list_dir("tool-directory").output
        + files.grep(scene.token, "tool-directory", timeout_s=20).output
    )
    return not (scene.outside / "through").exists() and scene.secret.name not in shown


def _tool_parent_path(scene: Scene) -> bool:
    path = "../" * 40 + str(scene.secret).lstrip("/")
    read = scene.sandbox.files.read_file(path)
    scene.sandbox.files.write_file(path, "x")
    return scene.token not in read.output and scene.secret.read_text() == scene.token


def _tool_absolute_path(scene: Scene) -> bool:
    path = str(scene.secret)
    read = scene.sandbox.files.read_file(path)
    scene.sandbox.files.write_file(path, "x")
    return scene.token not in read.output and scene.secret.read_text() == scene.token


def _tool_magic_link(scene: Scene) -> bool:
    path = f"/proc/self/root{scene.secret}"
    scene.bash(f"ln -sfn {quote(path)} tool-magic")
    read = [scene.sandbox.files.read_file(each).output for each in ("tool-magic", path)]
    return not any(scene.token in text for text in read)


def _tool_pipe(scene: Scene) -> bool:
    scene.bash("rm -f tool-pipe; mkfifo tool-pipe")
    files = scene.sandbox.files
    # One that waits for the other end would never come back.
    outcomes = [files.read_file("tool-pipe"), files.write_file("tool-pipe", "x")]
    outcomes.append(files.str_replace("tool-pipe", "x", "y"))
    files.grep("x", ".", timeout_s=20)
    return not any(outcome.ok for outcome in outcomes)


def _tool_hard_link(scene: Scene) -> bool:
    outer = scene.outside / "linked"
    outer.write_text(scene.token)
    inner = scene.sandbox.workspace / "tool-hard"
    inner.unlink(missing_ok=True)
    try:
        inner.hardlink_to(outer)
    except OSError:
        scene.bash(f"ln {quote(str(outer))} tool-hard")
    scene.sandbox.files.write_file("tool-hard", "x")
    return outer.read_text() == scene.token


ATTACKS = tuple(
    Attack(action.__name__.lstrip("_"), action, always)
    for action in (
        _tool_symlink_read,
        _tool_symlink_write,
        _tool_dangling_link,
        _tool_directory_link,
        _tool_parent_path,
        _tool_absolute_path,
        _tool_magic_link,
        _tool_pipe,
        _tool_hard_link,
    )
)
