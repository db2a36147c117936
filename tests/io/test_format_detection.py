"""The table of formats: its examples, and files that other tools write."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import FORMATS, detect_format, rate_formats, read_data_head
from wsabie.io.formats.pair_list import has_header
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects


@pytest.fixture
def write(tmp_path):
    def write(text, name="data"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def list_items(source):
    return [(item.id, item.labels) for item in source]


TEXT_FORMATS = FORMATS[[form.kind for form in FORMATS].index("glosses") :]


@pytest.mark.parametrize("form", TEXT_FORMATS, ids=lambda form: form.kind)
def test_every_example_is_recognised_with_a_reason(form, write):
    best, *others = rate_formats(read_data_head(write(form.example + "\n")))
    assert (best.kind, bool(best.reason)) == (form.kind, True)
    assert all(best.score - other.score > 0.01 for other in others)


def test_each_format_stands_in_the_table_of_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sources.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines() if re.match(r"\| `\w", line)]
    cells = {row[1].strip("`"): (row[3], row[5]) for row in rows if len(row) == 7}
    collections = {"iapr", "magnatagatune", "spoken-digits", "nus-wide", "citations", "lear"}
    assert cells == {form.kind: (form.endings, form.loses) for form in FORMATS if form.kind not in collections}
    assert collections <= {row[1].strip("`") for row in rows if len(row) == 4}


@pytest.mark.parametrize("dtype", [int, float])
@pytest.mark.parametrize("blank", ["", " "])
def test_usual_variants_of_sparse_text_are_read(tmp_path, dtype, blank):
    X, y = np.array([[0.5, 0, 2], [0, 1, 0]]), np.array([3, 7], dtype)
    path = tmp_path / "a.txt"
    dump_svmlight_file(X, y, str(path), comment="by hand")
    rows = open_source(path)
    assert (rows.label_names, rows.Y.toarray().tolist()) == (["3", "7"], [[1, 0], [0, 1]])
    decimals = ".0" if dtype is float else ""
    path.write_text(f"3{decimals},{blank}7{decimals}{blank} 0:1\n7{decimals}{blank},{blank}3 2:1\n")
    rows = open_source(path)
    assert (rows.label_names, rows.Y.toarray().tolist()) == (["3", "7"], [[1, 1], [1, 1]])


def test_rankings_and_large_numbers_are_reported(write):
    with pytest.raises(InputError, match=r"holds queries \(qid:\) with grades of relevance"):
        open_source(write("2 qid:1 1:0.5\n1 qid:1 2:1\n"))
    rejects = Rejects()
    path = write("9000000000 1:1\n7 9000000000:1\n5 1:1\n")
    assert open_source(path, rejects=rejects).label_names == ["5"]
    assert [(reason, detail) for _, reason, detail in rejects.listed] == [
        ("label number above 2,147,483,646", "9000000000"),
        ("feature number above 2,147,483,646", "9000000000:1"),
    ]


@pytest.mark.parametrize(
    ("first", "is_header"),
    [("userId\tmovieId", True), ("item\tname", True), ("node\tlabel", True), ("u0\tf9", False), ("u1\tfilm", False)],
)
def test_headers_of_pair_lists_are_recognised(write, first, is_header):
    text = f"{first}\nu1\tf1\nu1\tf2\nu2\tf2\n"
    assert has_header(text.encode().splitlines()) is is_header
    assert len(open_source(write(text)).ids) == (2 if is_header or first[:2] == "u1" else 3)


def test_ordinary_words_are_no_header(write):
    assert open_source(write("fox\tred\nhen1\tbrown\nhen2\tred\n")).ids == ["fox", "hen1", "hen2"]


DATA = "'?',1\n\"?\",0\n?,1\nbog,1\n{0 '?',1 1}\n{0 ?}\n"


def test_quoted_question_mark_is_a_value(write):
    write('<labels><label name="wet"/></labels>', "a.xml")
    attributes = "@relation a\n@attribute site {'?',bog,'dry?'}\n@attribute wet {0,1}\n@data\n"
    rejects = Rejects()
    rows = open_source(
        write(attributes + "'?',1\n\"?\",0\n?,1\nbog,1\n{0 '?',1 1}\n{0 ?}\n", "a.arff"), rejects=rejects
    )
    assert rows.Y.toarray().ravel().tolist() == [1, 0, 1, 1]
    assert [(Path(where).name, reason) for where, reason, _ in rejects.listed] == [
        ("a.arff:7", "missing value"),
        ("a.arff:10", "missing value"),
    ]


RESULT = {"type": "choices", "value": {"choices": ["hail", "sun"]}}


@pytest.mark.parametrize(
    "rows",
    [
        [{"text": "a", "id": 3, "mood": {"choices": ["hail", "sun"]}}],
        [{"text": "a", "id": 3, "labels": ["hail", "sun"]}],
        [{"id": 3, "data": {"text": "a"}, "annotations": [{"result": [RESULT]}]}],
    ],
)
def test_json_arrays_of_documents_are_read(write, rows):
    for indent in (None, 2):
        source = open_source(write(json.dumps(rows, indent=indent), "a.json"))
        assert list_items(source) == [("3", ("hail", "sun"))]


def test_label_studio_exports_are_read(write):
    lines = ["text,id,mood,annotator,annotation_id,lead_time", '"a b",8,"{""choices"":[""hail"",""sun""]}",1,1,2.5']
    source = open_source(write("\n".join([*lines, "c,9,sun,1,2,1.5"]), "a.csv"))
    assert list_items(source) == [("8", ("hail", "sun")), ("9", ("sun",))]


def test_annif_corpora_are_read(write):
    rejects = Rejects()
    path = write(
        "hauta ja kirkko\t<http://yso.fi/p1> <http://yso.fi/p2>\nkirkko\t<http://yso.fi/p2>\nno tab\n", "a.tsv"
    )
    assert detect_format(path) == "annif"
    source = open_source(path, rejects=rejects)
    assert list_items(source) == [("1", ("http://yso.fi/p1", "http://yso.fi/p2")), ("2", ("http://yso.fi/p2",))]
    assert [reason for _, reason, _ in rejects.listed] == ["line without a tab"]


@pytest.fixture
def pictures(tmp_path, picture):
    for number in range(3):
        picture(tmp_path / "photos" / f"{number}.png")
    return tmp_path


EXPECTED = [("photos/0.png", ("fox", "moss")), ("photos/1.png", ("moss",))]


@pytest.mark.parametrize("name", ["photos/{}.png", "./photos/{}.png", "photos\\{}.png", "{}.png", "{}"])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("train.csv", "image_id,labels\n{},fox;moss\n{},moss\n"),
        ("train.csv", "sep=;\nImage;Tags\n{};fox, moss\n{};moss\n"),
        ("train.tsv", "size\tpath\tlabels\n1\t{}\tfox,moss\n2\t{}\tmoss\n"),
        ("train.csv", "file_name,fox,moss\n{},1,1\n{},0,1\n"),
        ("tags.csv", 'SourceFile,Subject\n{},"fox, moss"\n{},moss\n'),
        (
            "tags.json",
            '[{{"SourceFile": "{}", "Subject": ["fox", "moss"]}},\n{{"SourceFile": "{}", "Subject": "moss"}}]',
        ),
        ("tags.jsonl", '{{"file": "{}", "labels": ["fox", "moss"]}}\n{{"file": "{}", "labels": ["moss"]}}\n'),
    ],
)
def test_tables_of_files_are_read(pictures, write, name, file, text):
    if file.startswith("tags.json"):
        name = name.replace("\\", "\\\\")
    path = write(text.format(name.format(0), name.format(1)), file)
    assert detect_format(path) == "listing"
    assert list_items(open_source(path)) == EXPECTED
    assert list_items(open_source(path, labels_from="none")) == [(name, ()) for name, _ in EXPECTED]


def test_missing_files_and_labels_of_a_table_are_listed(pictures, write):
    path = write("file_name,labels\n0.png,fox\ngone.png,fox\n1.png,\n", "a.csv")
    rejects = Rejects()
    assert list_items(open_source(path, rejects=rejects)) == [("photos/0.png", ("fox",))]
    assert [reason for _, reason, _ in rejects.listed] == ["labels without a picture", "picture without labels"]
    with pytest.raises(InputError, match=r"names files such as 'x\.png', and none of them lies beside it"):
        open_source(write("file_name,labels\nx.png,fox\n", "a.csv"))
    with pytest.raises(InputError, match=r"label them in one of these ways, or give .*a\.csv, which may hold labels"):
        open_source(pictures)


def test_excel_separator_line_is_respected(write):
    source = open_source(write("sep=;\r\ntext;labels\r\na, b;fox, moss\r\n", "a.csv"))
    assert list_items(source) == [("3", ("fox", "moss"))]
    assert isinstance(open_source(write("id\tlabel\n1\tfox\n".encode("utf-16"), "a.tsv")), FeatureTable)


@pytest.mark.parametrize(
    "table",
    [
        "file_name\ttags\n1.jpg\tsea;dog\n2.jpg\tdog\n",
        "filename, dog, sea\n1.jpg, 1, 1\n2.jpg, 1, 0\n",
        "image_id dog sea".replace(" ", ",") + "\n1.jpg,1,1\n2.jpg,1,-1\n",
        ",originalPath,tags\n0,/usr/src/app/upload/1.jpg,'sea','dog'\n".replace("'sea','dog'", '"sea,dog"')
        + "1,/usr/src/app/upload/2.jpg,dog\n",
        'image_name,text,tags\n1.jpg,"waves, and a dog","sea,dog"\n2.jpg,a dog,dog\n',
        json.dumps([{"SourceFile": "./1.jpg", "Keywords": ["sea", "dog"]}, {"SourceFile": "2.jpg", "Keywords": "dog"}]),
    ],
)
def test_labels_of_file_tables_stay_separate(write, tmp_path, table):
    for name in ("1.jpg", "2.jpg"):
        (tmp_path / name).write_bytes(b"")
    path = write(table, "tags.csv" if table[0] != "[" else "tags.json")
    assert [{*labels} for _, labels in list_items(open_source(path))] == [{"sea", "dog"}, {"dog"}]


def test_path_column_beside_texts_names_no_files(write):
    path = write("path,text,labels\nsrc/a.py,waves,sea\nsrc/b.py,a dog,dog\n", "a.csv")
    assert detect_format(path) == "table"


def test_quoted_pairs_are_read(write):
    pairs = open_source(write('"a b"\t"sea"\n"c"\t"old ""sea"""\n'))
    assert (pairs.ids, pairs.label_names) == (["a b", "c"], ['old "sea"', "sea"])
    assert open_source(write('"a"\tsea\nb\t"sky"\n')).label_names == ['"sky"', "sea"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a {} likes it a lot\tgood\n", "the ids of .* are sentences such as 'a 0 likes it a lot'"),
        ("ham\tgo on until point {}\n", "the column 'label' of .* holds sentences such as 'go on until point 0'"),
        ("x{}\tlabel {},elk\ny{}\tlabel {},bog\nz{}\telk;bog\n", "parts of cells such as 'label 0,elk' are labels"),
    ],
)
def test_unlikely_pairs_are_reported(write, line, message, caplog):
    open_source(write("".join(line.format(*[n] * 5) for n in range(4))))
    assert re.search(message, caplog.text)


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"PK\x03\x04rest", "is an archive or a spreadsheet; unpack it, or save it as CSV in UTF-8"),
        (b"SQLite format 3\0", "is a database; export its tags as CSV"),
        (b"\x93NUMPY\x01\0", "is an array of NumPy"),
        (b"ARROW1\0\0", "is a file of Arrow; write Parquet"),
        (b"\x80\x04\x95", "is a pickle, which is never read"),
    ],
)
def test_files_of_programs_are_refused_by_name(write, content, advice):
    with pytest.raises(InputError, match=advice):
        open_source(write(content))
