"""WordNet's files `data.noun`, `index.noun` and `wn_hyp.pl`, and ImageNet's `words.txt`.

Synsets have ImageNet's names: "n" and the eight digits of their offset in `data.noun` of WordNet 3.0, such as
n01440764; the Prolog files write 1 before these digits. Words name the synsets they stand in, and so does the
whole list of words ("tench, Tinca tinca"), as ImageNet's labels are written. Instances ("Paris" of "city")
count as kinds.

As documents, synsets have their words and gloss as text ("tench, Tinca tinca | freshwater dace-like game fish of
Europe ...") and their category (noun.animal and its like) as label. Examples of use, which stand in quotes, are a part
of the text unless they are left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from wsabie.core.errors import InputError
from wsabie.io.formats.documents import encode_text
from wsabie.io.parsers.text_files import iterate_bounded_numbered_lines, iterate_numbered_lines
from wsabie.io.records import Item, ItemStream, scan_items
from wsabie.storage.rejects import Rejects, RowError

_T = TypeVar("_T")
MAX_LINE_BYTES = 1 << 20
SYNSET = re.compile(rb"(?m)^\d{8} \d\d [nvasr] [0-9a-f]{2} \S+ [0-9a-f] ")
PROLOG = re.compile(rb"(?m)^(hyp|ins|mp|mm|ms)\((\d)(\d{8}),(\d)(\d{8})\)\.\s*$")
WORDS = re.compile(rb"(?m)^[nvasr]\d{8}\t(?![nvasr]\d{8}\s*$)\S")
_PLACE = re.compile(r"\((a|p|ip)\)$")
_WNID = re.compile(r"[nvasr]\d{8}")
_KINDS = {1: "n", 2: "v", 3: "a", 4: "r", 5: "s"}
IS_A, INSTANCE_OF = "is-a", "instance-of"
UP = (IS_A, INSTANCE_OF)
_SYMBOLS = {"@": IS_A, "@i": INSTANCE_OF, "#p": "part-of", "#m": "member-of", "#s": "substance-of"}
"""Pointers from the smaller to the larger; every one of them stands in the file in the other direction too."""
_FACTS = {"hyp": IS_A, "ins": INSTANCE_OF, "mp": "part-of", "mm": "member-of", "ms": "substance-of"}
_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_CATEGORIES = (
    "adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact", "noun.attribute",
    "noun.body", "noun.cognition", "noun.communication", "noun.event", "noun.feeling", "noun.food", "noun.group",
    "noun.location", "noun.motive", "noun.object", "noun.person", "noun.phenomenon", "noun.plant", "noun.possession",
    "noun.process", "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time",
    "verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition", "verb.consumption",
    "verb.contact", "verb.creation", "verb.emotion", "verb.motion", "verb.perception", "verb.possession",
    "verb.social", "verb.stative", "verb.weather", "adj.ppl",
)  # fmt: skip
_EXAMPLE = re.compile(r"(;\s*)?\"[^\"]*\"")


class Synset(NamedTuple):
    """Line of `data.noun` or a similar file."""

    id: str
    category: str  # the lexicographers' file
    words: tuple[str, ...]
    related: tuple[tuple[str, str], ...]  # (relation, synset): "is-a", "instance-of", "part-of" and the like
    gloss: str


def list_facts(statement: Synset | tuple[str, str, str]) -> Sequence[tuple[str, str, str]]:
    """Return (relation, concept, larger concept) of a statement of a file."""
    if not isinstance(statement, Synset):
        return [statement]
    return [(relation, statement.id, target) for relation, target in statement.related]


def parse_synset(line: str) -> Synset:
    """Parse a line: offset, file, kind, words, pointers, | and a gloss.

    The number of words is in hex, each word has an id, each pointer four cells.

    Raises
    ------
    ValueError
        It is not such a line.

    Examples
    --------
    >>> parse_synset("00000300 05 n 02 toad 0 anuran 0 001 @ 00000200 n 0000 | hops")
    Synset(id='n00000300', category='noun.animal', words=('toad', 'anuran'), related=(('is-a', 'n00000200'),),
           gloss='hops')
    """
    data, _, gloss = line.partition(" | ")
    cells = data.split(" ")
    try:
        offset, file, kind, n_words = cells[0], int(cells[1]), cells[2], int(cells[3], 16)
        end_of_words = 4 + 2 * n_words
        # an adjective's place in a phrase, galore(ip), is not part of the word
        words = tuple(_PLACE.sub("", word) if word[-1:] == ")" else word for word in cells[4:end_of_words:2])
        n_pointers = int(cells[end_of_words])
        if len(words) != n_words or n_pointers > len(cells):
            raise ValueError("fewer words or pointers than promised")
        pointers = [cells[end_of_words + 1 + 4 * i : end_of_words + 5 + 4 * i] for i in range(n_pointers)]
        related = tuple(
            (_SYMBOLS[symbol], _make_synset_id(its_kind, target))
            for symbol, target, its_kind, _ in pointers
            if symbol in _SYMBOLS
        )
        return Synset(_make_synset_id(kind, offset), _CATEGORIES[file], words, related, gloss.strip())
    except IndexError as error:
        raise ValueError("too few cells") from error


def find_synset_files(path: Path) -> list[Path]:
    """Return the file itself, or those of a folder that hold synsets."""
    return [path / name for name in _FILES if (path / name).is_file()] if path.is_dir() else [path]


def iterate_is_a_pairs(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield (child, parent) of synsets in file order; nothing is held.

    Parameters
    ----------
    path : str or Path
        `data.noun`, `data.verb`, or a folder with such files.

    Raises
    ------
    InputError
        Missing, or a line is not one of a synset; the sentence names it.
    """
    for file in find_synset_files(Path(path)):
        for synset in iterate_synsets(file):
            yield from ((synset.id, target) for relation, target in synset.related if relation in UP)


