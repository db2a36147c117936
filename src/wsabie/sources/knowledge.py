"""Files of what is known about labels: WordNet's, Open Images' hierarchy, translations of synsets, any list of pairs.

Translations are the files of the Open Multilingual Wordnet, "00001740-n TAB fra:lemma TAB entite", whose synsets are
WordNet 3.0's. A table of labels has a label and the id that it means on each line, with a tab between them.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.labels.knowledge import Knowledge, direction
from wsabie.labels.matching import Matched
from wsabie.sources.is_a import read_hierarchy
from wsabie.sources.open_images import names_beside
from wsabie.sources.open_images_tree import TREE, tree_pairs
from wsabie.sources.pairs import read_couples
from wsabie.sources.text import head, numbered_lines, reading, shown, telling_lines
from wsabie.sources.wordnet import (
    LONGEST,
    PROLOG,
    SYNSET,
    WORDS,
    index_of,
    prolog_facts,
    senses_in_index,
    synsets,
    words_of_synsets,
)
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects

FILES = ("data.noun", "data.verb")
OTHERS = ("words.txt", "wordnet.is_a.txt", "wn_hyp.pl", "wn_ins.pl", "wn_mp.pl", "wn_mm.pl", "wn_ms.pl")
_TRANSLATED = re.compile(rb"(?m)^\d{8}-[nvasr]\t(\w+:)?(lemma|def|exe)\b")
_LEMMA = re.compile(r"(\d{8})-([nvasr])\t(?:(\w+):)?lemma\t(.+)")
log = logging.getLogger("wsabie")


def read_knowledge(
    *paths: str | Path, relations: Mapping[str, str | Path] | None = None, rejects: Rejects | None = None
) -> Knowledge:
    """What some files know of labels; they complete each other.

    Parameters
    ----------
    *paths : str or Path
        A folder of WordNet's (`data.noun`, `data.verb` with their indexes; or `words.txt` and Prolog lists), or one
        such file; Open Images' hierarchy; translations; any other is-a list that `read_hierarchy` takes.
    relations : mapping of str to (str or Path), or None
        Lists of pairs (id TAB id), by the relation that they state, or its inverse: those of "has-part" are object TAB
        part.
    rejects : Rejects or None
        Lists lines of these that are no pairs.

    Raises
    ------
    InputError
        Missing, nothing of the kind, or a line that cannot be read: one sentence with file and line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kinds, parts = Path(folder) / "kinds.tsv", Path(folder) / "parts.tsv"
    ...     _ = kinds.write_text("car\\tvehicle\\n"), parts.write_text("wheel\\tvehicle\\n")
    ...     known = read_knowledge(kinds, relations={"part-of": parts})
    >>> known.related("vehicle", "has-kind"), known.related("vehicle", "has-part")
    (['car'], ['wheel'])
    """
    found = Knowledge()
    for path in map(Path, paths):
        with reading(path):
            is_folder = path.is_dir()
        for file in _files(path) if is_folder else [path]:
            _read(file, found)
    for relation, pairs in (relations or {}).items():
        stated, inverse = direction(relation)
        for one, other in read_couples(Path(pairs), rejects=rejects):
            found.relate(stated, *((other, one) if inverse else (one, other)))
    if not len(found):
        raise InputError("nothing is known of any label; give WordNet's folder, or a list of pairs")
    return found


def read_label_table(path: str | Path) -> dict[str, str]:
    """What labels mean, by hand: label TAB id on each line.

    An id of "-" (here "") says that the label means nothing that is known; lines without an id say nothing.

    Raises
    ------
    InputError
        Missing, or a line without a label; the sentence names it.
    """
    path, table = Path(path), dict[str, str]()
    for place, (number, raw) in enumerate(telling_lines(path, LONGEST)):
        where = f"{shown(path)}:{number}"
        try:
            label, concept, *_ = [*(cell.strip() for cell in raw.decode("utf-8").split("\t")), ""]
        except UnicodeDecodeError as error:
            raise InputError(f"{where} is not UTF-8; write the table in UTF-8") from error
        if not place and (label, concept) == ("label", "id"):
            continue
        if not label:
            raise InputError(f"{where} has no label; write a label, a tab and its id")
        if concept:
            table[label] = concept.removeprefix("-")
    return table


def write_label_table(path: Path, matched: Matched) -> None:
    """Write what labels mean as `read_label_table` reads it, with more for the eye: how it was found, name, gloss."""
    known = matched.knowledge
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write("label\tid\thow\tname\tgloss\n")
        for label, concept, how in zip(matched.labels, matched.concepts, matched.how, strict=True):
            told = ("", "") if concept is None else (known.name(concept), known.concept(concept).gloss)
            file.write("\t".join([label, concept or "", how, *told]) + "\n")


def _files(folder: Path) -> list[Path]:
    """WordNet's files in a folder; the lists of pairs of the other distributions where its own are missing."""
    for names in (FILES, OTHERS):
        if files := [folder / name for name in names if (folder / name).is_file()]:
            lists = {file.name for file in files}
            return [file for file in files if file.name != "wordnet.is_a.txt" or "wn_hyp.pl" not in lists]
    raise InputError(
        f"{shown(folder)} holds no data.noun, words.txt or wn_hyp.pl; give a folder of WordNet's, or files"
    )


