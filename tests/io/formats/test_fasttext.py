"""fastText's labelled text."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.alignment import align_table
from wsabie.io.formats.fasttext import read_fasttext
from wsabie.storage.rejects import Rejects

TEXT = "__label__sea __label__old_town the sea the town\n\n__label__sea the\tsea\nno label here\n__label__moon\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="d.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_small_file_is_read_exactly(write):
    rows = read_fasttext(write(TEXT), rejects=Rejects())
    assert rows.feature_names == ["the", "sea", "here", "label", "no", "town"]
    assert rows.X.toarray().tolist() == [[2, 1, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0] * 6]
    assert rows.label_names == ["moon", "old_town", "sea"]
    assert rows.Y.toarray().tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert rows.ids == ["1", "3", "4", "5"]
    assert rows.counts


def test_rare_words_get_no_column(write):
    rows = read_fasttext(write(TEXT), min_count=2, rejects=Rejects())
    assert rows.feature_names == ["the", "sea"]
    assert rows.X.toarray().tolist() == [[2, 1], [1, 1], [0, 0], [0, 0]]
    with pytest.raises(InputError, match="no word that occurs 9 times"):
        read_fasttext(write(TEXT), min_count=9, rejects=Rejects())
    with pytest.raises(InputError, match="has no words beside its labels"):
        read_fasttext(write("__label__sea\n"), rejects=Rejects())


def test_words_unknown_to_the_model_are_dropped(write):
    names = ["sea", "sky", "the"]
    aligned = align_table(read_fasttext(write(TEXT), rejects=Rejects()), feature_names=names)
    assert aligned.rows.X.toarray().tolist() == [[1, 0, 2], [1, 0, 1], [0] * 3, [0] * 3]
    assert aligned.rows.feature_names == names
    assert aligned.unknown_features == 4


def test_lines_that_are_not_utf8_are_listed(write):
    rejects = Rejects()
    rows = read_fasttext(write(b"__label__a \xff\n__label__b word\n"), rejects=rejects)
    assert rows.ids == ["2"]
    assert rows.label_names == ["b"]
    assert rejects.counts == {"text that is not UTF-8": 1}
    with pytest.raises(InputError, match=r"d\.txt:1: text that is not UTF-8"):
        read_fasttext(write(b"__label__a \xff\n"), rejects=Rejects(strict=True))


def test_label_without_a_name_is_listed(write):
    rejects = Rejects()
    rows = read_fasttext(write("__label__a x\n__label__ __label__b y\n__label__ z\nno label\n"), rejects=rejects)
    assert rows.ids == ["1", "4"]
    assert rows.label_names == ["a"]
    assert [why for _, *why in rejects.listed] == [
        ["empty label name", "b'__label__ __label__b y'"],
        ["empty label name", "b'__label__ z'"],
    ]


def test_gzip_is_read_and_empty_files_are_refused(write):
    assert len(read_fasttext(write(gzip.compress(TEXT.encode())), rejects=Rejects())) == 4
    with pytest.raises(InputError, match="holds no rows"):
        read_fasttext(write("\n \n"), rejects=Rejects())


names = st.text("abcé犬_", min_size=1, max_size=4)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(st.sets(names), st.lists(names, min_size=1)), min_size=1, max_size=6))
def test_valid_files_are_read_exactly(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("fasttext") / "d.txt"
    path.write_text("\n".join(" ".join([f"__label__{n}" for n in sorted(ls)] + ws) for ls, ws in rows), "utf-8")
    got = read_fasttext(path, rejects=Rejects())
    assert len(got) == len(rows)
    for i, (labels, words) in enumerate(rows):
        assert {got.label_names[j] for j in got.Y[i].indices} == labels
        counts = dict(zip(got.X[i].indices.tolist(), got.X[i].data.tolist(), strict=True))
        assert {got.feature_names[j]: n for j, n in counts.items()} == {w: words.count(w) for w in words}
    totals = got.X.sum(axis=0).A1
    assert (totals[:-1] >= totals[1:]).all()


@settings(deadline=None)
@given(text=st.one_of(st.binary(max_size=60), st.text("_label ab\n\t\0", max_size=60).map(str.encode)))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, text):
    path = tmp_path_factory.mktemp("any") / "d.txt"
    path.write_bytes(text)
    rows = result_or_sentence(read_fasttext, path, rejects=Rejects())
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0
