"""Scanning: every way in which files can differ from what is known of them, and scans that are killed."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import func, select

from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, read_history, undo_entry
from wsabie.collection.folder.collection import Collection, check_database, open_collection
from wsabie.collection.interchange.tag_export import write_to_pictures
from wsabie.collection.interchange.tag_import import import_tags
from wsabie.collection.jobs import queue
from wsabie.collection.labels import label_store
from wsabie.collection.scan import file_inspection, scan_writer, scanner
from wsabie.collection.scan.roots import add_root, check_folders, list_roots, read_modality
from wsabie.collection.scan.scan_writer import FileRecord, ItemRecord
from wsabie.collection.scan.scanner import ScanResult, scan_collection
from wsabie.core.errors import InputError
from wsabie.core.executors import ProcessExecutor
from wsabie.storage.rejects import Rejects

NOTHING = ScanResult(0, 0, 0, 0, 0, 0, 0, 0, "pictures", ())


def write(path: Path, colour: int, size: int = 8) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (size, size // 2), (colour, 255 - colour, 7 * colour % 256)).save(path, "PNG")
    return path


def rows(collection: Collection) -> dict[str, tuple[int, str]]:
    """Numbers and states of items by their paths."""
    c = tables.items.c
    with begin_read(collection.engine) as connection:
        return {path: (n, state) for n, path, state in connection.execute(select(c.id, c.path, c.state))}


def tags_of(collection: Collection) -> dict[int, dict[str, tuple[str, str]]]:
    """State and origin of labels by item."""
    a, states_by_item = tables.annotations.c, dict[int, dict[str, tuple[str, str]]]()
    query = select(a.item_id, tables.labels.c.name, a.state, a.origin).join(tables.labels)
    with begin_read(collection.engine) as connection:
        for item, name, state, origin in connection.execute(query):
            states_by_item.setdefault(item, {})[name] = (state, origin)
    return states_by_item


def person(collection: Collection, item: int, label: str, state: str | None) -> None:
    with begin_entry(collection.engine, "eve", "tag") as change:
        number = label_store.ensure_labels(change, [label])[label]
        write_decisions(change, [Decision(item, number, state)])  # type: ignore[arg-type]


def look(collection: Collection, **options: object) -> ScanResult:
    return scan_collection(collection, by="eve", **options)  # type: ignore[arg-type]


@pytest.fixture
def photos(collection: Collection) -> Collection:
    """Six pictures, of which two are in a folder; tags are not asked for."""
    for i in range(4):
        write(collection.folder / f"{i}.png", 10 * i)
    for i in range(4, 6):
        write(collection.folder / "sea" / f"{i}.png", 10 * i)
    assert look(collection, tags="none") == NOTHING._replace(new=6)
    return collection


def test_what_is_known_of_a_new_item(collection: Collection) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif.get_ifd(0x8769)[0x9003] = "2021:05:06 07:08:09"
    collection.folder.joinpath("a").mkdir()
    path = collection.folder / "a/turned.jpg"
    Image.new("RGB", (64, 32)).save(path, exif=exif)
    look(collection)
    with begin_read(collection.engine) as connection:
        row = connection.execute(select(tables.items)).one()
    assert (row.path, row.folder, row.width, row.height) == ("a/turned.jpg", "a", 32, 64)
    assert (row.taken_at, row.state) == ("2021-05-06T07:08:09", "present")
    assert (row.size, row.mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    assert len(row.hash) == 32


def test_a_second_scan_finds_and_writes_nothing(photos: Collection) -> None:
    history_before = read_history(photos.engine)
    assert look(photos) == NOTHING._replace(unchanged=6)
    assert read_history(photos.engine) == history_before
    look(photos, always=True)
    assert read_history(photos.engine)[0].summary == "nothing new"


def test_a_renamed_file_is_the_same_item(photos: Collection) -> None:
    rows_before = rows(photos)
    (photos.folder / "0.png").rename(photos.folder / "sea/zero.png")
    assert look(photos) == NOTHING._replace(moved=1, unchanged=5)
    assert rows(photos)["sea/zero.png"] == rows_before["0.png"]
    assert "0.png" not in rows(photos)
    with begin_read(photos.engine) as connection:
        folder = connection.execute(select(tables.items.c.folder).where(tables.items.c.path == "sea/zero.png")).scalar()
    assert folder == "sea"


def test_a_renamed_folder_keeps_its_items(photos: Collection) -> None:
    rows_before = rows(photos)
    (photos.folder / "sea").rename(photos.folder / "See")
    assert look(photos).moved == 2
    assert rows(photos)["See/4.png"] == rows_before["sea/4.png"]


@pytest.mark.parametrize(("old", "new"), [("Möwe.png", "Mo\u0308we.png"), ("a.png", "A.PNG")])
def test_names_that_look_the_same_are_names(collection: Collection, old: str, new: str) -> None:
    write(collection.folder / old, 1)
    look(collection)
    number = rows(collection)[old][0]
    (collection.folder / old).rename(collection.folder / new)
    assert look(collection).moved == 1
    assert rows(collection) == {new: (number, "present")}
    shutil.copy(collection.folder / new, collection.folder / old)  # both at once are two items
    assert look(collection).new == 1
    assert len(rows(collection)) == 2


def test_a_file_that_is_moved_and_edited_is_new(photos: Collection) -> None:
    (photos.folder / "0.png").unlink()
    write(photos.folder / "sea/0.png", 200)
    assert look(photos) == NOTHING._replace(new=1, missing=1, unchanged=5)


def test_of_copies_the_one_of_the_same_name_is_the_item(photos: Collection) -> None:
    number = rows(photos)["3.png"][0]
    for name in ("a/other.png", "b/3.png", "c/3.txt.png"):
        (photos.folder / name).parent.mkdir()
        shutil.copy(photos.folder / "3.png", photos.folder / name)
    (photos.folder / "3.png").unlink()
    assert look(photos) == NOTHING._replace(moved=1, new=2, unchanged=5)
    assert rows(photos)["b/3.png"] == (number, "present")


def test_a_copy_is_an_item_of_its_own(photos: Collection) -> None:
    shutil.copy(photos.folder / "3.png", photos.folder / "copy.png")
    assert look(photos) == NOTHING._replace(new=1, unchanged=6)


def test_renumbered_pictures_keep_their_tags(photos: Collection) -> None:
    """Every path but the last holds another picture than before."""
    rows_before = rows(photos)
    for i in (3, 2, 1, 0):
        (photos.folder / f"{i}.png").rename(photos.folder / f"{i + 1}.png")
    write(photos.folder / "0.png", 99)
    assert look(photos) == NOTHING._replace(moved=4, new=1, unchanged=2)
    rows_after = rows(photos)
    assert [rows_after[f"{i + 1}.png"] for i in range(4)] == [rows_before[f"{i}.png"] for i in range(4)]
    assert rows_after["0.png"][0] not in {number for number, _ in rows_before.values()}


def test_two_pictures_change_places(photos: Collection) -> None:
    rows_before = rows(photos)
    (photos.folder / "0.png").rename(photos.folder / "t")
    (photos.folder / "1.png").rename(photos.folder / "0.png")
    (photos.folder / "t").rename(photos.folder / "1.png")
    assert look(photos).moved == 2
    rows_after = rows(photos)
    assert (rows_after["0.png"], rows_after["1.png"]) == (rows_before["1.png"], rows_before["0.png"])


def test_a_picture_over_another_leaves_nobody_without_a_place(photos: Collection) -> None:
    rows_before = rows(photos)
    (photos.folder / "1.png").replace(photos.folder / "0.png")
    assert look(photos) == NOTHING._replace(changed=1, missing=1, unchanged=4)
    rows_after = rows(photos)
    assert (rows_after["0.png"], rows_after["1.png"]) == (rows_before["0.png"], (rows_before["1.png"][0], "missing"))


def test_an_edited_file_keeps_what_was_decided(photos: Collection) -> None:
    number = rows(photos)["0.png"][0]
    person(photos, number, "gull", "accepted")
    write(photos.folder / "0.png", 222, size=20)
    assert look(photos) == NOTHING._replace(changed=1, unchanged=5)
    assert tags_of(photos) == {number: {"gull": ("accepted", "person")}}
    with begin_read(photos.engine) as connection:
        assert connection.execute(select(tables.items.c.width).where(tables.items.c.id == number)).scalar() == 20


def test_missing_items_keep_all_and_come_back(photos: Collection) -> None:
    number = rows(photos)["0.png"][0]
    person(photos, number, "gull", "rejected")
    content = (photos.folder / "0.png").read_bytes()
    (photos.folder / "0.png").unlink()
    assert look(photos) == NOTHING._replace(missing=1, unchanged=5)
    assert look(photos) == NOTHING._replace(unchanged=5)  # it is told once
    assert rows(photos)["0.png"] == (number, "missing")
    (photos.folder / "0.png").write_bytes(content)
    assert look(photos) == NOTHING._replace(found_again=1, unchanged=5)
    assert rows(photos)["0.png"] == (number, "present")
    (photos.folder / "0.png").unlink()
    look(photos)
    (photos.folder / "back.png").write_bytes(content)
    assert look(photos).moved == 1
    assert rows(photos)["back.png"] == (number, "present")
    assert tags_of(photos) == {number: {"gull": ("rejected", "person")}}


def test_a_clock_that_was_set_back(photos: Collection) -> None:
    write(photos.folder / "0.png", 111)
    os.utime(photos.folder / "0.png", ns=(10**18, 10**18))  # long before the scan
    assert look(photos).changed == 1


def test_a_touched_file_is_what_it_was(photos: Collection) -> None:
    os.utime(photos.folder / "0.png", ns=(10**18, 10**18))
    assert look(photos) == NOTHING._replace(unchanged=6)


def test_same_size_and_time_are_believed_unless_all_is_to_be_read(photos: Collection) -> None:
    path = photos.folder / "0.png"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert look(photos) == NOTHING._replace(unchanged=6)
    assert look(photos, rehash=True) == NOTHING._replace(changed=1, unchanged=5)


def test_what_cannot_be_read_is_an_item_counted_and_listed(photos: Collection) -> None:
    content = (photos.folder / "0.png").read_bytes()
    (photos.folder / "words.png").write_bytes(b"plain words")
    (photos.folder / "cut.png").write_bytes(content[:-20])
    (photos.folder / "empty.jpg").write_bytes(b"")
    (photos.folder / "raw.heic").write_bytes(b"x")
    rejects = Rejects()
    assert look(photos, rejects=rejects) == NOTHING._replace(new=3, unreadable=3, unchanged=6)
    assert {where: reason for where, reason, _ in rejects.listed} == {
        "words.png": "not a picture",
        "cut.png": "truncated picture",
        "empty.jpg": "empty file",
        "raw.heic": "unsupported picture format",
    }
    assert {path for path, (_, state) in rows(photos).items() if state == "unreadable"} == {
        "words.png", "cut.png", "empty.jpg",
    }  # fmt: skip
    (photos.folder / "cut.png").write_bytes(content + b"x")
    assert look(photos).changed == 1
    assert rows(photos)["cut.png"][1] == "present"


def test_what_could_not_be_read_before_is_listed_again_and_told_as_known(photos: Collection) -> None:
    (photos.folder / "words.png").write_bytes(b"plain words")
    (photos.folder / "empty.jpg").write_bytes(b"")
    assert look(photos).summary == "2 new, 2 of them unreadable"
    rejects = Rejects()
    again = look(photos, rejects=rejects, always=True)
    assert again == NOTHING._replace(unchanged=8, unreadable=2, still_unreadable=2)
    assert sorted(where for where, _, _ in rejects.listed) == ["empty.jpg", "words.png"]
    assert (again.summary, read_history(photos.engine)[0].summary) == ("", "nothing new")
    write(photos.folder / "empty.jpg", 200)
    write(photos.folder / "more.png", 201)
    (photos.folder / "words.png").write_bytes(b"other words")
    assert look(photos).summary == "1 new, 2 changed, 1 of them unreadable"


def test_large_files_and_pictures_are_not_read(photos: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_inspection, "MAX_FILE_SIZE", 1000)
    (photos.folder / "large.png").write_bytes(b"0" * 1001)
    rejects = Rejects()
    look(photos, rejects=rejects)
    assert rejects.counts == {"file that is too large": 1}
    assert rows(photos)["large.png"][1] == "unreadable"


def test_a_file_that_changes_while_it_is_read_waits(photos: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(photos.folder / "growing.png", 5)
    once = file_inspection._inspect_once

    def grow(task: file_inspection.InspectionTask, stat: file_inspection.FileStat) -> file_inspection.FileInspection:
        if task.path == path:
            with path.open("ab") as file:
                file.write(b"more")
        return once(task, stat)

    monkeypatch.setattr(file_inspection, "_inspect_once", grow)
    rejects = Rejects()
    assert look(photos, rejects=rejects) == NOTHING._replace(unchanged=6)
    assert rejects.counts == {"file that changes while it is read": 1}
    monkeypatch.undo()
    assert look(photos).new == 1


def test_links_never_lead_out(photos: Collection, tmp_path: Path) -> None:
    write(tmp_path / "secret/s.png", 9)
    (photos.folder / "loop").symlink_to(photos.folder)
    (photos.folder / "out").symlink_to(tmp_path / "secret")
    (photos.folder / "out.png").symlink_to(tmp_path / "secret/s.png")
    (photos.folder / "dead.png").symlink_to(photos.folder / "nowhere")
    (photos.folder / "self.png").symlink_to(photos.folder / "self.png")
    (photos.folder / "in.png").symlink_to(photos.folder / "0.png")
    (photos.folder / ".hidden").mkdir()
    write(photos.folder / ".hidden/h.png", 77)
    write(photos.place / "thumbnails/t.png", 78)
    rejects = Rejects()
    assert look(photos, rejects=rejects) == NOTHING._replace(new=1, unchanged=6)
    assert "in.png" in rows(photos)
    assert len(rejects) == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_items_of_a_folder_that_cannot_be_read_are_not_missing(photos: Collection) -> None:
    (photos.folder / "sea").chmod(0)
    try:
        rejects = Rejects()
        assert look(photos, rejects=rejects) == NOTHING._replace(unchanged=4)
        assert rejects.counts == {"folder that cannot be read": 1}
    finally:
        (photos.folder / "sea").chmod(0o755)


def test_items_of_a_folder_that_fails_are_not_missing(photos: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where everything may be read: the system refuses to list the folder."""
    scandir = os.scandir

    def refusing(path: object = ".") -> object:
        if str(path).endswith("sea"):
            raise OSError(5, "Input/output error", str(path))
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", refusing)
    rejects = Rejects()
    assert look(photos, rejects=rejects) == NOTHING._replace(unchanged=4)
    assert rejects.counts == {"folder that cannot be read": 1}
    assert {state for _, state in rows(photos).values()} == {"present"}


