"""Documents in every form, what is wrong with a line and where, and that nothing is held between passes."""

import gzip
import json
import logging
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import detect_format
from wsabie.io.formats import documents
from wsabie.io.records import FeatureTable, ItemList, ItemStream
from wsabie.storage.rejects import Rejects

ROWS = [
    {"id": "a", "text": "the sea", "labels": ["water", "blue"], "group": "g", "time": "2024-05-31"},
    {"id": "b", "text": "the café", "labels": ["town"]},
    {"id": "c", "text": "no label"},
]
EXPECTED = [("a", "the sea", ("water", "blue")), ("b", "the café", ("town",)), ("c", "no label", ())]


def write_file(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def join_json_lines(*rows):
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def list_documents(source):
    return [(item.id, item.content.decode(), item.labels) for item in source]


def write_every_format(folder):
    yield write_file(folder / "a.jsonl", join_json_lines(*ROWS))
    yield write_file(folder / "a.gz", gzip.compress(join_json_lines(*ROWS).encode()))
    yield write_file(folder / "a.tsv", "id\ttext\tlabels\na\tthe sea\twater;blue\nb\tthe café\ttown\nc\tno label\t\n")
    yield write_file(folder / "a.csv", 'id,text,tags\r\na,the sea,water|blue\r\nb,"the café",town\r\nc,no label,\r\n')
    yield write_file(folder / "b.csv", "id;text;labels\na;the sea;water,blue\nb;the café;town\nc;no label;\n")
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "a.parquet")
    yield folder / "a.parquet"


def test_every_format_gives_the_same_documents(tmp_path):
    for path in write_every_format(tmp_path):
        source = open_source(path)
        assert isinstance(source, ItemStream)
        assert (source.modality, len(source)) == ("documents", 3)
        assert list_documents(source) == list_documents(source) == EXPECTED
        assert [labels for _, _, labels in list_documents(open_source(path, labels_from="none"))] == [()] * 3
    first = next(iter(open_source(tmp_path / "a.jsonl")))
    assert (first.group, first.time) == ("g", "2024-05-31")


def test_documents_without_ids_are_numbered(tmp_path):
    path = write_file(tmp_path / "a", join_json_lines({"text": "one"}, "", {"text": "two"}))
    assert [item.id for item in open_source(path)] == ["1", "3"]
    pq.write_table(pa.table({"text": ["one", "two"]}), tmp_path / "a.parquet")
    assert [item.id for item in open_source(tmp_path / "a.parquet")] == ["1", "2"]
    assert list_documents(open_source(write_file(tmp_path / "b", "text\none\ntwo, three\n"), labels_from="none"))[
        0
    ] == ("2", "one", ())


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        ({"label": "a;b"}, [("a;b",)]),
        ({"tags": "a, b"}, [("a", "b")]),
        ({"keywords": "a|b", "other": "c"}, [("a", "b")]),
        ({"labels": [1, 2], "tag": "c"}, [("1", "2")]),
        ({"topic": "x"}, [()]),
    ],
)
def test_label_columns_are_those_of_metadata(tmp_path, columns, labels):
    path = write_file(tmp_path / "a.jsonl", join_json_lines({"text": "words", **columns}))
    assert [item.labels for item in open_source(path)] == labels
    pq.write_table(pa.Table.from_pylist([{"text": "words", **columns}]), tmp_path / "a.parquet")
    assert [item.labels for item in open_source(tmp_path / "a.parquet")] == labels


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("topic.csv", "id,body,topic\n1,waves,sea\n"),
        ("topic.csv", "id;body;topic\n1;waves;sea\n"),
        ("topic.jsonl", '{"id": 1, "body": "waves", "topic": "sea"}\n'),
    ],
)
def test_unknown_columns_error_names_the_expected_ones(tmp_path, name, content):
    with pytest.raises(InputError) as refused:
        open_source(write_file(tmp_path / name, content))
    assert str(refused.value) == (
        f"{tmp_path / name} has the columns 'body', 'id', 'topic' and none called text; rename the column of "
        "texts to text (that of file names to file_name), and that of labels to labels"
    )


