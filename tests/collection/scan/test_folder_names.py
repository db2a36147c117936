"""Labels by the names of folders: what people say or delete stays so at every later scan."""

import pytest
from tests.collection.scan.conftest import look, rows, tags_of, write

from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, undo_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.scan.roots import list_roots
from wsabie.storage.rejects import Rejects


def tags(collection: Collection, path: str) -> set[str]:
    return set(tags_of(collection).get(rows(collection)[path][0], {}))


@pytest.fixture
def animals(collection: Collection) -> Collection:
    for i, name in enumerate(("dog/1.png", "cat/2.png", "odds/3.png", "2020/05/gull/4.png")):
        write(collection.folder / name, 10 * i)
    return collection


def test_names_that_people_exclude_stay_excluded(animals: Collection) -> None:
    result = look(animals, not_labels=["Odds"])
    assert result.tagged == 3
    assert result.notes == (f"in {animals.folder} these names of sub-folders are no labels: 05, 2020",)
    assert list_roots(animals)[0].options["not_labels"] == ["odds"]
    write(animals.folder / "odds/5.png", 99)
    write(animals.folder / "dog/6.png", 98)
    assert look(animals).tagged == 1
    assert look(animals, tags="none").tagged == look(animals, tags="folders").tagged == 0
    assert (tags(animals, "odds/5.png"), tags(animals, "2020/05/gull/4.png")) == (set(), {"gull"})


def test_a_label_that_was_deleted_does_not_come_back(animals: Collection) -> None:
    look(animals)
    with begin_entry(animals.engine, "eve", "delete") as change:
        label_store.delete_label(change, label_store.find_label(change.connection, "odds"), with_tags=True)
    write(animals.folder / "odds/5.png", 99)
    assert look(animals).tagged == 0
    look(animals, tags="none")
    look(animals, tags="folders")
    with begin_read(animals.engine) as connection:
        assert set(label_store.read_label_names(connection).values()) == {"dog", "cat", "gull"}


def test_a_deletion_that_is_undone_and_a_new_name_are_followed(animals: Collection) -> None:
    look(animals)
    with begin_entry(animals.engine, "eve", "delete") as change:
        label_store.delete_label(change, label_store.find_label(change.connection, "odds"), with_tags=True)
    undo_entry(animals.engine, by="eve")
    with begin_entry(animals.engine, "eve", "rename") as change:
        label_store.rename_label(change, label_store.find_label(change.connection, "dog"), "hound")
    write(animals.folder / "odds/5.png", 99)
    write(animals.folder / "dog/6.png", 98)
    assert look(animals).tagged == 2
    assert (tags(animals, "odds/5.png"), tags(animals, "dog/6.png")) == ({"odds"}, {"hound"})


def test_what_systems_make_and_what_is_listed_is_left_alone(animals: Collection) -> None:
    for i, name in enumerate(("dog/@eaDir/1.png/SYNO_THUMB.png", "#recycle/7.png", "drafts/8.png", "cat/9_small.png")):
        write(animals.folder / name, 100 + i)
    ignored = animals.folder / ".wsabieignore"
    ignored.write_text("# not mine\ndrafts/\n*_small.*\n!keep_small.png\n")
    write(animals.folder / "keep_small.png", 120)
    rejects = Rejects()
    assert look(animals, rejects=rejects).new == 5
    assert "keep_small.png" in rows(animals)
    ignored.unlink()
    assert look(animals).new == 2


def test_tables_of_sub_folders_are_read_together(collection: Collection) -> None:
    for i, name in enumerate(("fish/1.png", "beetles/1.png", "beetles/2.png")):
        write(collection.folder / name, 10 * i)
    (collection.folder / "fish/metadata.csv").write_text("file_name,labels\n1.png,male;adult\n")
    table = collection.folder / "beetles/metadata.jsonl"
    table.write_text('{"file_name": "1.png", "labels": ["female"]}\n')
    result = look(collection)
    assert (result.tagged, tags(collection, "fish/1.png")) == (3, {"male", "adult"})
    table.write_text('{"file_name": "1.png", "labels": ["female"]}\n{"file_name": "2.png", "labels": ["male"]}\n')
    assert look(collection).tagged == 1
    assert tags(collection, "beetles/2.png") == {"male"}


def test_files_of_other_kinds_are_counted_by_ending(animals: Collection) -> None:
    for name in ("1.mov", "dog/2.MOV", "dog/saved", "a.pdf", "dog/1.png.xmp", "list.csv", ".hidden.mov", "x.mp3"):
        (animals.folder / name).write_bytes(b"")
    rejects = Rejects()
    for name in ("a.nrw", "b.CR2", "c.crw"):
        (animals.folder / name).write_bytes(b"")
    result = look(animals, rejects=rejects)
    counts = "2 .mov, 1 without an ending, 1 .pdf, 1 .mp3"
    (note,) = (note for note in result.notes if "left alone" in note)
    assert note.startswith(f"left alone in {animals.folder}: 5 files of other kinds (2 .mov, ")
    assert sorted(note[:-1].partition("(")[2].split(", ")) == sorted(counts.split(", "))
    assert rejects.counts["unsupported picture format"] == 3
    assert look(animals).notes == ()
    (animals.folder / "3.mov").write_bytes(b"")
    assert "3 .mov" in look(animals).notes[0]
