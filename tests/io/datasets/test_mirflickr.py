"""MIRFlickr's table of tags."""

import csv
from ast import literal_eval

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.mirflickr import parse_python_list, read_mirflickr
from wsabie.io.format_detection import detect_format
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.label_names import normalise_label_name

TABLE = """0,1,./mirflickr/im1.jpg,"['red', ""l'eau""]"
1,10,./mirflickr/im10.jpg,[]
2,100,./mirflickr/im100.jpg,['red']
"""


def test_table_lists_tags_of_pictures(tmp_path):
    path, rejects = tmp_path / "kv.csv", Rejects()
    path.write_text(TABLE)
    assert detect_format(path) == "mirflickr"
    rows = open_source(path, rejects=rejects)
    assert isinstance(rows, FeatureTable)
    assert rows.ids == rows.feature_names == ["mirflickr/im1.jpg", "mirflickr/im100.jpg"]
    assert (rows.label_names, rows.Y.toarray().tolist()) == (["l'eau", "red"], [[1, 1], [0, 1]])
    assert rejects.listed == [(f"{path}:2", "picture without labels", "mirflickr/im10.jpg")]


def test_pictures_at_the_listed_paths_are_the_source(tmp_path, picture):
    (tmp_path / "kv.csv").write_text(TABLE)
    picture(tmp_path / "mirflickr" / "im1.jpg")
    rejects = Rejects()
    source = open_source(tmp_path / "kv.csv", rejects=rejects)
    assert isinstance(source, ItemList)
    assert [(p.id, p.labels) for p in source] == [("mirflickr/im1.jpg", ("l'eau", "red"))]
    assert rejects.counts == {"picture without labels": 1, "labels without a picture": 1}


def test_broken_lines_are_listed(tmp_path):
    path, rejects = tmp_path / "kv.csv", Rejects()
    bad = (
        "3,1,./mirflickr/im1.jpg,['red']\n4,2,im2.jpg\n5,3,im3.jpg,{}\n6,4,../im4.jpg,['a']\n7,5,,['a']\n"
        "8,6,im6.jpg,\"['a\n9,7,im7.jpg,['\\ud800']\n"
    )
    path.write_bytes((TABLE + bad).encode() + b"\xff,1,im.jpg,['a']\n")
    assert len(read_mirflickr(path, rejects=rejects)) == 2
    assert rejects.counts == {
        "picture without labels": 1,
        "duplicate id": 1,
        "wrong number of cells": 1,
        "tags that are not a list of texts": 1,
        "path that leads out of the folder": 1,
        "row without a file name": 1,
        "malformed CSV": 1,
        "label that is not valid text": 1,
        "text that is not UTF-8": 1,
    }
    with pytest.raises(InputError, match=r"kv\.csv:2: picture without labels"):
        read_mirflickr(path, rejects=Rejects(strict=True))


@pytest.mark.parametrize(
    "text", ["", "[", "['a' 'b']", "[a]", "['a'", "['a'] + ['b']", "[f'a']", "[1]", "['a'],", "['\\U99999999']"]
)
def test_other_python_expressions_are_refused(text):
    with pytest.raises(RowError):
        parse_python_list(text)


@settings(deadline=None)
@given(st.lists(st.text(max_size=6), max_size=4))
def test_lists_are_parsed_as_python_wrote_them(texts):
    assert parse_python_list(repr(texts)) == texts


@settings(deadline=None)
@given(text=st.one_of(st.binary(max_size=60), st.text("1,'[]a\\\"\n", max_size=60).map(str.encode)))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, text):
    path = tmp_path_factory.mktemp("any") / "kv.csv"
    path.write_bytes(text)
    rows = result_or_sentence(read_mirflickr, path, rejects=Rejects())
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0


@pytest.mark.data
def test_mirflickr_25k_is_read(data):
    path, rejects = data / "mirflickr25k_tags" / "kv_dataset2.csv", Rejects()
    rows = open_source(path, rejects=rejects)
    with path.open(encoding="utf-8", newline="") as stream:
        tags = {f"mirflickr/im{n}.jpg": literal_eval(texts) for _, n, _, texts in csv.reader(stream)}
    assert rejects.counts == {"picture without labels": 2_128}
    assert rows.X.nnz == len(rows) == 25_000 - 2_128
    assert rows.Y.nnz == len({(name, normalise_label_name(tag)) for name, texts in tags.items() for tag in texts})
    last = rows.Y[-1].indices
    assert {rows.label_names[i] for i in last} == {normalise_label_name(tag) for tag in tags[rows.ids[-1]]}
