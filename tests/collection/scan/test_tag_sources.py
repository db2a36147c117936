"""Tags that a scan reads: folders, tables, sidecars and keywords inside pictures."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select
from tests.collection.scan.conftest import (
    NOTHING,
    PACKET,
    decide_as_person,
    read_rows,
    read_tags,
    run_scan,
    write_keywords,
    write_picture,
)

from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, read_history, undo_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.interchange.tag_export import write_to_pictures
from wsabie.collection.interchange.tag_import import import_tags
from wsabie.collection.jobs import queue
from wsabie.collection.labels import label_store
from wsabie.collection.scan import file_inspection
from wsabie.collection.scan.roots import add_root, list_roots
from wsabie.collection.scan.scanner import ScanResult
from wsabie.core.errors import InputError
from wsabie.storage.rejects import Rejects


def test_folder_names_become_tags(collection: Collection) -> None:
    write_picture(collection.folder / "animal/dog/1.png", 1)
    write_picture(collection.folder / "sea/2.png", 2)
    assert run_scan(collection) == replace(NOTHING, new=2, added_tags=3)
    items = read_rows(collection)
    dog, accepted = items["animal/dog/1.png"][0], ("accepted", "import")
    assert read_tags(collection)[dog] == {"animal": accepted, "dog": accepted}
    with begin_read(collection.engine) as connection:
        assert set(connection.execute(select(tables.annotations.c.by)).scalars()) == {"folder"}
    decide_as_person(collection, dog, "dog", "rejected")
    (collection.folder / "animal/dog").rename(collection.folder / "animal/cat")
    assert run_scan(collection) == replace(NOTHING, moved=1, added_tags=1, unchanged=1)
    assert read_tags(collection)[dog] == {"animal": accepted, "dog": ("rejected", "person"), "cat": accepted}
    (collection.folder / "animal/cat").rename(collection.folder / "animal/dog")
    assert run_scan(collection).added_tags == 0  # what a person rejected does not come back
    assert read_tags(collection)[dog]["dog"] == ("rejected", "person")


def test_auto_tag_source_stays_fixed(collection: Collection) -> None:
    write_picture(collection.folder / "1.png", 1)
    run_scan(collection)
    assert list_roots(collection)[0].options == {"modality": "pictures", "tags": "xmp"}
    write_picture(collection.folder / "animal/2.png", 2)
    write_picture(collection.folder / "sea/3.png", 3)
    assert run_scan(collection).added_tags == 0
    assert run_scan(collection, tags="folders") == replace(NOTHING, unchanged=3, added_tags=2)  # of what was known too
    assert run_scan(collection) == replace(NOTHING, unchanged=3)
    write_picture(collection.folder / "sea/4.png", 4)
    assert run_scan(collection).added_tags == 1


def test_changed_tag_source_is_undone_with_its_scan(collection: Collection) -> None:
    path = collection.folder / "sea/1.png"
    write_picture(path, 1)
    path.with_name("1.png.xmp").write_text(PACKET.format("<r:li>gull</r:li>"))

    def choice() -> object:
        return list_roots(collection)[0].options["tags"]

    run_scan(collection, tags="folders")
    assert run_scan(collection, tags="xmp") == replace(NOTHING, unchanged=1, added_tags=1)
    last = read_history(collection.engine)[0]
    assert (choice(), last.summary, last.changes) == ("xmp", "1 tags from files, tags from xmp in place of folders", 3)
    undo_entry(collection.engine, by="eve")
    assert (choice(), list(read_tags(collection)[1])) == ("folders", ["sea"])
    write_picture(collection.folder / "sky/2.png", 2)
    assert run_scan(collection) == replace(NOTHING, new=1, unchanged=1, added_tags=1)
    undo_entry(collection.engine, read_history(collection.engine)[1].id, by="eve")  # the undoing
    assert (choice(), sorted(read_tags(collection)[1])) == ("xmp", ["gull", "sea"])
    run_scan(collection, tags="none")
    assert read_history(collection.engine)[0].summary == "tags from none in place of xmp"
    with pytest.raises(InputError, match="changed the same after"):
        undo_entry(collection.engine, last.id, by="eve")
    undo_entry(collection.engine, by="eve")
    assert (choice(), run_scan(collection)) == ("xmp", replace(NOTHING, unchanged=2))


def write_trips(folder: Path, with_keywords: int) -> None:
    """20 pictures in four folders, the last of them with keywords."""
    for i in range(20):
        path = folder / f"trip {i % 4}/{i:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        write_keywords(path, *["sea"] * (i >= 20 - with_keywords))


@pytest.mark.parametrize(
    ("with_keywords", "choice", "message"),
    [(3, "xmp", "15% of the inspected .* these are the tags"), (1, "folders", "5% .* sub-folders are the tags")],
)
def test_keywords_take_precedence_over_folders(
    collection: Collection, with_keywords: int, choice: str, message: str
) -> None:
    write_trips(collection.folder, with_keywords)
    result = run_scan(collection)
    assert re.search(message, *result.notes)
    assert list_roots(collection)[0].options["tags"] == choice
    assert result.added_tags == (with_keywords if choice == "xmp" else 20)
    assert run_scan(collection).notes == ()  # it is told once
    assert run_scan(collection, tags="auto").notes == result.notes


def test_job_result_holds_the_notes_of_a_scan(collection: Collection, tmp_path: Path) -> None:
    write_trips(collection.folder, with_keywords=3)
    missing_folder = tmp_path / "gone"
    missing_folder.mkdir()
    add_root(collection, missing_folder, by="eve")
    missing_folder.rmdir()
    job = queue.enqueue_job(collection, "scan", {}, by="eve")
    queue.run_next_job(collection.folder)
    job_result = queue.read_job(collection, job.id).result
    assert job_result is not None
    assert re.search("15% of the inspected pictures .* these are the tags", *job_result["notes"])
    assert [(away_folder["folder"], away_folder["items"]) for away_folder in job_result["unreachable_roots"]] == [
        (str(missing_folder), 0)
    ]


def test_split_folder_names_are_no_tags(collection: Collection) -> None:
    write_picture(collection.folder / "train/1.png", 1)
    write_picture(collection.folder / "test/2.png", 2)
    assert run_scan(collection) == replace(NOTHING, new=2)


def test_changed_table_is_read_again(collection: Collection) -> None:
    for i in range(3):
        write_picture(collection.folder / f"{i}.png", i)
    table = collection.folder / "metadata.csv"
    table.write_text("file_name,labels\n0.png,sea;sky\n1.png,sea\ngone.png,sea\n")
    rejects = Rejects()
    assert run_scan(collection, rejects=rejects) == replace(NOTHING, new=3, added_tags=3)
    assert rejects.counts == {"labels without a file": 1}
    item = read_rows(collection)["0.png"][0]
    decide_as_person(collection, item, "sky", "rejected")
    table.write_text("file_name,labels\n0.png,sea;sky;gull\n2.png,tern\n")
    assert run_scan(collection) == replace(NOTHING, unchanged=3, added_tags=2)
    accepted = ("accepted", "import")
    assert read_tags(collection)[item] == {"sea": accepted, "sky": ("rejected", "person"), "gull": accepted}
    assert run_scan(collection) == replace(NOTHING, unchanged=3)
    table.unlink()
    assert run_scan(collection) == replace(NOTHING, unchanged=3)  # nothing is taken away
    with pytest.raises(InputError, match=r"has no metadata.csv"):
        run_scan(collection, tags="metadata")


def test_unreadable_table_is_named(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    write_picture(collection.folder / "0.png", 0)
    table, opened = collection.folder / "metadata.csv", os.open
    table.write_text("file_name,labels\n0.png,sea\n")

    def refuse(path: Any, *arguments: Any, **more: Any) -> int:
        if path == table:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match=r"cannot read .*metadata\.csv: Permission denied; check"):
        run_scan(collection)


def test_sidecars_beside_a_table_are_reported(collection: Collection) -> None:
    for i in range(3):
        write_picture(collection.folder / f"{i}.png", i)
    (collection.folder / "metadata.csv").write_text("file_name,labels\n0.png,sea\n")
    assert run_scan(collection).notes == ()
    (collection.folder / "1.png.xmp").write_text(PACKET.format("<r:li>sky</r:li>"))
    (collection.folder / "2.xmp").write_text(PACKET.format("<r:li>sky</r:li>"))
    (collection.folder / "lost.xmp").write_text("x")
    result = run_scan(collection)
    assert "2 pictures have a sidecar (.xmp) that is not read" in result.notes[0]
    assert (len(result.notes), result.added_tags) == (1, 0)
    xmp_result = run_scan(collection, tags="xmp")
    assert (xmp_result.notes, xmp_result.added_tags) == ((), 2)


def test_other_tag_sources_are_reported(collection: Collection) -> None:
    for name in ("0.png", "sea/1.png", "sky/2.png"):
        write_picture(collection.folder / name, 1)
    (collection.folder / "metadata.csv").write_text("file_name,labels\n0.png,gull\n")
    result = run_scan(collection)
    assert (result.added_tags, len(result.notes)) == (1, 1)
    assert (
        "the names of 2 sub-folders are not tags, since a table says the tags (`tags='folders'` takes"
        in result.notes[0]
    )
    assert run_scan(collection).notes == ()  # it is told once
    table = collection.folder / "sea/metadata.csv"
    table.write_text("file_name,labels\n1.png,tern\n")
    assert run_scan(collection).notes == (
        f"in sub-folders of {collection.folder} 1 table of tags is not read; to take one over: "
        f"`collection.import_(DIR, {str(table)!r})`",
    )
    assert run_scan(collection).notes == ()
    (collection.folder / "sky/metadata.jsonl").write_text("")
    assert "2 tables of tags are not read" in run_scan(collection).notes[0]
    assert len(run_scan(collection, tags="metadata").notes) == 2  # as soon as it is asked again
    assert len(run_scan(collection, tags="folders").notes) == 1
    assert import_tags(collection, table, by="eve").added == 1
    table.unlink()
    (collection.folder / "sky/metadata.jsonl").unlink()
    assert run_scan(collection).notes == run_scan(collection).notes == ()


def test_split_folder_names_beside_a_table_are_no_tags(collection: Collection) -> None:
    for name in ("train/0.png", "test/1.png"):
        write_picture(collection.folder / name, 1)
    (collection.folder / "metadata.csv").write_text("file_name,labels\ntrain/0.png,gull\n")
    assert run_scan(collection) == replace(NOTHING, new=2, added_tags=1)


def test_added_keywords_are_imported(collection: Collection) -> None:
    path = collection.folder / "a.jpg"
    write_keywords(path, "sea", "sky", "x" * 501)
    rejects = Rejects()
    assert run_scan(collection, rejects=rejects) == replace(NOTHING, new=1, added_tags=2)
    assert rejects.counts == {"tag that cannot be a label": 1}
    item = read_rows(collection)["a.jpg"][0]
    decide_as_person(collection, item, "sky", "rejected")
    decide_as_person(collection, item, "tern", "accepted")
    write_keywords(path, "sky", "gull", "tern")
    assert run_scan(collection) == replace(NOTHING, changed=1, added_tags=1, withdrawn_tags=1)
    assert read_tags(collection)[item] == {
        "sky": ("rejected", "person"),
        "tern": ("accepted", "person"),
        "gull": ("accepted", "import"),
    }
    (collection.folder / "b.jpg").write_bytes(path.read_bytes().replace(b"</r:RDF>", b"</r:BAD>"))
    Image.new("RGB", (8, 9)).save(path)  # by a program that knows no keywords
    rejects = Rejects()
    assert run_scan(collection, rejects=rejects) == replace(NOTHING, new=1, changed=1, held_tags=1)
    assert rejects.counts == {"tags that cannot be read": 1}


def test_later_sidecars_are_imported(collection: Collection) -> None:
    path, sidecar = collection.folder / "sea/a.jpg", collection.folder / "sea/a.jpg.xmp"
    path.parent.mkdir()
    write_keywords(path, "inside")
    write_keywords(path.with_name("b.jpg"), "other")
    assert run_scan(collection, tags="xmp") == replace(NOTHING, new=2, added_tags=2)
    item = read_rows(collection)["sea/a.jpg"][0]
    decide_as_person(collection, item, "sky", "rejected")

    def scan_sidecar(*keywords: str, at: int) -> ScanResult:
        sidecar.write_text(PACKET.format("".join(f"<r:li>{word}</r:li>" for word in keywords)))
        os.utime(sidecar, (at, at))
        return run_scan(collection)

    unchanged = replace(NOTHING, unchanged=2)
    first = replace(unchanged, added_tags=1, held_tags=1)  # what is inside the picture is said no more, and stays
    assert scan_sidecar("sky", "gull", at=10**9) == first  # older than the picture, as after a copy
    assert run_scan(collection) == run_scan(collection, rehash=True) == unchanged
    assert scan_sidecar("sky", "tern", at=10**9 + 1) == replace(unchanged, added_tags=1, withdrawn_tags=1, held_tags=1)
    sidecar.rename(sidecar.with_name("a.xmp"))
    assert run_scan(collection) == replace(unchanged, held_tags=1)
    assert run_scan(collection) == unchanged
    sidecar = sidecar.with_name("a.xmp")
    undo_entry(collection.engine, read_history(collection.engine)[-1].id, by="eve")
    sidecar.unlink()
    assert run_scan(collection) == replace(unchanged, added_tags=1, held_tags=1)  # what is inside counts again
    accepted = ("accepted", "import")
    assert read_tags(collection)[item] == {
        "sky": ("rejected", "person"), "tern": accepted, "inside": accepted,
    }  # fmt: skip
    sidecar.write_text("<broken")
    for _ in range(2):  # until it can be read
        rejects = Rejects()
        assert run_scan(collection, rejects=rejects) == replace(unchanged, held_tags=2)
        assert rejects.counts == {"tags that cannot be read": 1}
    assert scan_sidecar("dog", at=10**9 + 2) == replace(unchanged, added_tags=1, withdrawn_tags=1, held_tags=1)
    (collection.folder / "sea").rename(collection.folder / "See")
    assert run_scan(collection) == replace(NOTHING, moved=2, added_tags=1)  # of b.jpg, whose tag was undone
    assert run_scan(collection, rehash=True) == unchanged
    picture = collection.folder / "See/a.jpg"
    os.utime(picture)
    picture.with_suffix(".xmp").write_text(PACKET.format("<r:li>cat</r:li>"))
    assert run_scan(collection, rehash=True).added_tags == 1  # both at once


def test_removed_tags_are_withdrawn(collection: Collection) -> None:
    path = collection.folder / "a.jpg"
    sidecar = path.with_name("a.jpg.xmp")
    write_keywords(path)

    def scan_sidecar(*keywords: str) -> ScanResult:
        sidecar.write_text(PACKET.format("".join(f"<r:li>{word}</r:li>" for word in keywords)))
        return replace(run_scan(collection), unchanged=0)

    sidecar.write_text(PACKET.format("<r:li>sea</r:li><r:li>gull</r:li><r:li>sky</r:li><r:li>dog</r:li>"))
    assert run_scan(collection, tags="xmp") == replace(NOTHING, new=1, added_tags=4)
    accepted, ours = ("accepted", "import"), ("accepted", "person")
    decide_as_person(collection, 1, "sky", "accepted")  # a person agreed
    decide_as_person(collection, 1, "boat", "accepted")
    with begin_entry(collection.engine, "eve", "import") as change:
        label = label_store.ensure_labels(change, ["list"])["list"]
        write_decisions(change, [Decision(1, label, "accepted")], origin="import", by="tags.csv")
        label_id = label_store.find_labels(change.connection, ["gull"])["gull"]
        label_store.rename_label(change, label_id, "seagull")  # the file still calls it gull
    assert scan_sidecar("gull") == replace(NOTHING, withdrawn_tags=2)
    expected = {"seagull": accepted, "sky": ours, "boat": ours, "list": accepted}
    assert (read_tags(collection)[1], read_history(collection.engine)[0].summary) == (expected, "2 tags withdrawn")
    undo_entry(collection.engine, by="eve")
    assert read_tags(collection)[1] == expected | {"sea": accepted, "dog": accepted}
    assert run_scan(collection) == replace(NOTHING, unchanged=1)  # what was put back stays
    sidecar.unlink()
    assert run_scan(collection) == replace(NOTHING, unchanged=1, held_tags=3)
    assert run_scan(collection) == replace(NOTHING, unchanged=1)
    assert scan_sidecar("gull", "sea") == replace(NOTHING, held_tags=1)  # nobody knows that it is the same again
    sidecar.write_text("")
    assert run_scan(collection) == replace(NOTHING, unchanged=1, held_tags=3)  # somebody begins to write it
    assert scan_sidecar("sea") == replace(NOTHING, withdrawn_tags=2)
    assert scan_sidecar() == replace(NOTHING, withdrawn_tags=1)
    assert read_tags(collection)[1] == {"sky": ours, "boat": ours, "list": accepted}


def test_tags_of_an_incomplete_sidecar_are_withdrawn_later(collection: Collection) -> None:
    path = collection.folder / "a.jpg"
    sidecar = path.with_name("a.jpg.xmp")
    write_keywords(path)
    sidecar.write_text(PACKET.format("<r:li>sea</r:li><r:li>gull</r:li>"))
    run_scan(collection, tags="xmp")
    sidecar.write_text(PACKET.format("<r:li>sea</r:li>")[:-30])
    assert run_scan(collection) == replace(NOTHING, unchanged=1, held_tags=2)
    sidecar.write_text(PACKET.format("<r:li>sea</r:li>"))
    assert run_scan(collection) == replace(NOTHING, unchanged=1, withdrawn_tags=1)


def test_tags_beyond_the_limit_are_not_withdrawn(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    path = collection.folder / "a.jpg"
    write_keywords(path, "sea")
    run_scan(collection, tags="xmp")
    monkeypatch.setattr(file_inspection, "MAX_LABELS", 1)
    write_keywords(path, "gull", "sea")
    assert run_scan(collection) == replace(NOTHING, changed=1, added_tags=1)


def test_exported_sidecars_keep_the_origin_of_tags(collection: Collection) -> None:
    write_keywords(collection.folder / "a.jpg")
    run_scan(collection, tags="xmp")
    with begin_entry(collection.engine, "eve", "tag") as change:
        write_decisions(
            change, [Decision(1, label_store.ensure_labels(change, ["sea"])["sea"], "accepted")], origin="model"
        )
    write_to_pictures(collection)
    assert run_scan(collection) == replace(NOTHING, unchanged=1)
    assert read_tags(collection)[1] == {"sea": ("accepted", "model")}


def test_embedded_tags_missing_from_the_sidecar_are_counted_once(collection: Collection) -> None:
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        write_keywords(collection.folder / name, "sea", name)
    (collection.folder / "a.xmp").write_text(PACKET.format("<r:li>sea</r:li>"))
    (collection.folder / "b.XMP").write_text(PACKET.format("<r:li>sea</r:li><r:li>b.jpg</r:li><r:li>sky</r:li>"))
    result = run_scan(collection)
    assert result.notes == ("1 new picture holds tags that its sidecar lacks; the sidecar counts",)
    assert run_scan(collection).notes == ()


def test_tags_that_are_each_one_joined_text_are_reported(collection: Collection) -> None:
    for name, keyword in (("a.jpg", "sea, dog"), ("b.jpg", "dog, sky")):
        write_keywords(collection.folder / name, keyword)
    (note,) = run_scan(collection).notes
    assert note.startswith("each file holds a single tag such as 'sea, dog', which stays one label")
    write_keywords(collection.folder / "c.jpg", "sea", "dog")
    assert run_scan(collection, rehash=True).notes == ()
