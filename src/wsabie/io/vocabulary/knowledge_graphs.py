"""Files of knowledge about labels: WordNet, Open Images, translations of synsets, pair lists.

Translations are the files of the Open Multilingual Wordnet, "00001740-n TAB fra:lemma TAB entite", whose
synsets are WordNet 3.0's. A table of labels has a label and the id of its concept on each line, with a tab
between them.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from wsabie.core.errors import InputError, require
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.io.formats.wordnet import MAX_LINE_BYTES, SYNSET, Synset, get_index_path, iterate_index_senses, list_facts
from wsabie.io.parsers import text_files
from wsabie.io.vocabulary.hierarchy_files import iterate_statements, read_hierarchy
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_matching import LabelConcepts
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph, parse_direction

FILES = ("data.noun", "data.verb")
FALLBACK_FILES = ("words.txt", "wordnet.is_a.txt", "wn_hyp.pl", "wn_ins.pl", "wn_mp.pl", "wn_mm.pl", "wn_ms.pl")
_TRANSLATED = re.compile(rb"(?m)^\d{8}-[nvasr]\t(\w+:)?(lemma|def|exe)\b")
_LEMMA = re.compile(r"(\d{8})-([nvasr])\t(?:(\w+):)?lemma\t(.+)")
log = logging.getLogger("wsabie")


def read_knowledge_graph(
    *paths: str | Path, relations: Mapping[str, str | Path] | None = None, rejects: Rejects | None = None
) -> KnowledgeGraph:
    """Read the knowledge of some files about labels; the files complete each other.

    Parameters
    ----------
    *paths : str or Path
        A folder of WordNet's (`data.noun`, `data.verb` with their indexes; or `words.txt` and Prolog lists), or one
        such file; Open Images' hierarchy; translations; any other is-a list that `read_hierarchy` takes.
    relations : mapping of str to (str or Path), or None
        Lists of pairs (id TAB id), by the relation that they state, or its inverse: those of "has-part" are object TAB
        part.
    rejects : Rejects or None
        Lists lines of these that are not pairs.

    Returns
    -------
    KnowledgeGraph

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
    ...     graph = read_knowledge_graph(kinds, relations={"part-of": parts})
    >>> graph.related("vehicle", "has-kind"), graph.related("vehicle", "has-part")
    (['car'], ['wheel'])
    """
    graph = KnowledgeGraph()
    for path in map(Path, paths):
        for file in _find_files(path):
            _read_file(file, graph)
    for relation, pairs in (relations or {}).items():
        stated, inverse = parse_direction(relation)
        for head, tail in read_id_pairs(Path(pairs), rejects=Rejects() if rejects is None else rejects):
            graph.relate(stated, *((tail, head) if inverse else (head, tail)))
    require(len(graph) > 0, "nothing is known of any label; give WordNet's folder, or a list of pairs")
    return graph


def read_label_table(path: str | Path) -> dict[str, str]:
    """Read the concepts of labels, assigned by hand: label TAB id on each line.

    An id of "-" (here "") means that the label has no known concept; lines without an id say nothing.

    Raises
    ------
    InputError
        Missing, or a line without a label; the sentence names it.
    """
    path, table = Path(path), dict[str, str]()
    for position, (number, raw) in enumerate(text_files.iterate_content_lines(path, MAX_LINE_BYTES)):
        label, concept, *_ = [*(cell.strip() for cell in text_files.decode_text(raw, path, number).split("\t")), ""]
        if not position and (label, concept) == ("label", "id"):
            continue
        if not label:
            raise InputError(f"{path}:{number} has no label; write a label, a tab and its id")
        if concept:
            table[label] = concept.removeprefix("-")
    return table


def write_label_table(path: Path, table: LabelConcepts) -> None:
    """Write concepts of labels for `read_label_table`, with method, name and gloss for readers."""
    knowledge = table.knowledge

    def lines() -> Iterator[str]:
        yield "label\tid\tmethod\tname\tgloss"
        for label, concept, method in zip(table.labels, table.concepts, table.methods, strict=True):
            details = ("", "") if concept is None else (knowledge.name(concept), knowledge.concept(concept).gloss)
            yield "\t".join([label, concept or "", method, *details])

    text_files.write_lines(path, lines())


def _find_files(path: Path) -> list[Path]:
    """Return a file, or a folder's files of WordNet: pair lists of other distributions where some lack."""
    with text_files.explain_input_errors(path):
        if not path.is_dir():
            return [path]
        for names in (FILES, FALLBACK_FILES):
            if files := [path / name for name in names if (path / name).is_file()]:
                lists = {file.name for file in files}
                return [file for file in files if file.name != "wordnet.is_a.txt" or "wn_hyp.pl" not in lists]
    raise InputError(f"{path} holds no data.noun, words.txt or wn_hyp.pl; give a folder of WordNet's, or files")


def _read_file(path: Path, graph: KnowledgeGraph) -> None:
    start = text_files.read_head(path)
    if _TRANSLATED.search(start):
        _read_translations(path, graph)
        return
    for statement in iterate_statements(path, start) or (("is-a", *pair) for pair in read_hierarchy(path).pairs()):
        if isinstance(statement, Synset):
            graph.add(statement.id, statement.words, statement.gloss, "en")
        for fact in list_facts(statement):
            graph.relate(*fact)
    if SYNSET.search(start):
        _rank_senses(path, graph)


def _rank_senses(path: Path, graph: KnowledgeGraph) -> None:
    index = get_index_path(path)
    if index == path or not index.is_file():
        log.warning("there is no index beside %s: a word means its first synset there, not its most frequent", path)
        return
    for lemma, senses in iterate_index_senses(index):
        graph.rank_senses(lemma, senses)


def _read_translations(path: Path, graph: KnowledgeGraph) -> None:
    language = ""
    for number, raw in text_files.iterate_numbered_lines(path, MAX_LINE_BYTES):
        line = raw.decode("utf-8", "replace")
        if line.startswith("#"):
            language = language or line.split("\t")[1].strip() if "\t" in line else language
        elif entry := _LEMMA.fullmatch(line):
            graph.add(entry[2] + entry[1], [entry[4]], language=entry[3] or language)
        elif line.strip() and not _TRANSLATED.match(raw):
            raise InputError(f"{path}:{number} is not a synset, kind and word with tabs between them; take it out")


def iterate_relation_pairs(path: str | Path, relation: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one relation of WordNet or Open Images; nothing is held.

    Parameters
    ----------
    path : str or Path
        A folder or file, as `read_knowledge_graph` takes them.
    relation : str
        "is-a", "instance-of", "part-of", "member-of" or "substance-of", or the inverse of one, such as "has-part".

    Raises
    ------
    InputError
        As `read_knowledge_graph`.
    """
    path, (stated, inverse) = Path(path), parse_direction(relation)
    for file in _find_files(path):
        for statement in iterate_statements(file, text_files.read_head(file)) or ():
            for name, head, tail in list_facts(statement):
                if name == stated:
                    yield (tail, head) if inverse else (head, tail)
