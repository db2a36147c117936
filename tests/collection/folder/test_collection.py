"""Making and opening collections, versions of the tables, and what can be wrong with a database."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from wsabie.collection.db import database, sqlite_file, tables
from wsabie.collection.db.database import begin_read, begin_write, read_version
from wsabie.collection.db.journal import begin_entry, read_history
from wsabie.collection.folder.collection import Collection, check_database, create_collection, open_collection
from wsabie.collection.folder.collection_file import is_collection, lock_database, read_state
from wsabie.core.errors import BusyError, InputError
from wsabie.storage.atomic_files import DiskFullError


def test_failed_creation_releases_the_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "wsabie.collection.folder.collection.write_collection_file", Mock(side_effect=DiskFullError("full"))
        )
        with pytest.raises(DiskFullError) as refusal:
            create_collection(tmp_path)
    with lock_database(tmp_path / ".wsabie"):  # while the error is held, as is all that its calls have open
        assert refusal.value.__traceback__ is not None
    create_collection(tmp_path).close()


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression")  # of the other database
def test_migrations_match_the_declared_tables(collection: Collection) -> None:
    with collection.engine.connect() as connection:

        def for_this(thing: Any, *_: object) -> bool:
            only = getattr(thing, "_ddl_if", None)
            return only is None or only.dialect == connection.dialect.name

        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": for_this})
        assert compare_metadata(context, tables.metadata) == []
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [database.HEAD]


def test_first_version_is_migrated_without_loss(
    collection: Collection, switch_to_second_version: Callable[[], None]
) -> None:
    item = {"id": 1, "root_id": 1, "path": "a.png", "folder": "", "state": "present", "added_at": "2026-01-01"}
    decided = {"item_id": 1, "label_id": 1, "region": "1,2,3,4", "state": "accepted", "origin": "person", "by": "eve"}
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.items).values(item))
        connection.execute(insert(tables.labels).values(id=1, name="sea"))
        connection.execute(insert(tables.annotations).values(**decided, at="2026-01-01"))
    state = read_state(collection.engine)
    collection.close()
    switch_to_second_version()
    with open_collection(collection.folder) as reopened:
        assert (read_version(reopened.engine), read_state(reopened.engine)) == ("0002", state)
        with begin_read(reopened.engine) as connection:
            assert connection.execute(text("SELECT path, note FROM items")).all() == [("a.png", "a.png")]
            assert connection.execute(select(tables.annotations.c.region)).scalars().all() == ["1,2,3,4"]
        with pytest.raises(IntegrityError), begin_write(reopened.engine) as connection:  # once, as before
            connection.execute(insert(tables.annotations).values(**decided, at="2026-01-02"))
        check_database(reopened)


def test_foreign_keys_are_enforced(collection: Collection) -> None:
    row = {"item_id": 7, "label_id": 7, "state": "accepted", "origin": "person", "by": "eve", "at": "2026-01-01"}
    with pytest.raises(IntegrityError), begin_write(collection.engine) as connection:
        connection.execute(insert(tables.annotations).values(row))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_sqlite_pragmas_are_set(collection: Collection) -> None:
    with begin_read(collection.engine) as connection:
        pragmas = ("foreign_keys", "journal_mode", "synchronous", "busy_timeout")
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
    assert values == [1, "wal", 2, 30_000]


def test_collection_is_reopened_with_its_tables(collection: Collection) -> None:
    with begin_entry(collection.engine, "eve", "scan", "nothing new", always=True):
        pass
    with open_collection(collection.folder) as again:
        assert [e.summary for e in read_history(again.engine)] == ["nothing new"]
        assert again.roots() == {1: collection.folder}
    check_database(collection)
    with create_collection(collection.folder) as same:  # init twice is harmless
        assert same.roots() == {1: collection.folder}


def test_moved_folder_is_the_same_collection(tmp_path: Path, database: str | None) -> None:
    create_collection(tmp_path / "a", database).close()
    (tmp_path / "a").rename(tmp_path / "b")
    with open_collection(tmp_path / "b") as reopened:
        assert reopened.roots() == {1: tmp_path / "b"}


@pytest.mark.parametrize("ask", [create_collection, open_collection, is_collection])
def test_unreadable_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    stat = Path.stat

    def refusing(path: Path, **options: Any) -> Any:
        if path.is_relative_to(tmp_path / "photos" / ".wsabie"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refusing)
    with pytest.raises(InputError, match=r"cannot read .*photos/\.wsabie/collection\.json: Permission denied; check"):
        ask(tmp_path / "photos")


def test_folder_without_a_collection_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a collection yet; make it one: `collection.init"):
        open_collection(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; give the folder"):
        create_collection(tmp_path / "file")
    create_collection(tmp_path / "c").close()
    for content in ("", "[]", '{"schema": 2, "database": null}', '{"schema": 1}', '{"schema": 1, "database": 3}'):
        (tmp_path / "c/.wsabie/collection.json").write_text(content)
        with pytest.raises(InputError, match=r"collection.json is damaged.*; write"):
            open_collection(tmp_path / "c")
    (tmp_path / "c/.wsabie/collection.json").write_text('{"schema": 1, "database": null}')
    open_collection(tmp_path / "c").close()
    for path in (tmp_path / "c/.wsabie").glob("catalogue.db*"):
        path.unlink()
    with pytest.raises(InputError, match=r"the database of .* is gone"):
        open_collection(tmp_path / "c")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "is not the address of a database"),
        ("mysql://a@b/c", "mysql databases are not supported"),
        ("postgresql://eve:secret@localhost/photos", "a password in `database` would be written to disk"),
        ("postgresql://eve@127.0.0.1:1/photos", "does not answer as it should"),
        ("postgres://eve@127.0.0.1:1/photos", "does not answer as it should"),
    ],
)
def test_bad_database_addresses_are_refused(tmp_path: Path, address: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        create_collection(tmp_path / "c", address)
    assert "secret" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=message):
        create_collection(tmp_path / "c", address)
    assert list((tmp_path / "c").iterdir()) == []


def test_newer_catalogue_is_left_alone(collection: Collection) -> None:
    with begin_write(collection.engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match="was written by a newer wsabie"):
        open_collection(collection.folder)


def test_damaged_file_is_reported(tmp_path: Path) -> None:
    """SQLite only: PostgreSQL checks its own files."""
    create_collection(tmp_path).close()
    path = tmp_path / ".wsabie/catalogue.db"
    content = path.read_bytes()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match="is damaged"):
        open_collection(tmp_path)
    path.write_bytes(content)
    with sqlite3.connect(path) as connection:  # a row that refers to nothing
        connection.execute("INSERT INTO synonyms (name, label_id) VALUES ('x', 7)")
    connection.close()
    with open_collection(tmp_path) as reopened, pytest.raises(InputError, match="refers to a missing row of labels"):
        check_database(reopened)


def test_read_only_file_is_reported(tmp_path: Path) -> None:
    """SQLite only, by its `PRAGMA query_only`."""
    with (  # noqa: PT012 - the transaction ends in it
        create_collection(tmp_path) as created,
        pytest.raises(InputError, match="it is read-only"),
        begin_write(created.engine) as connection,
    ):
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.execute(update(tables.roots).values(path="/elsewhere"))


def test_long_write_by_another_process_is_reported(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "WAIT", 0.05)
    with open_collection(collection.folder) as reader, begin_write(collection.engine):
        with begin_read(reader.engine) as connection:  # readers do not wait
            assert connection.execute(select(func.count()).select_from(tables.roots)).scalar() == 1
        with pytest.raises(BusyError, match="is being written by somebody else"), begin_write(reader.engine):
            pass


def test_service_threads_do_not_wait_for_connections(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "count_available_cores", lambda: 20)
    engine = database.open_database(collection.engine.url.render_as_string(hide_password=False))
    with ExitStack() as connections:
        for _ in range(2 * 20 + 2):
            connections.enter_context(begin_read(engine))
    engine.dispose()


def test_concurrent_processes_get_distinct_row_ids(collection: Collection) -> None:
    """Numbers of rows are given out by those who write: no two may get the same."""
    program = """if True:
        import sys
        from pathlib import Path
        from wsabie.collection.labels import label_store
        from wsabie.collection.folder.collection import open_collection
        from wsabie.collection.db.journal import begin_entry
        with open_collection(Path(sys.argv[1])) as found:
            for i in range(20):
                with begin_entry(found.engine, sys.argv[2], "labels") as change:
                    label_store.ensure_labels(change, [f"{sys.argv[2]} {i}", f"both {i}"])
    """
    command = [sys.executable, "-c", program, str(collection.folder)]
    started = [subprocess.Popen([*command, name]) for name in ("eve", "adam", "cain")]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(func.count()).select_from(tables.labels)).scalar() == 80
    assert len(read_history(collection.engine, 1000)) == 60
    check_database(collection)


def test_acknowledged_writes_survive_a_kill(collection: Collection) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from wsabie.collection.labels import label_store
        from wsabie.collection.folder.collection import open_collection
        from wsabie.collection.db.journal import begin_entry
        with open_collection(Path(sys.argv[1])) as found:
            for i in range(int(sys.argv[2]), 10**6):
                with begin_entry(found.engine, "eve", "labels") as change:
                    label_store.ensure_labels(change, [f"label {i}", f"twin {i}"])
                print(i, flush=True)
    """
    last = -1
    for lines in (1, 7, 20):
        command = [sys.executable, "-c", program, str(collection.folder), str(last + 2)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(lines):
                last = int(process.stdout.readline())
            process.kill()
        with begin_read(collection.engine) as connection:
            names = set(connection.execute(select(tables.labels.c.name)).scalars())
        assert {f"label {last}", f"twin {last}"} <= names
        assert {name.replace("label", "twin") for name in names if name.startswith("label")} <= names  # all or nothing
    check_database(collection)


def test_url_root_is_not_listed_as_a_folder(collection: Collection) -> None:
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.roots).values(path="web"))
    assert list(collection.roots().values()) == [collection.folder]
    settings = json.loads((collection.place / "collection.json").read_text())
    assert set(settings) == {"schema", "database", "database_id", "journal"}