def test_a_disk_that_is_away_loses_nothing(photos: Collection, tmp_path: Path) -> None:
    write(tmp_path / "disk/a.png", 60)
    add_root(photos, tmp_path / "disk", by="eve")
    assert look(photos).new == 1
    (tmp_path / "disk").rename(tmp_path / "away")
    scanned = look(photos)
    assert [(a.folder, a.items) for a in scanned.away] == [(str(tmp_path / "disk"), 1)]
    assert "there is no file or folder" in scanned.away[0].reason
    assert scanned.missing == 0
    (tmp_path / "disk").mkdir()  # where it is mounted otherwise
    assert look(photos).away[0].reason == "there is nothing in it"
    assert rows(photos)["a.png"][1] == "present"
    (tmp_path / "disk").rmdir()
    (tmp_path / "away").rename(tmp_path / "disk")
    assert look(photos) == NOTHING._replace(unchanged=7)


def test_files_move_between_roots(photos: Collection, tmp_path: Path) -> None:
    write(tmp_path / "disk/a.png", 60)
    add_root(photos, tmp_path / "disk", by="eve")
    look(photos)
    number = rows(photos)["0.png"][0]
    (photos.folder / "0.png").rename(tmp_path / "disk/0.png")
    assert look(photos).moved == 1
    with begin_read(photos.engine) as connection:
        row = connection.execute(select(tables.items).where(tables.items.c.id == number)).one()
    assert (row.root_id, row.path, row.state) == (list_roots(photos)[1].id, "0.png", "present")