def _read(path: Path, found: Knowledge) -> None:
    start = head(path)
    read = next((read for looks_like, read in _FORMATS if looks_like.search(start)), _pairs)
    read(path, found)


def _synsets(path: Path, found: Knowledge) -> None:
    for synset in synsets(path):
        found.add(synset.id, synset.words, synset.gloss, "en")
        for relation, other in synset.related:
            found.relate(relation, synset.id, other)
    index = index_of(path)
    if index == path or not index.is_file():
        log.warning("there is no index beside %s: a word means its first synset there, not its most frequent", path)
        return
    for lemma, senses in senses_in_index(index):
        found.rank_senses(lemma, senses)


def _facts(path: Path, found: Knowledge) -> None:
    for relation, one, other in prolog_facts(path):
        found.relate(relation, one, other)


def _words(path: Path, found: Knowledge) -> None:
    for synset, words in words_of_synsets(path):
        found.add(synset, words, language="en")


def _tree(path: Path, found: Knowledge) -> None:
    for relation, one, other in tree_pairs(path):
        found.relate(relation, one, other)
    for code, name in names_beside(path).items():
        if code in found:
            found.add(code, [name], language="en")


def _translations(path: Path, found: Knowledge) -> None:
    language = ""
    for number, raw in numbered_lines(path, LONGEST):
        line = raw.decode("utf-8", "replace")
        if line.startswith("#"):
            language = language or line.split("\t")[1].strip() if "\t" in line else language
        elif entry := _LEMMA.fullmatch(line):
            found.add(entry[2] + entry[1], [entry[4]], language=entry[3] or language)
        elif line.strip() and not _TRANSLATED.match(raw):
            raise InputError(f"{shown(path)}:{number} is no synset, kind and word with tabs between them; take it out")


def _pairs(path: Path, found: Knowledge) -> None:
    for one, other in read_hierarchy(path).pairs():
        found.relate("is-a", one, other)


_FORMATS: Sequence[tuple[re.Pattern[bytes], Callable[[Path, Knowledge], None]]] = (
    (SYNSET, _synsets),
    (PROLOG, _facts),
    (_TRANSLATED, _translations),
    (WORDS, _words),
    (TREE, _tree),
)


def relation_pairs(path: str | Path, relation: str) -> Iterator[tuple[str, str]]:
    """The pairs of one relation of WordNet or Open Images, one by one; nothing is held.

    Parameters
    ----------
    path : str or Path
        A folder or file, as `read_knowledge` takes them.
    relation : str
        "is-a", "instance-of", "part-of", "member-of" or "substance-of", or the inverse of one, such as "has-part".

    Raises
    ------
    InputError
        As `read_knowledge`.
    """
    path, (stated, inverse) = Path(path), direction(relation)
    with reading(path):
        files = _files(path) if path.is_dir() else [path]
    for file in files:
        for name, one, other in _stated(file):
            if name == stated:
                yield (other, one) if inverse else (one, other)


def _stated(path: Path) -> Iterator[tuple[str, str, str]]:
    start = head(path)
    if SYNSET.search(start):
        return ((relation, synset.id, other) for synset in synsets(path) for relation, other in synset.related)
    if PROLOG.search(start):
        return prolog_facts(path)
    return tree_pairs(path) if TREE.search(start) else iter(())
