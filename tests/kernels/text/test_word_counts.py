"""Words in UTF-8 against their slow twin; the hash never changes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.word_counts import find_words, hash_word

from wsabie.features.extractors.bag_of_words import HashedColumns, WordCounter, WordList
from wsabie.kernels.text.word_counts import LONGEST_WORD

LETTERS = st.sampled_from(["a", "b", "ab", "1", "_", " ", ",", "\n", "é", "жук", "\0", "漢"])
TEXTS = st.lists(LETTERS, max_size=60).map(lambda parts: "".join(parts).encode())


def count_words(text: bytes) -> Counter[bytes]:
    return Counter(word for word in find_words(text) if len(word) <= LONGEST_WORD)


@pytest.mark.parametrize(
    ("word", "hashed"), [(b"sea", 0x18B995AA308092FC), (b"caf\xc3\xa9", 0xF50B1F8E2C0682E6), (b"", 0xEFD01F60BA992926)]
)
def test_hashes_are_the_same_for_ever(word, hashed):
    assert hash_word(word) == hashed


@given(TEXTS, st.integers(1, 2**31 - 1))
def test_columns_are_hashes_modulo_their_number(text, n):
    expected: Counter[int] = Counter()
    for word, count in count_words(text).items():
        expected[hash_word(word) % n] += count
    columns, counts = HashedColumns(n).count_words(bytearray(text))
    assert dict(zip(columns.tolist(), counts.tolist(), strict=True)) == expected
    assert (np.diff(columns) > 0).all()


@given(st.lists(TEXTS, max_size=5), st.integers(1, 5))
def test_the_most_frequent_words_are_found_and_numbered(texts, n):
    expected = sum(map(count_words, texts), Counter())
    order = sorted(expected, key=lambda word: (-expected[word], word))[:n]
    counter = WordCounter(1000)
    for text in texts:
        counter.add(bytearray(text))
    words, counts = counter.most_frequent(n)
    assert [words.get_word(i).encode() for i in range(len(words))] == order
    assert counts.tolist() == [expected[word] for word in order]
    assert counter.missed == 0
    for text in texts:
        numbers, word_counts_ = words.count_words(bytearray(text))
        exact_counts = count_words(text)
        assert {order[i]: n for i, n in zip(numbers.tolist(), word_counts_.tolist(), strict=True)} == {
            word: exact_counts[word] for word in order if word in exact_counts
        }


def test_words_that_find_no_room_are_too_low_by_what_was_missed_at_most():
    rng = np.random.default_rng(0)
    words = [f"w{int(rank)}".encode() for rank in 20_000 ** rng.random(60_000)]
    exact, counter = Counter(words), WordCounter(100)
    for start in range(0, len(words), 1000):
        counter.add(bytearray(b" ".join(words[start : start + 1000])))
        assert len(counter) <= 400
    assert 0 < counter.missed < 300
    vocabulary, counts = counter.most_frequent(1000)
    counts_by_word = {vocabulary.get_word(i).encode(): int(counts[i]) for i in range(len(vocabulary))}
    assert all(exact[word] - counter.missed <= count <= exact[word] for word, count in counts_by_word.items())
    assert {word for word, count in exact.items() if count > counter.missed} <= set(counts_by_word)


def test_room_grows_for_words_and_letters():
    long = [b"%06d" % number + b"x" * 100 for number in range(70_000)]
    counter = WordCounter(100_000)
    counter.add(bytearray(b" ".join(long * 2)))
    words, counts = counter.most_frequent(70_000)
    assert (len(words), set(counts.tolist())) == (70_000, {2})
    assert words.get_word(0).encode() == long[0]


def test_the_longest_word_and_none_longer():
    text = bytearray(b"a" * LONGEST_WORD + b" " + b"b" * (LONGEST_WORD + 1))
    counter = WordCounter(10)
    counter.add(text)
    assert counter.most_frequent(10)[0].get_word(0) == "a" * LONGEST_WORD
    assert len(counter) == len(HashedColumns(1000).count_words(text)[0]) == 1


def test_an_empty_list_knows_no_word():
    assert [len(part) for part in WordList.from_words([]).count_words(bytearray(b"a b"))] == [0, 0]