@pytest.mark.parametrize("name", ["topic.csv", "topic.jsonl", "topic.parquet"])
def test_documents_without_a_label_column_are_reported(tmp_path, name, caplog):
    rows = [{"text": "waves", "topic": "sea"}, {"text": "dunes", "topic": "sand"}]
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    else:
        write_file(
            tmp_path / name, join_json_lines(*rows) if name.endswith("l") else "text,topic\nwaves,sea\ndunes,sand\n"
        )
    caplog.set_level("INFO", "wsabie")
    assert len(open_source(tmp_path / name, labels_from="none")) == 2
    assert caplog.text == ""
    assert [item.labels for item in open_source(tmp_path / name)] == [(), ()]
    assert (
        f"{tmp_path / name} has no column of labels, which would be called labels, label, tags, tag or keywords "
        "(it has 'text', 'topic')"
    ) in caplog.text


def test_label_column_and_split_are_selected_by_name(tmp_path):
    rows = [{"text": "one", "topic": "x", "split": "train"}, {"text": "two", "topic": "y", "split": "test"}]
    path = write_file(tmp_path / "a.jsonl", join_json_lines(*rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for file in (path, tmp_path / "a.parquet"):
        assert list_documents(open_source(file, label_column="topic", split="test")) == [("2", "two", ("y",))]
        with pytest.raises(InputError, match="has no column 'theme'"):
            open_source(file, label_column="theme")


def test_bad_lines_are_counted_and_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 40)
    monkeypatch.setattr(documents, "_MAX_LINE_BYTES", 100)
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        join_json_lines({"text": "good"}, '{"text": "cut', {"text": 7}, {"title": "no text"}, {"text": " "}).encode()
        + b'{"text": "caf\xe9"}\n'
        + join_json_lines({"text": "x" * 41}, {"text": "x" * 200}, [1], {"id": "1", "text": "again"}).encode()
        + join_json_lines(
            {"text": "half \ud83d"}, {"text": "last", "id": ["no"]}, "[" * 90, {"text": "good too"}
        ).encode()
    )
    rejects = Rejects()
    assert [item.id for item in open_source(path, rejects=rejects)] == ["1", "14"]
    reasons = {where.rpartition(":")[2]: reason for where, reason, _ in rejects.listed}
    too_long = "document of more than 16 MiB"
    assert reasons == {
        "2": "malformed JSON", "3": "document without text", "4": "document without text", "5": "document without text",
        "6": "not UTF-8", "7": too_long, "8": too_long, "9": "line that is not a JSON object", "10": "duplicate id",
        "11": "not UTF-8, convert the file", "12": "cell that is not a single value", "13": "malformed JSON",
    }  # fmt: skip
    assert len(rejects) == len(reasons)
    with pytest.raises(InputError, match=r"a\.jsonl:2: malformed JSON"):
        open_source(path, rejects=Rejects(strict=True))


def test_bad_table_rows_are_listed(tmp_path):
    table = b'id\ttext\na\tgood\nb\nc\tcaf\xe9\nd\tone\ttwo\na\tagain\ne\t"a quote is a letter\n'
    rejects = Rejects()
    source = open_source(write_file(tmp_path / "a.tsv", table), rejects=rejects)
    assert list_documents(source) == [("a", "good", ()), ("e", '"a quote is a letter', ())]
    assert [(where.rpartition(":")[2], reason) for where, reason, _ in rejects.listed] == [
        ("3", "wrong number of cells"), ("4", "not UTF-8, convert the file"), ("5", "wrong number of cells"),
        ("6", "duplicate id"),
    ]  # fmt: skip
    long = "x" * 200_000  # more than Python's limit on the cells of CSV
    source = open_source(write_file(tmp_path / "a.csv", f'id,text\n1,"two\nlines, {long}"\n2,next\n'))
    assert [(name, len(text)) for name, text, _ in list_documents(source)] == [("1", 200_011), ("2", 4)]
    with pytest.raises(InputError, match=r"a\.csv:2 begins a row of malformed CSV"):
        open_source(write_file(tmp_path / "a.csv", 'id,text\n1,"never closed\n'))
    with pytest.raises(InputError, match="no documents are left"):
        open_source(write_file(tmp_path / "a.csv", "id,text\n1,\n"))


