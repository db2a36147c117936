"""Documents become folded UTF-8, in which words are told by their bytes; what cannot be read is refused."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from wsabie.base.arrays import Bool
from wsabie.base.errors import InputError
from wsabie.features.decode import RejectedItem, opened
from wsabie.labels.names import piles_marks
from wsabie.sources.documents import LONGEST
from wsabie.sources.records import Item
from wsabie.sources.text import head

REASONS = ("too long", "not UTF-8", "no words", "empty file", "unreadable file")
"""All that a `RejectedItem` of a document can give as its reason."""

_LETTER = re.compile(rb"[0-9a-z_\x80-\xff]")
_ASSIGNED = range(0x80, 0x40000)  # no letter or mark lies beyond but selectors of variants, which no word needs


def folded(text: str) -> bytes:
    """Text as words are compared: in small letters, in Unicode's NFC, without what stands between words beyond ASCII.

    A word is a run of letters, digits, underscores and the marks that letters carry in many scripts.

    Examples
    --------
    >>> folded("Straße, CAFE\\u0301 \\u2013 \\u201cno\\u201d").decode()
    'strasse, café   no '
    """
    if text.isascii():
        return text.lower().encode()
    found = unicodedata.normalize("NFC", text.casefold()).encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(bytearray(found), "<u4")
    letters[~_in_words()[letters]] = ord(" ")
    return letters.tobytes().decode("utf-32-le").encode()


@cache
def _in_words() -> Bool:
    r"""Which letters words are made of, (0x110000,): those of `\w`, and marks, which it leaves out; all of ASCII."""
    found = np.zeros(0x110000, bool)
    found[:0x80] = True
    for span in re.finditer(r"\w+", "".join(map(chr, _ASSIGNED))):
        found[_ASSIGNED[span.start()] : _ASSIGNED[span.end() - 1] + 1] = True
    found[[c for c in _ASSIGNED if unicodedata.category(chr(c)) in ("Mn", "Mc")]] = True
    return found


@dataclass(frozen=True)
class Reader:
    """How documents are read; sent to each worker once.

    Attributes
    ----------
    seed : int
    """

    seed: int = 0
    augment: ClassVar[int] = 0

    def looks(self, item: Item) -> Iterator[bytearray]:
        """The folded text: it has no further views."""
        content = item.whole if isinstance(item.whole, bytes) else _read(item.whole)
        if len(content) > LONGEST:
            raise RejectedItem("too long", f"more than {LONGEST >> 20} MiB")
        try:
            text = content.lower() if content.isascii() else folded(_unpiled(content.decode()))
        except UnicodeDecodeError as error:
            raise RejectedItem("not UTF-8", str(error)) from error
        if not _LETTER.search(text):
            raise RejectedItem("no words")
        yield bytearray(text)


def _unpiled(text: str) -> str:
    if piles_marks(text):
        raise RejectedItem("too long", "a letter with more than 100 marks")
    return text


def _read(path: Path) -> bytes:
    """The content of a file, plain or gzip, as far as it may be too long."""
    opened(path).close()  # what is missing or empty is refused as files of pictures are
    try:
        return head(path, LONGEST + 1)
    except InputError as error:
        raise RejectedItem("unreadable file", str(error)) from error
