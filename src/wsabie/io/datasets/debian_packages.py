"""Debian's package lists as documents: the text is the description, the labels are the Debtags.

Files in the form of apt's (`..._Packages`: paragraphs of `Field: value`, further lines of a value begin with a blank),
one or a folder of them. Long descriptions stand in `..._i18n_Translation-en` beside a list; where that is missing, or
does not know a package, the text is what the list itself says. The id is the package's name; a second version or
architecture of it is listed as a duplicate. Of long descriptions those of one list are held while it is read.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.formats.documents import encode_text
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.parsers.text_files import iterate_numbered_lines
from wsabie.io.records import Item, ItemStream, scan_items
from wsabie.storage.rejects import Rejects, RowError

_BEGINNING = re.compile(rb"\s*Package: ?[A-Za-z0-9][A-Za-z0-9+.-]*\r?\n[A-Z][\w-]*:")
_NAME = re.compile(r"(^|_)Packages(\.gz)?$")
_FIELDS = {"package", "description", "description-md5", "description-en", "tag"}
_MAX_LINE_BYTES = 1 << 24
_MAX_PARAGRAPH_BYTES = 1 << 24
_MAX_HELD_BYTES = 1 << 29  # bytes of long descriptions

Paragraph = dict[str, str]


def read_packages(path: Path, *, labels_from: str = "auto", rejects: Rejects) -> ItemStream:
    """Read the packages of lists as documents.

    Parameters
    ----------
    path : Path
        A list, or a folder of lists.
    labels_from : str
        "none": without their tags.
    rejects : Rejects
        Lists packages without a description or a name, and those that come again.

    Raises
    ------
    InputError
        Missing, not text, or not a single package.
    """
    documents = partial(_iterate_documents, find_package_lists(path), labels_from != "none")
    return scan_items(path, documents, rejects)


def find_package_lists(path: Path) -> list[Path]:
    """Return the list itself, or those of a folder."""
    return sorted(p for p in path.iterdir() if _NAME.search(p.name) and p.is_file()) if path.is_dir() else [path]


def is_package_list(content: bytes) -> bool:
    """Return True if a file begins like a list of packages."""
    return _BEGINNING.match(content) is not None


def _iterate_documents(lists: list[Path], labelled: bool, rejects: Rejects) -> Iterator[tuple[str, Item]]:
    for file in lists:
        longer = _read_long_descriptions(file)
        for number, fields in _iterate_paragraphs(file):
            with rejects.catch(file, number):
                if not fields.get("package"):
                    raise RowError("paragraph without a package")
                text = longer.get(fields.get("description-md5", "")) or fields.get("description")
                tags = normalise_labels(re.split(r"[,\n]", fields.get("tag", ""))) if labelled else ()
                yield f"{file}:{number}", Item(fields["package"], encode_text(text), tags)


def _read_long_descriptions(file: Path) -> dict[str, str]:
    """Return English descriptions by their checksums; none where no file of them is beside the list."""
    translation = file.with_name(re.sub(r"(_binary-[^_]+)?_Packages(\.gz)?$", "_i18n_Translation-en", file.name))
    descriptions: dict[str, str] = {}
    n_characters = 0
    for _, fields in _iterate_paragraphs(translation) if translation != file and translation.is_file() else ():
        text = fields.get("description-en", "")
        n_characters += len(text)
        if n_characters > _MAX_HELD_BYTES:
            raise InputError(f"{translation} holds more than {_MAX_HELD_BYTES >> 20} MiB of descriptions; move it away")
        descriptions[fields.get("description-md5", "")] = text
    return descriptions


def _iterate_paragraphs(file: Path) -> Iterator[tuple[int, Paragraph]]:
    """Yield (first line, values of `_FIELDS`) of each paragraph; the lines of a value stay separate."""
    lines: list[str] = []
    size = first = 0
    for number, raw in iterate_numbered_lines(file, _MAX_LINE_BYTES):
        line = raw.decode("utf-8", "replace")
        if line.strip():
            first = first if lines else number
            lines.append(line)
            size += len(line)
            if size > _MAX_PARAGRAPH_BYTES:
                problem = f"{file}:{first} begins a paragraph of more than {_MAX_PARAGRAPH_BYTES >> 20} MiB"
                raise InputError(f"{problem}; fetch the list again")
        elif lines:
            yield first, _parse_fields(lines)
            lines, size = [], 0
    if lines:
        yield first, _parse_fields(lines)


def _parse_fields(lines: list[str]) -> Paragraph:
    values: dict[str, list[str]] = {}
    value: list[str] = []
    for line in lines:
        if line[0] in " \t":
            value.append("" if line.strip() == "." else line.strip())
        else:
            name, _, text = line.partition(":")
            value = values.setdefault(name.lower(), [])
            value.append(text.strip())
    return {name: "\n".join(parts) for name, parts in values.items() if name in _FIELDS}
