"""Tables of other tools mean the same to an import as to `open_source`."""

import json
from pathlib import Path

import pytest
from PIL import Image

from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.interchange.tag_import import import_tags
from wsabie.collection.interchange.tag_tables import read_table
from wsabie.collection.labels.label_store import read_label_names
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name

STUDIO = "id,annotator,annotation_id"
TABLES = {
    "one-hot.csv": "filename,dog,sea\n1.png,1,0\n2.png,0,1\n3.png,1,1\n",
    "one-hot.tsv": "Image Name\tdog\tsea\n1.png\t0\t1\n2.png\t1\t1\n3.png\t1\t0\n",
    "booleans.csv": "image_id,dog,sea\n1.png,True,False\n2.png,False,True\n3.png,True,True\n",
    "one-hot.jsonl": "".join(json.dumps({"img": f"{i}.png", "dog": i % 2, "sea": 1}) + "\n" for i in (1, 2, 3)),
    "choice.csv": f"image,{STUDIO},choice\n1.png,1,1,1,dog\n2.png,2,1,2,sea\n3.png,3,1,3,dog\n",
    "choices.csv": f'image,{STUDIO},kind\n1.png,1,1,1,"{{""choices"":[""dog"",""sea""]}}"\n2.png,2,1,2,sea\n',
    "answers.json": json.dumps(
        [{"image": f"{i}.png", "id": i, "choice": "dog", "annotator": 1, "annotation_id": i} for i in (1, 2, 3)]
    ),
    "texts.csv": f"image,text,{STUDIO},choice\n1.png,a view of a sea,1,1,1,dog\n2.png,some more of it here,2,1,2,sea\n",
    "lists.csv": "path,labels\n1.png,\"['dog', 'sea']\"\n2.png,\"['sea']\"\n3.png,\"['dog']\"\n",
    "exiftool.json": json.dumps([{"SourceFile": f"./{i}.png", "XPKeywords": "dog;sea"} for i in (1, 2, 3)]),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in (1, 2, 3):
        Image.new("RGB", (40, 40), (80 * i, 10, 10)).save(tmp_path / f"{i}.png")
    return tmp_path


@pytest.mark.parametrize("name", TABLES)
def test_an_import_reads_the_labels_that_open_source_reads(folder: Path, name: str) -> None:
    path = folder / name
    path.write_text(TABLES[name])
    imported = {
        Path(line.path).name: [normalise_label_name(label) for label in line.labels]
        for line in read_table(path, Rejects(), is_json=".json" in name)
    }
    assert imported == {item.id: list(item.labels) for item in open_source(path)}
    assert {label for labels in imported.values() for label in labels} <= {"dog", "sea"}


def test_tables_without_labels_are_refused_by_both(folder: Path) -> None:
    path = folder / "facts.csv"
    path.write_text("file_name,width,height\n1.png,40,40\n2.png,40,40\n")
    for read in (open_source, lambda table: list(read_table(table, Rejects(), is_json=False))):
        with pytest.raises(InputError, match="put the labels in one of these"):
            read(path)


def test_labels_in_a_wrong_encoding_are_repaired_or_reported(
    collection: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    Image.new("RGB", (40, 40)).save(collection.folder / "1.png")
    scan_collection(collection, by="eve", tags="none")
    path = collection.folder / "tags.csv"
    path.write_text("file_name,labels\n1.png,Gr\u00c3\u009fe;M\u00c3\u00b6we\n")
    import_tags(collection, path, by="eve")
    with begin_read(collection.engine) as connection:
        assert set(read_label_names(connection).values()) == {"Gr\u00dfe", "M\u00c3\u00b6we"}
    assert "is taken for 'Gr\u00dfe'" in caplog.text
    assert "if 'M\u00f6we' is right, save the file as UTF-8" in caplog.text


def test_exports_are_matched_without_endings_and_refused_by_name(collection: Collection, tmp_path: Path) -> None:
    for name in ("a.b/1.png", "2.png", "c/3.png", "d/3.png"):
        (collection.folder / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (40, 40), (len(name), 9, 9)).save(collection.folder / name)
    scan_collection(collection, by="eve", tags="none")
    path, rejects = tmp_path / "train.csv", Rejects()
    path.write_text("image_name,tags\n1,sea\nx/2,sea\n3,sea\n4,sea\n2.jpg,sea\n")
    assert import_tags(collection, path, by="eve", rejects=rejects).items == 2
    assert [reason for _, reason, _ in rejects.listed] == ["name that several items have", *2 * ["unknown item"]]
    path = tmp_path / "tags.ndjson"
    path.write_text('{"image": "2.png", "tags": ["sky"]}\n')
    assert import_tags(collection, path, by="eve").added == 1
    path = tmp_path / "annotations.xml"
    path.write_text("<annotations></annotations>")
    with pytest.raises(InputError, match="holds tags of CVAT, which are not read"):
        import_tags(collection, path, by="eve")
