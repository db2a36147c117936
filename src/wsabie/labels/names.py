"""Names of labels: how they are written, which one was meant, and their numbers that never change."""

import heapq
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError, UnknownLabelError

_LOOKED_AT = 40  # candidates that survive the quick comparison
_MARKS = 100
_ALIKE = 0.6  # of any two short words half of the letters agree by chance


def normalise(name: str) -> str:
    """One spelling for one name: Unicode NFC, no blanks around it, single spaces inside; case is kept.

    Raises
    ------
    InputError
        The name holds half of a surrogate pair, which no file can store, or more than 100 marks on one letter.

    Examples
    --------
    >>> normalise("  great\\t white  shark ")
    'great white shark'
    >>> len(normalise("e\\u0301"))
    1
    """
    if name.isascii():
        spelt = " ".join(name.split())
        return name if name == spelt else spelt  # one text in memory for a name that is known elsewhere too
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the name {name[:60]!a} is not valid Unicode text; repair its encoding") from error
    if piles_marks(name):
        raise InputError(f"the name {name[:60]!a} has more than {_MARKS} marks on one letter; take them out")
    return " ".join(unicodedata.normalize("NFC", name).split())


def piles_marks(text: str) -> bool:
    """Tell whether a letter has more than 100 marks: the time of Unicode's NFC grows with their square."""
    return len(text) > _MARKS and _piled().search(text) is not None


@cache
def _piled() -> re.Pattern[str]:
    marks = "".join(letter for code in range(0x300, 0x1F000) if unicodedata.combining(letter := chr(code)))
    return re.compile(f"[{marks}]{{{_MARKS + 1}}}")