@pytest.mark.parametrize("seconds", [99_999_999_999, -99_999_999_999])
def test_times_that_64_bits_cannot_hold(photos: Collection, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    stat = os.stat

    def at_another_time(path: object, **options: Any) -> object:
        status = stat(path, **options)  # type: ignore[call-overload]
        if not str(path).endswith("9.png"):
            return status
        return SimpleNamespace(st_size=status.st_size, st_mode=status.st_mode, st_mtime_ns=seconds * 10**9)

    write(photos.folder / "9.png", 90)
    monkeypatch.setattr(os, "stat", at_another_time)
    assert (look(photos).new, look(photos).unchanged) == (1, 7)


def test_roots_that_are_refused(photos: Collection, tmp_path: Path) -> None:
    for path, message in [
        (photos.folder / "sea", "lies in .*photos, which is scanned already"),
        (photos.folder, "is scanned already"),
        (tmp_path, "holds .*, which is scanned already"),
        (tmp_path / "nowhere", "there is no file or folder"),
        (write(tmp_path / "elsewhere/x.png", 4), "is in no folder of the collection; add the folder"),
        (write(photos.folder / ".h/x.png", 4), "is hidden"),
    ]:
        with pytest.raises(InputError, match=message):
            check_folders(photos, [write(tmp_path / "other/x.png", 4).parent, path])
    assert check_folders(photos, [photos.folder / "0.png"]) == []
    assert len(list_roots(photos)) == 1


def test_tags_of_folders(collection: Collection) -> None:
    write(collection.folder / "animal/dog/1.png", 1)
    write(collection.folder / "sea/2.png", 2)
    assert look(collection) == NOTHING._replace(new=2, tagged=3)
    items = rows(collection)
    dog, accepted = items["animal/dog/1.png"][0], ("accepted", "import")
    assert tags_of(collection)[dog] == {"animal": accepted, "dog": accepted}
    with begin_read(collection.engine) as connection:
        assert set(connection.execute(select(tables.annotations.c.by)).scalars()) == {"folder"}
    person(collection, dog, "dog", "rejected")
    (collection.folder / "animal/dog").rename(collection.folder / "animal/cat")
    assert look(collection) == NOTHING._replace(moved=1, tagged=1, unchanged=1)
    assert tags_of(collection)[dog] == {"animal": accepted, "dog": ("rejected", "person"), "cat": accepted}
    (collection.folder / "animal/cat").rename(collection.folder / "animal/dog")
    assert look(collection).tagged == 0  # what a person rejected does not come back
    assert tags_of(collection)[dog]["dog"] == ("rejected", "person")


def test_auto_stays_what_it_was_at_first(collection: Collection) -> None:
    write(collection.folder / "1.png", 1)
    look(collection)
    assert list_roots(collection)[0].options == {"modality": "pictures", "tags": "xmp"}
    write(collection.folder / "animal/2.png", 2)
    write(collection.folder / "sea/3.png", 3)
    assert look(collection).tagged == 0
    assert look(collection, tags="folders") == NOTHING._replace(unchanged=3, tagged=2)  # of what was known too
    assert look(collection) == NOTHING._replace(unchanged=3)
    write(collection.folder / "sea/4.png", 4)
    assert look(collection).tagged == 1


def test_another_choice_of_tags_is_undone_with_its_scan(collection: Collection) -> None:
    path = collection.folder / "sea/1.png"
    write(path, 1)
    path.with_name("1.png.xmp").write_text(PACKET.format("<r:li>gull</r:li>"))

    def choice() -> object:
        return list_roots(collection)[0].options["tags"]

    look(collection, tags="folders")
    assert look(collection, tags="xmp") == NOTHING._replace(unchanged=1, tagged=1)
    last = read_history(collection.engine)[0]
    assert (choice(), last.summary, last.changes) == ("xmp", "1 tags from files, tags from xmp in place of folders", 3)
    undo_entry(collection.engine, by="eve")
    assert (choice(), list(tags_of(collection)[1])) == ("folders", ["sea"])
    write(collection.folder / "sky/2.png", 2)
    assert look(collection) == NOTHING._replace(new=1, unchanged=1, tagged=1)
    undo_entry(collection.engine, read_history(collection.engine)[1].id, by="eve")  # the undoing
    assert (choice(), sorted(tags_of(collection)[1])) == ("xmp", ["gull", "sea"])
    look(collection, tags="none")
    assert read_history(collection.engine)[0].summary == "tags from none in place of xmp"
    with pytest.raises(InputError, match="changed the same after"):
        undo_entry(collection.engine, last.id, by="eve")
    undo_entry(collection.engine, by="eve")
    assert (choice(), look(collection)) == ("xmp", NOTHING._replace(unchanged=2))


def write_years(folder: Path, with_keywords: int) -> None:
    """20 pictures in folders of four years, the last of them with keywords."""
    for i in range(20):
        path = folder / f"{2020 + i % 4}/{i:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        write_keywords(path, *["sea"] * (i >= 20 - with_keywords))


@pytest.mark.parametrize(
    ("with_keywords", "choice", "message"),
    [(3, "xmp", "15% of the pictures .* these are the tags"), (1, "folders", "5% .* sub-folders are the tags")],
)
def test_keywords_go_before_folders(collection: Collection, with_keywords: int, choice: str, message: str) -> None:
    write_years(collection.folder, with_keywords)
    result = look(collection)
    assert re.search(message, *result.notes)
    assert list_roots(collection)[0].options["tags"] == choice
    assert result.tagged == (with_keywords if choice == "xmp" else 20)
    assert look(collection).notes == ()  # it is told once
    assert look(collection, tags="auto").notes == result.notes


def test_a_job_says_what_the_scan_has_to_say(collection: Collection, tmp_path: Path) -> None:
    write_years(collection.folder, with_keywords=3)
    missing_folder = tmp_path / "gone"
    missing_folder.mkdir()
    add_root(collection, missing_folder, by="eve")
    missing_folder.rmdir()
    job = queue.enqueue_job(collection, "scan", {}, by="eve")
    queue.run_next_job(collection.folder)
    job_result = queue.read_job(collection, job.id).result
    assert job_result is not None
    assert re.search("15% of the pictures .* these are the tags", *job_result["notes"])
    assert [(away_folder["folder"], away_folder["items"]) for away_folder in job_result["away"]] == [
        (str(missing_folder), 0)
    ]


def test_sides_of_a_split_are_no_tags(collection: Collection) -> None:
    write(collection.folder / "train/1.png", 1)
    write(collection.folder / "test/2.png", 2)
    assert look(collection) == NOTHING._replace(new=2)


def test_tags_of_a_table_are_read_again_when_it_changes(collection: Collection) -> None:
    for i in range(3):
        write(collection.folder / f"{i}.png", i)
    table = collection.folder / "metadata.csv"
    table.write_text("file_name,labels\n0.png,sea;sky\n1.png,sea\ngone.png,sea\n")
    rejects = Rejects()
    assert look(collection, rejects=rejects) == NOTHING._replace(new=3, tagged=3)
    assert rejects.counts == {"labels without a file": 1}
    item = rows(collection)["0.png"][0]
    person(collection, item, "sky", "rejected")
    table.write_text("file_name,labels\n0.png,sea;sky;gull\n2.png,tern\n")
    assert look(collection) == NOTHING._replace(unchanged=3, tagged=2)
    accepted = ("accepted", "import")
    assert tags_of(collection)[item] == {"sea": accepted, "sky": ("rejected", "person"), "gull": accepted}
    assert look(collection) == NOTHING._replace(unchanged=3)
    table.unlink()
    assert look(collection) == NOTHING._replace(unchanged=3)  # nothing is taken away
    with pytest.raises(InputError, match=r"has no metadata.csv"):
        look(collection, tags="metadata")


def test_a_move_into_the_place_of_one_that_cannot_move_waits(collection: Collection) -> None:
    """Somebody else has filed another file meanwhile where the last one was to go."""
    for number, name in enumerate("abc"):
        write(collection.folder / f"{name}.png", number)
    look(collection)
    with begin_read(collection.engine) as connection:
        known_items = {item.path: item for item in scan_writer.read_known_items(connection, list(collection.roots()))}

    def moved(item: ItemRecord, path: str) -> FileRecord:
        inspection = file_inspection.FileInspection(
            file_inspection.FileStat(item.size or 0, item.mtime_ns or 0), item.hash
        )
        return FileRecord(item.root, path, inspection, item, kind="moved")

    rows_before = rows(collection)
    block = [moved(known_items["a.png"], "b.png"), moved(known_items["b.png"], "c.png")]
    assert not scan_writer.write_block(collection.engine, "anna", block)[0]["moved"]
    assert rows(collection) == rows_before
    assert (
        scan_writer.write_block(collection.engine, "anna", [*block, moved(known_items["c.png"], "a.png")])[0]["moved"]
        == 3
    )


def test_a_table_that_may_not_be_read_is_named(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    write(collection.folder / "0.png", 0)
    table, opened = collection.folder / "metadata.csv", os.open
    table.write_text("file_name,labels\n0.png,sea\n")

    def refuse(path: Any, *arguments: Any, **more: Any) -> int:
        if path == table:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match=r"cannot read .*metadata\.csv: Permission denied; check"):
        look(collection)


def test_sidecars_beside_a_table_are_told(collection: Collection) -> None:
    for i in range(3):
        write(collection.folder / f"{i}.png", i)
    (collection.folder / "metadata.csv").write_text("file_name,labels\n0.png,sea\n")
    assert look(collection).notes == ()
    (collection.folder / "1.png.xmp").write_text(PACKET.format("<r:li>sky</r:li>"))
    (collection.folder / "2.xmp").write_text(PACKET.format("<r:li>sky</r:li>"))
    (collection.folder / "lost.xmp").write_text("x")
    result = look(collection)
    assert "2 pictures have a sidecar (.xmp) that is not asked" in result.notes[0]
    assert (len(result.notes), result.tagged) == (1, 0)
    xmp_result = look(collection, tags="xmp")
    assert (xmp_result.notes, xmp_result.tagged) == ((), 2)


def test_other_sources_of_tags_are_told(collection: Collection) -> None:
    for name in ("0.png", "sea/1.png", "sky/2.png"):
        write(collection.folder / name, 1)
    (collection.folder / "metadata.csv").write_text("file_name,labels\n0.png,gull\n")
    result = look(collection)
    assert (result.tagged, len(result.notes)) == (1, 1)
    assert (
        "the names of 2 sub-folders are not asked, for a table says the tags (--tags folders takes" in result.notes[0]
    )
    assert look(collection).notes == ()  # it is told once
    table = collection.folder / "sea/metadata.csv"
    table.write_text("file_name,labels\n1.png,tern\n")
    assert look(collection).notes == (
        f"in sub-folders of {collection.folder} 1 table of tags is not read; to take one over: wsabie collection "
        f"import DIR {table}",
    )
    assert look(collection).notes == ()
    (collection.folder / "sky/metadata.jsonl").write_text("")
    assert "2 tables of tags are not read" in look(collection).notes[0]
    assert len(look(collection, tags="metadata").notes) == 2  # as soon as it is asked again
    assert len(look(collection, tags="folders").notes) == 1
    assert import_tags(collection, table, by="eve").added == 1
    table.unlink()
    (collection.folder / "sky/metadata.jsonl").unlink()
    assert look(collection).notes == look(collection).notes == ()


def test_sides_of_a_split_beside_a_table_are_no_tags(collection: Collection) -> None:
    for name in ("train/0.png", "test/1.png"):
        write(collection.folder / name, 1)
    (collection.folder / "metadata.csv").write_text("file_name,labels\ntrain/0.png,gull\n")
    assert look(collection) == NOTHING._replace(new=2, tagged=1)


PACKET = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:d="http://purl.org/dc/elements/1.1/"><r:Description r:about=""><d:subject><r:Bag>{}</r:Bag></d:subject>'
    "</r:Description></r:RDF></x:xmpmeta>"
)


