"""Word vectors, pretrained or learnt from text, and vectors of names of several words.

A name is first looked up as one entry, its words joined by underscores as files of vectors write phrases
("great_white_shark"). Otherwise its vector is the mean of its words, all of which must be known. A word is looked up as
it is written, then in small letters, then capitalised, because some files hold "paris" and some "Paris".
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.vocabulary.label_names import format_unknown_label, normalise_label_name


class VectorLookup(NamedTuple):
    """Vectors of names, and the names without one; returned by `WordVectors.look_up`.

    Attributes
    ----------
    table : (n_found, dim) float32
    positions : (n_found,) int64
        Position of each vector's name among the names.
    missing : list of str
        Names without a vector.
    """

    table: Float32
    positions: Int64
    missing: list[str]

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, Float32 | None]], dim: int) -> "VectorLookup":
        """Build a lookup from pairs of a name and its vector, (dim,), or None."""
        rows, positions, missing = [], [], []
        for position, (name, vector) in enumerate(pairs):
            if vector is None:
                missing.append(name)
            else:
                rows.append(vector)
                positions.append(position)
        table = np.stack(rows) if rows else np.empty((0, dim), np.float32)
        return cls(table, np.array(positions, np.int64), missing)


class WordVectors:
    """Words and their vectors.

    Parameters
    ----------
    words : sequence of str
        Each once.
    table : (n_words, dim) float32
        May be mapped from a file; it is not copied.
    skipped : dict of str to int or None
        Number of words of the file that were left out, by reason.

    Raises
    ------
    InputError
        The table does not fit the words, or a word comes twice.

    Examples
    --------
    >>> vectors = WordVectors(["white", "shark", "sea_lion"], np.array([[1, 0], [0, 1], [5, 5]], np.float32))
    >>> vectors.look_up(["White shark", "sea lion", "sea"])
    VectorLookup(table=array([[0.5, 0.5], [5. , 5. ]], dtype=float32), positions=array([0, 1]), missing=['sea'])
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
        return isinstance(name, str) and bool(self.find_rows(name))

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return int(self.table.shape[1])

    def find_rows(self, name: str) -> list[int]:
        """Return the rows whose mean is the vector of a name: one, or one per word; none if it is unknown.

        Parameters
        ----------
        name : str
            A word or several; an underscore is a blank.

        Returns
        -------
        list of int

        Examples
        --------
        >>> WordVectors(["new", "york", "New_York"], np.eye(3, dtype=np.float32)).find_rows("new york")
        [2]
        """
        pieces = normalise_label_name(name.replace("_", " ")).split(" ")
        phrase_row = self._find_row("_".join(pieces))
        if phrase_row is not None:
            return [phrase_row]
        rows = [row for piece in pieces if (row := self._find_row(piece)) is not None]
        return rows if len(rows) == len(pieces) else []

    def look_up(self, names: Iterable[str]) -> VectorLookup:
        """Look up the vectors of some names, and list the names without one.

        Parameters
        ----------
        names : iterable of str

        Returns
        -------
        VectorLookup
        """
        pairs = ((name, self._average_rows(rows) if (rows := self.find_rows(name)) else None) for name in names)
        return VectorLookup.from_pairs(pairs, self.dim)

    def vector(self, name: str) -> Float32:
        """Return the vector of a name.

        Parameters
        ----------
        name : str
            A word, or several, whose vector is the mean of theirs unless the phrase has one.

        Returns
        -------
        (dim,) float32

        Raises
        ------
        UnknownLabelError
            It has none; the message suggests similar words.
        """
        rows = self.find_rows(name)
        if not rows:
            unknown = next(
                (word for word in normalise_label_name(name).split(" ") if self._find_row(word) is None), name
            )
            raise UnknownLabelError(format_unknown_label(unknown, self.words, "word"))
        return self._average_rows(rows)

    def _average_rows(self, rows: list[int]) -> Float32:
        return np.asarray(np.mean(self.table[rows], axis=0, dtype=np.float32))

    def _find_row(self, word: str) -> int | None:
        ids = self._ids
        for variant in (word, word.lower(), "_".join(map(str.capitalize, word.split("_")))):
            if (row := ids.get(variant)) is not None:
                return row
        return None

    @cached_property
    def _ids(self) -> dict[str, int]:
        ids: dict[str, int] = {word: row for row, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            duplicate = next(word for row, word in enumerate(self.words) if ids[word] != row)
            raise InputError(f"the word {duplicate!r} comes twice; give every word one vector")
        return ids
