"""WordNet's own files: `data.noun`, the Prolog lists `wn_hyp.pl` and `wn_ins.pl`, ImageNet's `words.txt`.

Synsets are called as ImageNet calls them: "n" and the eight digits of their place in `data.noun` of WordNet 3.0, such
as n01440764; the Prolog files write 1 before these digits. Words name the synsets they stand in, and so does the whole
list of words ("tench, Tinca tinca"), as ImageNet's labels are written. Instances ("Paris" of "city") count as kinds.
"""

import re
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.labels.hierarchy import Hierarchy
from wsabie.sources.text import numbered_lines, shown

LONGEST = 1 << 20
SYNSET = re.compile(rb"(?m)^\d{8} \d\d [nvasr] [0-9a-f]{2} \S+ [0-9a-f] ")
PROLOG = re.compile(rb"(?m)^(hyp|ins)\((\d)(\d{8}),(\d)(\d{8})\)\.\s*$")
WORDS = re.compile(rb"(?m)^[nvasr]\d{8}\t(?![nvasr]\d{8}\s*$)\S")
_WNID = re.compile(r"[nvasr]\d{8}")
_KINDS = {1: "n", 2: "v", 3: "a", 4: "r", 5: "s"}
_UP = ("@", "@i")


def read_synsets(path: Path, found: Hierarchy) -> None:
    """Add the synsets of `data.noun` (or `data.verb`): their words, hypernyms and what they are instances of.

    Raises
    ------
    InputError
        A line is not one of a synset; the sentence names it.
    """
    for number, raw in numbered_lines(path, LONGEST):
        line = raw.decode("utf-8", "replace")
        if line.startswith("  "):  # the licence
            continue
        try:
            _add_synset(found, line.partition(" | ")[0].split(" "))
        except (IndexError, ValueError) as error:
            raise InputError(
                f"{shown(path)}:{number} is no line of a synset of WordNet; fetch the file again"
            ) from error


def _add_synset(found: Hierarchy, cells: list[str]) -> None:
    """One line: offset, file, kind, number of words in hex, (word, id) each, number of pointers, four cells each."""
    offset, kind, n_words = cells[0], cells[2], int(cells[3], 16)
    words = [cells[4 + 2 * i] for i in range(n_words)]
    at = 4 + 2 * n_words
    pointers = [cells[at + 1 + 4 * i : at + 5 + 4 * i] for i in range(int(cells[at]))]
    synset = _synset(kind, offset)
    _name(found, synset, words)
    for symbol, target, target_kind, _ in pointers:
        if symbol in _UP:
            found.add(synset, _synset(target_kind, target))


def read_prolog(path: Path, found: Hierarchy) -> None:
    """Add the pairs of `wn_hyp.pl` or `wn_ins.pl`: hyp(kind, more general), ins(instance, class). They hold no words.

    Raises
    ------
    InputError
        A line is no such fact; the sentence names it.
    """
    for number, line in numbered_lines(path, LONGEST):
        if not line.strip():
            continue
        fact = PROLOG.fullmatch(line)
        low, high = (int(fact[2]), int(fact[4])) if fact else (0, 0)
        if fact is None or low not in _KINDS or high not in _KINDS:
            raise InputError(f"{shown(path)}:{number} is no fact like hyp(100001930,100001740).; take it out")
        found.add(_KINDS[low] + fact[3].decode(), _KINDS[high] + fact[5].decode())


def read_words(path: Path, found: Hierarchy) -> None:
    """Add the names of ImageNet's `words.txt`: synset TAB words with commas between them. It holds names and no pairs.

    Raises
    ------
    InputError
        A line is something else; the sentence names it.
    """
    for number, line in numbered_lines(path, LONGEST):
        synset, _, words = line.decode("utf-8", "replace").partition("\t")
        if not _WNID.fullmatch(synset) or not words.strip():
            raise InputError(f"{shown(path)}:{number} is not a synset, a tab and its words; correct the line")
        _name(found, synset, [word for word in words.split(", ") if word.strip()])


def is_synset(name: str) -> bool:
    """Whether this is the name of a synset, such as n01440764."""
    return _WNID.fullmatch(name) is not None


def _synset(kind: str, offset: str) -> str:
    if kind not in "nvasr" or len(offset) != 8 or not offset.isdigit():
        raise ValueError
    return kind + offset


def _name(found: Hierarchy, synset: str, words: list[str]) -> None:
    # an adjective's place in a phrase, galore(ip), is no part of the word
    words = [re.sub(r"\((a|p|ip)\)$", "", word) for word in words]
    found.also_called(synset, words if len(words) == 1 else [*words, ", ".join(words)])