def write_keywords(path: Path, *keywords: str) -> None:
    items = "".join(f"<r:li>{word}</r:li>" for word in keywords)
    Image.new("RGB", (8, 8)).save(path, xmp=PACKET.format(items).encode())


def test_keywords_that_were_added_outside_come_in(collection: Collection) -> None:
    path = collection.folder / "a.jpg"
    write_keywords(path, "sea", "sky", "x" * 501)
    rejects = Rejects()
    assert look(collection, rejects=rejects) == NOTHING._replace(new=1, tagged=2)
    assert rejects.counts == {"tag that cannot be a label": 1}
    item = rows(collection)["a.jpg"][0]
    person(collection, item, "sky", "rejected")
    person(collection, item, "tern", "accepted")
    write_keywords(path, "sky", "gull", "tern")
    assert look(collection) == NOTHING._replace(changed=1, tagged=1, withdrawn=1)
    assert tags_of(collection)[item] == {
        "sky": ("rejected", "person"),
        "tern": ("accepted", "person"),
        "gull": ("accepted", "import"),
    }
    (collection.folder / "b.jpg").write_bytes(path.read_bytes().replace(b"</r:RDF>", b"</r:BAD>"))
    Image.new("RGB", (8, 9)).save(path)  # by a program that knows no keywords
    rejects = Rejects()
    assert look(collection, rejects=rejects) == NOTHING._replace(new=1, changed=1, held=1)
    assert rejects.counts == {"tags that cannot be read": 1}


