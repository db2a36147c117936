"""COCO: regions and whole pictures on the way out and in, read by others too, and what others write."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from tagged_items import PATHS, add_items, draw_pictures, read_annotation_states, read_label_details, tag
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.interchange.tag_export import TagSelection, export_tags
from wsabie.collection.interchange.tag_import import import_tags
from wsabie.collection.labels import label_store
from wsabie.core.errors import InputError
from wsabie.io.formats.coco import read_coco
from wsabie.storage.rejects import Rejects

A, B, C, D = PATHS


def tag_items_with_regions(collection: Collection) -> Collection:
    add_items(collection)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_ids = label_store.ensure_labels(change, ["animal", "gull"])
        label_store.set_parent(change, label_ids["gull"], label_ids["animal"])
    tag(collection, 1, "gull")
    tag(collection, 1, "gull", region="5,5,20,10.5")
    tag(collection, 1, "sea", "rejected")
    tag(collection, 2, "gull", region="50%,0%,50%,100%")
    tag(collection, 3, "wing", region="0,0,10,0,5,12;20,0,30,0,25,12")
    return collection


def test_coco_export_is_imported_again(collection: Collection, tmp_path: Path) -> None:
    tag_items_with_regions(collection)
    draw_pictures(collection.folder)
    out = collection.folder / "tags.json"
    assert export_tags(collection, out).tags == 4
    written = json.loads(out.read_text())
    assert [(entry["file_name"], entry["width"]) for entry in written["images"]] == [(A, 40), (B, 40), (C, 40)]
    assert {entry["name"]: entry.get("supercategory") for entry in written["categories"]} == {
        "animal": None,
        "gull": "animal",
        "sea": None,
        "wing": None,
    }
    assert [(entry.get("image_label"), entry["bbox"], entry["area"]) for entry in written["annotations"]] == [
        (True, [0, 0, 40, 30], 1200),
        (None, [5, 5, 20, 10.5], 210),
        (None, [20, 0, 20, 30], 600),
        (None, [0, 0, 30, 12], 120),
    ]
    with create_collection(tmp_path / "other") as target:
        add_items(target)
        result = import_tags(target, out, by="adam")
        assert (result.added, result.skipped) == (4, 0)
        assert read_annotation_states(target) == {
            (A, "gull", "", "accepted"),
            (A, "gull", "5,5,20,10.5", "accepted"),
            (B, "gull", "20,0,20,30", "accepted"),  # what was per cent is pixels
            (C, "wing", "0,0,10,0,5,12;20,0,30,0,25,12", "accepted"),
        }
        assert read_label_details(target)["gull"] == ("", "animal", ())
    rejects = Rejects()
    regions = read_coco(out, rejects=rejects)
    assert [(item.id, item.labels) for item in regions] == [
        (f"{A}#1", ("gull",)),
        (f"{A}#2", ("gull",)),
        (f"{B}#3", ("gull",)),
        (f"{C}#4", ("wing",)),
    ]
    assert len(rejects) == 0
    assert [item.labels for item in read_coco(out, kind="pictures", rejects=Rejects())] == [
        ("gull",),
        ("gull",),
        ("wing",),
    ]


def test_coco_export_writes_pictures(collection: Collection, tmp_path: Path) -> None:
    tag_items_with_regions(collection)
    draw_pictures(collection.folder, PATHS[:2])
    rejects = Rejects()
    out = tmp_path / "out/tags.json"
    out.parent.mkdir()
    export_tags(collection, out, pictures="copy", rejects=rejects)
    assert rejects.listed == [(C, "file that is not there", "")]
    assert (tmp_path / "out/images" / B).read_bytes() == (collection.folder / B).read_bytes()
    assert len(read_coco(out, rejects=Rejects())) == 3
    for overwrite in (False, True):  # which would not help, and is not advised
        with pytest.raises(InputError, match="images is there and not empty"):
            export_tags(collection, out, pictures="copy", overwrite=overwrite)
    with pytest.raises(InputError, match="where copies would be new items"):
        export_tags(collection, collection.folder / "tags.json", pictures="copy")
    with pytest.raises(InputError, match="coco says which labels fit"):
        export_tags(collection, out, choice=TagSelection(state="rejected"))


def test_foreign_coco_files_are_imported(collection: Collection, tmp_path: Path) -> None:
    add_items(collection)
    (tmp_path / "instances.json").write_text(
        json.dumps(
            {
                "annotations": [
                    {"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": 0},
                    {"id": 2, "image_id": 7, "category_id": 1, "segmentation": {"counts": [1], "size": [3, 3]}},
                    {"id": 3, "image_id": 8, "category_id": 1, "bbox": [1, 2, 3, 4]},
                    {"id": 4, "image_id": 7, "category_id": 9, "bbox": [1, 2, 3, 4]},
                    {"id": 5, "image_id": 7, "category_id": 2},
                    {"id": 6, "image_id": 9, "category_id": 2},
                    {"id": 7, "image_id": 7, "category_id": 1, "bbox": [1, 2, 0, 4]},
                    {"id": 8, "image_id": 7, "category_id": 1, "bbox": [1, 2, "x", 4]},
                    [],
                ],
                "categories": [
                    {"id": 1, "name": "wheel", "supercategory": "car"},
                    {"id": 2, "name": "car", "supercategory": "wheel"},
                    {"id": 3},
                ],
                "images": [{"id": 7, "file_name": "b.jpg"}, {"id": 9, "file_name": "lost.jpg"}, {"id": None}],
            }
        )
    )
    rejects = Rejects()
    result = import_tags(collection, tmp_path / "instances.json", by="adam", rejects=rejects)
    assert read_annotation_states(collection) == {(B, "wheel", "1,2,3,4", "accepted"), (B, "car", "", "accepted")}
    assert (result.tags, result.skipped) == (2, len(rejects))
    assert rejects.counts == {
        "picture or category without name": 1,
        "annotation, picture or category without id": 1,
        "mask of run lengths": 1,
        "annotation of an unknown picture": 1,
        "annotation of an unknown category": 1,
        "unknown item": 1,
        "empty region": 1,
        "malformed region": 1,
        "not a JSON object": 1,
        "label that would be above itself": 1,
    }


@pytest.mark.parametrize(
    "content", ["", "{}", '{"images": 7}', "[" * 100_000, '{"images": [{"file_name": "a.jpg"', "\0"]
)
def test_invalid_coco_files_are_refused(collection: Collection, tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError):
        import_tags(collection, tmp_path / "a.json", by="adam")


def test_long_outlines_are_imported_once(collection: Collection, tmp_path: Path) -> None:
    """The outlines are as long as people's are: an index of PostgreSQL would not take their texts."""
    add_items(collection)
    rng = random.Random(0)  # noqa: S311 - no secret
    outline = [round(rng.uniform(0, 30), 2) for _ in range(2_000)]
    document = {
        "images": [{"id": 1, "file_name": A}],
        "categories": [{"id": 1, "name": "coast"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "segmentation": [outline]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    assert import_tags(collection, tmp_path / "a.json", by="adam").added == 1
    assert import_tags(collection, tmp_path / "a.json", by="adam").added == 0
    ((_, _, region, _),) = read_annotation_states(collection)
    assert region.count(",") == 1_999
    row = {"item_id": 1, "label_id": 1, "region": region, "state": "rejected", "origin": "person", "by": "x", "at": "x"}
    with pytest.raises(IntegrityError), begin_write(collection.engine) as connection:
        connection.execute(tables.annotations.insert(), row)


def test_foreign_files_are_not_overwritten(collection: Collection, tmp_path: Path) -> None:
    tag_items_with_regions(collection)
    for name, mine in [("a.json", '{"mine": 1}'), ("a.csv", "mine,yours\n"), ("a.jsonl", "{}")]:
        (tmp_path / name).write_text(mine)
        with pytest.raises(InputError, match="would be lost"):
            export_tags(collection, tmp_path / name)
        assert (tmp_path / name).read_text() == mine
    with pytest.raises(InputError, match="does not tell a format"):
        export_tags(collection, tmp_path / "tags")
    with pytest.raises(InputError, match="it would lie in"):
        export_tags(collection, collection.place / "collection.csv")
    options: Any = {"pictures": "copy"}
    with pytest.raises(InputError, match="csv holds tags alone"):
        export_tags(collection, tmp_path / "new.csv", **options)
    export_tags(collection, tmp_path / "new.csv")
    with pytest.raises(InputError, match="would be lost; give another name, or allow to overwrite it"):
        export_tags(collection, tmp_path / "new.csv")
    export_tags(collection, tmp_path / "new.csv", overwrite=True)
    (tmp_path / "new.csv").write_text("my own words")
    with pytest.raises(InputError, match="is not a list of tags"):
        export_tags(collection, tmp_path / "new.csv", overwrite=True)
