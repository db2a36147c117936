"""Backups of a catalogue: when they are made, that they are whole, and how one is put back."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import func, select

from full_disk import disk as disk
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, open_database, read_version, upgrade_schema
from wsabie.collection.db.journal import begin_entry, read_history
from wsabie.collection.folder import backups
from wsabie.collection.folder.backups import (
    accept_database,
    back_up,
    check_backup,
    format_dump_command,
    format_load_command,
    list_backups,
    restore_backup,
)
from wsabie.collection.folder.collection import (
    Collection,
    check_database,
    create_collection,
    open_collection,
    suggest_recovery,
)
from wsabie.collection.labels import label_store
from wsabie.core.errors import BusyError, InputError
from wsabie.storage.atomic_files import DiskFullError

CHANGING = {"open", "write", "replace", "rename", "unlink", "fsync", "execute", "backup", "commit", "close"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection with two labels, one entry each."""
    folder = tmp_path / "photos"
    with create_collection(folder) as collection:
        add_label(collection, "sea")
        add_label(collection, "land")
    return folder


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """A clock that stands, at the time in this list."""
    clock = [datetime(2026, 5, 1, 12, tzinfo=UTC)]
    moment = SimpleNamespace(now=lambda _: clock[0], strptime=datetime.strptime, fromtimestamp=datetime.fromtimestamp)
    monkeypatch.setattr(backups, "datetime", moment)
    return clock


def add_label(collection: Collection, name: str) -> None:
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_store.ensure_labels(change, [name])


def read_label_names(folder: Path) -> list[str]:
    with open_collection(folder, read_only=True) as collection, begin_read(collection.engine) as connection:
        return sorted(connection.execute(select(tables.labels.c.name)).scalars())


def empty_catalogue(folder: Path) -> None:
    for path in (folder / ".wsabie").glob("catalogue.db-*"):
        path.unlink()
    (folder / ".wsabie/catalogue.db").write_bytes(b"")


def corrupt_index_page(path: Path) -> None:
    """Overwrite the page of an index that no opening reads."""
    with sqlite3.connect(path) as file:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'ix_labels_parent_id'"
        page, size = file.execute(query).fetchone()[0], file.execute("PRAGMA page_size").fetchone()[0]
    file.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    path.write_bytes(content)


def test_backup_is_consistent_during_writes(folder: Path) -> None:
    ended, written = threading.Event(), threading.Event()

    def write() -> None:
        with open_collection(folder) as writer:
            for number in range(10**6):
                if ended.is_set():
                    return
                with begin_entry(writer.engine, "eve", "labels") as change:
                    label_store.ensure_labels(change, [f"one {number}", f"two {number}"])
                written.set()

    with open_collection(folder) as collection:
        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert written.wait(60)
            new_backups = [back_up(collection.engine, collection.place, "manual") for _ in range(3)]
        finally:
            ended.set()
            thread.join()
    for backup in new_backups:
        with sqlite3.connect(backup.path) as copy:
            names = {row[0] for row in copy.execute("SELECT name FROM labels")}
            assert {f"two{name[3:]}" for name in names if name.startswith("one")} <= names
            assert copy.execute("SELECT max(id) FROM journal").fetchone()[0] == backup.journal
        copy.close()
    assert [backup.journal for backup in list_backups(folder / ".wsabie")][:3] == [
        b.journal for b in reversed(new_backups)
    ]
    assert {path.suffix for path in (folder / ".wsabie/backups").iterdir()} == {".db"}


def test_daily_backups_follow_changes_and_keep_seven(folder: Path, today: list[datetime]) -> None:
    for day in range(1, 13):
        today[0] = datetime(2026, 5, day, 12, tzinfo=UTC)
        for _ in range(2):
            with open_collection(folder) as collection:
                if day not in (5, 6):
                    add_label(collection, f"label {day}")
    days = [backup.at[8:10] for backup in list_backups(folder / ".wsabie")]
    assert days == ["12", "11", "10", "09", "08", "07", "05"]
    with open_collection(folder, read_only=True):
        today[0] = datetime(2026, 5, 20, tzinfo=UTC)
    assert len(list_backups(folder / ".wsabie")) == 7  # who only looks makes none


def test_backup_dated_in_the_future_blocks_no_later_one(folder: Path, today: list[datetime]) -> None:
    for year in (2099, 2026):
        today[0] = datetime(year, 5, 1, tzinfo=UTC)
        with open_collection(folder) as collection:
            add_label(collection, f"label {year}")
    assert [backup.at[:4] for backup in list_backups(folder / ".wsabie")] == ["2099", "2026"]


