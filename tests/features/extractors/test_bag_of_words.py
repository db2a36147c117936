"""Documents as bags of words: what a word is, the dictionary, what cannot be read, saving."""

import gzip
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.word_counts import find_words

from wsabie.core.errors import InputError, ModelFolderError, UnreadableItemError
from wsabie.core.execution import ProcessExecutor
from wsabie.features.extractor_registry import create_extractor, load_extractor
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.features.text.text_decoder import fold_text
from wsabie.io.formats.documents import MAX_DOCUMENT_BYTES
from wsabie.io.records import Item, ItemList
from wsabie.storage.rejects import Rejects

TEXTS = ["The sea, the sky", "the sea and a boat", "Sky? SKY!", "a boat; the wood"]


def make_documents(*texts: str | bytes | Path) -> ItemList:
    contents = [text.encode() if isinstance(text, str) else text for text in texts]
    return ItemList(Path("notes"), [Item(str(i), c, ("x",)) for i, c in enumerate(contents)], "documents")


def list_words(bag: BagOfWords) -> list[str]:
    return [bag.words_.get_word(i) for i in range(bag.n_features_)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop_me 4ever", ["don", "t", "stop_me", "4ever"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("“no” – yes…sir", ["no", "yes", "sir"]),
        ("Он шёл\u00a0домой", ["он", "шёл", "домой"]),
        ("मैं हिन्दी", ["मैं", "हिन्दी"]),
        ("", []),
    ],
)
def test_words_follow_unicode_boundaries(text, words):
    assert [word.decode() for word in find_words(fold_text(text))] == words


@given(st.text())
def test_case_folding_keeps_word_characters(text):
    def kind(c):
        return c == "_" or c.isalnum() or (c > "\x7f" and unicodedata.category(c) in ("Mn", "Mc") and ord(c) < 0x40000)

    plain = unicodedata.normalize("NFC", text.casefold())
    expected = "".join(c if kind(c) else " " for c in plain).split()
    assert [word.decode() for word in find_words(fold_text(text))] == expected


