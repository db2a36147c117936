"""Recognising a collection by what it is."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import FORMATS, detect_format
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.records import FeatureTable, ItemList
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.rejects import Rejects

ARFF = "% made by hand\n\n@Relation d\n@attribute a numeric\n@attribute sky {0,1}\n@data\n1,1\n"
TEXTS = {
    "svmlight": ["2 3 2\n0 1:1\n1 2:1\n", "1,2 1:.5\n", "-1 1:1\n", " 3:1\n1 2:2\n", "# note\n1 2:2\n", "bad\n1 2:2\n"],
    "fasttext": ["__label__a some words\n", "words first __label__a\n"],
    "pairs": ["a\tsea\n", "id\ttag\n1\tsea\n", "1\t2\t-1\n"],
    "arff": [ARFF],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in TEXTS.items() for text in texts])
@pytest.mark.parametrize("packed", [False, True])
def test_text_is_recognised_by_content(tmp_path, kind, text, packed):
    (tmp_path / "data.xml").write_text('<labels><label name="sky"/></labels>')
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert detect_format(path) == kind
    assert isinstance(open_source(str(path)), FeatureTable)


def test_unlabelled_text_is_read_as_words(tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("blue boat\n\ngreen deer, bark\n")
    rows = open_source(path, labels_from="none")
    assert isinstance(rows, FeatureTable)
    assert (rows.ids, rows.label_names) == (["1", "3"], [])
    assert rows.feature_names == ["bark", "blue", "boat", "deer,", "green"]
    with pytest.raises(InputError, match="no format that wsabie reads"):
        open_source(path)


@pytest.mark.parametrize("content", [b"<html>words</html>", b" \n<a/>", b"words\0more", b"\x7fELF\x02\x01\0\0"])
def test_markup_and_programs_are_refused(tmp_path, content):
    (tmp_path / "new.txt").write_bytes(content)
    with pytest.raises(InputError, match="no format that wsabie reads"):
        open_source(tmp_path / "new.txt", labels_from="none")


@pytest.mark.parametrize("labels_from", ["auto", "none"])
@pytest.mark.parametrize("name", ["pipe", "pipe.png", "metadata.csv", "pipe.cr2"])
def test_pipe_is_refused_by_name(tmp_path, name, labels_from):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name} is a pipe or a device, but data are read twice; save them to a"):
        open_source(tmp_path / name, labels_from=labels_from)


def test_piped_standard_input_is_refused(tmp_path):
    reader, writer = os.pipe()
    try:
        with pytest.raises(InputError, match=rf"/dev/fd/{reader} is a pipe or a device"):
            open_source(f"/dev/fd/{reader}", labels_from="none")
    finally:
        os.close(reader)
        os.close(writer)


def test_folders_pictures_and_parquet_are_recognised(tmp_path, picture):
    file = picture(tmp_path / "pictures" / "dog" / "1.png")
    assert detect_format(tmp_path / "pictures") == "folder"
    assert isinstance(open_source(tmp_path / "pictures"), ItemList)
    assert detect_format(file) == "file"
    assert len(open_source(file, labels_from="none")) == 1
    (tmp_path / "pictures" / "metadata.csv").write_text("file_name,label\ndog/1.png,wolf\n")
    assert [p.labels for p in open_source(tmp_path / "pictures" / "metadata.csv")] == [("wolf",)]
    rows = FeatureTable(
        csr_matrix(np.eye(2, dtype=np.float32)), csr_matrix(np.eye(2, dtype=np.int8)), ["a", "b"], ["1", "2"]
    )
    write_parquet_rows(rows, tmp_path / "shards" / "1.parquet")
    (tmp_path / "shards" / "1.parquet").rename(tmp_path / "shards" / "0.parquet")
    assert detect_format(tmp_path / "shards") == detect_format(tmp_path / "shards" / "0.parquet") == "parquet"
    picture(tmp_path / "shards" / ".thumbs" / "1.png")
    assert isinstance(open_source(tmp_path / "shards"), FeatureTable)


LOOKED_FOR = "looked for " + ", ".join(form.title for form in FORMATS)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no file or folder {}; check the name"),
        (b"", "{} is empty; give a file that holds data"),
        (b"\n \n", "{} is empty; give a file that holds data"),
        (b"only prose\n", "{} has no format that wsabie reads: " + LOOKED_FOR + "; give one of these"),
        (b"id\tclass\t1 2 3\n", "{} has no format that wsabie reads: " + LOOKED_FOR + "; give one of these"),
        (b"\0\t\1", "{} has no format that wsabie reads: " + LOOKED_FOR + "; give one of these"),
        (b"<labels/>", "{} has no format that wsabie reads: " + LOOKED_FOR + "; of Mulan data give the .arff file"),
        (b"PAR1", "{} is damaged or not Parquet ("),
        (b"PAR1 and more, but no footer", "{} is damaged or not Parquet ("),
        (b"\x1f\x8b\x08\x00", "{} is damaged or cut off gzip ("),
    ],
)
def test_unreadable_data_give_one_sentence(tmp_path, content, sentence):
    path = tmp_path / "data"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        open_source(path)
    message = str(caught.value)
    assert message.startswith(sentence.format(path))
    assert "\n" not in message
    assert ("damaged" in sentence) or message == sentence.format(path)


def test_model_is_refused_as_data(tmp_path):
    Wsabie(dim=2, threads=1, epochs=1).fit(np.eye(2), ["red", "green"]).save(tmp_path / "m")
    with pytest.raises(InputError, match="m is a model; give the data"):
        open_source(tmp_path / "m")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_windows_encodings_are_read(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("\ufeff__label__élan word\n".encode(encoding))
    assert open_source(tmp_path / "a.txt").label_names == ["élan"]
    (tmp_path / "a.txt").write_bytes("\ufeff__label__élan word\n".encode(encoding)[:-1])
    with pytest.raises(InputError, match="is broken text in UTF-16; save it as UTF-8"):
        open_source(tmp_path / "a.txt")


def test_empty_folder_and_invalid_choices_are_refused(tmp_path):
    with pytest.raises(InputError, match="is empty; give a folder of pictures, sounds, documents or Parquet files"):
        open_source(tmp_path)
    (tmp_path / "notes.txt").write_text("1 1:1\n")
    with pytest.raises(InputError, match="holds no pictures"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="labels_from is 'magic' but has to be one of auto, folders"):
        open_source(tmp_path, labels_from="magic")
    with pytest.raises(InputError, match="no column of splits to choose 'train' from"):
        open_source(tmp_path / "notes.txt", split="train")
    with pytest.raises(InputError, match="check the name"):
        open_source("no\0path")


def test_unsupported_picture_is_refused(tmp_path):
    (tmp_path / "a.JXL").write_bytes(b"\0\0\0\x0cJXL ")
    with pytest.raises(InputError, match=r"a\.JXL is a picture of a format .* not supported; convert it to JPEG"):
        open_source(tmp_path / "a.JXL")


def write_table_beside(folder, **columns):
    pq.write_table(pa.table(columns), folder / "table.parquet")


@pytest.mark.parametrize(
    "columns",
    [
        {"features": [[1.0, 2.0]], "labels": [["sea"]], "path": ["dog/1.png"]},
        {"image": [b"pixels"], "labels": [["sea"]]},
        {"path": ["dog/1.png"], "score": [0.5]},
        {"anything": [1]},
    ],
)
@pytest.mark.parametrize("options", [{}, {"labels_from": "none"}, {"label_column": "mine"}])
def test_pictures_beside_parquet_are_reported(tmp_path, picture, columns, options):
    write_table_beside(tmp_path, **columns)
    picture(tmp_path / "dog" / "1.png")
    with pytest.raises(InputError) as caught:
        open_source(tmp_path, **options)
    assert str(caught.value) == (
        f"{tmp_path} holds both Parquet (table.parquet) and pictures (dog/1.png), and nothing says which counts; give "
        "the Parquet file itself, or move one of the two to another folder"
    )


def test_table_of_labelled_paths_labels_the_pictures_beside(tmp_path, picture):
    for name in ("dog/1.png", "dog/2.png", "3.png"):
        picture(tmp_path / name)
    (tmp_path / "4.psd").write_bytes(b"content")
    write_table_beside(tmp_path, file_name=["./dog/1.png", "3.png", "gone.png"], labels=[["wolf"], [], ["elk"]])
    rejects = Rejects()
    assert [p.labels for p in open_source(tmp_path, rejects=rejects)] == [("wolf",)]
    assert sorted(rejects.listed) == [
        (f"{tmp_path}/table.parquet row 2", "picture without labels", "3.png"),
        (f"{tmp_path}/table.parquet row 3", "labels without a picture", "gone.png"),
        ("4.psd", "unsupported picture format", "convert it to JPEG or PNG"),
        ("dog/2.png", "picture without labels", "no row in the table"),
    ]
    assert len(open_source(tmp_path / "table.parquet")) == 1


def test_options_reach_the_readers(tmp_path):
    (tmp_path / "a").write_text("1 1:-1\n1 2:1\n")
    rows = open_source(tmp_path / "a", counts=True, n_features=7)
    assert rows.X.shape == (1, 7)
    (tmp_path / "b").write_text("__label__a x x y\n")
    assert open_source(tmp_path / "b", min_count=2).feature_names == ["x"]


pieces = st.sampled_from(
    ["__label__a ", "1:2 ", "3 ", "\t", "\n", "@data", "@relation x\n", "a", "PAR1", "é", "{}", ","]
)


@settings(deadline=None, max_examples=200)
@given(content=st.one_of(st.binary(max_size=50), st.lists(pieces, max_size=12).map(lambda p: "".join(p).encode())))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    path: Path = tmp_path_factory.mktemp("any") / "data"
    path.write_bytes(content)
    source = result_or_sentence(open_source, path)
    if source is not None:
        assert isinstance(source, FeatureTable)
        assert len(source) == source.X.shape[0] > 0


def test_recognition_imports_no_heavy_module():
    heavy = ("numba", "scipy", "pyarrow", "PIL")
    code = f"import sys, wsabie.io.data_sources\nprint([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
