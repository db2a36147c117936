"""WordNet as documents: text is the words and gloss of a synset, the label its category.

Those of one file `data.noun`, `data.verb`, `data.adj` or `data.adv`, or of a folder that holds such files. The id is
the synset, such as n01440764, the text "tench, Tinca tinca | freshwater dace-like game fish of Europe ..."; examples
of use, which stand in quotes, are a part of it unless they are left out. The category is noun.animal and its like.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from wsabie.io.formats.documents import DocumentResult, DocumentSource, encode_text, scan_documents
from wsabie.io.formats.wordnet import LONGEST, SYNSET, Synset, find_synset_files, parse_synset
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path, iterate_bounded_numbered_lines
from wsabie.io.records import Item
from wsabie.storage.rejects import Rejects

_EXAMPLE = re.compile(r"(;\s*)?\"[^\"]*\"")


def read_glosses(
    path: Path, *, labels_from: str = "auto", examples: bool = True, rejects: Rejects | None = None
) -> DocumentSource:
    """Read the synsets of WordNet's files as documents.

    Parameters
    ----------
    path : Path
        A file, or a folder of them.
    labels_from : str
        "none": without their categories.
    examples : bool
        Keep what stands in quotes behind a gloss.
    rejects : Rejects or None
        Lists lines that are no synsets.

    Raises
    ------
    InputError
        Missing, or not a single synset.
    """
    iterate_results = partial(_iterate_documents, find_synset_files(path), labels_from != "none", examples)
    return scan_documents(path, iterate_results, Rejects() if rejects is None else rejects)


def is_wordnet_glosses(content: bytes) -> bool:
    """Return whether a file begins like a list of WordNet's synsets."""
    return SYNSET.search(content) is not None


def _iterate_documents(files: list[Path], labelled: bool, examples: bool) -> Iterator[tuple[str, DocumentResult]]:
    for file in files:
        for number, line in iterate_bounded_numbered_lines(file, LONGEST):
            if line is None or not line.startswith(b"  "):  # the licence
                yield f"{format_path(file)}:{number}", _parse_document(line, labelled, examples)


def _parse_document(line: bytes | None, labelled: bool, examples: bool) -> DocumentResult:
    try:
        synset = parse_synset((line or b"").decode())
        return Item(
            synset.id, encode_text(format_synset_text(synset, examples)), (synset.category,) if labelled else ()
        )
    except RowError as error:
        return error
    except ValueError:
        return RowError("line that is no synset")


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
