"""The labels of Corel5k, ESP Game and IAPR TC-12 as LEAR published them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.lear import read_lear
from wsabie.io.format_detection import detect_format
from wsabie.storage.rejects import Rejects

FLAGS = [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def write_vectors(flags):
    return b"".join(np.array([len(row), *row], "<i2").tobytes() for row in flags)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "iaprtc12_dictionary.txt").write_text("sky\nadult\nboy\n")
    (tmp_path / "iaprtc12_train_list.txt").write_text("01/1000\n01/1001\n02/2000\n")
    (tmp_path / "iaprtc12_train_annot.hvecs").write_bytes(write_vectors(FLAGS))
    (tmp_path / "iaprtc12_test_list.txt").write_text("03/3000\n")
    (tmp_path / "iaprtc12_test_annot.hvecs").write_bytes(write_vectors([[0, 0, 1]]))
    return tmp_path


@pytest.mark.parametrize("name", ["iaprtc12_train_list.txt", "iaprtc12_train_annot.hvecs"])
def test_list_file_selects_one_side(folder, name):
    rejects = Rejects()
    assert detect_format(folder / name) == "lear"
    rows = open_source(folder / name, rejects=rejects)
    assert rows.ids == rows.feature_names == ["01/1000", "02/2000"]
    assert rows.label_names == ["adult", "boy", "sky"]
    assert rows.Y.toarray().tolist() == [[0, 1, 1], [1, 0, 0]]
    assert rejects.listed == [(f"{folder / 'iaprtc12_train_annot.hvecs'}:2", "picture without labels", "01/1001")]
    assert open_source(folder / "iaprtc12_test_list.txt").ids == ["03/3000"]


@pytest.mark.parametrize(("ending", "between"), [("txt", " "), ("csv", ",")])
def test_annotations_are_read_as_text(folder, ending, between):
    (folder / "iaprtc12_train_annot.hvecs").unlink()
    (folder / f"iaprtc12_train_annot.{ending}").write_text("\n".join(between.join(map(str, row)) for row in FLAGS))
    assert open_source(folder / "iaprtc12_train_list.txt").Y.toarray().tolist() == [[0, 1, 1], [1, 0, 0]]


def test_folder_with_both_sides_is_refused(folder):
    with pytest.raises(InputError, match=r"holds the sides of a split; give one of its lists, such as .*train_list"):
        open_source(folder)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("iaprtc12_train_list.txt", b"01/1000\n", r"annotates 3 pictures but iaprtc12_train_list\.txt names 1"),
        ("iaprtc12_train_annot.hvecs", write_vectors(FLAGS)[:-1], r"vector 3 of .* is not a list of 3 flags"),
        ("iaprtc12_train_annot.hvecs", write_vectors([[1, 2, 0]]), r"vector 1 of .* is not a list of 3 flags"),
        ("iaprtc12_dictionary.txt", b"sky\nadult\n", r"vector 1 of .* is not a list of 2 flags; give the dictionary"),
        ("iaprtc12_train_annot.hvecs", None, r"there is no iaprtc12_train_annot\.hvecs beside"),
        ("iaprtc12_train_annot.hvecs", b"", "annotates 0 pictures"),
    ],
)
def test_inconsistent_files_give_one_sentence(folder, name, content, sentence):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        open_source(folder / "iaprtc12_train_list.txt")


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=40))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    folder = tmp_path_factory.mktemp("any")
    (folder / "a_dictionary.txt").write_text("sky\n")
    (folder / "a_train_list.txt").write_text("1\n")
    (folder / "a_train_annot.hvecs").write_bytes(content)
    rows = result_or_sentence(read_lear, folder / "a_train_list.txt", rejects=Rejects())
    assert rows is None or rows.ids == ["1"]
