"""Folders of pictures with their tags, and XMP; originals stay as they are unless they are to be written."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import insert

from tagged_items import PATHS, add_items, draw_pictures, read_annotation_states, tag
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.interchange.tag_export import TagSelection, export_tags, write_to_pictures
from wsabie.collection.interchange.tag_import import import_tags
from wsabie.collection.labels import label_store
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError
from wsabie.io.formats.media_folder import read_folder
from wsabie.io.tags.image_tags import read_image_tags
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar
from wsabie.storage.rejects import Rejects

A, B, C, D = PATHS


@pytest.fixture
def tagged(collection: Collection) -> Collection:
    add_items(collection)
    draw_pictures(collection.folder)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_ids = label_store.ensure_labels(change, ["animal", "gull"])
        label_store.set_parent(change, label_ids["gull"], label_ids["animal"])
    for item, label, state, region in [
        (1, "gull", "accepted", ""),
        (1, "sea", "accepted", ""),
        (1, "wing", "accepted", "1,1,20,20"),
        (2, "sea", "rejected", ""),
        (3, "a|b", "accepted", ""),
        (4, "=sea", "accepted", ""),
    ]:
        tag(collection, item, label, state, region)
    return collection


def read_folder_state(folder: Path) -> dict[str, Any]:
    """All files but the catalogue: content, times, links."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".wsabie" not in path.parts
    }


def test_exports_leave_originals_unchanged(tagged: Collection, tmp_path: Path) -> None:
    state_before = read_folder_state(tagged.folder)
    for name, options in {
        "t.csv": {},
        "t.jsonl": {},
        "t.json": {},
        "copied": {"kind": "imagefolder"},
        "linked": {"kind": "imagefolder", "pictures": "hardlink"},
        "pointed": {"kind": "imagefolder", "pictures": "symlink"},
        "xmp": {"kind": "xmp"},
    }.items():
        export_tags(tagged, tmp_path / name, **options)  # type: ignore[arg-type]
        assert read_folder_state(tagged.folder) == state_before, name


@pytest.mark.parametrize("link_mode", ["copy", "hardlink", "symlink"])
def test_imagefolder_export_copies_or_links_pictures(tagged: Collection, tmp_path: Path, link_mode: Any) -> None:
    out = tmp_path / "out"
    result = export_tags(tagged, out, kind="imagefolder", pictures=link_mode)
    assert (result.tags, result.files) == (5, 3)
    lines = list(map(json.loads, (out / "metadata.jsonl").read_text().splitlines()))
    assert lines == [
        {"file_name": A, "labels": ["gull", "sea", "wing"]},
        {"file_name": C, "labels": ["a|b"]},
        {"file_name": D, "labels": ["=sea"]},
    ]
    original = tagged.folder / A
    assert (out / A).read_bytes() == original.read_bytes()
    assert (out / A).is_symlink() == (link_mode == "symlink")
    assert (out / A).samefile(original) == (link_mode != "copy")
    assert (out / A).stat().st_mtime_ns == original.stat().st_mtime_ns
    if link_mode != "symlink":  # links that lead out of a folder are not followed
        assert [item.labels for item in read_folder(out, rejects=Rejects())] == [
            ("gull", "sea", "wing"),
            ("a|b",),
            ("=sea",),
        ]
    with create_collection(tmp_path / "other") as target:
        add_items(target)
        assert import_tags(target, out / "metadata.jsonl", by="adam").added == 5
        assert {row[:2] for row in read_annotation_states(target)} == {
            row[:2] for row in read_annotation_states(tagged) if row[3] == "accepted"
        }
    with pytest.raises(InputError, match="is there and not empty"):
        export_tags(tagged, out, kind="imagefolder")
    with pytest.raises(InputError, match="where copies would be new items"):
        export_tags(tagged, tagged.folder / "out", kind="imagefolder")


def test_pictures_of_several_roots_keep_separate_paths(tagged: Collection, tmp_path: Path) -> None:
    disk = tmp_path / "disk/2024"
    draw_pictures(disk, ["a.jpg", "b.jpg"])
    with begin_write(tagged.engine) as connection:
        connection.execute(insert(tables.roots), [{"id": 2, "path": str(disk)}, {"id": 3, "path": "web"}])
    add_items(tagged, ["b.jpg", "gone.jpg", "../a.jpg"], root=2, first=11)
    add_items(tagged, ["https://example.org/a.jpg"], root=3, first=21)
    for item in (2, 11, 12, 13, 21):
        tag(tagged, item, "tern")
    rejects = Rejects()
    export_tags(tagged, tmp_path / "out", kind="imagefolder", choice=TagSelection(labels=["tern"]), rejects=rejects)
    lines = list(map(json.loads, (tmp_path / "out/metadata.jsonl").read_text().splitlines()))
    assert [line["file_name"] for line in lines] == [B, "2024/b-2.jpg"]
    assert rejects.counts == {
        "file that is not there": 1,
        "path that leads out of the folder": 1,
        "address, not a file": 1,
    }


