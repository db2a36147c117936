"""Variants of files that programs and people write: each is understood, or refused with advice."""

import json
import logging
import shutil
import wave
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from wsabie.core.errors import InputError
from wsabie.io.parsers.label_cells import LabelCellReader, find_flag_columns
from wsabie.io.recognition import open_source
from wsabie.io.records import FeatureTable, Source
from wsabie.storage.rejects import Rejects

BOX = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>40</xmax><ymax>30</ymax></bndbox>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (1, 2, 3):
        Image.new("RGB", (48, 36), (number * 40, 9, 90)).save(tmp_path / f"{number}.png")
    return tmp_path


def list_labels(source: Source) -> list[tuple[str, ...]]:
    if isinstance(source, FeatureTable):
        return [tuple(source.label_names[i] for i in row.nonzero()[0]) for row in source.Y.toarray() > 0]
    return [item.labels for item in source]


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


TASKS = [
    {"id": n, "data": {"photo": f"/data/upload/{n}.png"},
     "annotations": [{"result": [{"type": "taxonomy", "value": {"taxonomy": [["water", name]]}}]}]}
    for n, name in ((1, "sea"), (2, "pond"))
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "tsv"])
def test_wide_encodings_are_read_with_and_without_a_mark(folder, encoding, ending):
    texts = {
        "csv": "text,labels\nwäves,Möwe\nleaves,wood\n",
        "jsonl": '{"text": "wäves", "labels": ["Möwe"]}\n{"text": "leaves", "labels": ["wood"]}\n',
        "tsv": "a\tMöwe\nb\twood\n",
    }
    path = write(folder / f"data.{ending}", texts[ending], encoding)
    assert list_labels(open_source(path)) == [("Möwe",), ("wood",)]


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("a.csv", "SEP=;\nfile_name;tags\n1.png;elk, bog\n2.png;bog\n", [("elk", "bog"), ("bog",)]),
        ("a.csv", "file_name|tags\n1.png|elk, bog\n2.png|bog\n", [("elk", "bog"), ("bog",)]),
        ("a.csv", "Photo,Label\n1.png,elk\n2.png, nan \n3.png, NULL\n", [("elk",)]),
        ("a.csv", "file_name,labels\n1.png,1.0;2.0\n2.png,2.0\n", [("1", "2"), ("2",)]),
        ("a.csv", "image_id,label\n1.0,elk\n2.0,bog\n", [("elk",), ("bog",)]),
        ("a.csv", "path,elk,bog\n1.png,1.0,\n2.png,,1.0\n3.png,0.0,nan\n", [("elk",), ("bog",)]),
        ("a.csv", "path,tags\n1.png,\"[np.str_('elk'), np.str_('bog')]\"\n2.png,\"array(['bog'], dtype=object)\"\n",
         [("elk", "bog"), ("bog",)]),
        ("a.csv", "image,id,choice,annotator,annotation_id,lead_time\n/d/1.png,1,elk,1,1,1\n/d/2.png,2,bog,1,2,0\n",
         [("elk",), ("bog",)]),
        ("a.json", json.dumps(TASKS), [("sea",), ("pond",)]),
        ("a.tsv", 'SourceFile\tSubject\n./1.png\telk, bog\n./2.png\tbog\n', [("elk", "bog"), ("bog",)]),
        ("a.csv", "SourceFile,Subject,Keywords\n1.png,,elk\n2.png,bog,bog\n", [("elk",), ("bog",)]),
        ("a.tsv", '"id"\t"label"\n"1"\t"elk ""x"""\n"2"\t"bog"\n', [('elk "x"',), ("bog",)]),
        ("a.tsv", "photo\tkeyword\np\telk\nq\tbog\n", [("elk",), ("bog",)]),
        ("a.jsonl", '{"text": "a", "label": {"name": "elk"}}\n{"text": "b", "label": {"name": "bog"}}\n',
         [("elk",), ("bog",)]),
    ],
)  # fmt: skip
def test_variants_are_read(folder, name, text, labels):
    assert list_labels(open_source(write(folder / name, text))) == labels


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("a.csv", "1.png,elk\n2.png,bog\n", "names files such as '1.png' .* a first line file_name,labels"),
        ("a.txt", "x/1.png 0\nx/2.png 1\n", "names files such as 'x/1.png' .* a first line file_name,labels"),
        ("data.yaml", "path: .\ntrain: images\nnames:\n  0: elk\n", "names of classes of YOLO, which are not read"),
        ("1.txt", "0 0.5 0.5 0.2 0.2\n", "boxes of YOLO, which are not read"),
        ("1.json", '{"version": "5", "shapes": []}', "shapes of labelme, which are not read"),
        ("a.tsv", "x/a.wav\telk\nx/b.wav\tbog\n", "names of sounds, such as .* folder with the sounds"),
        ("a.tsv", "x/a.cr2\telk\nx/b.cr2\tbog\n", "names of files, such as 'x/a.cr2', and none of these"),
        ("a.tsv", "C:\\x\\a\telk\nC:\\x\\b\tbog\n", "names of files, such as .* and none of these"),
    ],
)  # fmt: skip
def test_others_are_refused_with_advice(folder, name, text, advice):
    with pytest.raises(InputError, match=advice):
        open_source(write(folder / name, text))


