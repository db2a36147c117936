"""Exports that are killed: what they leave among pictures is named and removed, and the same command does its work."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tagged_items import PATHS, draw_pictures
from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.folder.drafts import list_drafts, note_drafts
from wsabie.collection.interchange.tag_export import export_tags, write_to_pictures
from wsabie.collection.overview import read_status
from wsabie.collection.scan.scanner import scan_collection
from wsabie.io.tags.image_tags import read_image_tags
from wsabie.storage.rejects import Rejects

KILLED = """
import os, signal, sys
from pathlib import Path
from wsabie.collection.folder.collection import create_collection
from wsabie.collection.interchange.tag_export import export_tags, write_to_pictures
from wsabie.collection.scan.scanner import scan_collection
from {module} import {name} as real
import {module} as module
calls = []
def fatal(*given, **more):
    calls.append(given)
    if len(calls) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **more)
module.{name} = fatal
with create_collection(Path(sys.argv[1])) as collection:
    {call}
"""


def kill(folder: Path, call: str, at: str, number: int = 2) -> None:
    """Carry out `call` in another process, which dies when the function `at` is called for that time."""
    module, _, name = at.rpartition(".")
    code = KILLED.format(call=call, module=module, name=name, number=number)
    process = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert process.returncode == -signal.SIGKILL


@pytest.fixture
def photos(tmp_path: Path) -> Collection:
    """Four tagged pictures in two folders."""
    draw_pictures(tmp_path / "photos")
    with create_collection(tmp_path / "photos") as collection:
        scan_collection(collection, by="eve", tags="none")
        tag_items(collection, range(1, 5), accept=["sea"], by="eve")
    return collection


def hidden(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob(".*.tmp") if ".wsabie" not in path.parts)


@pytest.mark.parametrize("into", [True, False])
def test_drafts_among_pictures_are_named_and_removed(photos: Collection, into: bool) -> None:
    foreign_draft = photos.folder / "2024" / ".b.jpg.0123456789abcdef.tmp"  # somebody else's, of the same form
    foreign_draft.write_bytes(b"mine")
    at = "wsabie.io.tags.tag_writer._copy_attributes" if into else "wsabie.storage.atomic_files._flush"
    kill(photos.folder, f"write_to_pictures(collection, embed={into})", at, 2 if into else 3)
    (draft,) = set(hidden(photos.folder)) - {foreign_draft}
    assert read_status(photos).drafts == (str(draft),)
    rejects = Rejects()
    assert write_to_pictures(photos, embed=into, rejects=rejects).tags == 4
    assert (hidden(photos.folder), len(rejects), read_status(photos).drafts) == ([foreign_draft], 0, ())
    assert all(set(read_image_tags(photos.folder / path).tags) == {("sea",)} for path in PATHS)
    assert list((photos.place / "drafts").iterdir()) == []


def test_drafts_of_a_command_at_work_stay(photos: Collection) -> None:
    with note_drafts(photos.place) as note:
        note.record_folder(photos.folder)
        draft = photos.folder / f".a.jpg.{note.token}.tmp"
        draft.touch()
        assert list_drafts(photos.place) == []
        write_to_pictures(photos)
        assert draft.exists()


def test_drafts_on_a_disk_that_is_away_are_not_forgotten(photos: Collection, tmp_path: Path) -> None:
    note = photos.place / "drafts" / "00000000000000aa"
    note.parent.mkdir()
    note.write_bytes(os.fsencode(tmp_path / "disk"))
    write_to_pictures(photos)
    assert note.exists()
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / ".a.jpg.00000000000000aa.tmp").touch()
    write_to_pictures(photos)
    assert (note.exists(), list((tmp_path / "disk").iterdir())) == (False, [])


@pytest.mark.parametrize(
    ("out", "options", "at", "number"),
    [
        ("out", {"kind": "imagefolder"}, "shutil.copy2", 2),
        ("out", {"kind": "xmp"}, "wsabie.collection.interchange.tag_export.write_sidecar", 2),
        ("out.json", {"pictures": "copy"}, "shutil.copy2", 2),
    ],
)
def test_the_same_export_again(
    photos: Collection, tmp_path: Path, out: str, options: dict[str, str], at: str, number: int
) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    (place / "own.txt").write_text("mine")
    kill(photos.folder, f"export_tags(collection, Path({str(place / out)!r}), **{options})", at, number)
    assert hidden(place)
    summary = export_tags(photos, place / out, **options)  # type: ignore[arg-type]
    assert (summary.tags, hidden(place), (place / "own.txt").read_text()) == (4, [], "mine")


@pytest.mark.parametrize(
    "at",
    [
        "wsabie.collection.db.database.upgrade_schema",
        "wsabie.collection.folder.collection.begin_write",
        "wsabie.collection.folder.collection_file.write_text",
        "wsabie.collection.scan.scan_writer.write_block",
    ],
)
def test_a_collection_that_was_half_made(tmp_path: Path, at: str) -> None:
    draw_pictures(tmp_path)
    kill(tmp_path, 'scan_collection(collection, by="eve")', at, 1)
    with create_collection(tmp_path) as collection:
        assert scan_collection(collection, by="eve").new == 4
        assert scan_collection(collection, by="eve").unchanged == 4


def test_an_unfinished_folder_of_somebody_else_stays(photos: Collection, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "own.txt").write_text("mine")
    with pytest.raises(ValueError, match=re.escape("is there and not empty")):
        export_tags(photos, tmp_path / "out", kind="imagefolder")
    assert (tmp_path / "out" / "own.txt").read_text() == "mine"
