"""fastText's labelled text: a line is `__label__a __label__b some words`; a row is its bag of words.

Words are what stands between blanks, as written (no folding of case: prepare the text as you like it).
Columns are the words that occur at least `min_count` times, most frequent first, equal ones in the order
of their code points. A line without words or without labels is a row all the same; an empty line is none.
The id of a row is its line number.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.errors import InputError
from wsabie.sources.align import move_columns
from wsabie.sources.build import BadRow, LabelIndex, label_matrix, require_rows, row_starts
from wsabie.sources.records import Rows
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.rejects import Rejects

PREFIX = "__label__"


def read_fasttext(
    path: Path,
    *,
    min_count: int = 1,
    vocabulary: Sequence[str] | None = None,
    rejects: Rejects | None = None,
) -> Rows:
    """Read a file of labelled lines as counts of words.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or gzip.
    min_count : int
        Rarer words get no column; 1 by default.
    vocabulary : sequence of str or None
        The columns, when they are given (test data of a model); other words are left out.
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
    rejects = Rejects() if rejects is None else rejects
    got = _collect(path, rejects)
    require_rows(len(got.lines), path, rejects)
    X = _bags(got)
    names = list(vocabulary) if vocabulary is not None else _frequent(X, got.words, min_count)
    if not names:
        often = f" that occurs {min_count} times or more; lower min_count" if min_count > 1 else "s beside its labels"
        raise InputError(f"{shown(path)} has no word{often}")
    label_names, final = got.labels.finish()
    Y = label_matrix(np.array(got.label_counts), final[np.array(got.label_ids, np.int32)], len(label_names))
    column = {name: i for i, name in enumerate(names)}
    columns = np.fromiter((column.get(word, -1) for word in got.words), np.int32, len(got.words))
    X = move_columns(X, columns, len(names))
    return Rows(X, Y, label_names, [str(n) for n in got.lines], counts=True, feature_names=names)


@dataclass
class _Collected:
    labels: LabelIndex = field(default_factory=LabelIndex)
    words: dict[str, int] = field(default_factory=dict)  # numbered as they come
    lines: list[int] = field(default_factory=list)
    label_ids: "array[int]" = field(default_factory=lambda: array("i"))
    label_counts: "array[int]" = field(default_factory=lambda: array("i"))
    word_ids: "array[int]" = field(default_factory=lambda: array("i"))
    word_counts: "array[int]" = field(default_factory=lambda: array("i"))


def _collect(path: Path, rejects: Rejects) -> _Collected:
    got = _Collected()
    for number, line in numbered_lines(path):
        try:
            labels, words = _parse_line(line)
            own = got.labels.numbers(labels)
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{number}", bad.reason, bad.detail)
            continue
        if labels or words:
            got.lines.append(number)
            got.label_ids.extend(own)
            got.label_counts.append(len(own))
            got.word_ids.extend([got.words.setdefault(word, len(got.words)) for word in words])
            got.word_counts.append(len(words))
    return got


def _bags(got: _Collected) -> Matrix:
    """Counts, with columns in the order in which words were met."""
    from scipy.sparse import csr_matrix

    words = np.array(got.word_ids, np.int32)
    starts = row_starts(np.array(got.word_counts))
    X = csr_matrix((np.ones(len(words), np.float32), words, starts), (len(got.lines), len(got.words)))
    X.sum_duplicates()
    return X


def _frequent(X: Matrix, words: Iterable[str], min_count: int) -> list[str]:
    totals = np.bincount(X.indices, X.data, X.shape[1])
    ranked = sorted(zip((-totals).tolist(), words, strict=True))
    return [word for total, word in ranked if -total >= min_count]


def _parse_line(line: bytes) -> tuple[list[str], list[str]]:
    """(labels, words) of one line."""
    try:
        tokens = [token.decode("utf-8") for token in line.split()]
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error
    if PREFIX in tokens:
        raise BadRow("empty label name", repr(line[:60]))
    labels = [token.removeprefix(PREFIX) for token in tokens if token.startswith(PREFIX)]
    return labels, [token for token in tokens if not token.startswith(PREFIX)]
