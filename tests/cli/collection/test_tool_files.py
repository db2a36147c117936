"""Annotations of other tools beside pictures: they are counted, and the command that reads them works."""

import json
import shlex
from pathlib import Path

import pytest
from PIL import Image
from tests.cli.conftest import Cli

from wsabie.core.message_references import format_references
from wsabie.io.formats.tool_files import list_tool_notes

COCO = {
    "images": [{"id": 1, "file_name": "1.png"}, {"id": 2, "file_name": "2.png"}],
    "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 30, 30]} for i in (1, 2)],
    "categories": [{"id": 1, "name": "gull"}],
}
TASKS = [
    {"id": i, "data": {"image": f"/data/upload/1/0a1b2c3d-{i}.png"},
     "annotations": [{"id": i, "result": [{"type": "choices", "value": {"choices": ["gull"]}}]}]}
    for i in (1, 2)
]  # fmt: skip
ROWS = [{"image": "1.png", "id": 1, "choice": "gull", "annotator": 1, "annotation_id": 1}]
TABLE = "image,id,choice,annotator,annotation_id\n1.png,1,gull,1,1\n"
BOX, SHAPES = "0 0.5 0.5 0.1 0.2\n", '{"version": "5", "shapes": []}'
BOXES = '[{"image": "1.png", "annotations": [{"label": "gull", "coordinates": {"x": 9}}]}]'
VIA = "filename,region_count,region_id,region_shape_attributes,region_attributes\n1.png,1,0,{},{}\n"
VOC = "<annotation><filename>{}.png</filename><object><name>gull</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
VOC += "<xmax>30</xmax><ymax>30</ymax></bndbox></object></annotation>"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for i in range(1, 3):
        (tmp_path / "photos/JPEGImages").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40), (90 * i, 10, 10)).save(tmp_path / f"photos/JPEGImages/{i}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize(
    ("files", "fact", "command"),
    [
        ({"all.json": json.dumps(COCO)}, "1 file (all.json) holds annotations of COCO", "collection import"),
        ({"ls/a.json": json.dumps(TASKS)}, "1 file (ls/a.json) holds answers of Label Studio", "collection import"),
        ({"min.json": json.dumps(ROWS)}, "1 file (min.json) holds answers of Label Studio", "collection import"),
        ({"ls.csv": TABLE}, "1 file (ls.csv) holds answers of Label Studio", "collection import"),
        ({f"Annotations/{i}.xml": VOC.format(i) for i in (1, 2)},
         "2 files (such as Annotations/1.xml) hold objects of Pascal VOC", "train"),
        ({f"labels/{i}.txt": BOX for i in (1, 2)}, "2 files (such as labels/1.txt) hold boxes of YOLO", ""),
        ({"JPEGImages/1.xml": VOC.format(1)}, "1 file (JPEGImages/1.xml) holds objects of Pascal VOC without", ""),
        ({"ml.json": BOXES}, "1 file (ml.json) holds boxes of Create ML", ""),
        ({"via.csv": VIA}, "1 file (via.csv) holds regions of VIA", ""),
        ({"JPEGImages/1.json": SHAPES}, "1 file (JPEGImages/1.json) holds shapes of labelme", ""),
    ],
)  # fmt: skip
def test_init_names_annotations_of_tools_and_what_reads_them(
    cli: Cli, photos: Path, files: dict[str, str], fact: str, command: str
) -> None:
    for name, content in files.items():
        (photos / name).parent.mkdir(exist_ok=True)
        (photos / name).write_text(content)
    result = cli("collection", "init", photos)
    message = " ".join(result.err.split())
    assert result.code == 0, message
    assert f"in {photos} {fact}" in message
    [note] = map(format_references, list_tool_notes(photos))
    if not command:
        assert note.endswith("which are not read; export them as COCO's JSON, or as a table of files")
        return
    words = shlex.split(
        note.partition("wsabie ")[2].replace("DIR", str(photos)).replace("MODEL", str(photos / "model"))
    )
    options = ["--dim", 4, "--epochs", 2, "--threads", 1, "--hold-out", 0, "--features", "colour"] * (
        command == "train"
    )
    assert words[: len(command.split())] == command.split()
    result = cli(*words, *options)
    assert result.code == 0, result.err


def test_other_texts_are_no_annotations_of_tools(photos: Path) -> None:
    for name, content in {"notes.txt": "3 gulls", "tags.csv": "file,tags\n1.png,gull\n", ".hidden.txt": "0 1 1 1 1\n",
                          "empty.json": "", "some.json": '{"images": 3}', "page.xml": "<html/>"}.items():  # fmt: skip
        (photos / name).write_text(content)
    assert list_tool_notes(photos) == []
