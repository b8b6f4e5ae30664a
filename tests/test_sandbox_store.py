"""A pristine workspace is kept by its content, and nothing hostile is unpacked."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tools_sandbox.errors import InvalidRequest
from tools_sandbox.store import Store, tree_digest
from tools_sandbox.unpacking import Bounds


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", Bounds(size_bytes=1_000_000, files=100))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "source"
    (top / "src" / "empty").mkdir(parents=True)
    (top / "src" / "run.sh").write_text("echo hi\n")
    (top / "src" / "run.sh").chmod(0o700)
    (top / "new\nline").write_text("x")
    (top / "link").symlink_to("src/run.sh")
    (top / "dangling").symlink_to("src/nowhere")
    return top


def member(
    name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **more: object
) -> object:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def archive(path: Path, *members: object, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as writer:
        for info, content in members:
            writer.addfile(info, io.BytesIO(content))
    return path


def test_a_directory_is_kept_with_its_files_links_and_executable_bits(
    store: Store, source: Path
) -> None:
    kept = store.add_directory(source).path
    assert (kept / "src" / "run.sh").read_text() == "echo hi\n"
    assert (kept / "src" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (kept / "new\nline").stat().st_mode & 0o777 == 0o644
    assert (kept / "link").readlink() == Path("src/run.sh")
    assert (kept / "dangling").is_symlink()
    assert (kept / "src" / "empty").is_dir()
    assert {path.lstat().st_mtime for path in (kept, *kept.rglob("*"))} == {1704067200}


def test_the_same_content_is_kept_once_whatever_its_times_and_modes(
    store: Store, source: Path, tmp_path: Path
) -> None:
    first = store.add_directory(source)
    os.utime(source / "src" / "run.sh", (1, 1))
    (source / "new\nline").chmod(0o600)
    assert store.add_directory(source) == first
    assert first.digest == tree_digest(source)
    assert [p.name for p in (tmp_path / "store").iterdir()] == [first.path.name]


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "src" / "run.sh").write_text("echo ho\n"),
        lambda top: (top / "src" / "run.sh").chmod(0o600),
        lambda top: (top / "src" / "run.sh").rename(top / "src" / "go.sh"),
        lambda top: (top / "src" / "empty").rmdir(),
        lambda top: ((top / "dangling").unlink(), (top / "dangling").symlink_to("src")),
    ],
)
def test_another_content_has_another_digest(
    store: Store, source: Path, change: Callable[[Path], object]
) -> None:
    before = store.add_directory(source).digest
    change(source)
    assert store.add_directory(source).digest != before


def test_a_kept_workspace_that_somebody_has_changed_is_made_anew(
    store: Store, source: Path
) -> None:
    kept = store.add_directory(source).path
    (kept / "src" / "run.sh").write_text("rm -rf /\n")
    assert store.add_directory(source).path == kept
    assert (kept / "src" / "run.sh").read_text() == "echo hi\n"


def test_directories_can_be_left_out(store: Store, source: Path) -> None:
    before = store.add_directory(source).digest
    (source / "src" / "__pycache__" / "deep").mkdir(parents=True)
    (source / "src" / "__pycache__" / "deep" / "x").touch()
    assert store.add_directory(source, leave_out="__pycache__").digest == before


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_and_a_directory_of_the_same_content_are_one(
    store: Store, source: Path, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "archive"
    with tarfile.open(path, mode) as writer:
        writer.add(source, arcname=".")
    assert store.add_archive(path) == store.add_directory(source)


def test_hard_links_of_an_archive_become_files_of_their_own(store: Store, tmp_path: Path) -> None:
    path = archive(
        tmp_path / "a", member("one", content=b"x"), member("two", tarfile.LNKTYPE, linkname="one")
    )
    kept = store.add_archive(path).path
    assert (kept / "two").read_text() == "x"
    assert (kept / "two").stat().st_nlink == 1


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member("../out")], "leads out"),
        ([member("a/../../out")], "leads out"),
        ([member("/etc/out")], "absolute name"),
        ([member("link", tarfile.SYMTYPE, linkname="/etc/passwd")], "leads out"),
        ([member("a/link", tarfile.SYMTYPE, linkname="../../etc")], "leads out"),
        (
            [
                member("d/e/f", content=b""),
                member("d/e/up", tarfile.SYMTYPE, linkname="../.."),
                member("out", tarfile.SYMTYPE, linkname="d/e/up/../x"),
            ],
            "leads out",
        ),
        (
            [member("l", tarfile.SYMTYPE, linkname="."), member("l/x", content=b"x")],
            "is no directory",
        ),
        ([member("h", tarfile.LNKTYPE, linkname="/etc/passwd")], "absolute name"),
        ([member("h", tarfile.LNKTYPE, linkname="later"), member("later")], "not before it"),
        ([member("dev", tarfile.BLKTYPE, devmajor=8)], "neither file, directory nor link"),
        ([member("tty", tarfile.CHRTYPE, devmajor=5)], "neither file, directory nor link"),
        ([member("pipe", tarfile.FIFOTYPE)], "neither file, directory nor link"),
        ([member("a", content=b"1"), member("./a", content=b"2")], "there twice"),
        ([member("x" * 300)], "too long"),
        ([member("/".join("d" * 100))], "too deep"),
        ([member("big", content=b"\0" * 1_000_001)], "more than 1000000 bytes"),
        ([member(f"file-{number}") for number in range(101)], "more than 100 files"),
    ],
)
def test_a_hostile_archive_is_refused_in_one_line_and_leaves_nothing(
    store: Store, tmp_path: Path, members: list[object], message: str
) -> None:
    path = archive(tmp_path / "hostile.tar", *members)
    with pytest.raises(InvalidRequest, match=message) as error:
        store.add_archive(path)
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "store").iterdir())
    assert not (tmp_path / "out").exists()


def test_a_bomb_is_stopped_while_it_unpacks(tmp_path: Path) -> None:
    path = archive(tmp_path / "bomb.tar.gz", member("b", content=b"\0" * 3_000_000), mode="w:gz")
    assert path.stat().st_size < 10_000
    with pytest.raises(InvalidRequest, match="more than 1000000 bytes"):
        Store(tmp_path / "store", Bounds(size_bytes=1_000_000)).add_archive(path)


def test_a_monstrous_header_is_not_read_into_memory(store: Store, tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2**33
    path = tmp_path / "header.tar"
    path.write_bytes(
        header.tobuf(tarfile.USTAR_FORMAT if header.size < 2**33 else tarfile.GNU_FORMAT)
    )
    with pytest.raises(InvalidRequest, match=r"header\.tar"):
        store.add_archive(path)


@pytest.mark.parametrize("content", [b"", b"not an archive at all" * 100, b"\x1f\x8bbroken"])
def test_what_is_no_archive_is_refused(store: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InvalidRequest, match="archive"):
        store.add_archive(tmp_path / "file")


def test_a_missing_archive_and_a_source_with_a_pipe_are_refused(
    store: Store, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match="No such file"):
        store.add_archive(tmp_path / "missing")
    with pytest.raises(InvalidRequest, match="not a directory"):
        store.add_directory(tmp_path / "missing")
    os.mkfifo(source / "pipe")
    with pytest.raises(InvalidRequest, match="neither file"):
        store.add_directory(source)


def _header(name: str, kind: bytes, size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "content",
    [
        (_header("././@LongLink", b"L", 4) + b"abc".ljust(512, b"\0")) * 2000,
        _header("p", b"x", 26) + b"26 GNU.sparse.map=1,query\n".ljust(512, b"\0"),
    ],
    ids=["names of names", "a map that is none"],
)
def test_an_archive_with_headers_that_lie_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(content + _header("x", b"0") + bytes(1024))
    with pytest.raises(InvalidRequest, match="workspace archive"):
        Store(tmp_path / "store").add_archive(path)