def test_sidecars_that_are_written_later_come_in(collection: Collection) -> None:
    path, sidecar = collection.folder / "sea/a.jpg", collection.folder / "sea/a.jpg.xmp"
    path.parent.mkdir()
    write_keywords(path, "inside")
    write_keywords(path.with_name("b.jpg"), "other")
    assert look(collection, tags="xmp") == NOTHING._replace(new=2, tagged=2)
    item = rows(collection)["sea/a.jpg"][0]
    person(collection, item, "sky", "rejected")

    def scan_sidecar(*keywords: str, at: int) -> ScanResult:
        sidecar.write_text(PACKET.format("".join(f"<r:li>{word}</r:li>" for word in keywords)))
        os.utime(sidecar, (at, at))
        return look(collection)

    unchanged = NOTHING._replace(unchanged=2)
    first = unchanged._replace(tagged=1, held=1)  # what is inside the picture is said no more, and stays
    assert scan_sidecar("sky", "gull", at=10**9) == first  # older than the picture, as after a copy
    assert look(collection) == look(collection, rehash=True) == unchanged
    assert scan_sidecar("sky", "tern", at=10**9 + 1) == unchanged._replace(tagged=1, withdrawn=1, held=1)
    sidecar.rename(sidecar.with_name("a.xmp"))
    assert look(collection) == unchanged._replace(held=1)
    assert look(collection) == unchanged
    sidecar = sidecar.with_name("a.xmp")
    undo_entry(collection.engine, read_history(collection.engine)[-1].id, by="eve")
    sidecar.unlink()
    assert look(collection) == unchanged._replace(tagged=1, held=1)  # what is inside counts again
    accepted = ("accepted", "import")
    assert tags_of(collection)[item] == {
        "sky": ("rejected", "person"), "tern": accepted, "inside": accepted,
    }  # fmt: skip
    sidecar.write_text("<broken")
    for _ in range(2):  # until it can be read
        rejects = Rejects()
        assert look(collection, rejects=rejects) == unchanged._replace(held=2)
        assert rejects.counts == {"tags that cannot be read": 1}
    assert scan_sidecar("dog", at=10**9 + 2) == unchanged._replace(tagged=1, withdrawn=1, held=1)
    (collection.folder / "sea").rename(collection.folder / "See")
    assert look(collection) == NOTHING._replace(moved=2, tagged=1)  # of b.jpg, whose tag was undone
    assert look(collection, rehash=True) == unchanged
    picture = collection.folder / "See/a.jpg"
    os.utime(picture)
    picture.with_suffix(".xmp").write_text(PACKET.format("<r:li>cat</r:li>"))
    assert look(collection, rehash=True).tagged == 1  # both at once