def test_pair_lists_name_sounds(tmp_path):
    for name in "ab":
        with wave.open(str(tmp_path / f"{name}.WAV"), "wb") as sound:
            sound.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
            sound.writeframes(bytes(800))
    rejects = Rejects()
    source = open_source(write(tmp_path / "a.tsv", "C:\\x\\a.wav\telk\nb.wav\tbog\nc.wav\tbog\n"), rejects=rejects)
    assert not isinstance(source, FeatureTable)
    assert (source.modality, list_labels(source)) == ("sounds", [("elk",), ("bog",)])
    assert rejects.listed[0][1:] == ("labels without a sound", "c.wav")


def test_endings_may_be_in_capitals(folder):
    content = {
        "images": [{"id": 1, "file_name": "1.PNG"}],
        "categories": [{"id": 1, "name": "elk"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 30, 30]}],
    }
    assert list_labels(open_source(write(folder / "A.JSON", json.dumps(content)))) == [("elk",)]
    assert list_labels(open_source(folder)) == [("elk",)]
    voc = folder / "voc"
    (voc / "Annotations").mkdir(parents=True)
    shutil.copytree(folder, voc / "JPEGImages", ignore=shutil.ignore_patterns("voc", "*.JSON"))
    write(voc / "Annotations" / "1.XML", f"<annotation><object><name>elk</name>{BOX}</object></annotation>")
    assert list_labels(open_source(voc)) == [("elk",)]
    tables = folder / "tables"
    tables.mkdir()
    pq.write_table(pa.table({"text": ["a", "b"], "subjects": [["elk"], ["bog"]]}), tables / "1.PARQUET")
    assert list_labels(open_source(tables)) == [("elk",), ("bog",)]


def test_unread_columns_and_broken_lists_are_reported(folder, caplog):
    with caplog.at_level(logging.WARNING, logger="wsabie"):
        open_source(write(folder / "a.csv", "SourceFile,Subject,Keywords\n1.png,elk,moss\n2.png,bog,\n"))
        LabelCellReader("tags").inspect(["['elk', ...]", "bog"]).check(folder)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.endswith("are those in 'Subject'; 'keywords' are not read")
    assert "a list that cannot be read, \"['elk', ...]\"" in second


def test_empty_columns_are_no_flags():
    assert find_flag_columns([{"elk": 1, "bog": None, "moss": ""}, {"elk": 0, "bog": 1, "moss": "nan"}]).columns == [
        "elk",
        "bog",
    ]
    assert find_flag_columns([{"elk": 1, "moss": ""}]) is None


@pytest.mark.parametrize("column", ["path", "image"])
@pytest.mark.parametrize("prefix", ["C:\\x\\", "https://example.org/x/", "/home/eve/", "./"])
def test_paths_in_arrow_mean_files_of_other_machines(folder, column, prefix):
    table = pa.table({column: [f"{prefix}1.PNG", f"{prefix}2.png", f"{prefix}9.png"], "labels": ["elk", "bog", "bog"]})
    pq.write_table(table, folder / "a.parquet")
    rejects = Rejects()
    source = open_source(folder / "a.parquet", rejects=rejects)
    assert list_labels(source) == [("elk",), ("bog",)]
    assert [item.content for item in source] == [folder / "1.png", folder / "2.png"]
    assert rejects.listed == [(f"{folder / 'a.parquet'} row 3", "labels without a picture", f"{prefix}9.png")]


def test_whole_ids_of_arrow_have_no_point(folder):
    pq.write_table(pa.table({"text": ["a", "b"], "id": [1.0, 2.5]}), folder / "a.parquet")
    assert [item.id for item in open_source(folder / "a.parquet")] == ["1", "2.5"]
    pq.write_table(
        pa.table({"features": [[1.0], [2.0]], "labels": ["elk", "bog"], "id": [1.0, 2.5]}), folder / "b.parquet"
    )
    assert open_source(folder / "b.parquet").ids == ["1", "2.5"]
