"""A file is the old one or the new one, never half of it; refusals of the system become sentences."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from wsabie.core.errors import InputError
from wsabie.storage import atomic_files
from wsabie.storage.atomic_files import (
    DiskFullError,
    WriteError,
    create_folder,
    explain_read_errors,
    remove_drafts,
    remove_folder,
    replace_file,
    write_bytes,
    write_text,
)


def test_written_whole_with_folders_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b.txt", "naïve 犬")
    write_bytes(tmp_path / "a" / "c", b"\0\xff")
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "naïve 犬"
    assert (tmp_path / "a" / "c").read_bytes() == b"\0\xff"
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b.txt", "c"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_umask_decides_the_file_mode(tmp_path: Path, umask: int, mode: int) -> None:
    old_umask = os.umask(umask)
    try:
        with replace_file(tmp_path / "a") as draft:
            assert draft.stat().st_mode & 0o777 == mode
            draft.write_text("x")
        write_text(tmp_path / "a", "y")
    finally:
        os.umask(old_umask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode
    assert (tmp_path / "a").read_text() == "y"


def test_an_error_inside_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")

    def fail() -> None:
        with replace_file(target) as draft:
            draft.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path: Path, monkeypatch: Any, code: int) -> None:
    target = tmp_path / "a"
    target.write_text("old")

    def full(path: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(atomic_files, "_flush", full)
    with pytest.raises(DiskFullError, match=f"cannot write {target}: the disk is full; free some space"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*; choose a folder that you may write to"):
        write_text(tmp_path / "a" / "b", "x")


WRITER = """
import sys
from wsabie.storage.atomic_files import write_text
print("ready", flush=True)
for n in range(10**9):
    write_text(sys.argv[1], f"{n % 10}" * 200_000)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        while not target.exists():
            time.sleep(0.01)
        time.sleep(0.1)
        writer.send_signal(signal.SIGKILL)
    content = target.read_text()
    assert len(content) == 200_000
    assert len(set(content)) == 1


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    """Nor a device: to write to /dev/null as the owner of the machine must not make a file of it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WriteError, match="device or a pipe"):
        write_text(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()
    assert list(tmp_path.iterdir()) == [tmp_path / "pipe"]


@pytest.mark.parametrize("next_one", ["a", "b"])
def test_a_killed_writer_of_a_folder_leaves_nothing_for_long(tmp_path: Path, next_one: str) -> None:
    """The next writer of the same folder removes what is left, and who removes drafts does."""
    code = f"""
import os
from wsabie.storage.atomic_files import create_folder
with create_folder({str(tmp_path / "a")!r}) as draft:
    (draft / "half").write_text("x" * 1000)
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    (orphan,) = tmp_path.iterdir()
    assert orphan.suffix == ".tmp"
    with create_folder(tmp_path / next_one) as mine:
        if next_one == "b":
            remove_drafts(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [mine.name]  # whose writer lives


def test_a_folder_that_goes_while_it_is_opened_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder removed the folder at the end; another one may be there by now."""
    folder, flock = tmp_path / "a", fcntl.flock
    folder.mkdir()

    def late(*arguments: Any) -> None:
        folder.rmdir()
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(InputError, match="another command is changing"), atomic_files.lock_folder(folder):
        pass


def test_waiting_lock_is_taken_when_the_folder_is_free(tmp_path: Path) -> None:
    order: list[str] = []
    first_has_lock = threading.Event()

    def first() -> None:
        with atomic_files.lock_folder(tmp_path):
            first_has_lock.set()
            time.sleep(0.2)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    assert first_has_lock.wait(10)
    with atomic_files.lock_folder(tmp_path, wait=True):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_a_draft_of_a_long_name_has_room(tmp_path: Path) -> None:
    for name in ("x" * 255, "日" * 85):
        write_text(tmp_path / name, "whole")
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


KILLED = """
import os
from wsabie.storage.atomic_files import replace_file
with replace_file({path!r}) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_the_next_writer_of_a_file_removes_what_a_kill_left(tmp_path: Path) -> None:
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", KILLED.format(path=str(tmp_path / "a"))]).returncode == -9
        assert len(list(tmp_path.iterdir())) == 1
    write_text(tmp_path / "a", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_writers_of_one_file_have_drafts_of_their_own(tmp_path: Path) -> None:
    with replace_file(tmp_path / "a") as first:
        with replace_file(tmp_path / "a") as second:
            second.write_text("second")
        first.write_text("first")
    assert (tmp_path / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_late_failure_keeps_the_file_of_another_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a draft has become the file, its name is free for the draft of another writer."""
    flush = atomic_files._flush

    def fail_late(path: Path) -> None:
        flush(path)
        if path == tmp_path:
            first.write_text("another's")
            raise OSError(errno.EIO, "late")

    monkeypatch.setattr(atomic_files, "_flush", fail_late)
    with pytest.raises(WriteError, match="late"), replace_file(tmp_path / "a") as first:
        first.write_text("mine")
    assert first.read_text() == "another's"


def test_a_folder_of_a_long_name_is_removed(tmp_path: Path) -> None:
    (tmp_path / ("x" * 255) / "a").mkdir(parents=True)
    remove_folder(tmp_path / ("x" * 255))
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_is_no_question_of_permissions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name too long; give another name"), explain_read_errors(tmp_path):
        (tmp_path / ("x" * 256)).stat()


def test_a_folder_may_be_deep(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").touch()
    for number in range(2):
        end = pytest.raises(ValueError, match="stop") if number else nullcontext()
        with end, create_folder(tmp_path / f"{number}") as draft:
            (draft / "link").symlink_to(tmp_path)
            place = draft
            for _ in range(1100):  # more than Python calls functions within functions
                place = place / "d"
                place.mkdir()
            (place / "file").touch()
            if number:
                raise ValueError("stop")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "kept.txt"]
    remove_folder(tmp_path / "0")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