def test_sidecars_are_exported_into_a_folder(tagged: Collection, tmp_path: Path) -> None:
    result = export_tags(tagged, tmp_path / "out", kind="xmp")
    assert (result.tags, result.files) == (5, 3)
    sidecars = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.xmp"))
    assert sidecars == sorted(f"{path}.xmp" for path in (A, C, D))
    draw_pictures(tmp_path / "out")
    assert set(read_image_tags(tmp_path / "out" / A).tags) == {("animal", "gull"), ("sea",), ("wing",)}
    assert set(read_image_tags(tmp_path / "out" / C).tags) == {("a|b",)}


def read_exported_paths(collection: Collection, out: Path) -> dict[str, set[tuple[str, ...]]]:
    export_tags(collection, out, kind="xmp")
    draw_pictures(out)
    return {path: set(read_image_tags(out / path).tags) for path in PATHS}


def test_label_paths_survive_a_round_trip(collection: Collection, tmp_path: Path) -> None:
    with create_collection(tmp_path / "source") as source:
        add_items(source)
        with begin_entry(source.engine, "eve", "labels") as change:
            label_ids = label_store.ensure_labels(change, ["animal", "bird", "gull", "tern"])
            for low, high in [("bird", "animal"), ("gull", "bird"), ("tern", "bird")]:
                label_store.set_parent(change, label_ids[low], label_ids[high])
        for item, label in [(1, "gull"), (1, "sea"), (2, "tern"), (3, "bird"), (4, "a|b")]:
            tag(source, item, label)
        paths_before = read_exported_paths(source, tmp_path / "first")
    assert paths_before[A] == {("animal", "bird", "gull"), ("sea",)}
    shutil.copytree(tmp_path / "first", collection.folder, dirs_exist_ok=True)
    assert scan_collection(collection, by="eve", tags="xmp").added_tags == 5
    assert read_exported_paths(collection, tmp_path / "second") == paths_before
    undo_entry(collection.engine, by="eve")
    with begin_read(collection.engine) as connection:
        assert label_store.read_label_names(connection) == {}


def test_imported_label_paths_keep_decided_parents(collection: Collection) -> None:
    folder = collection.folder
    draw_pictures(folder)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_ids = label_store.ensure_labels(change, ["gull", "sea bird", "top", "low", "tern", "bird", "alone"])
        for low, high in [("gull", "sea bird"), ("sea bird", "bird"), ("low", "top"), ("alone", "top")]:
            label_store.set_parent(change, label_ids[low], label_ids[high])
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_store.set_parent(change, label_ids["alone"], None)
    write_sidecar(folder / A, [("bird", "gull"), ("low", "top"), ("top", "tern")])
    write_sidecar(folder / B, [("bird", "tern")])
    write_sidecar(folder / C, [("top", "alone"), ("x" * 501, "far")])
    rejects = Rejects()
    assert scan_collection(collection, by="eve", tags="xmp", rejects=rejects).added_tags == 6
    assert rejects.counts == {"broader tag that is not taken over": 4}
    assert sorted(where for where, _, _ in rejects.listed) == sorted([A, A, C, C])
    with begin_read(collection.engine) as connection:
        names = label_store.read_label_names(connection)
        ancestors = {name: label_store.list_ancestors(connection, label_id) for label_id, name in names.items()}
    ancestor_names = {
        name: [names[label_id] for label_id in label_ids] for name, label_ids in ancestors.items() if label_ids
    }
    assert ancestor_names == {"gull": ["sea bird", "bird"], "sea bird": ["bird"], "low": ["top"], "tern": ["bird"]}


