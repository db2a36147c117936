"""Decoding of documents into folded UTF-8, whose words are found by their bytes."""

import re
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Bool
from wsabie.core.errors import InputError, UnreadableItemError
from wsabie.features.images.image_decoder import open_image_stream
from wsabie.io.formats.documents import MAX_DOCUMENT_BYTES
from wsabie.io.parsers.text_files import read_head
from wsabie.io.records import Item
from wsabie.vocabulary.label_names import has_excessive_marks

_LETTER = re.compile(rb"[0-9a-z_\x80-\xff]")
_ASSIGNED = range(0x80, 0x40000)  # no letter or mark lies beyond but selectors of variants, which no word needs


def fold_text(text: str) -> bytes:
    """Fold text for comparison of words: small letters, NFC, blanks for separators beyond ASCII.

    A word is a run of letters, digits, underscores and the marks that letters carry in many scripts.

    Examples
    --------
    >>> fold_text("Straße, CAFE\\u0301 \\u2013 \\u201cno\\u201d").decode()
    'strasse, café   no '
    """
    if text.isascii():
        return text.lower().encode()
    code_points = unicodedata.normalize("NFC", text.casefold()).encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(bytearray(code_points), "<u4")
    letters[~_find_word_letters()[letters]] = ord(" ")
    return letters.tobytes().decode("utf-32-le").encode()


@cache
def _find_word_letters() -> Bool:
    r"""Return a mask (0x110000,) of letters in words: those of `\w`, marks, which it leaves out, and ASCII."""
    is_word_letter = np.zeros(0x110000, bool)
    is_word_letter[:0x80] = True
    for span in re.finditer(r"\w+", "".join(map(chr, _ASSIGNED))):
        is_word_letter[_ASSIGNED[span.start()] : _ASSIGNED[span.end() - 1] + 1] = True
    is_word_letter[[c for c in _ASSIGNED if unicodedata.category(chr(c)) in ("Mn", "Mc")]] = True
    return is_word_letter


def decode_document(item: Item) -> bytearray:
    """Return the folded text of a document.

    Raises
    ------
    UnreadableItemError
        "too long", "not UTF-8", "no words", "empty file" or "unreadable file".
    """
    content = item.full_content if isinstance(item.full_content, bytes) else _read_file(item.full_content)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise UnreadableItemError("too long", f"more than {MAX_DOCUMENT_BYTES >> 20} MiB")
    try:
        text = content.lower() if content.isascii() else fold_text(_refuse_piled_marks(content.decode()))
    except UnicodeDecodeError as error:
        raise UnreadableItemError("not UTF-8", str(error)) from error
    if not _LETTER.search(text):
        raise UnreadableItemError("no words")
    return bytearray(text)


def _refuse_piled_marks(text: str) -> str:
    if has_excessive_marks(text):
        raise UnreadableItemError("too long", "a letter with more than 100 marks")
    return text


def _read_file(path: Path) -> bytes:
    """Read a file, plain or gzip, up to one byte above the limit."""
    open_image_stream(path).close()  # refuses missing and empty files as for pictures
    try:
        return read_head(path, MAX_DOCUMENT_BYTES + 1)
    except InputError as error:
        raise UnreadableItemError("unreadable file", str(error)) from error