def test_vocabulary_is_ordered_by_frequency():
    bag = BagOfWords().fit(make_documents(*TEXTS))
    assert list_words(bag) == ["the", "sky", "a", "boat", "sea"]
    rows = bag.transform(make_documents("the sky the sea", "unknown words"))
    assert rows.X.toarray().tolist() == [[2, 1, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert rows.counts
    assert list_words(BagOfWords(2).fit(make_documents(*TEXTS))) == ["the", "sky"]
    assert list_words(BagOfWords(min_count=1).fit(make_documents(*TEXTS)))[-2:] == ["and", "wood"]


def test_word_query_is_a_document_of_one_word():
    bag = BagOfWords().fit(make_documents(*TEXTS))
    columns, values = bag.extract_text("Boat")
    assert (columns.tolist(), values.tolist()) == ([3], [1])
    assert columns.tolist() == bag.transform_one(b"boat")[0].tolist()


def test_tfidf_has_unit_length_and_keeps_empty_rows():
    bag = BagOfWords(weighting="tfidf").fit(make_documents(*TEXTS))
    X = bag.transform(make_documents(*TEXTS, "nothing known")).X.toarray()
    assert np.linalg.norm(X, axis=1) == pytest.approx([1, 1, 1, 1, 0])
    the, sea = X[0, 0], X[0, 4]
    idf = {n: np.log(5 / (1 + n)) + 1 for n in (2, 3)}  # documents that hold the word, of 4
    assert the / sea == pytest.approx(np.log(3) * idf[3] / (np.log(2) * idf[2]))
    assert not bag.has_counts


def test_hashing_needs_no_vocabulary():
    bag = BagOfWords(1 << 20, hashing=True)
    rows = bag.transform(make_documents(*TEXTS))
    assert rows.X.shape == (4, 1 << 20)
    assert rows.X.sum(axis=1).ravel().tolist() == [[4, 5, 2, 4]]
    assert rows.X[2].indices.tolist() == bag.extract_text("sky")[0].tolist()
    weighed = (
        BagOfWords(1 << 20, hashing=True, weighting="tfidf")
        .fit(make_documents(*TEXTS))
        .transform(make_documents(*TEXTS))
        .X
    )
    assert weighed.multiply(weighed).sum() == pytest.approx(4)


def test_unreadable_documents_are_listed(tmp_path):
    packed, long = tmp_path / "a.txt.gz", tmp_path / "long.txt"
    packed.write_bytes(gzip.compress(b"The sea"))
    long.write_bytes(b"a " * (MAX_DOCUMENT_BYTES // 2 + 1))
    (tmp_path / "empty.txt").touch()
    (tmp_path / "cut.txt").write_bytes(gzip.compress(b"The sea" * 99)[:20])
    bad = [b"caf\xe9", "... !", long, tmp_path / "empty.txt", tmp_path / "gone.txt", tmp_path / "cut.txt"]
    bag, rejects = BagOfWords(min_count=1), Rejects()
    source = make_documents(packed, *bad)
    rows = bag.fit(source).transform(source, rejects=rejects)
    assert rows.ids == ["0"]
    assert [reason for _, reason, _ in rejects.listed] == [
        "not UTF-8", "no words", "too long", "empty file", "unreadable file", "unreadable file",
    ]  # fmt: skip
    with pytest.raises(UnreadableItemError, match="not UTF-8"):
        bag.transform_one(b"\xff")


def test_loaded_extractor_gives_the_same_rows(tmp_path):
    for number, options in enumerate(({}, {"weighting": "tfidf"}, {"hashing": True, "n_words": 50})):
        bag = BagOfWords(**options).fit(make_documents(*TEXTS))
        bag.save(tmp_path / str(number))
        again = load_extractor(tmp_path / str(number))
        assert isinstance(again, BagOfWords)
        assert again.fingerprint() == bag.fingerprint()
        process_executor = ProcessExecutor(2, local_seconds=0) if number == 0 else None
        assert (
            again.transform(make_documents(*TEXTS), executor=process_executor).X
            != bag.transform(make_documents(*TEXTS)).X
        ).nnz == 0


@pytest.mark.parametrize(
    "starts",
    [
        np.array([0, 9]),
        np.array([0, 5, 3]),
        np.array([1, 3]),
        np.array([], int),
        np.array([[0, 3]]),
        np.array([0.0, 3]),
    ],
)
def test_damaged_vocabulary_is_refused(starts):
    weighed = BagOfWords(weighting="tfidf").fit(make_documents("the the")).to_state()
    weighed.tensors["idf"] = np.ones(2, np.float32)
    with pytest.raises(ModelFolderError, match="damaged"):
        BagOfWords.from_state(weighed)
    state = BagOfWords().fit(make_documents("the the")).to_state()
    state.tensors["starts"] = starts
    with pytest.raises(ModelFolderError, match="damaged"):
        BagOfWords.from_state(state)
    del state.tensors["starts"]
    with pytest.raises(ModelFolderError, match="another version"):
        BagOfWords.from_state(state)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_words": 0}, "n_words is 0; give a number of words"),
        ({"n_words": True}, "n_words is True"),
        ({"min_count": 0}, "min_count is 0"),
        ({"hashing": 1}, "hashing is 1; give True or False"),
        ({"weighting": "bm25"}, "weighting is 'bm25'"),
        ({"min_count": 9}, r"9 times in the documents of notes; .* a lower `min_count`"),
    ],
)
def test_invalid_parameters_give_one_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        BagOfWords(**options).fit(make_documents(*TEXTS))


def test_other_items_and_views_are_refused():
    with pytest.raises(InputError, match=r"words takes documents and .* holds pictures; use visual-words"):
        BagOfWords().fit(ItemList(Path("p"), []))
    with pytest.raises(InputError, match="documents have no further views"):
        BagOfWords(hashing=True).transform(make_documents("a"), augment=1)
    with pytest.raises(InputError, match="has not learned yet"):
        BagOfWords().transform(make_documents("a"))
    with pytest.raises(InputError, match="none of the documents of notes can be read: 0 is refused as no words"):
        BagOfWords().fit(make_documents("!"))
    with pytest.raises(InputError, match="features of documents and of pictures; name those of one"):
        create_extractor("words,visual-words")
    assert create_extractor(modality="documents").name == "words"
