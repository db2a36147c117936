"""Scanned files: every way in which files can differ from what is known of them."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select
from tests.collection.scan.conftest import NOTHING, decide_as_person, read_rows, read_tags, run_scan, write_picture

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import read_history
from wsabie.collection.folder.collection import Collection
from wsabie.collection.scan import file_inspection, scan_writer
from wsabie.collection.scan.move_detection import FileRecord, ItemRecord
from wsabie.collection.scan.roots import add_root, check_folders, list_roots, read_modality
from wsabie.core.errors import InputError
from wsabie.storage.rejects import Rejects


def test_new_item_has_size_time_and_hash(collection: Collection) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif.get_ifd(0x8769)[0x9003] = "2021:05:06 07:08:09"
    collection.folder.joinpath("a").mkdir()
    path = collection.folder / "a/turned.jpg"
    Image.new("RGB", (64, 32)).save(path, exif=exif)
    run_scan(collection)
    with begin_read(collection.engine) as connection:
        row = connection.execute(select(tables.items)).one()
    assert (row.path, row.folder, row.width, row.height) == ("a/turned.jpg", "a", 32, 64)
    assert (row.taken_at, row.state) == ("2021-05-06T07:08:09", "present")
    assert (row.size, row.mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    assert len(row.hash) == 32


def test_second_scan_writes_no_entry(photos: Collection) -> None:
    history_before = read_history(photos.engine)
    assert run_scan(photos) == replace(NOTHING, unchanged=6)
    assert read_history(photos.engine) == history_before
    run_scan(photos, always=True)
    assert read_history(photos.engine)[0].summary == "nothing new"


def test_renamed_file_keeps_its_item(photos: Collection) -> None:
    rows_before = read_rows(photos)
    (photos.folder / "0.png").rename(photos.folder / "sea/zero.png")
    assert run_scan(photos) == replace(NOTHING, moved=1, unchanged=5)
    assert read_rows(photos)["sea/zero.png"] == rows_before["0.png"]
    assert "0.png" not in read_rows(photos)
    with begin_read(photos.engine) as connection:
        folder = connection.execute(select(tables.items.c.folder).where(tables.items.c.path == "sea/zero.png")).scalar()
    assert folder == "sea"


def test_renamed_folder_keeps_its_items(photos: Collection) -> None:
    rows_before = read_rows(photos)
    (photos.folder / "sea").rename(photos.folder / "See")
    assert run_scan(photos).moved == 2
    assert read_rows(photos)["See/4.png"] == rows_before["sea/4.png"]


@pytest.mark.parametrize(("old", "new"), [("Möwe.png", "Mo\u0308we.png"), ("a.png", "A.PNG")])
def test_names_that_look_equal_are_different_paths(collection: Collection, old: str, new: str) -> None:
    write_picture(collection.folder / old, 1)
    run_scan(collection)
    item_id = read_rows(collection)[old][0]
    (collection.folder / old).rename(collection.folder / new)
    assert run_scan(collection).moved == 1
    assert read_rows(collection) == {new: (item_id, "present")}
    shutil.copy(collection.folder / new, collection.folder / old)  # both at once are two items
    assert run_scan(collection).new == 1
    assert len(read_rows(collection)) == 2


def test_moved_and_edited_file_is_new(photos: Collection) -> None:
    (photos.folder / "0.png").unlink()
    write_picture(photos.folder / "sea/0.png", 200)
    assert run_scan(photos) == replace(NOTHING, new=1, missing=1, unchanged=5)


def test_copy_with_the_same_name_keeps_the_item(photos: Collection) -> None:
    item_id = read_rows(photos)["3.png"][0]
    for name in ("a/other.png", "b/3.png", "c/3.txt.png"):
        (photos.folder / name).parent.mkdir()
        shutil.copy(photos.folder / "3.png", photos.folder / name)
    (photos.folder / "3.png").unlink()
    assert run_scan(photos) == replace(NOTHING, moved=1, new=2, unchanged=5)
    assert read_rows(photos)["b/3.png"] == (item_id, "present")


def test_copy_is_a_new_item(photos: Collection) -> None:
    shutil.copy(photos.folder / "3.png", photos.folder / "copy.png")
    assert run_scan(photos) == replace(NOTHING, new=1, unchanged=6)


def test_renumbered_pictures_keep_their_items(photos: Collection) -> None:
    """Every path but the last holds another picture than before."""
    rows_before = read_rows(photos)
    for i in (3, 2, 1, 0):
        (photos.folder / f"{i}.png").rename(photos.folder / f"{i + 1}.png")
    write_picture(photos.folder / "0.png", 99)
    assert run_scan(photos) == replace(NOTHING, moved=4, new=1, unchanged=2)
    rows_after = read_rows(photos)
    assert [rows_after[f"{i + 1}.png"] for i in range(4)] == [rows_before[f"{i}.png"] for i in range(4)]
    assert rows_after["0.png"][0] not in {item_id for item_id, _ in rows_before.values()}


def test_swapped_pictures_swap_their_paths(photos: Collection) -> None:
    rows_before = read_rows(photos)
    (photos.folder / "0.png").rename(photos.folder / "t")
    (photos.folder / "1.png").rename(photos.folder / "0.png")
    (photos.folder / "t").rename(photos.folder / "1.png")
    assert run_scan(photos).moved == 2
    rows_after = read_rows(photos)
    assert (rows_after["0.png"], rows_after["1.png"]) == (rows_before["1.png"], rows_before["0.png"])


def test_moving_a_picture_over_another_changes_the_other(photos: Collection) -> None:
    rows_before = read_rows(photos)
    (photos.folder / "1.png").replace(photos.folder / "0.png")
    assert run_scan(photos) == replace(NOTHING, changed=1, missing=1, unchanged=4)
    rows_after = read_rows(photos)
    assert (rows_after["0.png"], rows_after["1.png"]) == (rows_before["0.png"], (rows_before["1.png"][0], "missing"))


def test_edited_file_keeps_decisions(photos: Collection) -> None:
    item_id = read_rows(photos)["0.png"][0]
    decide_as_person(photos, item_id, "gull", "accepted")
    write_picture(photos.folder / "0.png", 222, size=20)
    assert run_scan(photos) == replace(NOTHING, changed=1, unchanged=5)
    assert read_tags(photos) == {item_id: {"gull": ("accepted", "person")}}
    with begin_read(photos.engine) as connection:
        assert connection.execute(select(tables.items.c.width).where(tables.items.c.id == item_id)).scalar() == 20


def test_missing_items_keep_decisions_and_return(photos: Collection) -> None:
    item_id = read_rows(photos)["0.png"][0]
    decide_as_person(photos, item_id, "gull", "rejected")
    content = (photos.folder / "0.png").read_bytes()
    (photos.folder / "0.png").unlink()
    assert run_scan(photos) == replace(NOTHING, missing=1, unchanged=5)
    assert run_scan(photos) == replace(NOTHING, unchanged=5)  # it is told once
    assert read_rows(photos)["0.png"] == (item_id, "missing")
    (photos.folder / "0.png").write_bytes(content)
    assert run_scan(photos) == replace(NOTHING, reappeared=1, unchanged=5)
    assert read_rows(photos)["0.png"] == (item_id, "present")
    (photos.folder / "0.png").unlink()
    run_scan(photos)
    (photos.folder / "back.png").write_bytes(content)
    assert run_scan(photos).moved == 1
    assert read_rows(photos)["back.png"] == (item_id, "present")
    assert read_tags(photos) == {item_id: {"gull": ("rejected", "person")}}


def test_old_modification_time_is_detected(photos: Collection) -> None:
    write_picture(photos.folder / "0.png", 111)
    os.utime(photos.folder / "0.png", ns=(10**18, 10**18))  # long before the scan
    assert run_scan(photos).changed == 1


def test_touched_file_is_unchanged(photos: Collection) -> None:
    os.utime(photos.folder / "0.png", ns=(10**18, 10**18))
    assert run_scan(photos) == replace(NOTHING, unchanged=6)


def test_size_and_time_are_trusted_without_rehash(photos: Collection) -> None:
    path = photos.folder / "0.png"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert run_scan(photos) == replace(NOTHING, unchanged=6)
    assert run_scan(photos, rehash=True) == replace(NOTHING, changed=1, unchanged=5)


def test_unreadable_files_are_items_and_listed(photos: Collection) -> None:
    content = (photos.folder / "0.png").read_bytes()
    (photos.folder / "words.png").write_bytes(b"plain words")
    (photos.folder / "cut.png").write_bytes(content[: len(content) // 2])
    (photos.folder / "empty.jpg").write_bytes(b"")
    (photos.folder / "raw.psd").write_bytes(b"x")
    rejects = Rejects()
    assert run_scan(photos, rejects=rejects) == replace(NOTHING, new=3, unreadable=3, unchanged=6)
    assert {where: reason for where, reason, _ in rejects.listed} == {
        "words.png": "not a picture",
        "cut.png": "truncated picture",
        "empty.jpg": "empty file",
        "raw.psd": "unsupported picture format",
    }
    assert {path for path, (_, state) in read_rows(photos).items() if state == "unreadable"} == {
        "words.png", "cut.png", "empty.jpg",
    }  # fmt: skip
    (photos.folder / "cut.png").write_bytes(content + b"x")
    assert run_scan(photos).changed == 1
    assert read_rows(photos)["cut.png"][1] == "present"


def test_known_unreadable_files_are_counted_separately(photos: Collection) -> None:
    (photos.folder / "words.png").write_bytes(b"plain words")
    (photos.folder / "empty.jpg").write_bytes(b"")
    assert run_scan(photos).summary == "2 new, 2 of them unreadable"
    rejects = Rejects()
    again = run_scan(photos, rejects=rejects, always=True)
    assert again == replace(NOTHING, unchanged=8, unreadable=2, still_unreadable=2)
    assert sorted(where for where, _, _ in rejects.listed) == ["empty.jpg", "words.png"]
    assert (again.summary, read_history(photos.engine)[0].summary) == ("", "nothing new")
    write_picture(photos.folder / "empty.jpg", 200)
    write_picture(photos.folder / "more.png", 201)
    (photos.folder / "words.png").write_bytes(b"other words")
    assert run_scan(photos).summary == "1 new, 2 changed, 1 of them unreadable"


def test_large_files_and_pictures_are_unreadable(photos: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_inspection, "MAX_FILE_SIZE", 1000)
    (photos.folder / "large.png").write_bytes(b"0" * 1001)
    rejects = Rejects()
    run_scan(photos, rejects=rejects)
    assert rejects.counts == {"file that is too large": 1}
    assert read_rows(photos)["large.png"][1] == "unreadable"


def test_file_that_changes_during_a_scan_is_deferred(photos: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_picture(photos.folder / "growing.png", 5)
    once = file_inspection._inspect_once

    def grow(task: file_inspection.InspectionTask, stat: file_inspection.FileStat) -> file_inspection.FileInspection:
        if task.path == path:
            with path.open("ab") as file:
                file.write(b"more")
        return once(task, stat)

    monkeypatch.setattr(file_inspection, "_inspect_once", grow)
    rejects = Rejects()
    assert run_scan(photos, rejects=rejects) == replace(NOTHING, unchanged=6)
    assert rejects.counts == {"file that changes while it is read": 1}
    monkeypatch.undo()
    assert run_scan(photos).new == 1


def test_links_never_lead_outside(photos: Collection, tmp_path: Path) -> None:
    write_picture(tmp_path / "secret/s.png", 9)
    (photos.folder / "loop").symlink_to(photos.folder)
    (photos.folder / "out").symlink_to(tmp_path / "secret")
    (photos.folder / "out.png").symlink_to(tmp_path / "secret/s.png")
    (photos.folder / "dead.png").symlink_to(photos.folder / "nowhere")
    (photos.folder / "self.png").symlink_to(photos.folder / "self.png")
    (photos.folder / "in.png").symlink_to(photos.folder / "0.png")
    (photos.folder / ".hidden").mkdir()
    write_picture(photos.folder / ".hidden/h.png", 77)
    write_picture(photos.place / "thumbnails/t.png", 78)
    rejects = Rejects()
    assert run_scan(photos, rejects=rejects) == replace(NOTHING, new=1, unchanged=6)
    assert "in.png" in read_rows(photos)
    assert len(rejects) == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_items_of_an_unreadable_folder_are_not_missing(photos: Collection) -> None:
    (photos.folder / "sea").chmod(0)
    try:
        rejects = Rejects()
        assert run_scan(photos, rejects=rejects) == replace(NOTHING, unchanged=4)
        assert rejects.counts == {"folder that cannot be read": 1}
    finally:
        (photos.folder / "sea").chmod(0o755)


def test_items_of_a_failing_folder_are_not_missing(photos: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where everything may be read: the system refuses to list the folder."""
    scandir = os.scandir

    def refusing(path: object = ".") -> object:
        if str(path).endswith("sea"):
            raise OSError(5, "Input/output error", str(path))
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", refusing)
    rejects = Rejects()
    assert run_scan(photos, rejects=rejects) == replace(NOTHING, unchanged=4)
    assert rejects.counts == {"folder that cannot be read": 1}
    assert {state for _, state in read_rows(photos).values()} == {"present"}


