"""Documents that cite each other: NAME.docs.txt, and NAME.links.txt beside it.

    cora.docs.txt     0 TAB 3 TAB 19 81 146        a document, its class, the numbers of its words
    cora.links.txt    0 633                        two documents of which one cites the other

A word that a document has twice counts twice. The class -1 is none; a document may be without words. Citations have no
direction.
"""

from pathlib import Path

from wsabie.core.errors import require
from wsabie.io.parsers.array_builders import LabelIndex, decode_row, iterate_parsed, require_rows
from wsabie.io.parsers.text_files import iterate_numbered_lines
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowBatch, RowCollector, StreamInfo
from wsabie.storage.rejects import Rejects, RowError

DOCUMENTS, LINKS = ".docs.txt", ".links.txt"
MAX_WORDS = 1 << 24
_NO_CLASS = "-1"


def is_citation_graph(path: Path) -> bool:
    """Return True if a file is the documents of such a pair."""
    return path.name.endswith(DOCUMENTS) and get_links_path(path).is_file()


def get_links_path(path: Path) -> Path:
    """Return the file of the citations beside that of the documents."""
    return path.with_name(path.name.removesuffix(DOCUMENTS) + LINKS)


def read_citation_graph(path: Path, *, rejects: Rejects) -> FeatureTable:
    """Read the documents: rows of word counts, with their classes as labels.

    Parameters
    ----------
    path : Path
        NAME.docs.txt, plain or gzip.
    rejects : Rejects
        Lists malformed lines and documents that come twice.

    Raises
    ------
    InputError
        Missing, or without a single usable line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.docs.txt"
    ...     _ = file.write_text("p1\\t0\\t2 0\\np2\\t1\\t1\\n")
    ...     rows = read_citation_graph(file, rejects=Rejects())
    >>> rows.ids, rows.X.toarray().tolist()
    (['p1', 'p2'], [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    batch, ids, labels, collector = RowBatch(), set[str](), LabelIndex(), RowCollector()
    for number, line in iterate_numbered_lines(path):
        with rejects.catch(path, number):
            name, label, words = _parse_document(line)
            if name in ids:
                raise RowError("duplicate id", name)
            batch.add(number, [] if label == _NO_CLASS else labels.assign_ids([label]), {"id": name}, words)
            ids.add(name)
    require_rows(len(batch), path, rejects, "documents")
    require(len(batch.indices) > 0, f"no document of {path} has a word; give the numbers of words in the third column")
    width = max(batch.indices) + 1
    collector.add(batch.to_columns(batch.build_features(width)))
    return collector.build_table(StreamInfo(counts=True, n_features=width), *labels.finish())


def read_citation_links(path: Path, *, rejects: Rejects) -> list[tuple[str, str]]:
    """Return the two documents of every line of NAME.links.txt.

    Raises
    ------
    InputError
        Missing, or without a single usable line.
    """
    links = [link for _, link in iterate_parsed(path, iterate_numbered_lines(path), _parse_link, rejects)]
    require_rows(len(links), path, rejects, "citations")
    return links


def _parse_link(line: bytes) -> tuple[str, str]:
    ends = decode_row(line).split()
    if len(ends) != 2:
        raise RowError("line that is not two documents", f"{len(ends)} words")
    return ends[0], ends[1]


def _parse_document(line: bytes) -> tuple[str, str, list[int]]:
    cells = decode_row(line).split("\t")
    if len(cells) != 3 or not cells[0].strip():
        raise RowError("line that is not id, class and words", f"{len(cells)} columns")
    try:
        words = [int(word) for word in cells[2].split()]
    except ValueError as error:
        raise RowError("word that is not a number", str(error)) from error
    if any(not 0 <= word < MAX_WORDS for word in words):
        raise RowError(f"number of a word that is not from 0 to {MAX_WORDS - 1:,}")
    return cells[0].strip(), cells[1].strip(), words
