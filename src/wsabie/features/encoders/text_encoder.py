"""Points of texts among pictures, from the text tower of an encoder of the Hugging Face Hub."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.optional_packages import import_optional
from wsabie.features.encoders.encoder_list import TEXT_NETWORK, TOKENIZER
from wsabie.features.encoders.encoder_store import find_encoder, load_file
from wsabie.features.encoders.onnx_network import get_first_line, open_session


class TextEncoder:
    """Text tower of an encoder that `wsabie encoders get NAME --words` has installed.

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