def test_concurrent_processes_make_one_daily_backup(folder: Path) -> None:
    program = "import sys; from pathlib import Path; from wsabie.collection.folder.collection import open_collection; "
    program += "open_collection(Path(sys.argv[1])).close()"
    started = [subprocess.Popen([sys.executable, "-c", program, str(folder)]) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert [backup.reason for backup in list_backups(folder / ".wsabie")] == ["daily"]


def test_full_disk_skips_the_daily_backup(
    disk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_collection(disk / "photos") as collection:
        add_label(collection, "sea")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    with open_collection(disk / "photos") as collection:
        add_label(collection, "land")
    assert "no backup of today: the disk of" in caplog.text
    assert list_backups(disk / "photos/.wsabie") == []


def test_damaged_catalogue_makes_no_backup(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    corrupt_index_page(folder / ".wsabie/catalogue.db")
    with open_collection(folder) as collection:
        assert "no backup of today: " in caplog.text
        with pytest.raises(InputError, match="is damaged, and no backup is made of it"):
            back_up(collection.engine, collection.place, "manual")
    assert list((folder / ".wsabie/backups").iterdir()) == []


def test_migration_makes_a_backup(tmp_path: Path, switch_to_second_version: Callable[[], None]) -> None:
    create_collection(tmp_path).close()
    switch_to_second_version()
    with open_collection(tmp_path, read_only=True) as collection:
        assert collection.read_only
    (backup,) = list_backups(tmp_path / ".wsabie")
    assert backup.reason == "migration"
    assert restore_backup(tmp_path, backup.path, by="eve").replaced is not None  # and its tables are brought up again
    with open_collection(tmp_path) as collection:
        assert read_version(collection.engine) == "0002"
        check_database(collection)


def test_foreign_catalogue_is_not_migrated_until_accepted(
    folder: Path, switch_to_second_version: Callable[[], None]
) -> None:
    place = folder / ".wsabie"
    empty_catalogue(folder)
    engine = open_database(place / "catalogue.db", "rwc")
    upgrade_schema(engine)
    switch_to_second_version()
    for read_only in (True, False):
        with pytest.raises(InputError, match="is another database than the one that was there"):
            open_collection(folder, read_only=read_only)
    assert read_version(engine) == "0001"
    engine.dispose()
    assert list_backups(place) == []
    accept_database(folder, by="eve")
    assert [backup.reason for backup in list_backups(place)] == ["migration"]
    assert read_label_names(folder) == []


def test_emptied_catalogue_is_refused_and_restored(folder: Path) -> None:
    with open_collection(folder) as collection:
        back_up(collection.engine, collection.place, "manual")
        add_label(collection, "sky")
    empty_catalogue(folder)
    for read_only in (False, True):
        with pytest.raises(InputError, match=r"was emptied.*restore the backup of 20.*`collection.restore"):
            open_collection(folder, read_only=read_only)
    assert (folder / ".wsabie/catalogue.db").read_bytes() == b""
    result = restore_backup(folder, by="eve")
    assert (result.journal, result.lost, result.replaced) == (2, 1, None)
    assert read_label_names(folder) == ["land", "sea"]
    with open_collection(folder) as collection:
        check_database(collection)
        assert read_history(collection.engine, 1)[0].id == 4  # no number is given twice
        assert read_history(collection.engine, 1)[0].action == "restore"


def test_older_catalogue_is_refused_until_accepted(folder: Path, tmp_path: Path) -> None:
    older = (folder / ".wsabie/catalogue.db").read_bytes()
    with open_collection(folder) as collection:
        add_label(collection, "sky")
    newer = (folder / ".wsabie/catalogue.db").read_bytes()
    (folder / ".wsabie/catalogue.db").write_bytes(older)
    for read_only in (False, True):
        with pytest.raises(InputError, match=r"ends at entry 2 of its journal, .* had 3; .*restore.*, accept=True"):
            open_collection(folder, read_only=read_only)
    assert accept_database(folder, by="eve").lost == 1
    assert read_label_names(folder) == ["land", "sea"]
    with open_collection(folder) as collection:
        add_label(collection, "sky")
        assert read_history(collection.engine, 1)[0].id == 5
    (folder / ".wsabie/catalogue.db").write_bytes(newer)
    with pytest.raises(InputError, match="ends at entry 3"):
        open_collection(folder)


def test_second_restore_uses_the_restored_state(folder: Path) -> None:
    with open_collection(folder) as collection:
        backup_path = back_up(collection.engine, collection.place, "manual").path
        add_label(collection, "wrong")
    assert restore_backup(folder, backup_path, by="eve").replaced is not None  # which holds "wrong"
    empty_catalogue(folder)
    restore_backup(folder, by="eve")
    assert read_label_names(folder) == ["land", "sea"]


def test_opening_records_entries_of_a_killed_process(folder: Path) -> None:
    older, config = (folder / ".wsabie/catalogue.db").read_bytes(), folder / ".wsabie/collection.json"
    collection = open_collection(folder)
    add_label(collection, "sky")
    collection.engine.dispose()  # and no close
    assert json.loads(config.read_text())["journal"] == 2
    reopened = open_collection(folder)
    assert json.loads(config.read_text())["journal"] == 3
    reopened.engine.dispose()
    (folder / ".wsabie/catalogue.db").write_bytes(older)
    with pytest.raises(InputError, match="ends at entry 2"):
        open_collection(folder, read_only=True)


def test_lost_catalogue_and_config_are_restored(folder: Path) -> None:
    with open_collection(folder) as collection:
        back_up(collection.engine, collection.place, "manual")
    empty_catalogue(folder)
    (folder / ".wsabie/collection.json").unlink()
    with pytest.raises(InputError, match=r"was a collection.* `collection.restore"):
        create_collection(folder)
    (folder / ".wsabie/catalogue.db-wal").write_bytes(b"changes" * 1000)
    assert str(restore_backup(folder, by="eve").replaced).endswith("-wal")
    assert read_label_names(folder) == ["land", "sea"]


def test_postgresql_recovery_suggests_a_dump(folder: Path) -> None:
    config = folder / ".wsabie/collection.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"database": "postgresql://eve@host/photos"}))
    assert suggest_recovery(folder).startswith("restore a dump")


def test_foreign_catalogue_is_refused(folder: Path, tmp_path: Path) -> None:
    with create_collection(tmp_path / "other") as foreign:
        for name in ("a", "b", "c", "d"):
            add_label(foreign, name)
        backup = back_up(foreign.engine, foreign.place, "manual").path
    shutil.copy(tmp_path / "other/.wsabie/catalogue.db", folder / ".wsabie/catalogue.db")
    with pytest.raises(InputError, match="is another database than the one that was there"):
        open_collection(folder)
    with pytest.raises(InputError, match="is a backup of another collection"):
        restore_backup(folder, backup, by="eve")
    restore_backup(folder, backup, by="eve", accept=True)
    assert read_label_names(folder) == ["a", "b", "c", "d"]


def test_newer_catalogue_and_config_without_identity_are_accepted(folder: Path) -> None:
    config = folder / ".wsabie/collection.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"journal": 1}))
    open_collection(folder).close()
    assert json.loads(config.read_text())["journal"] == 2
    config.write_text('{"schema": 1, "database": null}')
    open_collection(folder, read_only=True).close()
    assert json.loads(config.read_text()) == {"schema": 1, "database": None}
    open_collection(folder).close()
    assert json.loads(config.read_text())["journal"] == 2
    assert json.loads(config.read_text())["database_id"]


def test_late_close_does_not_lower_the_journal_number(folder: Path) -> None:
    first = open_collection(folder)
    with open_collection(folder) as second:
        add_label(second, "sky")
    first.close()
    assert json.loads((folder / ".wsabie/collection.json").read_text())["journal"] == 3


def test_restore_is_refused_while_a_writer_is_open(folder: Path) -> None:
    with open_collection(folder) as collection:
        backup = back_up(collection.engine, collection.place, "manual")
        with pytest.raises(BusyError, match=r"has .* open; stop it"):
            restore_backup(folder, backup.path, by="eve")
    restore_backup(folder, Path(backup.path.name), by="eve")  # by its name too


def test_restore_keeps_the_replaced_catalogue_even_if_damaged(folder: Path) -> None:
    with open_collection(folder) as collection:
        back_up(collection.engine, collection.place, "manual")
        add_label(collection, "sky")
    result = restore_backup(folder, by="eve")
    assert result.replaced is not None
    assert read_label_names(folder) == ["land", "sea"]
    restore_backup(folder, Path(result.replaced), by="eve")
    assert read_label_names(folder) == ["land", "sea", "sky"]
    (folder / ".wsabie/catalogue.db").write_bytes(b"no database" * 100)
    result = restore_backup(folder, by="eve")
    assert result.replaced is not None
    assert Path(result.replaced).read_bytes() == b"no database" * 100
    assert read_label_names(folder) == ["land", "sea", "sky"]  # as after the second restore
    assert [(backup.reason, backup.journal) for backup in list_backups(folder / ".wsabie")[:2]] == [
        ("restored", 6),
        ("replaced", None),
    ]


@pytest.mark.parametrize("kind", ["-wal", "-journal"])
@pytest.mark.parametrize("content", [b"", None, b"no database" * 100])
def test_restore_keeps_the_log_of_a_lost_catalogue(folder: Path, content: bytes | None, kind: str) -> None:
    with open_collection(folder) as collection:
        back_up(collection.engine, collection.place, "manual")
    catalogue, log = (folder / ".wsabie" / name for name in ("catalogue.db", f"catalogue.db{kind}"))
    catalogue.unlink()
    if content is not None:
        catalogue.write_bytes(content)
    log.write_bytes(b"changes" * 1000)
    if not content:
        with pytest.raises(InputError, match="no database to accept"):
            accept_database(folder, by="eve")
    result = restore_backup(folder, by="eve")
    assert result.replaced is not None
    list_backups(folder / ".wsabie")  # opens them
    assert Path(result.replaced.removesuffix(kind) + kind).read_bytes() == b"changes" * 1000
    assert not log.exists()
    assert read_label_names(folder) == ["land", "sea"]


def test_damaged_backup_is_skipped(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_collection(folder) as collection:
        good = back_up(collection.engine, collection.place, "manual").path
        add_label(collection, "sky")
        bad = back_up(collection.engine, collection.place, "manual").path
    corrupt_index_page(bad)
    with pytest.raises(InputError, match="cannot be restored"):
        restore_backup(folder, bad, by="eve")
    empty_catalogue(folder)
    assert restore_backup(folder, by="eve").source == str(good)
    assert f"{bad} is left out" in caplog.text
    with pytest.raises(InputError, match=r"there is no backup .*; those of this collection are: .*-manual\.db"):
        restore_backup(folder, tmp_path / "nowhere.db", by="eve")


def test_killed_restore_leaves_the_old_or_the_new_catalogue(folder: Path) -> None:
    """The process ends at every eleventh of its calls that may change a file."""
    with open_collection(folder) as collection:
        backup = back_up(collection.engine, collection.place, "manual").path
        add_label(collection, "sky")
    step, code, names = 0, -1, [""]
    while code:
        step += 11
        child = os.fork()
        if child == 0:
            sys.setprofile(make_killer(step))
            restore_backup(folder, backup, by="eve")
            os._exit(0)
        code = os.waitpid(child, 0)[1]
        names = read_label_names(folder)
        assert names in (["land", "sea", "sky"], ["land", "sea"])
    assert step > 100
    assert names == ["land", "sea"]
    with open_collection(folder) as collection:
        check_database(collection)


def make_killer(calls_left: int) -> Callable[..., None]:
    """End this process with the call of a function that may change a file, the first or a later one."""

    def count(_: object, event: str, called: Any) -> None:
        nonlocal calls_left
        calls_left -= event == "c_call" and called.__name__ in CHANGING
        if calls_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def test_draft_of_a_killed_backup_is_removed_by_the_next(folder: Path) -> None:
    place = folder / ".wsabie" / backups.FOLDER_NAME
    place.mkdir(exist_ok=True)
    (place / ".20260501T120000.000000Z-manual.db.0000000000000000.tmp").write_bytes(b"half")
    with open_collection(folder) as collection:
        new_backup = back_up(collection.engine, collection.place, "manual")
    assert set(place.iterdir()) == {backup.path for backup in list_backups(collection.place)} >= {new_backup.path}


def test_postgresql_commands_contain_no_password() -> None:
    address = "postgresql://eve:secret@db.example.org:5433/my%20photos?sslmode=require&password=secret"
    plain = "postgresql://eve@db.example.org:5433/my photos?sslmode=require"
    assert format_dump_command(address, "a b.dump") == f"pg_dump --format=custom '--file=a b.dump' '--dbname={plain}'"
    assert format_load_command(address, "x") == (
        f"pg_restore --clean --if-exists --no-owner --single-transaction '--dbname={plain}' x"
    )


def test_backup_is_one_file(folder: Path) -> None:
    with open_collection(folder) as collection:
        backup = back_up(collection.engine, collection.place, "manual").path
    assert backup.read_bytes()[18:20] == b"\1\1"
    assert check_backup(backup, "").journal == 2
    assert [path.name for path in backup.parent.glob(".*")] == []


def test_backup_on_a_full_disk_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with open_collection(folder) as collection:
        monkeypatch.setattr(backups, "copy_file", full)
        with pytest.raises(DiskFullError, match="the disk is full"):
            back_up(collection.engine, collection.place, "manual")


def test_accepted_catalogue_continues_the_journal_numbers(collection: Collection) -> None:
    """In both databases: who accepts a catalogue numbers on."""
    add_label(collection, "sea")
    collection.close()
    config = collection.place / "collection.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"journal": 50}))
    with pytest.raises(InputError, match="ends at entry 1 of its journal"):
        open_collection(collection.folder)
    accept_database(collection.folder, by="eve")
    with open_collection(collection.folder) as again:
        add_label(again, "land")
        with begin_read(again.engine) as connection:
            assert connection.execute(select(func.max(tables.journal.c.id))).scalar() == 52