def test_tags_that_were_removed_outside_are_withdrawn(collection: Collection) -> None:
    path = collection.folder / "a.jpg"
    sidecar = path.with_name("a.jpg.xmp")
    write_keywords(path)

    def scan_sidecar(*keywords: str) -> ScanResult:
        sidecar.write_text(PACKET.format("".join(f"<r:li>{word}</r:li>" for word in keywords)))
        return look(collection)._replace(unchanged=0)

    sidecar.write_text(PACKET.format("<r:li>sea</r:li><r:li>gull</r:li><r:li>sky</r:li><r:li>dog</r:li>"))
    assert look(collection, tags="xmp") == NOTHING._replace(new=1, tagged=4)
    accepted, ours = ("accepted", "import"), ("accepted", "person")
    person(collection, 1, "sky", "accepted")  # a person agreed
    person(collection, 1, "boat", "accepted")
    with begin_entry(collection.engine, "eve", "import") as change:
        label = label_store.ensure_labels(change, ["list"])["list"]
        write_decisions(change, [Decision(1, label, "accepted")], origin="import", by="tags.csv")
        number = label_store.find_labels(change.connection, ["gull"])["gull"]
        label_store.rename_label(change, number, "seagull")  # the file still calls it gull
    assert scan_sidecar("gull") == NOTHING._replace(withdrawn=2)
    expected = {"seagull": accepted, "sky": ours, "boat": ours, "list": accepted}
    assert (tags_of(collection)[1], read_history(collection.engine)[0].summary) == (expected, "2 tags withdrawn")
    undo_entry(collection.engine, by="eve")
    assert tags_of(collection)[1] == expected | {"sea": accepted, "dog": accepted}
    assert look(collection) == NOTHING._replace(unchanged=1)  # what was put back stays
    sidecar.unlink()
    assert look(collection) == NOTHING._replace(unchanged=1, held=3)
    assert look(collection) == NOTHING._replace(unchanged=1)
    assert scan_sidecar("gull", "sea") == NOTHING._replace(held=1)  # nobody knows that it is the same again
    sidecar.write_text("")
    assert look(collection) == NOTHING._replace(unchanged=1, held=3)  # somebody begins to write it
    assert scan_sidecar("sea") == NOTHING._replace(withdrawn=2)
    assert scan_sidecar() == NOTHING._replace(withdrawn=1)
    assert tags_of(collection)[1] == {"sky": ours, "boat": ours, "list": accepted}


