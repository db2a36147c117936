"""fastText's labelled text: a line is `__label__a __label__b some words`; a row is its bag of words.

Words are what stands between blanks, as written (no folding of case: prepare the text as you like it).
Columns are the words that occur at least `min_count` times, most frequent first, equal ones in the order
of their code points. A line without words or without labels is a row all the same; an empty line is none.
The id of a row is its line number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import filterfalse, takewhile
from pathlib import Path

import numpy as np

from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.io.alignment import move_columns
from wsabie.io.parsers.array_builders import LabelIndex, decode_row, require_rows
from wsabie.io.parsers.text_files import iterate_numbered_lines
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowBatch, RowCollector, RowStream, StreamInfo, StreamPart
from wsabie.storage.rejects import Rejects, RowError

_PREFIX = b"__label__"
_WORDS_AT_ONCE = 1 << 20


def read_fasttext(path: Path, *, min_count: int = 1, rejects: Rejects) -> FeatureTable:
    """Read a file of labelled lines as counts of words.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or gzip.
    min_count : int
        Rarer words get no column; 1 by default.
    rejects : Rejects
        Where lines that are not UTF-8, or have a `__label__` without a name, are listed.

    Returns
    -------
    FeatureTable
        With `feature_names` and `counts`.

    Raises
    ------
    InputError
        Missing, without a single row, or without a single word that has a column.
    """
    labels, words = LabelIndex(), _WordNumbers()
    ((batch, _),) = _iterate_batches(path, rejects, labels, words)
    require_rows(len(batch), path, rejects)
    X, collector = batch.build_features(len(words)), RowCollector()
    names = _list_frequent(zip(words, np.bincount(X.indices, X.data, len(words)).tolist(), strict=True), min_count)
    if not names:
        raise _make_wordless_error(path, min_count)
    columns = {name.encode(): i for i, name in enumerate(names)}
    X = move_columns(X, np.fromiter((columns.get(word, -1) for word in words), np.int32, len(words)), len(names))
    collector.add(batch.to_columns(X))
    return collector.build_table(StreamInfo(counts=True, n_features=len(names), feature_names=names), *labels.finish())


class FastTextStream(RowStream):
    """Stream of the rows of `read_fasttext`; the file is read once before to count its words.

    Raises
    ------
    InputError
        As `read_fasttext`, but for a file without rows.
    """

    def __init__(self, path: Path, rejects: Rejects, progress: Progress = SILENT) -> None:
        self.path, self.rejects, self.index = path, rejects, LabelIndex()
        names = _list_frequent(_count_words(path, progress).items(), 1)
        if not names:
            raise _make_wordless_error(path, 1)
        self._columns = {name.encode(): i for i, name in enumerate(names)}
        self.info = StreamInfo(counts=True, n_features=len(names), feature_names=names)

    def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
        try:
            parts = _iterate_batches(self.path, self.rejects, self.index, self._columns, skip, _WORDS_AT_ONCE)
            for batch, position in parts:
                yield StreamPart(batch.to_columns(batch.build_features(len(self._columns))), position)
        except KeyError as error:
            raise InputError(f"{self.path} has changed while it was read; give the command again") from error


class _WordNumbers(dict[bytes, int]):
    """Numbers of words, assigned as they come up."""

    def __missing__(self, word: bytes) -> int:
        number = self[word] = len(self)
        return number


def _iterate_batches(
    path: Path,
    rejects: Rejects,
    labels: LabelIndex,
    words: dict[bytes, int],
    skip: int = 0,
    max_words: int | None = None,
) -> Iterator[tuple[RowBatch, int]]:
    """Yield batches of about `max_words` words (None: all) after `skip` lines, and file positions."""
    batch, number = RowBatch(), skip
    for number, line in iterate_numbered_lines(path):
        if number <= skip:
            continue
        with rejects.catch(path, number):
            names, line_words = _parse_line(line)
            label_numbers = labels.assign_ids(names)
            if names or line_words:
                if max_words is not None and len(batch.indices) + len(batch) >= max_words:
                    yield batch, number - 1
                    batch = RowBatch()
                batch.add(number, label_numbers, {}, [words[word] for word in line_words])
    if max_words is None or len(batch):
        yield batch, number


def _count_words(path: Path, progress: Progress) -> Counter[bytes]:
    """Count each word in the usable lines."""
    counts, labels = Counter[bytes](), LabelIndex()
    with progress.stage(f"counting the words of {path.name}", None, "lines") as stage:
        for _, line in iterate_numbered_lines(path):
            stage.advance(1)
            with suppress(RowError):
                names, words = _parse_line(line)
                labels.assign_ids(names)
                counts.update(words)
    return counts


def _list_frequent(counts: Iterable[tuple[bytes, float]], min_count: int) -> list[str]:
    """Return words that occur often enough, the most frequent first."""
    ranked = sorted((-count, word) for word, count in counts)  # of UTF-8 in the order of code points
    return [word.decode() for count, word in ranked if -count >= min_count]


def _make_wordless_error(path: Path, min_count: int) -> InputError:
    often = f" that occurs {min_count} times or more; lower min_count" if min_count > 1 else "s beside its labels"
    return InputError(f"{path} has no word{often}")


def _parse_line(line: bytes) -> tuple[list[str], list[bytes]]:
    """Return (labels, words in UTF-8) of one line."""
    decode_row(line)
    tokens = line.split()
    n = sum(1 for _ in takewhile(_is_label, tokens))
    labels, words = tokens[:n], tokens[n:]
    if line.count(_PREFIX) > n:  # some stand behind words, or in words
        labels, words = list(filter(_is_label, tokens)), list(filterfalse(_is_label, tokens))
    if _PREFIX in labels:
        raise RowError("empty label name", repr(line[:60]))
    return [label.removeprefix(_PREFIX).decode() for label in labels], words


def _is_label(token: bytes) -> bool:
    return token.startswith(_PREFIX)
