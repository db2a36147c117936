"""Files of word vectors: word2vec's text and binary, GloVe's text, fastText's `.vec`; plain or gzip.

Text has a word and its numbers on a line, between blanks or tabs; word2vec and fastText begin with a line of how many
words and dimensions there are, GloVe does not. The binary form has that line, then for each word its letters, a blank,
and 4 bytes a number (little endian). The content decides which form a file has.

A file is read once, word by word, into a table beside it (`NAME.npy`), which later is mapped into memory. It is made
again when the file changes, and every time in a folder that cannot be written. The table:

    a .npy file, version 1.0, header of 128 bytes     NumPy alone can open it
    the words, UTF-8, a newline between them          behind the table, where NumPy does not look
    facts, JSON                                       what the table was made from
    16 bytes                                          lengths of words and facts (int64, little endian)
    8 bytes                                           WSABIEW1

gensim's reader takes 2.5 times as long, and its table is not mapped (`docs/decisions/text-readers.md`).
"""

import json
import logging
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.io.parsers import text_files
from wsabie.io.parsers.array_builders import require_rows
from wsabie.storage.atomic_files import DiskFullError, WriteError, explain_read_errors, replace_file
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.word_vectors import WordVectors

MAGIC = b"\x93NUMPY"
MAX_DIM = 1 << 14
MAX_WORDS = 1 << 26
_MARK = b"WSABIEW1"
_HEADER = 128
_MAX_FACTS_BYTES = 1 << 20
MAX_WORD_BYTES = 1 << 10
"""Bytes of a word."""
_MAX_LINE_BYTES = MAX_WORD_BYTES + 32 * MAX_DIM
_HEAD = 1 << 20
log = logging.getLogger("wsabie")
_VectorRow = tuple[str, bytes]


class WordVectorTable(NamedTuple):
    """Words, their table (n, dim) float32, mapped, and facts about it."""

    words: list[str]
    table: Float32
    facts: JsonObject


def write_word_vector_table(path: Path, dim: int, rows: Iterable[_VectorRow], facts: Callable[[], JsonObject]) -> None:
    """Write rows of (word, float32 bytes) as they come, atomically.

    Words hold no newline.

    Parameters
    ----------
    path : Path
    dim : int
    rows : iterable of (str, bytes)
    facts : callable
        Called after the last row.
    """
    words = bytearray()
    n = 0
    with replace_file(path) as draft, draft.open("wb", buffering=1 << 20) as file:
        file.write(bytes(_HEADER))
        for word, row in rows:
            file.write(row)
            words += word.encode() + b"\n"
            n += 1
        facts_json = json.dumps(facts()).encode()
        del words[-1:]
        file.write(words + facts_json + np.array([len(words), len(facts_json)], "<i8").tobytes() + _MARK)
        file.seek(0)
        file.write(_header(n, dim))


def open_word_vector_table(path: Path) -> WordVectorTable:
    """Map a file that `write_word_vector_table` wrote.

    Raises
    ------
    InputError
        Missing, of another kind, or damaged.
    """
    with explain_read_errors(path), open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEADER)
        if not head.startswith(MAGIC) or size < _HEADER + 24:
            raise InputError(f"{path} is not a table of words; give a file of word vectors")
        file.seek(size - 24)
        tail = file.read(24)
        n_words, n_facts = (int(n) for n in np.frombuffer(tail[:16], "<i8"))
        require(tail[16:] == _MARK, f"{path} is an array without words; give a file of word vectors")
        words_start = size - 24 - n_words - n_facts
        if min(n_words, n_facts) < 0 or n_facts > _MAX_FACTS_BYTES or words_start < _HEADER:
            raise _damaged(path)
        file.seek(words_start)
        try:
            words = file.read(n_words).decode().split("\n")
            facts = json.loads(file.read(n_facts))
        except (ValueError, RecursionError) as error:
            raise _damaged(path) from error
        dim, remainder = divmod(words_start - _HEADER, 4 * len(words))
        if remainder or not 0 < dim <= MAX_DIM or head != _header(len(words), dim) or not isinstance(facts, dict):
            raise _damaged(path)
        table = np.memmap(file, np.dtype("<f4"), "r", _HEADER, (len(words), dim)).view(np.ndarray)
    return WordVectorTable(words, table, facts)


def _header(n: int, dim: int) -> bytes:
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {dim}), }}".encode()
    room = _HEADER - len(MAGIC) - 4
    return MAGIC + b"\x01\x00" + room.to_bytes(2, "little") + shape.ljust(room - 1) + b"\n"


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged or cut off; delete it, and it is made again from the file of word vectors")


