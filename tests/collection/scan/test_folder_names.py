"""Labels by the names of folders: what people say or delete stays so at every later scan."""

import pytest
from tests.collection.scan.conftest import decide_as_person, read_rows, read_tags, run_scan, write_picture

from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, undo_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_merge, label_store
from wsabie.collection.scan.roots import list_roots
from wsabie.storage.rejects import Rejects


def read_labels(collection: Collection, path: str) -> set[str]:
    return set(read_tags(collection).get(read_rows(collection)[path][0], {}))


@pytest.fixture
def animals(collection: Collection) -> Collection:
    for i, name in enumerate(("dog/1.png", "cat/2.png", "odds/3.png", "2020/05/gull/4.png")):
        write_picture(collection.folder / name, 10 * i)
    return collection


def test_excluded_folder_names_stay_excluded(animals: Collection) -> None:
    result = run_scan(animals, not_labels=["Odds"])
    assert result.added_tags == 3
    assert result.notes == (f"in {animals.folder} these names of sub-folders are not labels: 05, 2020",)
    assert list_roots(animals)[0].options["not_labels"] == ["odds"]
    write_picture(animals.folder / "odds/5.png", 99)
    write_picture(animals.folder / "dog/6.png", 98)
    assert run_scan(animals).added_tags == 1
    assert run_scan(animals, tags="none").added_tags == run_scan(animals, tags="folders").added_tags == 0
    assert (read_labels(animals, "odds/5.png"), read_labels(animals, "2020/05/gull/4.png")) == (set(), {"gull"})


def test_excluded_folder_names_lose_their_earlier_tags(animals: Collection) -> None:
    run_scan(animals)
    items = {path: number for path, (number, _) in read_rows(animals).items()}
    decide_as_person(animals, items["dog/1.png"], "odds", "accepted")
    (animals.folder / "odds/3.png").rename(animals.folder / "cat/3.png")
    write_picture(animals.folder / "Odds/7.png", 90)
    assert run_scan(animals).added_tags == 2
    result = run_scan(animals, not_labels=["ODDS"])
    assert (result.withdrawn_tags, result.summary) == (2, "2 tags withdrawn")
    assert list_roots(animals)[0].options["not_labels"] == ["odds"]
    assert "must_reread" not in list_roots(animals)[0].options
    labels = [read_labels(animals, path) for path in ("dog/1.png", "cat/3.png", "Odds/7.png")]
    assert labels == [{"dog", "odds"}, {"cat"}, set()]
    undo_entry(animals.engine, by="eve")
    assert read_labels(animals, "cat/3.png") == {"cat", "odds"}


def test_excluded_name_of_a_label_that_another_folder_gives_withdraws_nothing(animals: Collection) -> None:
    run_scan(animals)
    with begin_entry(animals.engine, "eve", "merge") as change:
        odds, cat = (label_store.find_label(change.connection, name) for name in ("odds", "cat"))
        label_merge.merge_label(change, odds, cat)
    assert run_scan(animals, not_labels=["odds"]).withdrawn_tags == 0
    assert run_scan(animals, not_labels=["cat"]).withdrawn_tags == 2


def test_deleted_label_is_not_added_again(animals: Collection) -> None:
    run_scan(animals)
    with begin_entry(animals.engine, "eve", "delete") as change:
        label_store.delete_label(change, label_store.find_label(change.connection, "odds"), with_tags=True)
    write_picture(animals.folder / "odds/5.png", 99)
    assert run_scan(animals).added_tags == 0
    run_scan(animals, tags="none")
    run_scan(animals, tags="folders")
    with begin_read(animals.engine) as connection:
        assert set(label_store.read_label_names(connection).values()) == {"dog", "cat", "gull"}


def test_undone_deletion_and_rename_are_followed(animals: Collection) -> None:
    run_scan(animals)
    with begin_entry(animals.engine, "eve", "delete") as change:
        label_store.delete_label(change, label_store.find_label(change.connection, "odds"), with_tags=True)
    undo_entry(animals.engine, by="eve")
    with begin_entry(animals.engine, "eve", "rename") as change:
        label_store.rename_label(change, label_store.find_label(change.connection, "dog"), "hound")
    write_picture(animals.folder / "odds/5.png", 99)
    write_picture(animals.folder / "dog/6.png", 98)
    assert run_scan(animals).added_tags == 2
    assert (read_labels(animals, "odds/5.png"), read_labels(animals, "dog/6.png")) == ({"odds"}, {"hound"})


def test_system_and_listed_files_are_ignored(animals: Collection) -> None:
    for i, name in enumerate(("dog/@eaDir/1.png/SYNO_THUMB.png", "#recycle/7.png", "drafts/8.png", "cat/9_small.png")):
        write_picture(animals.folder / name, 100 + i)
    ignored = animals.folder / ".wsabieignore"
    ignored.write_text("# not mine\ndrafts/\n*_small.*\n!keep_small.png\n")
    write_picture(animals.folder / "keep_small.png", 120)
    rejects = Rejects()
    assert run_scan(animals, rejects=rejects).new == 5
    assert "keep_small.png" in read_rows(animals)
    ignored.unlink()
    assert run_scan(animals).new == 2


def test_tables_of_sub_folders_are_read_together(collection: Collection) -> None:
    for i, name in enumerate(("fish/1.png", "beetles/1.png", "beetles/2.png")):
        write_picture(collection.folder / name, 10 * i)
    (collection.folder / "fish/metadata.csv").write_text("file_name,labels\n1.png,male;adult\n")
    table = collection.folder / "beetles/metadata.jsonl"
    table.write_text('{"file_name": "1.png", "labels": ["female"]}\n')
    result = run_scan(collection)
    assert (result.added_tags, read_labels(collection, "fish/1.png")) == (3, {"male", "adult"})
    table.write_text('{"file_name": "1.png", "labels": ["female"]}\n{"file_name": "2.png", "labels": ["male"]}\n')
    assert run_scan(collection).added_tags == 1
    assert read_labels(collection, "beetles/2.png") == {"male"}


def test_other_files_are_counted_by_ending(animals: Collection) -> None:
    for name in ("1.mov", "dog/2.MOV", "dog/saved", "a.pdf", "dog/1.png.xmp", "list.csv", ".hidden.mov", "x.mp3"):
        (animals.folder / name).write_bytes(b"")
    rejects = Rejects()
    for name in ("a.psd", "b.X3F", "c.crw"):
        (animals.folder / name).write_bytes(b"")
    result = run_scan(animals, rejects=rejects)
    counts = "2 .mov, 1 without an ending, 1 .pdf, 1 .mp3"
    (note,) = (note for note in result.notes if "left alone" in note)
    assert note.startswith(f"left alone in {animals.folder}: 5 files of other kinds (2 .mov, ")
    assert sorted(note[:-1].partition("(")[2].split(", ")) == sorted(counts.split(", "))
    assert rejects.counts["unsupported picture format"] == 3
    assert run_scan(animals).notes == ()
    (animals.folder / "3.mov").write_bytes(b"")
    assert "3 .mov" in run_scan(animals).notes[0]
