"""Looking at a collection changes nothing, hinders nobody and needs no rights to write; any folder has its own."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert, select

from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.db import sqlite_file, tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import read_history
from wsabie.collection.folder.backups import accept_database, restore_backup
from wsabie.collection.folder.collection import Collection, create_collection, lock_models, open_collection
from wsabie.collection.folder.collection_file import lock_database
from wsabie.collection.interchange.tag_export import write_to_pictures
from wsabie.collection.jobs.queue import run_next_job
from wsabie.collection.overview import read_status
from wsabie.core.errors import BusyError, InputError

NAMES = [
    b"Who? 2024", b"Who? 2025", b"a%41b", b"aAb", b"a#b", b"it's \"two\"\nlines", b"\xff\xfe", b"?mode=memory",
]  # fmt: skip


def test_every_folder_name_gets_its_own_catalogue(tmp_path: Path) -> None:
    for name in NAMES:
        folder = tmp_path / os.fsdecode(name)
        with create_collection(folder) as collection, begin_write(collection.engine) as connection:
            connection.execute(insert(tables.labels).values(name=repr(name)))
    assert sorted(os.fsencode(path.name) for path in tmp_path.iterdir()) == sorted(NAMES)
    for name in NAMES:
        folder = tmp_path / os.fsdecode(name)
        assert (folder / ".wsabie/catalogue.db").is_file()
        for read_only in (True, False):
            with open_collection(folder, read_only=read_only) as reopened, begin_read(reopened.engine) as connection:
                assert connection.execute(select(tables.labels.c.name)).scalars().all() == [repr(name)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with create_collection(tmp_path / "photos") as collection:
        add_items(collection)
        tag_items(collection, [1], accept=["sea"], by="eve")
    return tmp_path / "photos"


def add_items(collection: Collection) -> None:
    with begin_write(collection.engine) as connection:
        row = {"root_id": 1, "folder": "", "state": "present", "added_at": "2026-01-01"}
        connection.execute(insert(tables.items), [row | {"path": f"{n}.png"} for n in range(1, 9)])


@contextmanager
def remove_rights(folder: Path, allow: Callable[[Path], bool] = lambda _: False) -> Iterator[None]:
    """Another user, who may write to nothing in the folder but to what is allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod((mode | (0o555 if path.is_dir() else 0o444)) & ~0o222 | 0o020 * allow(path))
    for path in folder.parents:
        modes[path] = path.stat().st_mode
        path.chmod(modes[path] | 0o55)
    os.setresuid(12345, 12345, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


def test_reader_without_write_rights_opens_a_collection(folder: Path) -> None:
    files_before = sorted((folder / ".wsabie").iterdir())
    with remove_rights(folder):
        with open_collection(folder, read_only=True) as collection:
            assert read_status(collection, check=True).damage == ()
            assert [entry.summary for entry in read_history(collection.engine)] == ["1 item: +sea"]
            with pytest.raises(InputError, match="it is read-only; check its permissions"):
                tag_items(collection, [2], accept=["sea"], by="eve")
        with pytest.raises(InputError, match="is read-only for you, and can only be looked at"):
            open_collection(folder)
        for change in (restore_backup, accept_database):
            with pytest.raises(InputError, match="is read-only for you"):
                change(folder, by="eve")
        with (
            open_collection(folder, read_only=True) as collection,
            pytest.raises(InputError, match="write the tags elsewhere, or check the permissions"),
        ):
            write_to_pictures(collection)
    assert sorted((folder / ".wsabie").iterdir()) == files_before


def test_second_user_writes_with_group_rights(folder: Path) -> None:
    """On the folder and the catalogue; locks that the first user made are only read."""
    with open_collection(folder) as collection, lock_models(collection):
        run_next_job(folder)
    with remove_rights(folder, lambda path: path.is_dir() or path.name == "catalogue.db"):
        assert not os.access(folder / ".wsabie/catalogue.lock", os.W_OK)
        with open_collection(folder) as collection, lock_models(collection):
            assert tag_items(collection, [2], accept=["sea"], by="ann")
            with pytest.raises(BusyError), lock_database(collection.place):
                pass
        run_next_job(folder)


@pytest.mark.parametrize("content", [b"?" * 200_000, b""])
def test_read_during_the_first_write_is_refused(folder: Path, content: bytes) -> None:
    """All pages but the first are overwritten, which looks like damage, or nothing is, which gives no error."""
    with (folder / ".wsabie/catalogue.db").open("r+b") as file:

        def read_labels(engine: Engine) -> None:
            with begin_read(engine) as connection:
                assert connection.execute(select(tables.labels.c.name)).scalars().all() == ["sea"]
                file.seek(4096)
                file.write(content or file.read(1))
                file.flush()
                connection.execute(select(tables.items)).all()

        with (
            remove_rights(folder),
            open_collection(folder, read_only=True) as reader,
            pytest.raises(BusyError, match="is being written by somebody else; try again in a moment"),
        ):
            read_labels(reader.engine)


def test_killed_write_is_not_read(folder: Path) -> None:
    catalogue = folder / ".wsabie/catalogue.db"
    child = os.fork()
    if child == 0:
        file = sqlite3.connect(catalogue, isolation_level=None)
        file.execute("PRAGMA journal_mode=DELETE")
        file.execute("PRAGMA cache_size=1")
        file.execute("BEGIN")
        file.executemany("INSERT INTO labels (name) VALUES (?)", [("x" * 99 + str(n),) for n in range(999)])
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / ".wsabie/catalogue.db-journal").stat().st_size
    with remove_rights(folder), pytest.raises(InputError, match="db-journal holds changes that are not in"):
        open_collection(folder, read_only=True)
    with open_collection(folder, read_only=True) as reader, begin_read(reader.engine) as connection:
        assert connection.execute(select(tables.labels.c.name)).scalars().all() == ["sea"]