def read_word_vectors(
    path: str | Path,
    *,
    cache: str | Path | None = None,
    limit: int | None = None,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> WordVectors:
    """Read word vectors, mapped into memory.

    Parameters
    ----------
    path : str or Path
        A file of word vectors, or a table that was made from one.
    cache : str or Path or None
        Where the table is kept; None: beside the file, as `NAME.npy`.
    limit : int or None
        Only the first words, which in most files are the most frequent ones.
    rejects : Rejects or None
        Lists words that cannot be used: malformed ones, those with another number of values, those that come again.
    progress : Progress

    Returns
    -------
    WordVectors

    Raises
    ------
    InputError
        Missing, not a file of word vectors, cut off, of more than 16,384 dimensions, or without a usable word; or
        `cache` is a file of another kind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "few.vec"
    ...     _ = file.write_text("2 3\\ndog 1 0 0\\ncat .9 .1 0\\n")
    ...     vectors = read_word_vectors(file)
    >>> vectors.words, vectors.table
    (['dog', 'cat'], array([[1. , 0. , 0. ], [0.9, 0.1, 0. ]], dtype=float32))
    """
    path, rejects = Path(path), Rejects() if rejects is None else rejects
    if text_files.read_head(path, len(MAGIC)) == MAGIC:
        return _build_vectors(open_word_vector_table(path), rejects)
    with text_files.explain_input_errors(path):
        status = path.stat()
    source_facts = {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "limit": limit}
    table_path = path.with_name(f"{path.name}.npy") if cache is None else Path(cache)
    cached = _open_cached_table(table_path)
    # a strict run reads skipped words again, to report the first of them
    if cached and cached.facts.get("source") == source_facts and not (rejects.strict and cached.facts.get("skipped")):
        return _build_vectors(cached, rejects)
    try:
        return _convert(path, table_path, limit, source_facts, rejects, progress)
    except DiskFullError:
        raise
    except WriteError as error:
        if cache is not None:
            raise
        log.info("%s; the vectors are read again every time unless cache names another file", error)
    with tempfile.TemporaryDirectory(prefix="wsabie-") as folder:  # what is mapped lasts until nobody has it
        return _convert(path, Path(folder) / "vectors", limit, source_facts, rejects, progress)


def write_word_vectors(path: str | Path, words: Iterable[str], table: Float32) -> None:
    """Write vectors in word2vec's text form, which `read_word_vectors` and most other programs read.

    Raises
    ------
    InputError
        A word is empty or has a blank in it, or `path` cannot be written.
    """

    def lines() -> Iterator[str]:
        yield f"{len(table)} {table.shape[1]}"
        for word, row in zip(words, table, strict=True):
            if word.split() != [word]:
                raise InputError(f"the word {word!r} has a blank in it or is empty; write underscores for blanks")
            yield f"{word} {' '.join(f'{value:.6g}' for value in row.tolist())}"

    text_files.write_lines(Path(path), lines())


def _open_cached_table(path: Path) -> WordVectorTable | None:
    """Open a table that was made before; another file at its path may be the user's and is refused."""
    if not path.exists():
        return None
    if path.is_dir() or text_files.read_head(path, len(MAGIC)) != MAGIC:
        raise InputError(f"{path} is not a table of words and would be lost; name another file as cache")
    return open_word_vector_table(path)


def _build_vectors(table: WordVectorTable, rejects: Rejects) -> WordVectors:
    skipped = table.facts.get("skipped")
    counts = {str(why): int(n) for why, n in skipped.items()} if isinstance(skipped, dict) else {}
    rejects.counts += Counter(counts)
    return WordVectors(table.words, table.table, counts)


def _convert(
    path: Path, target: Path, limit: int | None, source_facts: JsonObject, rejects: Rejects, progress: Progress
) -> WordVectors:
    layout, old_counts = _detect_layout(path), Counter(rejects.counts)
    entries = (_iterate_binary_rows if layout.binary else _iterate_text_rows)(path, layout, rejects)

    def rows() -> Iterator[_VectorRow]:
        words: set[str] = set()
        total = limit if layout.n is None else min(layout.n, limit or layout.n)
        with progress.stage("reading vectors", total, "words") as stage:
            for where, word, row in entries:
                stage.advance()
                if word in words:
                    rejects.add(where, "word that comes again", word[:60])
                    continue
                words.add(word)
                yield word, row
                if len(words) == limit:
                    return
                if len(words) == MAX_WORDS:
                    raise InputError(f"{path} holds more than {MAX_WORDS:,} words; set a limit")
        require_rows(len(words), path, rejects, "word vectors")

    def facts() -> JsonObject:
        return {"source": source_facts, "skipped": dict(rejects.counts - old_counts)}

    write_word_vector_table(target, layout.dim, rows(), facts)
    table = open_word_vector_table(target)
    return WordVectors(table.words, table.table, dict(rejects.counts - old_counts))


class _VectorLayout(NamedTuple):
    n: int | None  # words that the first line promises
    dim: int
    binary: bool


def _detect_layout(path: Path) -> _VectorLayout:
    start = text_files.read_head(path, _HEAD)
    first, _, body = start.partition(b"\n")
    promised = first.split()
    if len(promised) == 2 and all(cell.isdigit() and len(cell) < 20 for cell in promised):
        n, dim = int(promised[0]), int(promised[1])
        if not 0 < dim <= MAX_DIM or not 0 < n <= MAX_WORDS:
            raise InputError(
                f"{path}:1 promises {n:,} words of {dim:,} dimensions; at most {MAX_WORDS:,} of {MAX_DIM:,} can be read"
            )
        is_binary = b"\0" in body or body.decode("utf-8", "replace").count("\ufffd") > 8
        return _VectorLayout(n, dim, is_binary and dim not in map(_count_values, _first_lines(body)))
    widths = Counter(width for line in _first_lines(start) if (width := _count_values(line)))
    if b"\0" in start or not widths:
        problem = f"{path} is not a file of word vectors"
        raise InputError(f"{problem}; give text with a word and its numbers on each line, or word2vec's binary form")
    dim = widths.most_common(1)[0][0]
    require(dim <= MAX_DIM, f"{path} has {dim:,} numbers a line; at most {MAX_DIM:,} dimensions can be read")
    return _VectorLayout(None, dim, False)


def _first_lines(start: bytes) -> list[bytes]:
    lines = start.split(b"\n", 51)
    return lines[:50] if len(start) < _HEAD // 2 else lines[: min(50, len(lines) - 1)]  # the last one may be cut off


def _count_values(line: bytes) -> int:
    """Count the numbers at the end of a line, behind a word."""
    cells = line.split()
    n = 0
    while n < len(cells) - 1 and _is_number(cells[-1 - n]):
        n += 1
    return n


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _iterate_text_rows(path: Path, layout: _VectorLayout, rejects: Rejects) -> Iterator[tuple[str, str, bytes]]:
    n = 0
    for number, line in text_files.iterate_bounded_numbered_lines(path, _MAX_LINE_BYTES):
        if (number == 1 and layout.n is not None) or (line is not None and not line.strip()):
            continue
        n, where = n + 1, f"{path}:{number}"
        with rejects.catch(where):
            yield where, *_parse_line(line, layout.dim)
    if layout.n is not None and n < layout.n:
        rejects.add(text_files.format_path(path), "fewer words than the first line promises", f"{n:,} of {layout.n:,}")


def _parse_line(line: bytes | None, dim: int) -> _VectorRow:
    if line is None:
        raise RowError("line that is too long")
    cells = line.replace(b"\t", b" ").rstrip(b" ").rsplit(b" ", dim)
    word = cells[0].strip(b" ")
    # some words of GloVe's have blanks in them (". . ."), but none ends in a number of its own
    if len(cells) != dim + 1 or (b" " in word and _is_number(word.rpartition(b" ")[2])):
        raise RowError("line with another number of values", f"{len(line.split()) - 1} and not {dim}")
    try:
        row = array("f", map(float, cells[1:])).tobytes()
    except (ValueError, OverflowError) as error:
        raise RowError("malformed value", str(error)) from error
    return _decode_word(word), _check_finite(row)


def _decode_word(letters: bytes) -> str:
    if len(letters) > MAX_WORD_BYTES:
        raise RowError("word that is too long", repr(letters[:60]))
    try:
        word = letters.decode()
    except UnicodeDecodeError as error:
        raise RowError("word that is not UTF-8", repr(letters[:60])) from error
    if not word or "\n" in word:
        raise RowError("empty word, or one with an end of a line in it")
    return word


def _check_finite(row: bytes) -> bytes:
    if not np.isfinite(np.frombuffer(row, np.float32)).all():
        raise RowError("value that is not finite")
    return row


def _iterate_binary_rows(path: Path, layout: _VectorLayout, rejects: Rejects) -> Iterator[tuple[str, str, bytes]]:
    n = cast(int, layout.n)
    with text_files.explain_input_errors(path), text_files.open_decompressed(path) as stream:
        stream.readline(_HEAD)
        for number in range(1, n + 1):
            letters, row = _read_word(cast(BufferedReader, stream)), stream.read(4 * layout.dim)
            if letters is None or len(row) < 4 * layout.dim:
                problem = f"{path} is damaged or cut off at word {number:,} of the {n:,} that its first line promises"
                raise InputError(f"{problem}; fetch it again")
            where = f"{path}, word {number:,}"
            with rejects.catch(where):
                vector = np.frombuffer(row, "<f4").astype("f4").tobytes()
                yield where, _decode_word(letters.lstrip(b"\n")), _check_finite(vector)


def _read_word(stream: BufferedReader) -> bytes | None:
    """Return the bytes before the next blank; None where it is too far, or there is none."""
    word = b""
    while len(word) < MAX_WORD_BYTES + 2 and (head := stream.peek()):
        part, blank, _ = head[: MAX_WORD_BYTES + 2 - len(word)].partition(b" ")
        stream.read(len(part) + len(blank))
        word += part
        if blank:
            return word
    return None
