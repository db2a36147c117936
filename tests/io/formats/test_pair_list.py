"""Pair lists."""

import csv
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.cli.inputs import read_label_file
from wsabie.core.errors import InputError
from wsabie.io.alignment import align_table
from wsabie.io.formats.pair_list import read_excluded_pairs, read_id_pairs, read_pairs, write_id_pairs
from wsabie.io.records import FeatureTable, ItemList
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.io.vocabulary.knowledge_graphs import read_label_table
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name


@pytest.fixture
def write(tmp_path):
    def write(text, name="pairs.tsv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_every_id_gets_its_own_feature(write):
    rows = read_pairs(write("b\tsea\nb\told  town\na\tsea\nb\tsea\n"), rejects=Rejects())
    assert isinstance(rows, FeatureTable)
    assert rows.ids == rows.feature_names == ["b", "a"]
    assert rows.X.toarray().tolist() == [[1, 0], [0, 1]]
    assert rows.label_names == ["old town", "sea"]
    assert rows.Y.toarray().tolist() == [[1, 1], [0, 1]]


def test_pairs_of_the_same_ids_align(write):
    train = read_pairs(write("a\tsea\nb\tsky\n"), rejects=Rejects())
    test = read_pairs(write("b\tsea\nc\tsea\n"), rejects=Rejects())
    aligned = align_table(test, train.label_names, train.feature_names)
    assert aligned.rows.X.toarray().tolist() == [[0, 1], [0, 0]]
    assert aligned.unknown_features == 1


def test_third_column_is_a_sign(write, caplog):
    rows = read_pairs(write("id\ttag\tweight\na\tsea\t2.5\na\tsky\t-1\na\tmoon\t0\nb\tsky\t1\n"), rejects=Rejects())
    assert rows.label_names == ["moon", "sea", "sky"]
    assert rows.Y.toarray().tolist() == [[0, 1, -1], [0, 0, 1]]
    assert "1 weights are neither 1 nor -1" in caplog.text


def test_broken_lines_are_skipped_counted_and_listed(write):
    rejects = Rejects()
    text = b"a\tsea\nno tab\na\tb\tc\td\n\tsea\na\t\na\tsky\tx\na\tsky\tinf\na\t\xff\na\tsky\nb\tsky\na\tsky\t-1\n"
    rows = read_pairs(write(text), rejects=rejects)
    assert rows.Y.toarray().tolist() == [[1, 0], [0, 1]]
    assert rejects.counts == {
        "line without two or three columns": 2,
        "pair without an id": 1,
        "empty label name": 1,
        "malformed weight": 1,
        "weight that is not finite": 1,
        "text that is not UTF-8": 1,
        "label both stated and denied": 1,
    }
    assert rejects.listed[-1][0].endswith("pairs.tsv:11")
    with pytest.raises(InputError, match=r"pairs\.tsv:2: line without two or three columns"):
        read_pairs(write(text), rejects=Rejects(strict=True))


def test_ids_of_pictures_give_a_source_of_pictures(write, picture, tmp_path):
    picture(tmp_path / "sub" / "a.png")
    picture(tmp_path / "b.png")
    picture(tmp_path.parent / "outside.png")
    rejects = Rejects()
    text = "sub/a.png\tsea\nsub/a.png\tsky\nb.png\tsky\t-1\nb.png\tsea\ngone.png\tsea\n../outside.png\tsea\n"
    source = read_pairs(write(text), rejects=rejects)
    assert isinstance(source, ItemList)
    assert [(p.id, p.content.name, p.labels) for p in source] == [
        ("sub/a.png", "a.png", ("sea", "sky")),
        ("b.png", "b.png", ("sea",)),
    ]
    assert rejects.counts == {"labels without a picture": 2, "denied label, which a picture cannot keep": 1}


def test_empty_list_is_refused(write):
    with pytest.raises(InputError, match="holds no pairs"):
        read_pairs(write("\n"), rejects=Rejects())
    with pytest.raises(InputError, match="no pairs are left"):
        read_pairs(write("a\n"), rejects=Rejects())


words = st.text("abcé犬 _", min_size=1, max_size=4).filter(lambda t: t == normalise_label_name(t))


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(words, words, st.sampled_from([1, -1])), min_size=1, unique_by=lambda p: p[:2]))
def test_valid_lists_are_read_exactly(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("pairs") / "p.tsv"
    path.write_text("".join(f"{i}\t{label}\t{sign}\n" for i, label, sign in pairs), "utf-8")
    rows = read_pairs(path, rejects=Rejects())
    entries = rows.Y.tocoo()
    triples = {(rows.ids[r], rows.label_names[c], v) for r, c, v in zip(*entries.coords, entries.data, strict=True)}
    assert triples == set(pairs)
    assert rows.Y.has_sorted_indices


@settings(deadline=None)
@given(text=st.one_of(st.binary(max_size=60), st.text("ab\t\n1-. ", max_size=60).map(str.encode)))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, text):
    path = tmp_path_factory.mktemp("any") / "p.tsv"
    path.write_bytes(text)
    rows = result_or_sentence(read_pairs, path, rejects=Rejects())
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0


