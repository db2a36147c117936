"""Names of labels: normalisation, and numbers that never change."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, UnknownLabelError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.vocabulary.encoding_repair import repair_name
from wsabie.vocabulary.name_suggestions import format_unknown_label

_MAX_MARKS = 100
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Break and direction marks: names that differ only in these look the same."""
_CONTROL = re.compile("[\0-\x1f]")


def normalise_label_name(name: str) -> str:
    """Normalise a name: Unicode NFC, single spaces inside, none around, no invisible marks; case is kept.

    Joiners stay (Persian has U+200C). A name that was read in a wrong encoding is repaired where control characters
    show it; the repair is logged.

    Raises
    ------
    InputError
        The name holds half of a surrogate pair, which no file can store, a control character, or more than 100 marks
        on one letter.

    Examples
    --------
    >>> normalise_label_name("  great\\t white  shark ")
    'great white shark'
    >>> len(normalise_label_name("e\\u0301")), normalise_label_name("\\ufeffas\\u00adsistent")
    (1, 'assistent')
    """
    if name.isascii():
        spaced = " ".join(name.split())
        _refuse_controls(spaced)
        return name if name == spaced else spaced  # the same object, so that memory holds a shared name once
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the name {name[:60]!a} is not valid Unicode text; repair its encoding") from error
    name = repair_name(name)
    if has_excessive_marks(name):
        raise InputError(f"the name {name[:60]!a} has more than {_MAX_MARKS} marks on one letter; take them out")
    spaced = " ".join(unicodedata.normalize("NFC", _INVISIBLE.sub("", name)).split())
    _refuse_controls(spaced)
    return spaced


def _refuse_controls(name: str) -> None:
    if not name.isprintable() and _CONTROL.search(name):
        raise InputError(f"{name[:40]!r} cannot be a label; take the control character out of it")


def has_excessive_marks(text: str) -> bool:
    """Return whether a letter has more than 100 marks: the time of Unicode's NFC grows with their square."""
    return len(text) > _MAX_MARKS and _compile_marks_pattern().search(text) is not None


@cache
def _compile_marks_pattern() -> re.Pattern[str]:
    marks = "".join(letter for code in range(0x300, 0x1F000) if unicodedata.combining(letter := chr(code)))
    return re.compile(f"[{marks}]{{{_MAX_MARKS + 1}}}")


@dataclass(frozen=True)
class VocabularyEdits:
    """Aliases of labels and replacements of merged and removed labels, as a model folder holds them."""

    aliases: dict[str, int]
    retired: dict[str, int]


