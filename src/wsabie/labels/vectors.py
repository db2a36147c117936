"""Words with a vector each, made by others or learnt from text; names of several words have one too.

A name is looked up as one entry first, its words joined by underscores as files of vectors write phrases
("great_white_shark"), and else is the mean of its words, all of which have to be known. An entry or a word is taken as
it is written, else in small letters, else with capitals where words begin: some files hold "paris" and some "Paris".
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.labels.names import normalise, unknown_label


class Found(NamedTuple):
    """What `Vectors.of` found.

    Attributes
    ----------
    table : (n_found, dim) float32
    places : (n_found,) int64
        Which of the names they are of.
    missing : list of str
        Names without a vector, as they were given.
    """

    table: Float32
    places: Int64
    missing: list[str]


class Vectors:
    """Words and their vectors.

    Parameters
    ----------
    words : sequence of str
        Each once.
    table : (n_words, dim) float32
        May be mapped from a file; it is not copied.
    skipped : dict of str to int or None
        How many words of their file were left out, by reason.

    Raises
    ------
    InputError
        Not one vector a word, or a word comes twice.

    Examples
    --------
    >>> known = Vectors(["white", "shark", "sea_lion"], np.array([[1, 0], [0, 1], [5, 5]], np.float32))
    >>> known.of(["White shark", "sea lion", "sea"])
    Found(table=array([[0.5, 0.5], [5. , 5. ]], dtype=float32), places=array([0, 1]), missing=['sea'])
    """

    def __init__(self, words: Sequence[str], table: Float32, skipped: dict[str, int] | None = None) -> None:
        if table.ndim != 2 or table.dtype != np.float32 or len(table) != len(words):
            raise InputError(
                f"{len(words):,} words do not fit a table of {table.dtype} and shape {table.shape}; give one float32 "
                "vector a word"
            )
        self.words, self.table, self.skipped = words, table, skipped or {}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.rows(name))

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self.table.shape[1])

    def rows(self, name: str) -> list[int]:
        """Rows of the table whose mean is the vector of a name: one, or one a word; none when it is unknown.

        Examples
        --------
        >>> Vectors(["new", "york", "New_York"], np.eye(3, dtype=np.float32)).rows("new york")
        [2]
        """
        pieces = normalise(name.replace("_", " ")).split(" ")
        whole = self._row("_".join(pieces))
        if whole is not None:
            return [whole]
        rows = [row for piece in pieces if (row := self._row(piece)) is not None]
        return rows if len(rows) == len(pieces) else []

    def of(self, names: Iterable[str]) -> Found:
        """The vectors of some names, and which have none."""
        rows, places, missing = [], [], []
        for place, name in enumerate(names):
            if found := self.rows(name):
                rows.append(self._mean(found))
                places.append(place)
            else:
                missing.append(name)
        table = np.stack(rows) if rows else np.empty((0, self.dim), np.float32)
        return Found(table, np.array(places, np.int64), missing)

    def vector(self, name: str) -> Float32:
        """The vector of a name, (dim,).

        Raises
        ------
        UnknownLabelError
            It has none; the message suggests words that look like it.
        """
        rows = self.rows(name)
        if not rows:
            unknown = next((word for word in normalise(name).split(" ") if self._row(word) is None), name)
            raise UnknownLabelError(unknown_label(unknown, self.words, "word"))
        return self._mean(rows)

    def _mean(self, rows: list[int]) -> Float32:
        mean: Float32 = np.mean(self.table[rows], axis=0, dtype=np.float32)
        return mean

    def _row(self, word: str) -> int | None:
        ids = self._ids
        for spelt in (word, word.lower(), "_".join(map(str.capitalize, word.split("_")))):
            if (row := ids.get(spelt)) is not None:
                return row
        return None

    @cached_property
    def _ids(self) -> dict[str, int]:
        ids: dict[str, Any] = {word: row for row, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            twice = next(word for row, word in enumerate(self.words) if ids[word] != row)
            raise InputError(f"the word {twice!r} comes twice; give every word one vector")
        return ids