def test_unmounted_disk_keeps_its_items(photos: Collection, tmp_path: Path) -> None:
    write_picture(tmp_path / "disk/a.png", 60)
    add_root(photos, tmp_path / "disk", by="eve")
    assert run_scan(photos).new == 1
    (tmp_path / "disk").rename(tmp_path / "away")
    scanned = run_scan(photos)
    assert [(a.folder, a.items) for a in scanned.unreachable_roots] == [(str(tmp_path / "disk"), 1)]
    assert "there is no file or folder" in scanned.unreachable_roots[0].reason
    assert scanned.missing == 0
    (tmp_path / "disk").mkdir()  # where it is mounted otherwise
    assert run_scan(photos).unreachable_roots[0].reason == "there is nothing in it"
    assert read_rows(photos)["a.png"][1] == "present"
    (tmp_path / "disk").rmdir()
    (tmp_path / "away").rename(tmp_path / "disk")
    assert run_scan(photos) == replace(NOTHING, unchanged=7)


def test_files_move_between_roots(photos: Collection, tmp_path: Path) -> None:
    write_picture(tmp_path / "disk/a.png", 60)
    add_root(photos, tmp_path / "disk", by="eve")
    run_scan(photos)
    item_id = read_rows(photos)["0.png"][0]
    (photos.folder / "0.png").rename(tmp_path / "disk/0.png")
    assert run_scan(photos).moved == 1
    with begin_read(photos.engine) as connection:
        row = connection.execute(select(tables.items).where(tables.items.c.id == item_id)).one()
    assert (row.root_id, row.path, row.state) == (list_roots(photos)[1].id, "0.png", "present")


