"""JSON from untrusted files: depth is checked before values are built, long lists are read by element.

ijson has no limit on depth: 40 KB of brackets cost it a gigabyte (`docs/decisions/text-readers.md`).
"""

import codecs
import json
import re
from collections.abc import Collection, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.errors import InputError
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.io.parsers.text_files import explain_input_errors, open_decompressed

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]], _STEPS[[ord("]"), ord("}")]] = 1, -1
MAX_VALUE_LENGTH = 1 << 24
"""Letters of an element, or of a member that is not a list, at most."""
_BLOCK = 1 << 20
_BLANKS = " \t\r\n"
_ENDS = {*_BLANKS, ",", "]", "}", ":"}
_ARRAY = re.compile(rb"\s*\[\s*\{\s*[\"}]")
_DECODER = json.JSONDecoder()  # `json.loads` looks for options each time


def parse_json_value(text: str, most_depth: int | None = None) -> Any:
    """Parse JSON.

    Parameters
    ----------
    text : str
    most_depth : int or None
        `InputLimits.depth`, where many texts are parsed: to look it up takes as long as to parse a short one.

    Raises
    ------
    ValueError
        It is malformed, has a number of thousands of digits, or (an InputError) nests deeper than `InputLimits.depth`.

    Examples
    --------
    >>> parse_json_value('{"a": [1]}')
    {'a': [1]}
    """
    nested = text.rfind("{") > 0 or text.rfind("[") != text.find("[")  # few lines are, and to count takes longer
    if nested and text.count("[") + text.count("{") > (most_depth or 0):
        check_json_depth(text)
    return _DECODER.decode(text)


def check_json_depth(text: str) -> None:
    """Refuse text whose brackets, those in strings aside, nest deeper than `InputLimits.depth`.

    Raises
    ------
    InputError
    """
    most = read_limits().depth
    if text.count("[") + text.count("{") <= most:
        return
    brackets = np.frombuffer(_STRING.sub("", text).encode("utf-8", "replace"), np.uint8)
    depth = int(np.cumsum(_STEPS[brackets], dtype=np.int32).max(initial=0))
    if depth > most:
        raise make_limit_error("depth", f"the JSON nests {depth:,} values", depth)


def iterate_elements(path: Path, members: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield (member, element) of the lists of a JSON object that `members` names, in file order.

    Parameters
    ----------
    path : Path
        Plain or gzip; a block of it is in memory.
    members : collection of str
        Names of members; what else the object holds is read and left out.

    Raises
    ------
    InputError
        Not JSON, not an object, a member of `members` that is not a list, or an element that is too long.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.json"
    ...     _ = file.write_text('{"note": {"by": "us"}, "things": [1, {"a": [2]}]}')
    ...     list(iterate_elements(file, ["things"]))
    [('things', 1), ('things', {'a': [2]})]
    """
    with explain_input_errors(path), open_decompressed(path) as stream:
        text = _JsonWindow(path, stream)
        text.expect("{")
        separator = text.expect("}") if text.peek() == "}" else ","
        while separator == ",":
            name = text.read_value()
            if not isinstance(name, str):
                raise text.make_error("a member without a name")
            text.expect(":")
            if text.peek() == "[":
                for element in _iterate_list(text):
                    if name in members:
                        yield name, element
            else:
                text.read_value()
                if name in members:
                    raise InputError(f"{name!r} of {path} is not a list; give a file in which it is one")
            separator = text.expect(",}")
        if text.peek():
            raise text.make_error("more than one object")


def iterate_array(path: Path) -> Iterator[Any]:
    """Yield the elements of a file that holds a JSON array; a block of it is in memory.

    Raises
    ------
    InputError
        Not JSON, not an array, or an element that is too long.
    """
    with explain_input_errors(path), open_decompressed(path) as stream:
        text = _JsonWindow(path, stream)
        yield from _iterate_list(text)
        if text.peek():
            raise text.make_error("more than one array")


def is_array(head: bytes) -> bool:
    """Return True if a file that begins so holds a JSON array of objects."""
    return _ARRAY.match(head) is not None


def _iterate_list(text: "_JsonWindow") -> Iterator[Any]:
    text.expect("[")
    if text.peek() == "]":
        text.expect("]")
        return
    yield text.read_value()
    while text.expect(",]") == ",":
        yield text.read_value()


class _JsonWindow:
    """Window over the file: its buffer and the position of the parser."""

    def __init__(self, path: Path, stream: BufferedIOBase) -> None:
        self.path, self.stream = path, stream
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.buffer, self.position, self.ended, self.passed = "", 0, False, 0

    def make_error(self, fault: str) -> InputError:
        problem = f"{self.path} is not JSON of lists: {fault} after {self.passed + self.position:,} letters"
        return InputError(f"{problem}; repair or fetch it again")

    def peek(self) -> str:
        """Return the next letter that is not a blank; empty at the end."""
        while True:
            while self.position < len(self.buffer) and self.buffer[self.position] in _BLANKS:
                self.position += 1
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            if not self._read_more():
                return ""

    def expect(self, letters: str) -> str:
        """Return the next letter, which must be one of these."""
        letter = self.peek()
        if not letter or letter not in letters:
            raise self.make_error(f"{letter!r} in place of {' or '.join(map(repr, letters))}" if letter else "its end")
        self.position += 1
        return letter

    def read_value(self) -> Any:
        """Return the next value, whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.position)
                if self.buffer[end : end + 1] in _ENDS or self.ended:  # a number may go on
                    check_json_depth(self.buffer[self.position : end])
                    self.position = end
                    return value
            except InputError as error:
                raise self.make_error(f"too deep a value ({error})") from error
            except RecursionError as error:
                raise self.make_error("a value that is nested too deeply") from error
            except ValueError as error:
                if self.ended:
                    raise self.make_error("a broken value") from error
            if len(self.buffer) - self.position > MAX_VALUE_LENGTH:
                raise self.make_error(f"a broken value, or one of more than {MAX_VALUE_LENGTH >> 20} million letters,")
            self._read_more()

    def _read_more(self) -> bool:
        """Read on; return False at the end."""
        if self.ended:
            return False
        block = self.stream.read(max(_BLOCK, len(self.buffer) - self.position))
        self.ended = not block
        self.passed += self.position
        try:
            self.buffer = self.buffer[self.position :] + self.decoder.decode(block, self.ended)
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is not UTF-8; convert it") from error
        self.position = 0
        return True
