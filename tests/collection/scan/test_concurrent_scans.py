"""Scans in the journal, at once with other writers, and killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.collection.scan.conftest import NOTHING, decide_as_person, read_rows, read_tags, run_scan, write_picture

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import read_history, undo_entry
from wsabie.collection.folder.collection import Collection, check_database, open_collection
from wsabie.collection.scan import scan_writer, scanner
from wsabie.core.execution import ProcessExecutor


def test_scan_is_one_journal_entry(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BLOCK_SIZE", 2)
    for i in range(7):
        write_picture(collection.folder / f"sea/{i}.png", i)
    run_scan(collection, tags="folders")
    assert [(e.summary, e.changes) for e in read_history(collection.engine)] == [("7 new, 7 tags from files", 8)]
    undo_entry(collection.engine, by="eve")
    assert read_tags(collection) == {}
    assert run_scan(collection) == replace(NOTHING, unchanged=7)  # what was undone does not come back


def test_entries_between_scan_blocks_stay_in_order(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BLOCK_SIZE", 2)
    for i in range(4):
        write_picture(collection.folder / f"sea/{i}.png", i)
    write_block = scan_writer.write_block

    def writing_too(*arguments: object) -> object:
        wrote = write_block(*arguments)  # type: ignore[arg-type]
        if len(read_history(collection.engine)) == 1:
            decide_as_person(collection, read_rows(collection)["sea/0.png"][0], "sea", "rejected")
        return wrote

    monkeypatch.setattr(scan_writer, "write_block", writing_too)
    run_scan(collection, tags="folders")
    entries = [(e.summary or e.action, e.changes) for e in reversed(read_history(collection.engine))]
    assert entries == [("a scan that was not finished", 3), ("tag", 1), ("4 new, 4 tags from files", 2)]


PROGRAM = """if True:
    import sys
    from pathlib import Path
    from wsabie.collection.folder.collection import open_collection
    from wsabie.collection.scan import scanner
    scanner.BLOCK_SIZE = int(sys.argv[2])
    with open_collection(Path(sys.argv[1])) as found:
        print("begin", flush=True)
        print(scanner.scan_collection(found, by="eve").summary, flush=True)
"""


SCANNERS = """if True:
    import os, sys
    from pathlib import Path
    from wsabie.collection.folder.collection import open_collection
    from wsabie.collection.scan import scanner
    scanner.BLOCK_SIZE = 3
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            with open_collection(Path(sys.argv[1])) as found:
                print(os.getpid(), flush=True)
                scanner.scan_collection(found, by="eve")
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process that has imported what a scan needs, and forks one for each line that it is sent."""


def read_facts(collection: Collection) -> object:
    """All rows of the catalogue, without numbers and times."""
    c, tags = tables.items.c, read_tags(collection)
    query = select(c.id, c.path, c.state, c.hash, c.size, c.width)
    with begin_read(collection.engine) as connection:
        return sorted((tuple(row[1:]), sorted(tags.get(row[0], {}).items())) for row in connection.execute(query))


def test_killed_scans_end_in_the_state_of_one_scan(collection: Collection, tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        for i in range(120):
            write_picture(folder / f"{'land' if i % 3 else 'sea'}/{i}.png", i)

    def change(folder: Path) -> None:
        (folder / "sea").rename(folder / "lake")
        for i in range(0, 119, 3):  # every picture gets the place of another
            (folder / f"lake/{i}.png").rename(folder / f"lake/{(i + 3) % 120}.new")
        for path in (folder / "lake").glob("*.new"):
            path.rename(path.with_suffix(".png"))
        (folder / "land/1.png").unlink()
        write_picture(folder / "land/2.png", 250)
        write_picture(folder / "more/m.png", 251)

    fill(collection.folder)
    chance, kills = random.Random(7), 0  # noqa: S311 - when to kill
    command = [sys.executable, "-c", SCANNERS, str(collection.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as scanners:
        assert scanners.stdin is not None
        assert scanners.stdout is not None
        for step in (None, change):
            if step is not None:
                step(collection.folder)
            for _ in range(4):
                scanners.stdin.write("another\n")
                scanners.stdin.flush()
                pid = int(scanners.stdout.readline())
                time.sleep(chance.uniform(0.0, 0.25))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                kills += int(scanners.stdout.readline()) != 0
            run_scan(collection)
            assert run_scan(collection).has_changes is False
        scanners.stdin.close()
    check_database(collection)
    assert kills > 1
    single_scan = open_or_create(tmp_path / "other")
    with single_scan:
        fill(single_scan.folder)
        run_scan(single_scan)
        change(single_scan.folder)
        run_scan(single_scan)
        assert read_facts(collection) == read_facts(single_scan)


def open_or_create(folder: Path) -> Collection:
    from wsabie.collection.folder.collection import create_collection

    return create_collection(folder)


def test_concurrent_scans_add_items_once(collection: Collection) -> None:
    for i in range(60):
        write_picture(collection.folder / f"sea/{i}.png", i)
    command = [sys.executable, "-c", PROGRAM, str(collection.folder), "2"]
    for new_name in ("lake", "pond"):
        started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [process.wait(60) for process in started] == [0, 0]
        assert {state for _, state in read_rows(collection).values()} == {"present"}
        next(collection.folder.glob("[a-z]*")).rename(collection.folder / new_name)
    assert run_scan(collection).moved == 60
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(func.count()).select_from(tables.items)).scalar() == 60


def test_worker_processes_find_the_same_items(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "MAX_SERIAL_FILES", 10)
    for i in range(40):
        write_picture(collection.folder / f"sea/{i}.png", i)
    assert run_scan(collection, executor=ProcessExecutor(2, local_seconds=0), tags="folders") == replace(
        NOTHING, new=40, added_tags=40
    )


def test_reopened_collection_keeps_its_scan(photos: Collection) -> None:
    with open_collection(photos.folder) as again:
        assert run_scan(again) == replace(NOTHING, unchanged=6)