@pytest.mark.parametrize("seconds", [99_999_999_999, -99_999_999_999])
def test_times_beyond_64_bits_are_stored(photos: Collection, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    stat = os.stat

    def at_another_time(path: object, **options: Any) -> object:
        status = stat(path, **options)  # type: ignore[call-overload]
        if not str(path).endswith("9.png"):
            return status
        return SimpleNamespace(st_size=status.st_size, st_mode=status.st_mode, st_mtime_ns=seconds * 10**9)

    write_picture(photos.folder / "9.png", 90)
    monkeypatch.setattr(os, "stat", at_another_time)
    assert (run_scan(photos).new, run_scan(photos).unchanged) == (1, 7)


def test_invalid_roots_are_refused(photos: Collection, tmp_path: Path) -> None:
    for path, message in [
        (photos.folder / "sea", "lies in .*photos, which is scanned already"),
        (photos.folder, "is scanned already"),
        (tmp_path, "holds .*, which is scanned already"),
        (tmp_path / "nowhere", "there is no file or folder"),
        (write_picture(tmp_path / "elsewhere/x.png", 4), "is in no folder of the collection; add the folder"),
        (write_picture(photos.folder / ".h/x.png", 4), "is hidden"),
    ]:
        with pytest.raises(InputError, match=message):
            check_folders(photos, [write_picture(tmp_path / "other/x.png", 4).parent, path])
    assert check_folders(photos, [photos.folder / "0.png"]) == []
    assert len(list_roots(photos)) == 1


def test_move_to_an_occupied_path_is_deferred(collection: Collection) -> None:
    """Somebody else has filed another file meanwhile where the last one was to go."""
    for number, name in enumerate("abc"):
        write_picture(collection.folder / f"{name}.png", number)
    run_scan(collection)
    with begin_read(collection.engine) as connection:
        known_items = {item.path: item for item in scan_writer.read_known_items(connection, list(collection.roots()))}

    def moved(item: ItemRecord, path: str) -> FileRecord:
        inspection = file_inspection.FileInspection(
            file_inspection.FileStat(item.size or 0, item.mtime_ns or 0), item.hash
        )
        return FileRecord(item.root, path, inspection, item, change="moved")

    rows_before = read_rows(collection)
    block = [moved(known_items["a.png"], "b.png"), moved(known_items["b.png"], "c.png")]
    assert not scan_writer.write_block(collection.engine, "anna", block)[0]["moved"]
    assert read_rows(collection) == rows_before
    assert (
        scan_writer.write_block(collection.engine, "anna", [*block, moved(known_items["c.png"], "a.png")])[0]["moved"]
        == 3
    )


def test_invalid_tag_sources_are_refused(photos: Collection) -> None:
    with pytest.raises(InputError, match=r"only sounds have 'tags'; leave `tags` out, or say `tags='xmp'`"):
        run_scan(photos, tags="tags")


def test_collection_has_one_modality(collection: Collection) -> None:
    write_picture(collection.folder / "cover.png", 1)
    for name in ("a.txt", "b.txt"):
        (collection.folder / name).write_text(name)
    run_scan(collection)
    assert read_modality(collection) == "pictures"
    assert list(read_rows(collection)) == ["cover.png"]


def test_documents_are_scanned(collection: Collection) -> None:
    for i in range(3):
        (collection.folder / f"{i}.txt").write_text(f"words {i}")
    assert run_scan(collection) == replace(NOTHING, new=3, modality="documents")
    write_picture(collection.folder / "cover.png", 1)
    note = f"left alone in {collection.folder}: 1 file of other kinds (1 .png)"
    assert run_scan(collection) == replace(NOTHING, unchanged=3, modality="documents", notes=(note,))
