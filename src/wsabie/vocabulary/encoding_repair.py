"""Repair of names that were read in a wrong encoding, and the log of repairs.

The log is one for the process: names are repaired wherever they are read, and `restart_repair_log` begins it anew.
"""

import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from cachetools import LRUCache, cached

_IMPOSSIBLE = re.compile("[\x80-\x9f]")
"""Control characters that no program puts into a name: bytes of a text in another encoding."""
_MAX_WARNINGS = 10
log = logging.getLogger("wsabie")


def repair_encoding(text: str) -> str:
    """Return a text read in a wrong encoding, as characters that nobody types show, in the right one.

    Examples
    --------
    >>> repair_encoding("Stra\\u00c3\\u009fe"), repair_encoding("M\\u00f6we \\u0096 See"), repair_encoding("Möwe")
    ('Straße', 'Möwe – See', 'Möwe')
    """
    if not _IMPOSSIBLE.search(text):
        return text
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeError):
            return repair_encoding(text.encode("latin-1").decode(encoding))
    return text


def repair_name(name: str) -> str:
    """Return a name in the right encoding, and log what changes, each name once."""
    return _repair_and_log(name) if _IMPOSSIBLE.search(name) else name


@cached(LRUCache(10_000), lock=Lock(), info=True)
def _repair_and_log(name: str) -> str:
    repaired, n = repair_encoding(name), _repair_and_log.cache_info().currsize
    if n < _MAX_WARNINGS:
        fate = "stays so: repair its encoding" if repaired == name else f"is taken for {repaired[:60]!r}"
        log.warning("the name %a was read in a wrong encoding, and %s", name[:60], fate)
    elif n == _MAX_WARNINGS:
        log.warning("more names were read in a wrong encoding, and are treated likewise")
    return repaired


def restart_repair_log() -> None:
    """Let repaired names be logged again, before another file is read."""
    _repair_and_log.cache_clear()


def report_wrong_encoding(path: Path, names: Iterable[str]) -> None:
    """Log the first name that is UTF-8 read as Windows-1252 all through, as no name is by chance."""
    for name in names:
        with suppress(UnicodeError):
            if not name.isascii() and (repaired := name.encode("cp1252").decode()):
                log.warning(
                    "labels of %s such as %r seem to be in a wrong encoding; if %r is right, save the file as UTF-8",
                    path, name[:60], repaired[:60],
                )  # fmt: skip
                return