class Vocabulary:
    """Label names and their numbers; names are only appended, so that a number never changes its meaning.

    Parameters
    ----------
    names : iterable of str
        Names in the order of their numbers, which begin with 0.

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

    A label may be renamed or merged into another. Its number stays, and its old names lead to the label it became.

    >>> words.merge("dog", ["sea lion"]).tolist()
    [2]
    >>> words.ids(["sea lion", "dog"]).tolist(), words.current_ids().tolist()
    ([0, 0], [0, 1, 0])
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        self._replacements: dict[int, int] = {}  # merged label -> its target, removed label -> -1
        self.add(names)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and normalise_label_name(name) in self._ids

    def copy(self) -> "Vocabulary":
        """Return an independent copy."""
        duplicate = Vocabulary()
        vars(duplicate).update({name: table.copy() for name, table in vars(self).items()})
        return duplicate

    @property
    def is_numbered(self) -> bool:
        """True if the names are just the numbers: "0", "1", ..."""
        return all(name == str(number) for number, name in enumerate(self._names))

    def find(self, name: str) -> int:
        """Return the number of a label by one of its names; -1 if there is none."""
        return self._ids.get(normalise_label_name(name), -1)

    def current_ids(self) -> Int64:
        """Return each label's current number, (n,) int64: the target if merged, -1 if removed."""
        current_ids = np.arange(len(self))
        for number, target in self._replacements.items():
            current_ids[number] = target
        return current_ids

    def retired_ids(self) -> Int64:
        """Return the numbers of merged and removed labels, int64."""
        return np.array(sorted(self._replacements), np.int64)

    def active_ids(self) -> Int64:
        """Return the numbers of the labels that are neither merged nor removed, int64."""
        return np.setdiff1d(np.arange(len(self)), self.retired_ids())

    def rename(self, old: str, new: str) -> int:
        """Rename a label and return its number; the old name still leads to it.

        Raises
        ------
        InputError
            There is no such label, `old` is not its current name, or the new name is empty or taken.
        """
        number, name = self._id(old), normalise_label_name(new)
        self._refuse_former(old, number, "rename")
        require(bool(name), f"the new name of {old!r} is empty; give a name")
        if self._ids.get(name, number) != number:
            raise InputError(f"another label is called {name!r} already; merge {old!r} into it instead")
        self._names[number] = name
        self._ids[name] = number
        return number

    def merge(self, into: str, names: Iterable[str]) -> Int64:
        """Merge labels into another one, and return their numbers, which stay reserved.

        Raises
        ------
        InputError
            There is no such label, or a label would be merged into itself.
        """
        target, merged_ids = self._id(into), self.ids(names)
        require(target not in merged_ids, f"{into!r} cannot be merged into itself; give other labels")
        self._retire(merged_ids, target)
        return np.unique(merged_ids)

    def remove(self, names: Iterable[str]) -> Int64:
        """Remove labels and return their numbers, which stay reserved; their names become free.

        A former name of a renamed or merged label is refused, to prevent accidental removal of the label it became.
        """
        names = [*names]
        numbers = self.ids(names)
        for name, number in zip(names, numbers.tolist(), strict=True):
            self._refuse_former(name, number, "remove")
        numbers = np.unique(numbers)
        self._retire(numbers, -1)
        return numbers

    def _refuse_former(self, name: str, number: int, action: str) -> None:
        """Refuse a former name of a renamed or merged label."""
        current_name = self._names[number]
        if normalise_label_name(name) != current_name:
            merged = any(self._names[retired_id] == normalise_label_name(name) for retired_id in self._replacements)
            became = "is part of" if merged else "is called"
            raise InputError(
                f"the label {name!r} {became} {current_name!r} now; {action} {current_name!r} if that is meant"
            )

    def _retire(self, retired_ids: Int64, into: int) -> None:
        numbers = set(retired_ids.tolist())
        affected_names = [name for name, number in self._ids.items() if number in numbers]
        for name in affected_names:
            if into < 0:
                del self._ids[name]
            else:
                self._ids[name] = into
        self._replacements |= {number: into for number, target in self._replacements.items() if target in numbers}
        self._replacements |= dict.fromkeys(numbers, into)

    def edits(self) -> JsonObject:
        """Return what `restore` needs beside the names, JSON-able; empty without any edit."""
        current_numbers = {name: number for number, name in enumerate(self._names)}
        aliases = {name: number for name, number in self._ids.items() if current_numbers.get(name) != number}
        retired = {str(number): into for number, into in sorted(self._replacements.items())}
        return {"aliases": aliases, "retired": retired} if aliases or retired else {}

    @classmethod
    def restore(cls, names: Iterable[str], edits: JsonObject) -> "Vocabulary":
        """Restore a saved vocabulary; edits that do not fit the names raise ValueError."""
        vocabulary = cls()
        vocabulary._names = [str(name) for name in names]
        n = len(vocabulary._names)
        vocabulary._replacements = {int(number): int(into) for number, into in edits["retired"].items()}
        vocabulary._ids = {name: i for i, name in enumerate(vocabulary._names) if i not in vocabulary._replacements}
        vocabulary._ids |= {str(name): int(number) for name, number in edits["aliases"].items()}
        numbers = {
            *vocabulary._replacements,
            *(into for into in vocabulary._replacements.values() if into >= 0),
            *vocabulary._ids.values(),
        }
        if not all(0 <= number < n for number in numbers) or {*vocabulary._ids.values()} & {*vocabulary._replacements}:
            raise ValueError("the other names of labels do not agree with the labels")
        return vocabulary

    def add(self, names: Iterable[str]) -> Int64:
        """Append names and return their new numbers, int64; nothing is added when one of them is refused.

        Raises
        ------
        InputError
            A name is empty, not text, or exists already (write it once, or look it up with `ids`).
        """
        fresh: dict[str, int] = {}
        for raw in names:
            if not isinstance(raw, str):
                raise InputError(f"the label name {raw!r} is {type(raw).__name__}, not text; give names as texts")
            name = normalise_label_name(str(raw))  # NumPy's str prints and pickles differently
            if not name:
                raise InputError(f"label {len(self) + len(fresh)} has an empty name; give every label a name")
            if name in self._ids or name in fresh:
                raise InputError(f"the label name {name!r} comes twice; give every label a name of its own")
            fresh[name] = len(self) + len(fresh)
        self._names.extend(fresh)
        self._ids.update(fresh)
        return np.fromiter(fresh.values(), np.int64, len(fresh))

    def ids(self, names: Iterable[str]) -> Int64:
        """Return the numbers of `names`, int64, in their order.

        Raises
        ------
        UnknownLabelError
            There is no such label; the message suggests the closest names.
        """
        return np.array([self._id(name) for name in names], np.int64)

    def names(self, ids: Iterable[int]) -> list[str]:
        """Return the names of label numbers, in their order.

        Raises
        ------
        InputError
            No label has one of the numbers.
        """
        numbers = [int(i) for i in ids]
        for i in numbers:
            if not 0 <= i < len(self):
                raise InputError(f"there is no label number {i}; the {len(self):,} labels are numbered from 0")
        return [self._names[i] for i in numbers]

    def _id(self, name: str) -> int:
        number = self._ids.get(normalise_label_name(name))
        if number is None:
            raise UnknownLabelError(format_unknown_label(name, list(self._ids)))
        return number
