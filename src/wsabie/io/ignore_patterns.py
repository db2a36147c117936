"""Patterns in `.wsabieignore` of files and folders to leave out, as in `.gitignore`."""

from collections.abc import Callable
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file
from wsabie.core.optional_packages import import_optional
from wsabie.io.parsers.text_files import iterate_numbered_lines

IGNORE_FILE = ".wsabieignore"
"""File whose lines, as in `.gitignore`, name files and folders to ignore."""


def read_ignore_patterns(folder: Path) -> Callable[[str], bool]:
    """Return a test for paths in a folder (folders end in /) by lines of its `IGNORE_FILE`.

    Raises
    ------
    InputError
        The file cannot be read, a line is not a pattern, or pathspec is not installed.
    """
    path = folder / IGNORE_FILE
    if not is_regular_file(path):
        return lambda _: False
    pathspec = import_optional("pathspec", f"{path} needs pathspec", "collection")
    lines = [line.decode("utf-8", "replace") for _, line in iterate_numbered_lines(path)]
    try:
        is_ignored: Callable[[str], bool] = pathspec.GitIgnoreSpec.from_lines(lines).match_file
    except ValueError as error:
        raise InputError(f"{path} holds a line that is not a pattern: {error}; write lines as in .gitignore") from error
    return is_ignored
