"""Tags that a scan reads: folders, tables, sidecars and keywords inside pictures."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select
from tests.collection.scan.conftest import NOTHING, PACKET, look, person, rows, tags_of, write, write_keywords

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


def write_trips(folder: Path, with_keywords: int) -> None:
    """20 pictures in four folders, the last of them with keywords."""
    for i in range(20):
        path = folder / f"trip {i % 4}/{i:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        write_keywords(path, *["sea"] * (i >= 20 - with_keywords))


@pytest.mark.parametrize(
    ("with_keywords", "choice", "message"),
    [(3, "xmp", "15% of the pictures .* these are the tags"), (1, "folders", "5% .* sub-folders are the tags")],
)
def test_keywords_go_before_folders(collection: Collection, with_keywords: int, choice: str, message: str) -> None:
    write_trips(collection.folder, with_keywords)
    result = look(collection)
    assert re.search(message, *result.notes)
    assert list_roots(collection)[0].options["tags"] == choice
    assert result.tagged == (with_keywords if choice == "xmp" else 20)
    assert look(collection).notes == ()  # it is told once
    assert look(collection, tags="auto").notes == result.notes


def test_a_job_says_what_the_scan_has_to_say(collection: Collection, tmp_path: Path) -> None:
    write_trips(collection.folder, with_keywords=3)
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
    assert "2 pictures have a sidecar (.xmp) that is not read" in result.notes[0]
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
        "the names of 2 sub-folders are no tags, since a table says the tags (--tags folders takes" in result.notes[0]
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
        label_id = label_store.find_labels(change.connection, ["gull"])["gull"]
        label_store.rename_label(change, label_id, "seagull")  # the file still calls it gull
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


def test_tags_inside_that_a_sidecar_does_not_say_are_counted_once(collection: Collection) -> None:
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        write_keywords(collection.folder / name, "sea", name)
    (collection.folder / "a.xmp").write_text(PACKET.format("<r:li>sea</r:li>"))
    (collection.folder / "b.XMP").write_text(PACKET.format("<r:li>sea</r:li><r:li>b.jpg</r:li><r:li>sky</r:li>"))
    result = look(collection)
    assert result.notes == ("1 new picture holds tags that its sidecar lacks; the sidecar counts",)
    assert look(collection).notes == ()
