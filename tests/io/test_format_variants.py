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
from wsabie.io.data_sources import open_source
from wsabie.io.parsers.label_cells import LabelCellReader, find_flag_columns
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
        ("a.tsv", "x/a.psd\telk\nx/b.psd\tbog\n", "names of files, such as 'x/a.psd', and none of these"),
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


@pytest.mark.parametrize(
    "prefix", ["/home/eve/photos/", "photos/2020/", "..\\photos\\", "C:\\photos\\", "./images/", "a b/c-d/"]
)
@pytest.mark.parametrize("header", ["", "file\tlabel\n", "image_id\tlabel\n"])
def test_bare_paths_of_no_file_are_no_ids(tmp_path, prefix, header):
    path = write(tmp_path / "list.tsv", header + "".join(f"{prefix}x{i}\tgull\n" for i in range(4)))
    with pytest.raises(InputError, match="put the list into the folder with the files"):
        open_source(path)
    (tmp_path / "images").mkdir()
    for i in range(4):
        Image.new("RGB", (20, 20), (60 * i, 0, 0)).save(tmp_path / f"images/x{i}.png")
    assert [item.content.name for item in open_source(path)] == [f"x{i}.png" for i in range(4)]


@pytest.mark.parametrize(
    ("header", "prefix"),
    [("id\tlabel\n", "hep-th/99"), ("user_id\titem_id\n", "a/b"), ("", "/m/0"), ("", "/c/en/w"), ("", "10.1000/j.1."),
     ("", "http://www.yso.fi/p"), ("", "rock / pop "), ("", "plain")],
)  # fmt: skip
def test_ids_that_are_no_paths_are_read(tmp_path, header, prefix):
    path = write(tmp_path / "list.tsv", header + "".join(f"{prefix}{i}\tgull\n" for i in range(4)))
    assert open_source(path).ids == [f"{prefix}{i}" for i in range(4)]