def test_reader_without_write_rights_sees_current_writes(folder: Path, tmp_path: Path) -> None:
    """The log counts; an error says that its index is missing and cannot be made."""
    with open_collection(folder) as writer:
        tag_items(writer, [2], accept=["sea"], by="eve")
        with remove_rights(folder), open_collection(folder, read_only=True) as reader:
            assert len(read_history(reader.engine)) == 2
        shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*-shm"))
    with remove_rights(tmp_path / "copy"), pytest.raises(InputError, match="holds changes that are not in"):
        open_collection(tmp_path / "copy", read_only=True)
    with open_collection(tmp_path / "copy", read_only=True) as reader:
        assert len(read_history(reader.engine)) == 2


def test_open_reader_blocks_no_writer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "WAIT", 0.05)
    with open_collection(folder, read_only=True) as reader, begin_read(reader.engine) as connection:
        assert connection.execute(select(tables.annotations.c.item_id)).scalars().all() == [1]
        with open_collection(folder) as writer:
            tag_items(writer, [2], accept=["sea"], by="eve")
        assert connection.execute(select(tables.annotations.c.item_id)).scalars().all() == [1]
    with open_collection(folder, read_only=True) as reader, begin_read(reader.engine) as connection:
        assert connection.execute(select(tables.annotations.c.item_id)).scalars().all() == [1, 2]


def test_older_tables_are_migrated_only_with_write_rights(
    tmp_path: Path, switch_to_second_version: Callable[[], None]
) -> None:
    create_collection(tmp_path).close()
    switch_to_second_version()
    content = (tmp_path / ".wsabie/catalogue.db").read_bytes()
    with (
        remove_rights(tmp_path),
        pytest.raises(InputError, match=r"of an older version \(0001, here 0002\) and cannot"),
    ):
        open_collection(tmp_path, read_only=True)
    assert (tmp_path / ".wsabie/catalogue.db").read_bytes() == content
    with open_collection(tmp_path, read_only=True) as collection:
        assert collection.roots() == {1: tmp_path}


def test_concurrent_closes_keep_the_journal_number(folder: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from wsabie.collection.folder.collection import open_collection
        from wsabie.collection.folder.collection_file import read_collection_file, read_state
        from wsabie.collection.annotations.decisions import tag_items
        last = 0
        for i in range(5):
            with open_collection(Path(sys.argv[1])) as found:
                tag_items(found, [int(sys.argv[2])], accept=[f"label {i}"], by=sys.argv[2])
                mine = read_state(found.engine).journal
            now = read_collection_file(found.place).journal
            assert now >= max(mine, last), (now, mine, last)
            last = now
    """
    started = [subprocess.Popen([sys.executable, "-c", program, str(folder), user]) for user in "23"]
    assert [process.wait(60) for process in started] == [0, 0]
