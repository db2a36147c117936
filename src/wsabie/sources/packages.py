"""Debian's lists of packages as documents: a package is its description, and its labels are its Debtags.

Files in the form of apt's (`..._Packages`: paragraphs of `Field: value`, further lines of a value begin with a blank),
one or a folder of them. Long descriptions stand in `..._i18n_Translation-en` beside a list; where that is missing, or
does not know a package, the text is what the list itself says. The id is the package's name; a second version or
architecture of it is listed as a duplicate. Of long descriptions those of one list are held while it is read.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.documents import Documents, Verdict, documents_of, encoded
from wsabie.sources.folders import clean_labels
from wsabie.sources.records import Item
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.rejects import Rejects

_BEGINNING = re.compile(rb"\s*Package: ?[A-Za-z0-9][A-Za-z0-9+.-]*\r?\n[A-Z][\w-]*:")
_NAME = re.compile(r"(^|_)Packages(\.gz)?$")
_FIELDS = {"package", "description", "description-md5", "description-en", "tag"}
_LONGEST_LINE = 1 << 24
_LONGEST_PARAGRAPH = 1 << 24
_MOST_HELD = 1 << 29  # bytes of long descriptions

Paragraph = dict[str, str]


def read_packages(path: Path, *, labels_from: str = "auto", rejects: Rejects | None = None) -> Documents:
    """The packages of lists as documents.

    Parameters
    ----------
    path : Path
        A list, or a folder of lists.
    labels_from : str
        "none": without their tags.
    rejects : Rejects or None
        Lists packages without a description or a name, and those that come again.

    Raises
    ------
    InputError
        Missing, no text, or not a single package.
    """
    read = partial(_read, package_lists(path), labels_from != "none")
    return documents_of(path, read, Rejects() if rejects is None else rejects)


def package_lists(path: Path) -> list[Path]:
    """The list itself, or those of a folder."""
    return sorted(p for p in path.iterdir() if _NAME.search(p.name) and p.is_file()) if path.is_dir() else [path]


def looks_like_packages(content: bytes) -> bool:
    """Whether the beginning of a file is that of a list of packages."""
    return _BEGINNING.match(content) is not None


def _read(lists: list[Path], labelled: bool) -> Iterator[tuple[str, Verdict]]:
    for file in lists:
        longer = _long_descriptions(file)
        for number, fields in _paragraphs(file):
            yield f"{shown(file)}:{number}", _verdict(fields, longer, labelled)


def _verdict(fields: Paragraph, longer: dict[str, str], labelled: bool) -> Verdict:
    try:
        if not fields.get("package"):
            raise BadRow("paragraph without a package")
        text = longer.get(fields.get("description-md5", "")) or fields.get("description")
        tags = clean_labels(re.split(r"[,\n]", fields.get("tag", ""))) if labelled else ()
        return Item(fields["package"], encoded(text), tags)
    except BadRow as bad:
        return bad


def _long_descriptions(file: Path) -> dict[str, str]:
    """English descriptions by the checksums that a list refers to; none where no file of them is beside it."""
    beside = file.with_name(re.sub(r"(_binary-[^_]+)?_Packages(\.gz)?$", "_i18n_Translation-en", file.name))
    found: dict[str, str] = {}
    held = 0
    for _, fields in _paragraphs(beside) if beside != file and beside.is_file() else ():
        text = fields.get("description-en", "")
        held += len(text)
        if held > _MOST_HELD:
            raise InputError(f"{shown(beside)} holds more than {_MOST_HELD >> 20} MiB of descriptions; move it away")
        found[fields.get("description-md5", "")] = text
    return found


def _paragraphs(file: Path) -> Iterator[tuple[int, Paragraph]]:
    """(first line, those of `_FIELDS` that are there) of each paragraph; the lines of a value are kept apart."""
    lines: list[str] = []
    size = first = 0
    for number, raw in numbered_lines(file, _LONGEST_LINE):
        line = raw.decode("utf-8", "replace")
        if line.strip():
            first = first if lines else number
            lines.append(line)
            size += len(line)
            if size > _LONGEST_PARAGRAPH:
                raise InputError(
                    f"{shown(file)}:{first} begins a paragraph of more than {_LONGEST_PARAGRAPH >> 20} MiB; fetch the "
                    "list again"
                )
        elif lines:
            yield first, _fields(lines)
            lines, size = [], 0
    if lines:
        yield first, _fields(lines)


def _fields(lines: list[str]) -> Paragraph:
    found: dict[str, list[str]] = {}
    value: list[str] = []
    for line in lines:
        if line[0] in " \t":
            value.append("" if line.strip() == "." else line.strip())
        else:
            name, _, begun = line.partition(":")
            value = found.setdefault(name.lower(), [])
            value.append(begun.strip())
    return {name: "\n".join(parts) for name, parts in found.items() if name in _FIELDS}