WRONG = {
    "tags.csv": "file_name,labels\n1.png,{0};sea\n2.png,{0}\n",
    "pairs.tsv": "1.png\t{0}\n2.png\t{0}\n",
    "texts.jsonl": '{{"text": "waves", "labels": ["{0}"]}}\n{{"text": "salt", "labels": ["{0}", "sea"]}}\n',
    "one-hot.csv": "file_name,{0},sea\n1.png,1,0\n2.png,0,1\n",
    "fast.txt": "__label__{0} waves\n__label__{0} salt\n",
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize(("encoding", "count"), [("latin-1", 1), ("latin-1", 2)])
def test_wrong_encodings_that_control_characters_show_are_repaired(folder, caplog, name, encoding, count):
    label, damaged = "Stra\u00dfe", "Stra\u00dfe"
    for _ in range(count):
        damaged = damaged.encode().decode(encoding)
    source = open_source(write(folder / name, WRONG[name].format(damaged)))
    names = source.label_names if isinstance(source, FeatureTable) else {n for item in source for n in item.labels}
    assert {*names} - {"sea"} == {label}
    assert len([line for line in caplog.messages if f"and is taken for {label!r}" in line]) == 1


@pytest.mark.parametrize("name", WRONG)
def test_wrong_encodings_without_control_characters_are_reported(folder, caplog, name):
    damaged = "M\u00f6we".encode().decode("cp1252")
    open_source(write(folder / name, WRONG[name].format(damaged)))
    assert [
        f"such as {damaged!r} seem to be in a wrong encoding; if 'M\u00f6we'" in line for line in caplog.messages
    ].count(True) == 1


@pytest.mark.parametrize("label", ["M\u00f6we", "na\u00efve caf\u00e9", "\u65e5\u672c", "\u00a9 Eve", "\u00c5land"])
def test_sound_labels_are_not_reported(folder, caplog, label):
    open_source(write(folder / "tags.csv", WRONG["tags.csv"].format(label)))
    assert "wrong encoding" not in caplog.text


def test_labels_that_cannot_be_repaired_are_reported(folder, caplog):
    open_source(write(folder / "tags.csv", WRONG["tags.csv"].format("\u65e5\x80")))
    assert "was read in a wrong encoding, and stays so" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("mac.csv", "file_name,labels\r1.png,sea\r2.png,sky\r", [("sea",), ("sky",)]),
        ("mac.tsv", "1.png\tsea\r2.png\tsky\r", [("sea",), ("sky",)]),
        ("flags.csv", "file_name,sea,sky\n1.png,yes,no\n2.png,No,YES\n", [("sea",), ("sky",)]),
        ("crosses.csv", "file_name,sea,sky\n1.png,x,\n2.png,,X\n", [("sea",), ("sky",)]),
        ("signs.csv", "file_name,R&B,sea (wide)\n1.png,1,0\n2.png,0,1\n", [("R&B",), ("sea (wide)",)]),
        ("years.csv", "Image Name,2020,2021\n1.png,1,0\n2.png,0,1\n", [("2020",), ("2021",)]),
        ("hash.csv", "file_name,tags\n1.png,#sea #sky\n2.png,#sea\n", [("#sea", "#sky"), ("#sea",)]),
        ("stack.csv", "file_name,tags\n1.png,<c++><sea>\n2.png,<sea>\n", [("c++", "sea"), ("sea",)]),
        ("a.ndjson", '{"img": "1.png", "tags": ["sea"]}\n{"img": "2.png", "tags": ["sky"]}\n', [("sea",), ("sky",)]),
        ("urls.csv", "file_name,label\nfile:///home/eve/1.png,sea\nhttps://a.b/2.png?w=3,sky\n", [("sea",), ("sky",)]),
        ("frame.csv", ",image,label\n0,1.png,sea\n1,2.png,sky\n", [("sea",), ("sky",)]),
        ("quoted.tsv", '"file_name"\t"labels"\n"1.png"\t"sea;sky"\n"2.png"\t"sky"\n', [("sea", "sky"), ("sky",)]),
        ("posts.csv", "id,text,tags\n1,how to,<sea><c#>\n2,why so,<sea>\n", [("sea", "c#"), ("sea",)]),
        ("space.csv", "filename, sea, sky\n1.png, 1, 0\n2.png, 0, 1\n", [("sea",), ("sky",)]),
        ("cjk.csv", "file_name,tags\n1.png,sea\u3001sky\n2.png,sky\n", [("sea", "sky"), ("sky",)]),
        ("wide.csv", "file_name,tags\n1.png,sea\uff0csky\n2.png,sky\n", [("sea", "sky"), ("sky",)]),
        ("stems.csv", "image_name,label\n1,sea\n2,sky\n", [("sea",), ("sky",)]),
    ],
)  # fmt: skip
def test_exports_of_other_tools_are_read(folder, name, content, labels):
    assert list_labels(open_source(write(folder / name, content))) == labels


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("twice.csv", "file_name,tag,tag\n1.png,a,b\n2.png,a,b\n", "names a column twice; rename one"),
        ("caffe.txt", "1.png 0\n2.png 1\n", "put a first line file_name,labels above the rows, and commas into these"),
        (
            "via.json",
            '{"1.png9": {"filename": "1.png", "regions": [{"shape_attributes": {}}]}}',
            "holds regions of VIA",
        ),
        ("quoted.tsv", "'1.png'\tsea\n'2.png'\tsky\n", "names of files with other signs around them"),
        ("colon.tsv", "a/1.png:\tsea\na/2.png:\tsky\n", "names of files with other signs around them"),
        ("automl.csv", "TRAIN,gs://b/1.png,sea\nTEST,gs://b/2.png,sky\n", "put a first line file_name,labels"),
        ("scores.jsonl", '{"file_name": "1.png", "tags": {"sea": 0.9}}\n', "which is not a label"),
    ],
)
def test_exports_of_other_tools_are_refused_by_name(folder, name, content, advice):
    with pytest.raises(InputError, match=advice):
        open_source(write(folder / name, content))


@pytest.mark.parametrize("cell", ["sea:0.98;sky:0.2", "(sea:1.2); sky:0.5", "sea: .7"])
def test_labels_with_scores_are_reported(folder, caplog, cell):
    write(folder / "sound.csv", "file_name,tags\n1.png,ratio:2;sea: side\n2.png,version 1.5\n")
    open_source(folder / "sound.csv")
    assert not caplog.records
    open_source(write(folder / "tags.csv", f"file_name,tags\n1.png,{cell}\n2.png,{cell}\n"))
    assert "end in numbers; if these are scores, remove them" in caplog.text


def test_ten_repairs_of_a_file_are_listed(folder, caplog):
    labels = ";".join(f"Stra\u00c3\u009fe {i}" for i in range(30))
    for n in (1, 2):
        open_source(write(folder / "tags.csv", WRONG["tags.csv"].format(labels)))
        assert caplog.text.count("is taken for 'Stra\u00dfe") == 10 * n
        assert caplog.text.count("more names were read in a wrong encoding") == n
