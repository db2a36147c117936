"""WordNet as documents: a synset is its words and its gloss, and its label the lexicographers' category.

Those of one file `data.noun`, `data.verb`, `data.adj` or `data.adv`, or of a folder that holds such files. The id is
the synset, such as n01440764, the text "tench, Tinca tinca | freshwater dace-like game fish of Europe ..."; examples
of use, which stand in quotes, are a part of it unless they are left out. The category is noun.animal and its like.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from wsabie.sources.build import BadRow
from wsabie.sources.documents import Documents, Verdict, documents_of, encoded
from wsabie.sources.records import Item
from wsabie.sources.text import lines_up_to, shown
from wsabie.sources.wordnet import LONGEST, SYNSET, Synset, parse_synset, synset_files
from wsabie.storage.rejects import Rejects

_EXAMPLE = re.compile(r"(;\s*)?\"[^\"]*\"")


def read_glosses(
    path: Path, *, labels_from: str = "auto", examples: bool = True, rejects: Rejects | None = None
) -> Documents:
    """The synsets of WordNet's files as documents.

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
    read = partial(_read, synset_files(path), labels_from != "none", examples)
    return documents_of(path, read, Rejects() if rejects is None else rejects)


def looks_like_glosses(content: bytes) -> bool:
    """Whether the beginning of a file is that of WordNet's synsets."""
    return SYNSET.search(content) is not None


def _read(files: list[Path], labelled: bool, examples: bool) -> Iterator[tuple[str, Verdict]]:
    for file in files:
        for number, line in lines_up_to(file, LONGEST):
            if line is None or not line.startswith(b"  "):  # the licence
                yield f"{shown(file)}:{number}", _verdict(line, labelled, examples)


def _verdict(line: bytes | None, labelled: bool, examples: bool) -> Verdict:
    try:
        synset = parse_synset((line or b"").decode())
        return Item(synset.id, encoded(text_of(synset, examples)), (synset.category,) if labelled else ())
    except BadRow as bad:
        return bad
    except ValueError:
        return BadRow("line that is no synset")


def text_of(synset: Synset, examples: bool = True) -> str:
    """What a synset says: its words, a bar, its gloss.

    Examples
    --------
    >>> dying = parse_synset('00003939 00 a 01 dying 0 000 | about to be no more; "a dying man"; "his dying wish"  ')
    >>> text_of(dying)
    'dying | about to be no more; "a dying man"; "his dying wish"'
    >>> text_of(dying, examples=False)
    'dying | about to be no more'
    """
    words = ", ".join(word.replace("_", " ") for word in synset.words)
    gloss = synset.gloss if examples else _EXAMPLE.sub("", synset.gloss).strip()
    return f"{words} | {gloss}"
