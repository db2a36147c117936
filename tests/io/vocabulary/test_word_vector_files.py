"""Word vectors in every form, what is wrong with a file and where, and the table that is kept beside it."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.vocabulary.word_vector_files import read_word_vectors, write_word_vectors
from wsabie.search.vector_neighbours import find_nearest_words
from wsabie.storage.rejects import Rejects

WORDS = ["the", "dog", "sea_lion", "Größe"]
TABLE = np.array([[1, 0, 0.5], [0.25, -2, 0], [0, 3, 1e-7], [-1, -1, -1]], np.float32)
LINES = "".join(f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in zip(WORDS, TABLE, strict=True))


def make_binary(words=WORDS, table=TABLE, end=b"\n") -> bytes:
    """Return the file that word2vec writes; gensim leaves out the ends of lines."""
    rows = [word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, table, strict=True)]
    return f"{len(table)} {table.shape[1]}\n".encode() + b"".join(rows)


FORMS = {
    "glove": LINES.encode(),
    "tabs": LINES.replace(" ", "\t").encode(),
    "word2vec": b"4 3\n" + LINES.encode(),
    "fasttext": b"4 3\r\n" + LINES.replace("\n", " \r\n").encode(),
    "bom": b"\xef\xbb\xbf" + LINES.encode(),
    "gzip": gzip.compress(LINES.encode()),
    "binary": make_binary(),
    "gensim": make_binary(end=b""),
    "binary-gzip": gzip.compress(make_binary()),
}


def write_file(folder: Path, content: bytes | str, name: str = "words.vec") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize("form", FORMS)
def test_every_format_and_its_cache_give_the_same_vectors(form, tmp_path):
    file = write_file(tmp_path, FORMS[form])
    for _ in range(2):
        vectors = read_word_vectors(file)
        assert vectors.words == WORDS
        assert vectors.table.dtype == np.float32
        assert np.array_equal(vectors.table, TABLE)
        assert isinstance(vectors.table.base, np.memmap)
    table_file = tmp_path / "words.vec.npy"
    assert np.array_equal(np.load(table_file, mmap_mode="r", allow_pickle=False), TABLE)
    assert read_word_vectors(table_file).words == WORDS
    assert sorted(p.name for p in tmp_path.iterdir()) == ["words.vec", "words.vec.npy"]


def test_cache_is_rebuilt_when_file_or_limit_changes(tmp_path):
    file = write_file(tmp_path, LINES)
    assert len(read_word_vectors(file)) == 4
    mtime = (tmp_path / "words.vec.npy").stat().st_mtime_ns
    read_word_vectors(file)
    assert (tmp_path / "words.vec.npy").stat().st_mtime_ns == mtime
    old = read_word_vectors(file)
    assert read_word_vectors(file, limit=2).words == WORDS[:2]
    write_file(tmp_path, "one 1 2\n")
    assert read_word_vectors(file).words == ["one"]
    assert np.array_equal(old.table, TABLE)  # who has mapped the older one keeps it


def test_names_of_several_words_are_looked_up(tmp_path):
    vectors = read_word_vectors(write_file(tmp_path, "white 1 0\nShark 0 1\nsea_lion 5 5\nNew_York 7 7\nsea 0 3\n"))
    matches = vectors.look_up(["White  shark", "sea lion", "sea_dog", "new york", "SEA", "lion", ""])
    assert matches.table.tolist() == [[0.5, 0.5], [5, 5], [7, 7], [0, 3]]
    assert matches.positions.tolist() == [0, 1, 3, 4]
    assert matches.missing == ["sea_dog", "lion", ""]
    assert vectors.look_up(["lion"]).table.shape == (0, 2)
    assert ("white shark" in vectors, "lion" in vectors) == (True, False)
    with pytest.raises(KeyError, match="no word 'sherk'; did you mean 'Shark'"):
        vectors.vector("white sherk")


def test_nearest_words_follow_the_cosine(tmp_path):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 8)).astype(np.float32)
    vectors = read_word_vectors(write_file(tmp_path, make_binary([f"w{i}" for i in range(50)], table)))
    query = table[[3, 7]].mean(0)
    cosines = table @ query / np.linalg.norm(table, axis=1) / np.linalg.norm(query)
    expected = [f"w{i}" for i in np.argsort(-cosines) if i not in (3, 7)]
    assert [word for word, _ in find_nearest_words(vectors, "w3 w7", 60)] == expected
    assert dict(find_nearest_words(vectors, "w3 w7"))[expected[0]] == pytest.approx(
        cosines[int(expected[0][1:])], abs=1e-6
    )


BAD = "ok 1 2 3\nshort 1 2\nlong 1 2 3 4\nword x 2 3\ninf 1 2 inf\nhuge 1 2 1e99\nok 4 5 6\n. . . 7 8 9\n\n 1 2 3\n"


def test_broken_lines_are_listed(tmp_path):
    file = write_file(tmp_path, b"12 3\n" + BAD.encode() + b"\xff 1 2 3\n" + b"x" * 2000 + b" 1 2 3\n")
    rejects = Rejects()
    vectors = read_word_vectors(file, rejects=rejects)
    assert dict(zip(vectors.words, vectors.table.tolist(), strict=True)) == {"ok": [1, 2, 3], ". . .": [7, 8, 9]}
    assert rejects.counts == {
        "line with another number of values": 2, "malformed value": 1, "value that is not finite": 2,
        "word that comes again": 1, "empty word, or one with an end of a line in it": 1, "word that is not UTF-8": 1,
        "word that is too long": 1, "fewer words than the first line promises": 1,
    }  # fmt: skip
    assert rejects.listed[0][0] == f"{file}:3"
    assert vectors.skipped == rejects.counts
    again = Rejects()
    assert read_word_vectors(file, rejects=again).skipped == again.counts == rejects.counts
    with pytest.raises(InputError, match=r"words\.vec:3: line with another number of values \(2 and not 3\)"):
        read_word_vectors(file, rejects=Rejects(strict=True))


def test_unusable_binary_words_are_listed(tmp_path):
    table = np.vstack([TABLE, [[1, np.nan, 2]]]).astype(np.float32)
    content = make_binary(["the", "the", "a", "b", "nan"], table).replace(b"\na ", b"\n\xff ")
    rejects = Rejects()
    assert read_word_vectors(write_file(tmp_path, content), rejects=rejects).words == ["the", "b"]
    assert sorted(rejects.counts) == ["value that is not finite", "word that comes again", "word that is not UTF-8"]
    assert rejects.listed[0][0].endswith("words.vec, word 2")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (make_binary()[:-2], "damaged or cut off at word 4 of the 4"),
        (make_binary()[:40], "damaged or cut off at word 3 of the 4"),
        (b"999999999999 300\n" + make_binary()[4:], "promises 999,999,999,999 words"),
        (b"4 99999999\n" + make_binary()[4:], "of 99,999,999 dimensions"),
        (b"4 0\nthe\n", "of 0 dimensions"),
        (b"50000000 3\n" + make_binary()[4:], "cut off at word 5 of the 50,000,000"),
        (b"", "is not a file of word vectors"),
        (b"no numbers here\nat all\n", "is not a file of word vectors"),
        (b"\0\1\2 1 2 3", "is not a file of word vectors"),
        (b"2 3\nshort 1 2\nlong 1 2 3 4\n", "no word vectors are left"),
        (b"word " + b"1 " * 20_000, "has 20,000 numbers a line"),
        (b"\x93NUMPY and no more", "is not a table of words"),
        (gzip.compress(LINES.encode() * 1000)[:-20], "damaged or cut off gzip"),
        (b"3 2\n" + b"x" * 5000 + b"\0\0 \xff\xff" * 50, "damaged or cut off at word 1"),
    ],
)
def test_invalid_files_are_refused(content, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        read_word_vectors(write_file(tmp_path, content))
    assert [p.name for p in tmp_path.iterdir()] == ["words.vec"]


def test_damaged_or_foreign_cache_is_refused(tmp_path):
    file = write_file(tmp_path, LINES)
    read_word_vectors(file)
    table_file = tmp_path / "words.vec.npy"
    content_bytes = table_file.read_bytes()
    for content in (
        content_bytes[:-1],
        content_bytes[:150] + content_bytes[154:],
        content_bytes.replace(b"(4, 3)", b"(9, 3)"),
        content_bytes[:-24] + bytes(24),
        content_bytes.replace(b"dog\n", b"dogs"),
        content_bytes[:-24] + b"\xff" * 16 + content_bytes[-8:],
    ):
        table_file.write_bytes(content)
        with pytest.raises(InputError, match=r"damaged|not a table|without words"):
            read_word_vectors(table_file)
    np.save(table_file, TABLE)
    with pytest.raises(InputError, match="array without words"):
        read_word_vectors(file)
    mine = write_file(tmp_path, "mine", "notes.txt")
    with pytest.raises(InputError, match="would be lost"):
        read_word_vectors(file, cache=mine)
    assert mine.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder_is_read_without_a_cache(tmp_path):
    file = write_file(tmp_path, LINES)
    tmp_path.chmod(0o500)
    assert read_word_vectors(file).words == WORDS
    tmp_path.chmod(0o700)


def test_read_only_disk_is_read_without_a_cache(tmp_path, monkeypatch):
    file = write_file(tmp_path, LINES)
    from wsabie.io.vocabulary import word_vector_files as module
    from wsabie.storage.atomic_files import WriteError

    def refuse(path, *arguments):
        if path.parent == tmp_path:
            raise WriteError("cannot write it: Read-only file system; choose another")
        return real(path, *arguments)

    real = module.write_word_vector_table
    monkeypatch.setattr(module, "write_word_vector_table", refuse)
    assert np.array_equal(read_word_vectors(file).table, TABLE)
    with pytest.raises(InputError, match="Read-only"):
        read_word_vectors(file, cache=tmp_path / "kept.npy")


def test_written_vectors_are_read_back(tmp_path):
    write_word_vectors(tmp_path / "out.vec", WORDS, TABLE)
    assert (tmp_path / "out.vec").read_text().startswith("4 3\nthe 1 0 0.5\n")
    assert np.allclose(read_word_vectors(tmp_path / "out.vec").table, TABLE)
    with pytest.raises(InputError, match="blank"):
        write_word_vectors(tmp_path / "out.vec", ["a b"], TABLE[:1])


def test_only_the_first_words_of_a_binary_file_are_read(tmp_path):
    file = write_file(tmp_path, b"1000000 3\n" + make_binary()[4:])
    assert read_word_vectors(file, limit=4).words == WORDS


@given(
    st.binary(max_size=80)
    | st.lists(
        st.sampled_from([b"2 3\n", b"dog ", b"1 2 3", b"\n", b" ", b"\xff", b"nan", b"\0\0\0\0", make_binary()[:30]]),
        max_size=10,
    ).map(b"".join)
)
def test_any_bytes_give_vectors_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    folder = tmp_path_factory.mktemp("any")
    vectors = result_or_sentence(read_word_vectors, write_file(folder, content))
    if vectors is not None:
        assert len(vectors.words) == len(set(vectors.words)) == len(vectors.table)
        assert np.isfinite(vectors.table).all()
        assert read_word_vectors(folder / "words.vec.npy").words == vectors.words


@pytest.mark.data
def test_twitter_glove_vectors_are_read(data, tmp_path):
    """79 of the 200 first terms of a detection sample have a vector of their own, 110 with means of words."""
    vectors = read_word_vectors(data / "glove_twitter_25d_12k" / "glove_twitter_25d.txt", cache=tmp_path / "kept.npy")
    assert (len(vectors), vectors.dim, vectors.skipped) == (11_925, 25, {})
    lines = (data / "imagenet_synsets" / "words.txt").read_text().splitlines()
    first = {synset: words.split(", ")[0] for synset, words in (line.split("\t") for line in lines)}
    synsets = {file.name.split("_")[0] for file in (data / "imagen_200x5" / "images").iterdir()}
    names = [first[synset] for synset in sorted(synsets)]
    matches = vectors.look_up(names)
    single_word_names = [name for name in names if len(vectors.find_rows(name)) == 1]
    assert (len(names), len(single_word_names), len(matches.positions), len(matches.missing)) == (200, 79, 110, 90)
    assert [word for word, _ in find_nearest_words(vectors, "dolphin", 2)] == ["elephant", "whale"]