@pytest.mark.data
def test_mirflickr_tags_are_read_as_pairs(data, write):
    pairs = []
    with (data / "mirflickr25k_tags" / "kv_dataset2.csv").open(encoding="utf-8", newline="") as stream:
        for _, number, _, tags in csv.reader(stream):
            pairs += [(f"im{number}.jpg", tag) for tag in literal_eval(tags)]
    rejects = Rejects()
    rows = read_pairs(write("".join(f"{i}\t{tag}\n" for i, tag in pairs)), rejects=rejects)
    assert len(rejects) == 0
    distinct = {(i, normalise_label_name(tag)) for i, tag in pairs}
    assert rows.Y.nnz == len(distinct)
    assert len(rows) == 25_000 - 2_128
    assert rows.X.nnz == len(rows)
    frequent = np.bincount(rows.Y.indices) >= 20
    assert abs(int(frequent.sum()) - 1_386) <= 3


def test_id_pairs_are_read_from_lists_and_wordnet(tmp_path: Path) -> None:
    file, rejects = tmp_path / "near.tsv", Rejects()
    file.write_text("id\tlabel\nb\ta\na\tb\t1\na\tc\t0\nbroken\n")
    assert list(read_id_pairs(file, rejects=rejects)) == [("b", "a"), ("a", "b")]
    assert [(where, reason) for where, reason, _ in rejects.listed] == [
        (f"{file}:5", "line without two or three columns")
    ]
    with pytest.raises(InputError, match="holds no pairs"):
        list(read_id_pairs(tmp_path, rejects=Rejects()))
    line = "02084071 05 n 01 dog 0 001 @ 02083346 n 0000 | a member of the genus Canis\n"
    (tmp_path / "data.noun").write_text(line)
    assert list(read_id_pairs(tmp_path, rejects=Rejects())) == [("n02084071", "n02083346")]


def test_citations_are_read_as_pairs(tmp_path: Path) -> None:
    (tmp_path / "papers.links.txt").write_text("a b\nc\nb c\n")
    rejects = Rejects()
    assert list(read_id_pairs(tmp_path / "papers.links.txt", rejects=rejects)) == [("a", "b"), ("b", "c")]
    assert rejects.counts == {"line that is not two documents": 1}


def test_comments_and_empty_lines_are_skipped_in_every_list(write, tmp_path):
    """The same lines in all lists of names; a name may begin with #."""
    lines = "# a remark\n\nid\tname\n#sea\tsky\n"
    assert read_pairs(write(lines), rejects=Rejects()).label_names == ["sky"]
    assert list(read_id_pairs(write(lines), rejects=Rejects())) == [("#sea", "sky")]
    assert list(read_hierarchy(write(lines)).pairs()) == [("#sea", "sky")]
    assert read_excluded_pairs(write(lines)) == {frozenset(("#sea", "sky")), frozenset(("id", "name"))}
    assert read_label_table(write(lines.replace("id\tname", "label\tid"))) == {"#sea": "sky"}
    assert read_label_file(write(lines)) == ["id", "#sea"]


def test_written_pairs_are_read_as_a_hierarchy(tmp_path):
    write_id_pairs(tmp_path / "kinds.tsv", [("taxi", "car")])
    assert list(read_hierarchy(tmp_path / "kinds.tsv").pairs()) == [("taxi", "car")]