def test_labels_of_mixed_types_are_refused(tmp_path):
    path = write_file(tmp_path / "a.jsonl", join_json_lines({"text": "a", "label": 1}, {"text": "b", "label": "one"}))
    with pytest.raises(InputError, match=r"a\.jsonl:2: column 'label' holds the text 'one' but the number 1"):
        open_source(path)


def test_pictures_and_rows_are_not_taken_for_documents(tmp_path, picture):
    picture(tmp_path / "1.png")
    write_file(tmp_path / "metadata.jsonl", join_json_lines({"file_name": "1.png", "text": "a label"}))
    items = list(open_source(tmp_path))
    assert [(item.id, item.labels) for item in items] == [("1.png", ("a label",))]
    table = pa.table({"image": [(tmp_path / "1.png").read_bytes()], "text": ["a label"]})
    pq.write_table(table, tmp_path.parent / "pictures.parquet")
    source = open_source(tmp_path.parent / "pictures.parquet")
    assert (source.modality, next(iter(source)).labels) == ("pictures", ("a label",))
    pq.write_table(pa.table({"features": [[1.0, 2.0]], "text": ["a label"]}), tmp_path.parent / "rows.parquet")
    rows = open_source(tmp_path.parent / "rows.parquet")
    assert isinstance(rows, FeatureTable)
    assert rows.label_names == ["a label"]
    pq.write_table(pa.table({"text": [1, 2]}), tmp_path.parent / "numbers.parquet")
    with pytest.raises(InputError, match=r"neither pictures .* nor texts \(text\)"):
        open_source(tmp_path.parent / "numbers.parquet")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('{"text": "a"}\n', "json"),
        ('broken\n{"id": 1, "text": "__label__a"}\n', "json"),
        ("id\ttext\n1\ta\n", "table"),
        ("text,label\n", "table"),
        ("id\ttexts\n1\ta\n", "pairs"),
        ("text\ttext\na\tb\n", "pairs"),
        ("a text, text, with commas\n", "fasttext"),
        ('{"title": "a"}\n', "fasttext"),
    ],
)
def test_text_formats_are_recognised(tmp_path, content, kind):
    assert detect_format(write_file(tmp_path / "a", content), plain_text=True) == kind


