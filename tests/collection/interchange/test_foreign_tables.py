"""Tables of other tools mean the same to an import as to `open_source`."""

import json
from pathlib import Path

import pytest
from PIL import Image

from wsabie.collection.interchange.tag_files import read_table
from wsabie.core.errors import InputError
from wsabie.io.recognition import open_source
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
