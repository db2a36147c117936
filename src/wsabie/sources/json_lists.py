"""The lists of a JSON object, element by element: files of annotations may be larger than memory."""

import codecs
import json
from collections.abc import Collection, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.sources.json_values import check_depth
from wsabie.sources.text import open_bytes, reading, shown

LONGEST = 1 << 24
"""Letters of an element, or of a member that is no list, at most."""
_BLOCK = 1 << 20
_BLANKS = " \t\r\n"
_ENDS = {*_BLANKS, ",", "]", "}", ":"}
_DECODER = json.JSONDecoder()


def elements(path: Path, wanted: Collection[str]) -> Iterator[tuple[str, Any]]:
    """(member, element) of the lists of a JSON object that are among `wanted`, in the order of the file.

    Parameters
    ----------
    path : Path
        Plain or gzip; a block of it is in memory.
    wanted : collection of str
        Names of members; what else the object holds is read and left out.

    Raises
    ------
    InputError
        No JSON, no object, a member of `wanted` that is no list, or an element that is too long.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.json"
    ...     _ = file.write_text('{"note": {"by": "us"}, "things": [1, {"a": [2]}]}')
    ...     list(elements(file, ["things"]))
    [('things', 1), ('things', {'a': [2]})]
    """
    with reading(path), open_bytes(path) as stream:
        text = _Text(path, stream)
        text.take("{")
        separator = text.take("}") if text.peek() == "}" else ","
        while separator == ",":
            name = text.value()
            if not isinstance(name, str):
                raise text.broken("a member without a name")
            text.take(":")
            if text.peek() == "[":
                for element in _listed(text):
                    if name in wanted:
                        yield name, element
            else:
                text.value()
                if name in wanted:
                    raise InputError(f"{name!r} of {shown(path)} is no list; give a file in which it is one")
            separator = text.take(",}")
        if text.peek():
            raise text.broken("more than one object")


def _listed(text: "_Text") -> Iterator[Any]:
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    yield text.value()
    while text.take(",]") == ",":
        yield text.value()


class _Text:
    """A window over the file: what was read, and how far it was understood."""

    def __init__(self, path: Path, stream: BufferedIOBase) -> None:
        self.path, self.stream = path, stream
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.held, self.at, self.ended, self.passed = "", 0, False, 0

    def broken(self, what: str) -> InputError:
        return InputError(
            f"{shown(self.path)} is no JSON object of lists: {what} after {self.passed + self.at:,} letters; repair or "
            "fetch it again"
        )

    def peek(self) -> str:
        """The next letter that is no blank; empty at the end."""
        while True:
            while self.at < len(self.held) and self.held[self.at] in _BLANKS:
                self.at += 1
            if self.at < len(self.held):
                return self.held[self.at]
            if not self._more():
                return ""

    def take(self, letters: str) -> str:
        """The next letter, one of these."""
        letter = self.peek()
        if not letter or letter not in letters:
            raise self.broken(f"{letter!r} in place of {' or '.join(map(repr, letters))}" if letter else "its end")
        self.at += 1
        return letter

    def value(self) -> Any:
        """The next value, whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.held, self.at)
                if self.held[end : end + 1] in _ENDS or self.ended:  # a number may go on
                    check_depth(self.held[self.at : end])
                    self.at = end
                    return value
            except InputError as error:
                raise self.broken(f"too deep a value ({error})") from error
            except RecursionError as error:
                raise self.broken("a value that is nested too deeply") from error
            except ValueError as error:
                if self.ended:
                    raise self.broken("a broken value") from error
            if len(self.held) - self.at > LONGEST:
                raise self.broken(f"a broken value, or one of more than {LONGEST >> 20} million letters,")
            self._more()

    def _more(self) -> bool:
        """Read on; whether there was something."""
        if self.ended:
            return False
        block = self.stream.read(max(_BLOCK, len(self.held) - self.at))
        self.ended = not block
        self.passed += self.at
        try:
            self.held = self.held[self.at :] + self.decoder.decode(block, self.ended)
        except UnicodeDecodeError as error:
            raise InputError(f"{shown(self.path)} is not UTF-8; convert it") from error
        self.at = 0
        return True