def iterate_synsets(path: Path) -> Iterator[Synset]:
    """Yield the synsets of a file.

    Raises
    ------
    InputError
        A line is not one of a synset; the sentence names it.
    """
    return _iterate_parsed(path, parse_synset, "a synset of WordNet")


def _iterate_parsed(path: Path, parse: Callable[[str], _T], content: str, skip_blank: bool = False) -> Iterator[_T]:
    """Yield the parsed lines of a file behind its licence; `content` names them in an error."""
    for number, raw in iterate_numbered_lines(path, MAX_LINE_BYTES, skip_blank=skip_blank):
        if raw.startswith(b"  "):  # the licence
            continue
        try:
            yield parse(raw.decode("utf-8", "replace"))
        except (IndexError, ValueError) as error:
            raise InputError(f"{path}:{number} is not a line of {content}; fetch the file again") from error


def iterate_prolog_facts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (relation, synset, synset) of `wn_hyp.pl`, `wn_ins.pl`, `wn_mp.pl`, `wn_mm.pl` or `wn_ms.pl`.

    Raises
    ------
    InputError
        A line is not such a fact; the sentence names it.
    """
    for number, line in iterate_numbered_lines(path, MAX_LINE_BYTES, skip_blank=True):
        fact = PROLOG.fullmatch(line)
        low, high = (int(fact[2]), int(fact[4])) if fact else (0, 0)
        if fact is None or low not in _KINDS or high not in _KINDS:
            raise InputError(f"{path}:{number} is not a fact like hyp(100001930,100001740).; take it out")
        yield _FACTS[fact[1].decode()], _KINDS[low] + fact[3].decode(), _KINDS[high] + fact[5].decode()


def iterate_synset_words(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (synset, its words) of ImageNet's `words.txt`.

    Raises
    ------
    InputError
        A line is something else; the sentence names it.
    """
    for number, line in iterate_numbered_lines(path, MAX_LINE_BYTES):
        synset, _, words = line.decode("utf-8", "replace").partition("\t")
        if not _WNID.fullmatch(synset) or not words.strip():
            raise InputError(f"{path}:{number} is not a synset, a tab and its words; correct the line")
        yield synset, [word for word in words.split(", ") if word.strip()]


def get_index_path(path: Path) -> Path:
    """Return the index beside a file of synsets: `index.noun` of `data.noun`."""
    return path.with_name(path.name.replace("data", "index", 1))


def iterate_index_senses(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (lemma, its synsets, the most frequent sense first) of `index.noun` and similar files.

    Raises
    ------
    InputError
        A line is something else; the sentence names it.
    """
    return _iterate_parsed(path, _parse_senses, "WordNet's index", skip_blank=True)


def _parse_senses(line: str) -> tuple[str, list[str]]:
    cells = line.split()
    n, n_pointers = int(cells[2]), int(cells[3])
    offsets = cells[6 + n_pointers :]  # behind the pointers, two counts
    if not n or len(offsets) != n:
        raise ValueError("fewer senses than promised")
    return cells[0], [_make_synset_id(cells[1], offset) for offset in offsets]


def is_synset_name(name: str) -> bool:
    """Return True if this is the name of a synset, such as n01440764."""
    return _WNID.fullmatch(name) is not None


def _make_synset_id(kind: str, offset: str) -> str:
    if kind not in "nvasr" or len(offset) != 8 or not offset.isdigit():
        raise ValueError
    return kind + offset


def read_glosses(path: Path, *, labels_from: str = "auto", examples: bool = True, rejects: Rejects) -> ItemStream:
    """Read the synsets of WordNet's files as documents.

    Parameters
    ----------
    path : Path
        A file, or a folder of them.
    labels_from : str
        "none": without their categories.
    examples : bool
        Keep what stands in quotes behind a gloss.
    rejects : Rejects
        Lists lines that are not synsets.

    Raises
    ------
    InputError
        Missing, or not a single synset.
    """
    documents = partial(_iterate_documents, find_synset_files(path), labels_from != "none", examples)
    return scan_items(path, documents, rejects)


def is_wordnet_glosses(content: bytes) -> bool:
    """Return True if a file begins like a list of WordNet's synsets."""
    return SYNSET.search(content) is not None


def _iterate_documents(
    files: list[Path], labelled: bool, examples: bool, rejects: Rejects
) -> Iterator[tuple[str, Item]]:
    for file in files:
        for number, line in iterate_bounded_numbered_lines(file, MAX_LINE_BYTES):
            if line is not None and line.startswith(b"  "):  # the licence
                continue
            with rejects.catch(file, number):
                try:
                    synset = parse_synset((line or b"").decode())
                except ValueError as error:
                    raise RowError("line that is not a synset") from error
                content = encode_text(format_synset_text(synset, examples))
                yield f"{file}:{number}", Item(synset.id, content, (synset.category,) if labelled else ())


def format_synset_text(synset: Synset, examples: bool = True) -> str:
    """Return the text of a synset: its words, a bar, its gloss.

    Examples
    --------
    >>> dying = parse_synset('00003939 00 a 01 dying 0 000 | about to be no more; "a dying man"; "his dying wish"  ')
    >>> format_synset_text(dying)
    'dying | about to be no more; "a dying man"; "his dying wish"'
    >>> format_synset_text(dying, examples=False)
    'dying | about to be no more'
    """
    words = ", ".join(word.replace("_", " ") for word in synset.words)
    gloss = synset.gloss if examples else _EXAMPLE.sub("", synset.gloss).strip()
    return f"{words} | {gloss}"
