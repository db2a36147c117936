"""Image-level labels of Open Images."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.open_images import read_open_images
from wsabie.io.format_detection import detect_format
from wsabie.storage.rejects import Rejects

HEAD = "ImageID,Source,LabelName,Confidence\n"
TABLE = HEAD + (
    "000002b66c9c498e,verification,/m/014sv8,1\n"
    "000002b66c9c498e,verification,/m/014j1m,0\n"
    "000026e7ee790996,crowdsource-verification,/m/07j7r,1\n"
    "000002b66c9c498e,machine,/m/07j7r,0.6\n"
)
NAMES = 'LabelName,DisplayName\n/m/014sv8,Human eye\n/m/014j1m,Apple\n/m/0k8,Apple\n/m/07j7r,"Tree, big"\n'


def labels(rows):
    entries = rows.Y.tocoo()
    return {(rows.ids[r], rows.label_names[c], v) for r, c, v in zip(*entries.coords, entries.data, strict=True)}


def test_confidence_0_is_a_negative_and_names_are_looked_up(tmp_path):
    path = tmp_path / "train-annotations-human-imagelabels.csv"
    path.write_text(TABLE)
    assert detect_format(path) == "open-images"
    assert labels(open_source(path)) == {
        ("000002b66c9c498e", "/m/014sv8", 1),
        ("000002b66c9c498e", "/m/014j1m", -1),
        ("000002b66c9c498e", "/m/07j7r", 1),
        ("000026e7ee790996", "/m/07j7r", 1),
    }
    (tmp_path / "oidv7-class-descriptions.csv").write_text(NAMES)
    rows = open_source(path)
    assert rows.label_names == ["Apple (/m/014j1m)", "Human eye", "Tree, big"]  # two labels are called Apple
    assert rows.X.toarray().tolist() == [[1, 0], [0, 1]]
    assert rows.ids == rows.feature_names == ["000002b66c9c498e", "000026e7ee790996"]


def test_columns_are_found_by_name(tmp_path):
    (tmp_path / "boxes.csv").write_text("ImageID,LabelName,Confidence,XMin\na,/m/1,1,0.2\na,/m/1,1,0.3\n")
    assert labels(open_source(tmp_path / "boxes.csv")) == {("a", "/m/1", 1)}


def test_broken_lines_are_listed(tmp_path):
    path = tmp_path / "t.csv"
    bad = "a,v,/m/1\na,v,/m/1,x\na,v,/m/1,2\na,v,/m/1,nan\n,v,/m/1,1\na,v,,1\n"
    path.write_bytes((TABLE + bad).encode() + b"a,v,\xff,1\n000026e7ee790996,v,/m/07j7r,0\n")
    rejects = Rejects()
    rows = read_open_images(path, rejects=rejects)
    assert rejects.counts == {
        "wrong number of cells": 1,
        "malformed confidence": 1,
        "confidence that is not between 0 and 1": 2,
        "pair without an id": 1,
        "empty label name": 1,
        "text that is not UTF-8": 1,
        "label both stated and denied": 1,
    }
    assert rejects.listed[0][0].endswith("t.csv:6")
    assert rejects.listed[-1] == (f"{path} id 000026e7ee790996", "label both stated and denied", "/m/07j7r")
    assert ("000026e7ee790996", "/m/07j7r", 1) not in labels(rows)
    with pytest.raises(InputError, match=r"t\.csv:6: wrong number of cells"):
        read_open_images(path, rejects=Rejects(strict=True))


def test_other_tables_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("ImageID,Source\na,b\n")
    with pytest.raises(InputError, match=r"t\.csv:1 has no column 'LabelName'"):
        read_open_images(tmp_path / "t.csv", rejects=Rejects())
    (tmp_path / "t.csv").write_text(HEAD)
    with pytest.raises(InputError, match="holds no pairs"):
        open_source(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "class-descriptions.csv").write_text("/m/1,a\n/m/2\n")
    with pytest.raises(InputError, match=r"class-descriptions\.csv:2 has no name behind the code"):
        open_source(tmp_path / "t.csv")


def test_memory_is_bounded_by_the_result(tmp_path):
    """The text is 4.8 MB; 8 bytes a line, copies of them for sorting, and the result are held, never the lines."""
    path, n = tmp_path / "t.csv", 120_000
    path.write_text(HEAD + "".join(f"{i // 120:016x},verification,/m/{i % 120:05d},1\n" for i in range(n)))
    read_open_images(path, rejects=Rejects())  # imports
    tracemalloc.start()
    rows = read_open_images(path, rejects=Rejects())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.Y.nnz == n
    assert peak < 55 * n


@settings(deadline=None)
@given(text=st.one_of(st.binary(max_size=60), st.text('ab,"\n10./ ', max_size=60).map(str.encode)))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, text):
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_bytes(HEAD.encode() + text)
    rows = result_or_sentence(read_open_images, path, rejects=Rejects())
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0