def test_tags_of_a_sidecar_that_is_written_half_are_withdrawn_when_it_is_whole(collection: Collection) -> None:
    path = collection.folder / "a.jpg"
    sidecar = path.with_name("a.jpg.xmp")
    write_keywords(path)
    sidecar.write_text(PACKET.format("<r:li>sea</r:li><r:li>gull</r:li>"))
    look(collection, tags="xmp")
    sidecar.write_text(PACKET.format("<r:li>sea</r:li>")[:-30])
    assert look(collection) == NOTHING._replace(unchanged=1, held=2)
    sidecar.write_text(PACKET.format("<r:li>sea</r:li>"))
    assert look(collection) == NOTHING._replace(unchanged=1, withdrawn=1)


def test_of_more_tags_than_are_taken_none_is_withdrawn(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    path = collection.folder / "a.jpg"
    write_keywords(path, "sea")
    look(collection, tags="xmp")
    monkeypatch.setattr(file_inspection, "MAX_LABELS", 1)
    write_keywords(path, "gull", "sea")
    assert look(collection) == NOTHING._replace(changed=1, tagged=1)


def test_tags_that_were_written_beside_pictures_stay_whose_they_were(collection: Collection) -> None:
    write_keywords(collection.folder / "a.jpg")
    look(collection, tags="xmp")
    with begin_entry(collection.engine, "eve", "tag") as change:
        write_decisions(
            change, [Decision(1, label_store.ensure_labels(change, ["sea"])["sea"], "accepted")], origin="model"
        )
    write_to_pictures(collection)
    assert look(collection) == NOTHING._replace(unchanged=1)
    assert tags_of(collection)[1] == {"sea": ("accepted", "model")}


def test_choices_of_tags_that_are_refused(photos: Collection) -> None:
    with pytest.raises(InputError, match="only sounds have 'tags'; leave --tags out, or say --tags xmp"):
        look(photos, tags="tags")


def test_a_collection_is_of_one_medium(collection: Collection) -> None:
    write(collection.folder / "cover.png", 1)
    for name in ("a.txt", "b.txt"):
        (collection.folder / name).write_text(name)
    look(collection)
    assert read_modality(collection) == "pictures"
    assert list(rows(collection)) == ["cover.png"]


def test_a_collection_of_documents(collection: Collection) -> None:
    for i in range(3):
        (collection.folder / f"{i}.txt").write_text(f"words {i}")
    assert look(collection) == NOTHING._replace(new=3, modality="documents")
    write(collection.folder / "cover.png", 1)
    assert look(collection) == NOTHING._replace(unchanged=3, modality="documents")


def test_a_scan_is_one_line_of_the_journal(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BLOCK_SIZE", 2)
    for i in range(7):
        write(collection.folder / f"sea/{i}.png", i)
    look(collection, tags="folders")
    assert [(e.summary, e.changes) for e in read_history(collection.engine)] == [("7 new, 7 tags from files", 8)]
    undo_entry(collection.engine, by="eve")
    assert tags_of(collection) == {}
    assert look(collection) == NOTHING._replace(unchanged=7)  # what was undone does not come back


def test_lines_of_others_between_blocks_stay_in_order(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BLOCK_SIZE", 2)
    for i in range(4):
        write(collection.folder / f"sea/{i}.png", i)
    write_block = scanner.write_block

    def writing_too(*arguments: object) -> object:
        wrote = write_block(*arguments)  # type: ignore[arg-type]
        if len(read_history(collection.engine)) == 1:
            person(collection, rows(collection)["sea/0.png"][0], "sea", "rejected")
        return wrote

    monkeypatch.setattr(scanner, "write_block", writing_too)
    look(collection, tags="folders")
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


def facts(collection: Collection) -> object:
    """All rows of the catalogue, without numbers and times."""
    c, tags = tables.items.c, tags_of(collection)
    query = select(c.id, c.path, c.state, c.hash, c.size, c.width)
    with begin_read(collection.engine) as connection:
        return sorted((tuple(row[1:]), sorted(tags.get(row[0], {}).items())) for row in connection.execute(query))


def test_killed_scans_end_where_one_scan_does(collection: Collection, tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        for i in range(120):
            write(folder / f"{'land' if i % 3 else 'sea'}/{i}.png", i)

    def change(folder: Path) -> None:
        (folder / "sea").rename(folder / "lake")
        for i in range(0, 119, 3):  # every picture gets the place of another
            (folder / f"lake/{i}.png").rename(folder / f"lake/{(i + 3) % 120}.new")
        for path in (folder / "lake").glob("*.new"):
            path.rename(path.with_suffix(".png"))
        (folder / "land/1.png").unlink()
        write(folder / "land/2.png", 250)
        write(folder / "more/m.png", 251)

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
                number = int(scanners.stdout.readline())
                time.sleep(chance.uniform(0.0, 0.25))
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
                kills += int(scanners.stdout.readline()) != 0
            look(collection)
            assert look(collection).has_changes is False
        scanners.stdin.close()
    check_database(collection)
    assert kills > 1
    single_scan = open_or_make(tmp_path / "other")
    with single_scan:
        fill(single_scan.folder)
        look(single_scan)
        change(single_scan.folder)
        look(single_scan)
        assert facts(collection) == facts(single_scan)


def open_or_make(folder: Path) -> Collection:
    from wsabie.collection.folder.collection import create_collection

    return create_collection(folder)


def test_two_scans_at_once_double_nothing(collection: Collection) -> None:
    for i in range(60):
        write(collection.folder / f"sea/{i}.png", i)
    command = [sys.executable, "-c", PROGRAM, str(collection.folder), "2"]
    for new_name in ("lake", "pond"):
        started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [process.wait(60) for process in started] == [0, 0]
        assert {state for _, state in rows(collection).values()} == {"present"}
        next(collection.folder.glob("[a-z]*")).rename(collection.folder / new_name)
    assert look(collection).moved == 60
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(func.count()).select_from(tables.items)).scalar() == 60


def test_workers_find_the_same(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "MAX_SERIAL_FILES", 10)
    for i in range(40):
        write(collection.folder / f"sea/{i}.png", i)
    assert look(collection, executor=ProcessExecutor(2, local_seconds=0), tags="folders") == NOTHING._replace(
        new=40, tagged=40
    )


def test_a_collection_that_is_opened_again_goes_on(photos: Collection) -> None:
    with open_collection(photos.folder) as again:
        assert look(again) == NOTHING._replace(unchanged=6)
