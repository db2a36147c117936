"""Word vectors learnt from text: skip-gram with negative sampling (Mikolov and others, 2013), by gensim.

Words are those of `--describe words`: small letters, digits, underscores. Words that stand side by side far more often
than chance would have it become phrases ("new_york") first, as often as asked for: twice gives phrases of up to four
words. The text is read anew on every pass, sentence by sentence, so that it may be larger than memory.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.features.documents import folded
from wsabie.labels.said import sentences
from wsabie.sources.documents import LONGEST
from wsabie.sources.media import document_of
from wsabie.sources.open import open_source
from wsabie.sources.records import Rows
from wsabie.sources.text import head, numbered_lines
from wsabie.storage.rejects import Rejects

_WORD = re.compile(rb"[0-9a-z_\x80-\xff]+")
_MOST_HELD = 10_000_000
"""Words, or pairs of words, that are counted at once; beyond, the rarest are forgotten."""


class Learnt(NamedTuple):
    """Words, the most frequent first, their vectors (n, dim), and how many words of text were read."""

    words: list[str]
    table: Float32
    n_read: int


def learn_vectors(
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
) -> Learnt:
    """Learn a vector for every word of a text, so that words in like company are near.

    Parameters
    ----------
    src : str or Path
        Running text (`.txt`, `.md`, `.rst`, or gzip of it), or any documents that `open_source` opens.
    dim : int
    window : int
        Words to either side that count as company.
    min_count : int
        Words and phrases that are found less often are left out.
    negative : int
        Words drawn at random against each true one.
    epochs : int
    phrases : int
        How often neighbouring words are joined; 0: never.
    threads : int
        With one the same seed gives the same vectors, with several it does not.
    seed : int
    rejects : Rejects or None
        Lists documents that cannot be read.
    progress : Progress

    Raises
    ------
    InputError
        gensim is not installed, there is no text, or no word is found `min_count` times.
    """
    try:
        from gensim.models import Word2Vec
        from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS, Phrases
    except ImportError as error:
        raise InputError(
            "skip-gram vectors are learnt by gensim, which is not installed; run: pip install 'wsabie[text]'"
        ) from error
    text: Iterable[list[str]] = _Text(Path(src), Rejects() if rejects is None else rejects)
    with _quiet():
        for _ in range(phrases):
            told = _Told(text, progress, "finding phrases")
            text = Phrases(
                told, min_count, max_vocab_size=_MOST_HELD, connector_words=ENGLISH_CONNECTOR_WORDS
            ).freeze()[text]
        model = Word2Vec(
            vector_size=dim, window=window, min_count=min_count, negative=negative, sg=1, epochs=epochs,
            workers=threads, seed=seed, max_vocab_size=_MOST_HELD,
        )  # fmt: skip
        model.build_vocab(_Told(text, progress, "counting words"))
        if not len(model.wv):
            often = "" if min_count == 1 else f" {min_count} times"
            raise InputError(f"no word is found{often} in {src}; give more text, or a lower min_count (--min-count)")
        with progress.stage("learning vectors", epochs, "epochs") as stage:
            model.train(text, total_examples=model.corpus_count, epochs=epochs, callbacks=[_Epochs(stage.advance)])
    return Learnt(list(model.wv.index_to_key), model.wv.vectors, int(model.corpus_total_words))


class _Text:
    """The words of every sentence, read anew on every pass."""

    def __init__(self, path: Path, rejects: Rejects) -> None:
        self._read: Callable[[], Iterator[str]]
        if path.is_file() and document_of(path.name):
            self._read = lambda: (line.decode("utf-8", "replace") for _, line in numbered_lines(path, LONGEST))
            return
        source = open_source(path, things="documents", labels_from="none", rejects=rejects)
        if isinstance(source, Rows) or source.things != "documents":
            raise InputError(f"{path} holds no text; give a .txt file, or documents")
        self._read = lambda: (line for item in source for line in (*_lines(item.whole), ""))

    def __iter__(self) -> Iterator[list[str]]:
        for sentence in sentences(self._read()):
            if words := [word.decode() for word in _WORD.findall(folded(sentence))]:
                yield words


def _lines(content: bytes | Path) -> list[str]:
    text = content if isinstance(content, bytes) else head(content, LONGEST)
    return text.decode("utf-8", "replace").splitlines()


class _Told:
    """A pass over sentences that tells how far it is."""

    def __init__(self, text: Iterable[list[str]], progress: Progress, name: str) -> None:
        self._text, self._progress, self._name = text, progress, name

    def __iter__(self) -> Iterator[list[str]]:
        with self._progress.stage(self._name, None, "sentences") as stage:
            for words in self._text:
                stage.advance()
                yield words


class _Epochs:
    """Tells of every epoch that is done, in the form that gensim calls."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self.on_epoch_end = lambda model: advance()
        self.on_epoch_begin = self.on_train_begin = self.on_train_end = lambda model: None


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, gensim's own log goes nowhere, unless somebody listens to it."""
    log, handler = logging.getLogger("gensim"), logging.NullHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