def test_sidecars_beside_originals_keep_their_content(tagged: Collection) -> None:
    write_sidecar(tagged.folder / A, ["mine", ("coast", "sea"), "gull"])
    write_sidecar(tagged.folder / B, ["sea", "sky"])
    state_before = read_folder_state(tagged.folder)
    result = write_to_pictures(tagged)
    assert (result.tags, result.files, result.out) == (5, 4, None)
    state_after = read_folder_state(tagged.folder)
    assert {path: file_state for path, file_state in state_after.items() if not path.endswith(".xmp")} == {
        path: file_state for path, file_state in state_before.items() if not path.endswith(".xmp")
    }
    assert set(read_image_tags(tagged.folder / A).tags) == {("mine",), ("coast", "sea"), ("animal", "gull"), ("wing",)}
    assert set(read_image_tags(tagged.folder / B).tags) == {("sky",)}  # sea is rejected
    assert write_to_pictures(tagged).files == 0
    assert read_folder_state(tagged.folder) == state_after


def test_tags_are_written_into_originals(tagged: Collection) -> None:
    write_embedded(tagged.folder / B, ["sea", "sky"])
    pixels = [Image.open(tagged.folder / path).tobytes() for path in PATHS]
    assert write_to_pictures(tagged, embed=True, choice=TagSelection(state="accepted")).files == 4
    assert [Image.open(tagged.folder / path).tobytes() for path in PATHS] == pixels
    assert set(read_image_tags(tagged.folder / A).tags) == {("sea",), ("animal", "gull"), ("wing",)}
    assert set(read_image_tags(tagged.folder / B).tags) == {("sky",)}
    assert not list(tagged.folder.rglob("*.xmp"))


def test_tags_are_embedded_beside_equal_sidecars(tagged: Collection) -> None:
    choice = TagSelection(state="accepted")
    assert write_to_pictures(tagged, choice=choice).files == 3
    assert write_to_pictures(tagged, embed=True, choice=choice).files == 3
    assert write_to_pictures(tagged, embed=True, choice=choice).files == 0
    for sidecar in tagged.folder.rglob("*.xmp"):
        sidecar.unlink()
    assert set(read_image_tags(tagged.folder / A).tags) >= {("animal", "gull"), ("wing",)}


def test_unwritable_pictures_are_listed(tagged: Collection, tmp_path: Path) -> None:
    (tagged.folder / A).write_bytes(b"no picture")
    (tagged.folder / D).unlink()
    (tmp_path / "elsewhere.xmp").write_text("mine")
    (tagged.folder / f"{C}.xmp").symlink_to(tmp_path / "elsewhere.xmp")
    rejects = Rejects()
    write_to_pictures(tagged, embed=True, rejects=rejects, choice=TagSelection(labels=["gull", "=sea"]))
    assert rejects.counts == {"tags that could not be written": 1, "file that is not there": 1}
    rejects = Rejects()
    write_to_pictures(tagged, rejects=rejects)
    assert rejects.counts == {"tags that could not be written": 1, "file that is not there": 1}
    assert (tmp_path / "elsewhere.xmp").read_text() == "mine"


def test_pictures_without_an_export_path_are_listed(collection: Collection, tmp_path: Path) -> None:
    add_items(collection, ["a.jpg", "gone.jpg", "loop.jpg", f"{'x' * 251}.jpg"])
    draw_pictures(collection.folder, ["a.jpg", f"{'x' * 251}.jpg"])
    (collection.folder / "loop.jpg").symlink_to("loop.jpg")
    for item in range(1, 5):
        tag(collection, item, "sea")
    rejects = Rejects()
    assert export_tags(collection, tmp_path / "pictures", kind="imagefolder", rejects=rejects).files == 2
    assert rejects.counts == {"file that is not there": 2}
    rejects = Rejects()
    assert export_tags(collection, tmp_path / "sidecars", kind="xmp", rejects=rejects).files == 3
    assert [(where[:1], reason) for where, reason, _ in rejects.listed] == [("x", "tags that could not be written")]
    rejects = Rejects()
    assert write_to_pictures(collection, embed=True, rejects=rejects).files == 2
    assert rejects.counts == {"file that is not there": 2}


def test_too_long_paths_are_listed(collection: Collection, tmp_path: Path) -> None:
    deep = "/".join(["p" * 200] * 18)
    add_items(collection, ["a.jpg", f"{deep}/b.jpg"])
    draw_pictures(collection.folder, ["a.jpg", f"{deep}/b.jpg"])
    for item in (1, 2):
        tag(collection, item, "sea")
    out = tmp_path / ("q" * 200) / ("q" * 200) / "out"
    out.parent.mkdir(parents=True)
    for kind, reason in (("imagefolder", "path that is too long"), ("xmp", "tags that could not be written")):
        rejects = Rejects()
        export_tags(collection, out.with_name(kind), kind=kind, rejects=rejects)  # type: ignore[arg-type]
        assert rejects.counts == {reason: 1}
