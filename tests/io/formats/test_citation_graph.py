"""Documents that cite each other."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import detect_format
from wsabie.io.formats.citation_graph import MAX_WORDS, get_links_path, read_citation_graph, read_citation_links
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    file = tmp_path / "papers.docs.txt"
    file.write_text("a\t1\t3 0 3\nb\t0\t1\nc\t-1\t\n")
    get_links_path(file).write_text("a b\nb\tc\n")
    return file


def test_documents_are_word_counts_with_a_class(documents: Path) -> None:
    assert detect_format(documents) == "citations"
    rows = open_source(documents)
    assert isinstance(rows, FeatureTable)
    assert (rows.ids, rows.label_names, rows.counts) == (["a", "b", "c"], ["0", "1"], True)
    assert rows.X.toarray().tolist() == [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert rows.Y.toarray().tolist() == [[0, 1], [1, 0], [0, 0]]
    assert read_citation_links(get_links_path(documents), rejects=Rejects()) == [("a", "b"), ("b", "c")]


def test_documents_without_links_are_not_recognised(documents: Path) -> None:
    get_links_path(documents).unlink()
    with pytest.raises(InputError):
        detect_format(documents)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a\t1\t4", "duplicate id"),
        ("d\t1", "line that is not id, class and words"),
        ("\t1\t2", "line that is not id, class and words"),
        ("d\t1\t2 two", "word that is not a number"),
        ("d\t1\t-2", "number of a word that is not from 0 to 16,777,215"),
        (f"d\t1\t{MAX_WORDS}", "number of a word that is not from 0 to 16,777,215"),
    ],
)
def test_broken_lines_are_listed(documents: Path, line: str, reason: str) -> None:
    with documents.open("a") as stream:
        stream.write(line + "\n")
    rejects = Rejects()
    assert len(read_citation_graph(documents, rejects=rejects)) == 3
    assert [(where.rpartition(":")[2], why) for where, why, _ in rejects.listed] == [("4", reason)]


def test_broken_links_are_listed(documents: Path) -> None:
    get_links_path(documents).write_bytes(b"a b c\n\xff b\na b\n")
    rejects = Rejects()
    assert read_citation_links(get_links_path(documents), rejects=rejects) == [("a", "b")]
    assert [why for _, why, _ in rejects.listed] == ["line that is not two documents", "text that is not UTF-8"]


def test_files_without_usable_lines_are_refused(documents: Path) -> None:
    documents.write_text("a\t0\t\n")
    with pytest.raises(InputError, match=r"no document of .* has a word"):
        read_citation_graph(documents, rejects=Rejects())
    get_links_path(documents).write_text("a\n")
    with pytest.raises(InputError, match="no citations are left"):
        read_citation_links(get_links_path(documents), rejects=Rejects())


@given(content=st.binary(max_size=200))
def test_any_bytes_give_documents_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, result_or_sentence, content: bytes
) -> None:
    file = tmp_path_factory.mktemp("any") / "a.docs.txt"
    file.write_bytes(content)
    rows = result_or_sentence(read_citation_graph, file, rejects=Rejects())
    assert rows is None or rows.X.shape[0] == len(rows.ids) == rows.Y.shape[0]
    result_or_sentence(read_citation_links, file, rejects=Rejects())


def test_cora_is_read(data: Path) -> None:
    rows = open_source(data / "planetoid_docs" / "cora.docs.txt")
    assert isinstance(rows, FeatureTable)
    assert rows.X.shape == (2708, 1433)
    assert len(rows.label_names) == 7
    assert len(read_citation_links(data / "planetoid_docs" / "cora.links.txt", rejects=Rejects())) == 5278
