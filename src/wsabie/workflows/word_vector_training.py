"""Word vectors learned from text: skip-gram with negative sampling (Mikolov et al. 2013), by gensim.

Words are those of the extractor "words": small letters, digits, underscores. Words that stand side by side far more
often than by chance are joined into phrases ("new_york") first, `phrases` times: two rounds give phrases of up to four
words. Every pass reads the text again, sentence by sentence, so that it may be larger than memory.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.optional_packages import import_optional
from wsabie.features.text.text_decoder import fold_text
from wsabie.io.data_sources import open_source
from wsabie.io.formats.documents import MAX_DOCUMENT_BYTES
from wsabie.io.modalities import DOCUMENTS, detect_modality
from wsabie.io.parsers.text_files import iterate_numbered_lines, read_head
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.hearst_patterns import split_sentences

_WORD = re.compile(rb"[0-9a-z_\x80-\xff]+")
_SILENCE = logging.NullHandler()  # for gensim's own log, unless a handler listens to it
_MAX_COUNTED = 10_000_000
"""Words, or pairs of words, that are counted at once; beyond, the rarest are dropped."""


class WordVectorResult(NamedTuple):
    """Words, the most frequent first, their vectors (n, dim), and the number of words read."""

    words: list[str]
    table: Float32
    n_read: int


def learn_word_vectors(
    src: str | Path,
    *,
    dim: int = 100,
    window: int = 5,
    min_count: int = 5,
    negative: int = 5,
    epochs: int = 5,
    phrases: int = 1,
    threads: int = 1,
    seed: int = 0,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> WordVectorResult:
    """Learn a vector for every word of a text, so that words in similar contexts are near.

    Parameters
    ----------
    src : str or Path
        Running text (`.txt`, `.md`, `.rst`, or gzip of it), or any documents that `open_source` opens.
    dim : int
    window : int
        Words of context to either side.
    min_count : int
        Rarer words and phrases are left out.
    negative : int
        Random words against each true one.
    epochs : int
    phrases : int
        Rounds of joining neighbouring words; 0: none.
    threads : int
        With one thread the same seed gives the same vectors, with several it does not.
    seed : int
    rejects : Rejects or None
        Lists unreadable documents.
    progress : Progress

    Raises
    ------
    InputError
        gensim is not installed, there is no text, or no word occurs `min_count` times.
    """
    import_optional("gensim.models", "skip-gram vectors are learned by gensim", "text")
    from gensim.models import Word2Vec
    from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS, Phrases

    text: Iterable[list[str]] = _SentenceSource(Path(src), Rejects() if rejects is None else rejects)
    logging.getLogger("gensim").addHandler(_SILENCE)
    for _ in range(phrases):
        sentences = _report_pass(text, progress, "finding phrases")
        limits = {"min_count": min_count, "max_vocab_size": _MAX_COUNTED}
        text = Phrases(sentences, **limits, connector_words=ENGLISH_CONNECTOR_WORDS).freeze()[text]
    model = Word2Vec(
        vector_size=dim, window=window, min_count=min_count, negative=negative, sg=1, epochs=epochs,
        workers=threads, seed=seed, max_vocab_size=_MAX_COUNTED,
    )  # fmt: skip
    model.build_vocab(_report_pass(text, progress, "counting words"))
    times = "" if min_count == 1 else f" {min_count} times"
    require(len(model.wv) > 0, f"no word is found{times} in {src}; give more text, or a lower `min_count`")
    with progress.stage("learning vectors", epochs, "epochs") as stage:
        model.train(text, total_examples=model.corpus_count, epochs=epochs, callbacks=[_EpochCallback(stage.advance)])
    return WordVectorResult(list(model.wv.index_to_key), model.wv.vectors, int(model.corpus_total_words))


class _SentenceSource:
    """Words of every sentence, read again on every pass."""

    def __init__(self, path: Path, rejects: Rejects) -> None:
        self._iterate_lines: Callable[[], Iterator[str]]
        if path.is_file() and detect_modality(path.name, candidates=(DOCUMENTS,)):
            self._iterate_lines = lambda: (
                line.decode("utf-8", "replace") for _, line in iterate_numbered_lines(path, MAX_DOCUMENT_BYTES)
            )
            return
        source = open_source(path, modality="documents", labels_from="none", rejects=rejects)
        if isinstance(source, FeatureTable) or source.modality != "documents":
            raise InputError(f"{path} holds no text; give a .txt file, or documents")
        self._iterate_lines = lambda: (line for item in source for line in (*_split_lines(item.full_content), ""))

    def __iter__(self) -> Iterator[list[str]]:
        for sentence in split_sentences(self._iterate_lines()):
            if words := [word.decode() for word in _WORD.findall(fold_text(sentence))]:
                yield words


def _split_lines(content: bytes | Path) -> list[str]:
    text = content if isinstance(content, bytes) else read_head(content, MAX_DOCUMENT_BYTES)
    return text.decode("utf-8", "replace").splitlines()


def _report_pass(text: Iterable[list[str]], progress: Progress, name: str) -> Iterator[list[str]]:
    """Yield sentences and report the progress."""
    with progress.stage(name, None, "sentences") as stage:
        for words in text:
            stage.advance()
            yield words


class _EpochCallback:
    """A callback that reports every finished epoch, in gensim's form."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self.on_epoch_end = lambda model: advance()
        self.on_epoch_begin = self.on_train_begin = self.on_train_end = lambda model: None
