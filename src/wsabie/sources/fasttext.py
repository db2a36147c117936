"""fastText's labelled text: a line is `__label__a __label__b some words`; a row is its bag of words.

Words are what stands between blanks, as written (no folding of case: prepare the text as you like it).
Columns are the words that occur at least `min_count` times, most frequent first, equal ones in the order
of their code points. A line without words or without labels is a row all the same; an empty line is none.
The id of a row is its line number.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import filterfalse, takewhile
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.align import move_columns
from wsabie.sources.build import BadRow, LabelIndex, label_matrix, require_rows, row_starts
from wsabie.sources.records import Rows
from wsabie.sources.streamed import About, Part, RowStream
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.columns import Columns, Lists
from wsabie.storage.rejects import Rejects

_PREFIX = b"__label__"
_WORDS_AT_ONCE = 1 << 20


def read_fasttext(path: Path, *, min_count: int = 1, rejects: Rejects | None = None) -> Rows:
    """Read a file of labelled lines as counts of words.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or gzip.
    min_count : int
        Rarer words get no column; 1 by default.
    rejects : Rejects or None
        Where lines that are not UTF-8, or have a `__label__` without a name, are listed.

    Returns
    -------
    Rows
        With `feature_names` and `counts`.

    Raises
    ------
    InputError
        Missing, without a single row, or without a single word that has a column.
    """
    rejects, labels, words = Rejects() if rejects is None else rejects, LabelIndex(), _Numbered()
    ((got, _),) = _collected(path, rejects, labels, words)
    require_rows(len(got.lines), path, rejects)
    X = _bags(got, len(words))
    names = _frequent(zip(words, np.bincount(X.indices, X.data, len(words)).tolist(), strict=True), min_count)
    if not names:
        raise _wordless(path, min_count)
    label_names, final = labels.finish()
    Y = label_matrix(np.array(got.label_counts), final[np.array(got.label_ids, np.int32)], len(label_names))
    column = {name.encode(): i for i, name in enumerate(names)}
    X = move_columns(X, np.fromiter((column.get(word, -1) for word in words), np.int32, len(words)), len(names))
    return Rows(X, Y, label_names, [str(n) for n in got.lines], counts=True, feature_names=names)


class FastTextStream(RowStream):
    """The rows of `read_fasttext` a part after the other; the file is read once before, for its words are counted.

    Raises
    ------
    InputError
        As `read_fasttext`, but for a file without rows.
    """

    def __init__(self, path: Path, rejects: Rejects, progress: Progress = SILENT) -> None:
        self.path, self.rejects, self.index = path, rejects, LabelIndex()
        names = _frequent(_counted(path, progress).items(), 1)
        if not names:
            raise _wordless(path, 1)
        self._columns = {name.encode(): i for i, name in enumerate(names)}
        self.about = About(counts=True, n_features=len(names), feature_names=names)

    def parts(self, skip: int = 0) -> Iterator[Part]:
        try:
            parts = _collected(self.path, self.rejects, self.index, self._columns, skip, _WORDS_AT_ONCE)
            for got, position in parts:
                X = _bags(got, len(self._columns))
                x = Lists(X.indptr, {"indices": X.indices, "values": X.data})
                y = Lists(row_starts(np.array(got.label_counts)), {"labels": np.array(got.label_ids, np.int32)})
                yield Part(Columns({"id": np.array(got.lines, np.uint64)}, {"x": x, "y": y}), position)
        except KeyError as error:
            raise InputError(f"{shown(self.path)} has changed while it was read; give the command again") from error


class _Numbered(dict[bytes, int]):
    """Numbers words as they come up."""

    def __missing__(self, word: bytes) -> int:
        number = self[word] = len(self)
        return number


@dataclass
class _Collected:
    lines: list[int] = field(default_factory=list)
    label_ids: "array[int]" = field(default_factory=lambda: array("i"))
    label_counts: "array[int]" = field(default_factory=lambda: array("i"))
    word_ids: "array[int]" = field(default_factory=lambda: array("i"))
    word_counts: "array[int]" = field(default_factory=lambda: array("i"))


def _collected(
    path: Path, rejects: Rejects, labels: LabelIndex, words: dict[bytes, int], skip: int = 0, most: int | None = None
) -> Iterator[tuple[_Collected, int]]:
    """The lines behind the first `skip`, about `most` words at a time, or all, and how far the file has been read;
    `words` numbers words.

    Raises
    ------
    KeyError
        It does not.
    """
    got, number = _Collected(), skip
    for number, line in numbered_lines(path):
        if number <= skip:
            continue
        try:
            found, theirs = _parse_line(line)
            own = labels.numbers(found)
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{number}", bad.reason, bad.detail)
            continue
        if not (found or theirs):
            continue
        if most is not None and len(got.word_ids) + len(got.lines) >= most:
            yield got, number - 1
            got = _Collected()
        got.lines.append(number)
        got.label_ids.extend(own)
        got.label_counts.append(len(own))
        got.word_ids.extend(map(words.__getitem__, theirs))
        got.word_counts.append(len(theirs))
    if most is None or got.lines:
        yield got, number


def _counted(path: Path, progress: Progress) -> Counter[bytes]:
    """How often each word comes in lines that can be used."""
    counts, labels = Counter[bytes](), LabelIndex()
    with progress.stage(f"counting the words of {path.name}", None, "lines") as stage:
        for _, line in numbered_lines(path):
            stage.advance(1)
            with suppress(BadRow):
                found, words = _parse_line(line)
                labels.numbers(found)
                counts.update(words)
    return counts


def _bags(got: _Collected, width: int) -> Matrix:
    """Counts, (n, width), columns in order."""
    from scipy.sparse import csr_matrix

    words = np.array(got.word_ids, np.int32)
    starts = row_starts(np.array(got.word_counts))
    X = csr_matrix((np.ones(len(words), np.float32), words, starts), (len(got.lines), width))
    X.sum_duplicates()
    return X


def _frequent(counts: Iterable[tuple[bytes, float]], min_count: int) -> list[str]:
    """Words that come often enough, the most frequent first."""
    ranked = sorted((-count, word) for word, count in counts)  # of UTF-8 in the order of code points
    return [word.decode() for count, word in ranked if -count >= min_count]


def _wordless(path: Path, min_count: int) -> InputError:
    often = f" that occurs {min_count} times or more; lower min_count" if min_count > 1 else "s beside its labels"
    return InputError(f"{shown(path)} has no word{often}")


def _parse_line(line: bytes) -> tuple[list[str], list[bytes]]:
    """(labels, words in UTF-8) of one line."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error
    tokens = line.split()
    n = sum(1 for _ in takewhile(_is_label, tokens))
    labels, words = tokens[:n], tokens[n:]
    if line.count(_PREFIX) > n:  # some stand behind words, or in words
        labels, words = list(filter(_is_label, tokens)), list(filterfalse(_is_label, tokens))
    if _PREFIX in labels:
        raise BadRow("empty label name", repr(line[:60]))
    return [label.removeprefix(_PREFIX).decode() for label in labels], words


def _is_label(token: bytes) -> bool:
    return token.startswith(_PREFIX)