def test_text_folder_is_read(tmp_path):
    for name, text in {"sea/1.txt": "waves", "sea/deep/2.md": "whales", "top.txt": "no label", "a.pdf": "%PDF"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    rejects = Rejects()
    source = open_source(tmp_path, rejects=rejects)
    assert isinstance(source, ItemList)
    assert source.modality == "documents"
    labels = {item.id: item.labels for item in source}
    assert labels == {"sea/1.txt": ("sea",), "sea/deep/2.md": ("sea", "deep"), "top.txt": ()}
    assert rejects.listed == [("a.pdf", "unsupported document format", "convert it to plain text")]
    (tmp_path / "metadata.csv").write_text("file_name,labels\nsea/1.txt,water;waves\n")
    assert [(item.id, item.labels) for item in open_source(tmp_path)] == [("sea/1.txt", ("water", "waves"))]


def test_text_beside_pictures_is_ignored(tmp_path, picture):
    picture(tmp_path / "sea" / "1.png")
    for number in range(3):
        (tmp_path / "sea" / f"{number}.txt").write_text("a caption")
    assert [item.id for item in open_source(tmp_path)] == ["sea/1.png"]


def test_text_file_is_one_document_on_request(tmp_path):
    note = write_file(tmp_path / "note.txt", "1 1:2 looks like a row\n")
    (item,) = open_source(note, labels_from="none", modality="documents")
    assert (item.id, item.content, item.labels) == ("note.txt", note, ())
    assert detect_format(note) == "svmlight"
    assert detect_format(write_file(tmp_path / "a.jsonl", '{"text": "a"}\n'), modality="documents") == "json"
    with pytest.raises(InputError, match="is a document of a format that is not supported; convert it to plain text"):
        open_source(write_file(tmp_path / "a.pdf", "%PDF"), modality="documents")
    with pytest.raises(InputError, match="no format that wsabie reads"):
        open_source(write_file(tmp_path / "a.bin", b"\0\1"), modality="documents")


def test_pass_holds_neither_texts_nor_ids(tmp_path):
    row = {"text": "x" * 1000, "labels": ["a", "b"]}
    path = write_file(tmp_path / "a.jsonl", join_json_lines(*({**row, "id": f"note {i:06d}"} for i in range(5000))))
    source = open_source(path)
    tracemalloc.start()
    assert sum(len(item.content) for item in source) == 5_000_000
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@settings(max_examples=100)
@given(
    content=st.binary(max_size=60)
    | st.lists(st.sampled_from(['{"text": "a"}', '{"text":', "text\tid", "a\tb", '"', "\n", "\r", ",", "é"])).map(
        lambda parts: "".join(parts).encode()
    )
)
def test_any_bytes_give_documents_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    for name, prefix in (("a.jsonl", b'{"text": "x"}\n'), ("a.tsv", b"id\ttext\n"), ("a.csv", b"id,text\n")):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(prefix + content)
        source = result_or_sentence(open_source, path)
        if source is not None:
            assert len(list(source)) == len(source)


@pytest.mark.parametrize(
    "content",
    [
        '"waves\tand salt"\t<http://y/p1> <http://y/p2>\r\na dog\thttp://y/p1\r\n',
        "waves and salt\thttp://y/p1\thttp://y/p2\na dog\t<http://y/p1>\n",
        "text,subject_uris\nwaves and salt,<http://y/p1> http://y/p2\na dog,http://y/p1\n",
        '{"text": "waves", "subjects": [{"uri": "http://y/p1"}, {"uri": "http://y/p2"}]}\n'
        '{"text": "a dog", "subjects": [{"uri": "http://y/p1"}]}\n',
    ],
)
def test_annif_subjects_are_read_in_every_form(tmp_path, content, caplog):
    source = open_source(write_file(tmp_path / "a.tsv", content.encode()), rejects=(rejects := Rejects()))
    assert [item.labels for item in source] == [("http://y/p1", "http://y/p2"), ("http://y/p1",)]
    assert not rejects.listed
    assert not caplog.records


@pytest.mark.parametrize(
    "content",
    [
        "sep=;\r\nText;Labels;;\r\nwaves;sea;;\r\na dog;dog;;\r\n",
        ",text,labels\n0,waves,sea\n1,a dog,dog\n",
        "Unnamed: 0,text,labels\n0,waves,sea\n1,a dog,dog\n",
        'text\tlabels\n"waves"\tsea\n"a dog"\t"dog"\n',
        '{" Text": "waves", "LABELS": ["sea"]}\n{"Text": "a dog", "Labels": "dog"}\n',
    ],
)
def test_tables_of_common_programs_are_read(tmp_path, content):
    source = open_source(write_file(tmp_path / "a", content.encode()), rejects=(rejects := Rejects()))
    assert [(item.content, item.labels) for item in source] == [(b"waves", ("sea",)), (b"a dog", ("dog",))]
    assert not rejects.listed


def test_a_title_column_is_reported_as_unread(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="wsabie"):
        open_source(write_file(tmp_path / "a.csv", "Title,text,labels\nWaves,salt,sea\n"))
        open_source(write_file(tmp_path / "a.csv", "title,text\nsea,salt\n"), label_column="title")
    (record,) = caplog.records
    assert "a.csv: the column 'Title' is not read; to use it, put each title before" in record.getMessage()


@pytest.mark.parametrize("name", ["new.csv", "new.tsv"])
def test_a_table_without_a_column_of_texts_is_not_one_document(tmp_path, name):
    table = write_file(tmp_path / name, "id,abstract\n1,waves\n2,dunes\n")
    with pytest.raises(InputError, match="none called text"):
        open_source(table, labels_from="none", modality="documents")


def test_other_encoding_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"for not UTF-8, convert the file \(for instance with iconv\)"):
        open_source(write_file(tmp_path / "a.csv", "text,labels\ncafé,sea\n".encode("latin-1")))


def test_wrapped_json_rows_are_refused_with_their_key(tmp_path):
    with pytest.raises(InputError, match=r"for document without text \(it has 'data'\)"):
        open_source(write_file(tmp_path / "a.json", '{"data": [{"text": "waves", "labels": ["sea"]}]}'))