def closest(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """The up to `n` names that look most like `name`, best first; ties in alphabetical order.

    All names pass a quick comparison of letter pairs, the best of them a slow one, so that a million names
    take seconds and not minutes. Case is ignored.

    Examples
    --------
    >>> closest("dolfin", ["fin whale", "dolphin", "doll", "fish"], n=2)
    ['dolphin', 'doll']
    """
    wanted = normalise(name).casefold()
    pairs = _letter_pairs(wanted)

    def rough(candidate: str) -> float:
        other = _letter_pairs(candidate.casefold())
        return 2 * len(pairs & other) / (len(pairs) + len(other))

    def exact(candidate: str) -> float:
        return SequenceMatcher(None, wanted, candidate.casefold()).ratio()

    alike = [(exact(c), c) for c in heapq.nlargest(_LOOKED_AT, names, key=rough)]
    return [c for score, c in sorted(alike, key=lambda pair: (-pair[0], pair[1])) if score >= _ALIKE][:n]


def _letter_pairs(text: str) -> set[tuple[str, str]]:
    return set(zip(f" {text}", f"{text} ", strict=True))


@dataclass(frozen=True)
class VocabularyEdits:
    """Other names of labels by number, and what merged and removed labels became, as a model folder holds them."""

    aliases: dict[str, int]
    retired: dict[str, int]


class Vocabulary:
    """Label names and their numbers; names are only ever appended, so a number keeps its meaning for ever.

    Parameters
    ----------
    names : iterable of str
        In the order of their numbers, which begin with 0.

    Raises
    ------
    InputError
        A name is empty or comes twice.

    Examples
    --------
    >>> words = Vocabulary(["dog", "cat"])
    >>> words.add(["sea  lion"]).tolist()
    [2]
    >>> words.ids(["sea lion", "dog"]).tolist()
    [2, 0]
    >>> words.names([1])
    ['cat']

    A label may get another name, or be merged into another: its number stays, and the old names lead to what it became.

    >>> words.merge("dog", ["sea lion"]).tolist()
    [2]
    >>> words.ids(["sea lion", "dog"]).tolist(), words.now().tolist()
    ([0, 0], [0, 1, 0])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        self._gone: dict[int, int] = {}  # what merged and removed ones became
        self.add(names)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and normalise(name) in self._ids

    def copy(self) -> "Vocabulary":
        """The same names and numbers, to which others may be added."""
        other = Vocabulary()
        other._names, other._ids, other._gone = self._names.copy(), self._ids.copy(), self._gone.copy()
        return other

    @property
    def numbered(self) -> bool:
        """Whether the names are nothing but the numbers: "0", "1", ..."""
        return all(name == str(number) for number, name in enumerate(self._names))

    def find(self, name: str) -> int:
        """The number of a label by one of its names; -1 where there is none."""
        return self._ids.get(normalise(name), -1)

    def now(self) -> Int64:
        """What became of each number, (n,) int64: of a merged label the one it went into, -1 where it was removed."""
        found = np.arange(len(self))
        for number, into in self._gone.items():
            found[number] = into
        return found

    def retired(self) -> Int64:
        """Numbers of labels that were merged or removed, int64."""
        return np.array(sorted(self._gone), np.int64)

    def living(self) -> Int64:
        """Numbers of all other labels, int64."""
        return np.setdiff1d(np.arange(len(self)), self.retired())

    def rename(self, old: str, new: str) -> int:
        """Give a label another name, and return its number; the old one still leads to it.

        Raises
        ------
        InputError
            There is no such label, or it has another name by now, or the new name is empty or another label's.
        """
        number, name = self._id(old), normalise(new)
        self._refuse_former(old, number, "rename")
        if not name:
            raise InputError(f"the new name of {old!r} is empty; give a name")
        if self._ids.get(name, number) != number:
            raise InputError(f"another label is called {name!r} already; merge {old!r} into it instead")
        self._names[number] = name
        self._ids[name] = number
        return number

    def merge(self, into: str, others: Iterable[str]) -> Int64:
        """Let labels be another one from now on, and return their numbers, which stay theirs.

        Raises
        ------
        InputError
            There is no such label, or a label would be merged into itself.
        """
        kept, gone = self._id(into), self.ids(others)
        if kept in gone:
            raise InputError(f"{into!r} cannot be merged into itself; give other labels")
        self._retire(gone, kept)
        return np.unique(gone)

    def remove(self, names: Iterable[str]) -> Int64:
        """Let labels be none from now on, and return their numbers, which nothing else gets; the names are free.

        A name that a label had before it was renamed or merged is refused, so that nobody removes more than was meant.
        """
        names = [*names]
        gone = self.ids(names)
        for name, number in zip(names, gone.tolist(), strict=True):
            self._refuse_former(name, number, "remove")
        gone = np.unique(gone)
        self._retire(gone, -1)
        return gone

    def _refuse_former(self, name: str, number: int, doing: str) -> None:
        """Refuse a name that a label had before it was renamed or merged, where its own is meant."""
        now = self._names[number]
        if normalise(name) != now:
            merged = any(self._names[other] == normalise(name) for other in self._gone)
            became = "is part of" if merged else "is called"
            raise InputError(f"the label {name!r} {became} {now!r} now; {doing} {now!r} if that is meant")

    def _retire(self, gone: Int64, into: int) -> None:
        numbers = set(gone.tolist())
        led = [name for name, number in self._ids.items() if number in numbers]
        for name in led:
            if into < 0:
                del self._ids[name]
            else:
                self._ids[name] = into
        self._gone |= {number: into for number, kept in self._gone.items() if kept in numbers}
        self._gone |= dict.fromkeys(numbers, into)

    def edits(self) -> dict[str, Any]:
        """What `restored` needs beside the names, JSON-able; empty where nothing was renamed, merged or removed."""
        own = {name: number for number, name in enumerate(self._names)}
        others = {name: number for name, number in self._ids.items() if own.get(name) != number}
        gone = {str(number): into for number, into in sorted(self._gone.items())}
        return {"aliases": others, "retired": gone} if others or gone else {}

    @classmethod
    def restored(cls, names: Iterable[str], edits: Mapping[str, Any]) -> "Vocabulary":
        """The names and numbers that were saved; what does not agree raises ValueError."""
        found = cls()
        found._names = [str(name) for name in names]
        n = len(found._names)
        found._gone = {int(number): int(into) for number, into in edits["retired"].items()}
        found._ids = {name: i for i, name in enumerate(found._names) if i not in found._gone}
        found._ids |= {str(name): int(number) for name, number in edits["aliases"].items()}
        told = {*found._gone, *(into for into in found._gone.values() if into >= 0), *found._ids.values()}
        if not all(0 <= number < n for number in told) or {*found._ids.values()} & {*found._gone}:
            raise ValueError("the other names of labels do not agree with the labels")
        return found

    def add(self, names: Iterable[str]) -> Int64:
        """Append names and return their new numbers, int64; nothing is added when one of them is refused.

        Raises
        ------
        InputError
            A name is empty or no text, or is there already (write it once, or look it up with `ids`).
        """
        fresh: dict[str, int] = {}
        for raw in names:
            if not isinstance(raw, str):
                raise InputError(f"the label name {raw!r} is {type(raw).__name__} and no text; give names as texts")
            name = normalise(str(raw))  # not NumPy's text, which is shown and stored in another way
            if not name:
                raise InputError(f"label {len(self) + len(fresh)} has an empty name; give every label a name")
            if name in self._ids or name in fresh:
                raise InputError(f"the label name {name!r} comes twice; give every label a name of its own")
            fresh[name] = len(self) + len(fresh)
        self._names.extend(fresh)
        self._ids.update(fresh)
        return np.fromiter(fresh.values(), np.int64, len(fresh))

    def ids(self, names: Iterable[str]) -> Int64:
        """Numbers of `names`, int64, in their order.

        Raises
        ------
        UnknownLabelError
            One of them was never added; the message suggests the closest ones.
        """
        return np.array([self._id(name) for name in names], np.int64)

    def names(self, ids: Iterable[int]) -> list[str]:
        """Names of label numbers, in their order.

        Raises
        ------
        InputError
            A number is not that of a label.
        """
        wanted = [int(i) for i in ids]
        for i in wanted:
            if not 0 <= i < len(self):
                raise InputError(f"there is no label number {i}; the {len(self):,} labels are numbered from 0")
        return [self._names[i] for i in wanted]

    def _id(self, name: str) -> int:
        found = self._ids.get(normalise(name))
        if found is None:
            raise UnknownLabelError(unknown_label(name, list(self._ids)))
        return found


def unknown_label(name: str, names: Sequence[str], what: str = "label") -> str:
    """The sentence for a label, or something else with a name, that is not among `names`.

    Examples
    --------
    >>> unknown_label("dolfin", ["dolphin", "ship"])
    "there is no label 'dolfin'; did you mean 'dolphin'?"
    >>> unknown_label("dolphin", [])
    "there is no label 'dolphin', and no other one yet"
    """
    if not names:
        return f"there is no {what} '{name}', and no other one yet"
    near = [f"'{c}'" for c in closest(name, names)]
    if not near:
        return f"there is no {what} '{name}' among the {len(names):,} {what}s, nor one like it; check the spelling"
    listed = near[0] if len(near) == 1 else f"{', '.join(near[:-1])} or {near[-1]}"
    return f"there is no {what} '{name}'; did you mean {listed}?"
