"""The SVG files of Open Clip Art: where they lie, and what their authors' RDF metadata says about them."""

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sample.text import clean_label, unique

_DC = "{http://purl.org/dc/elements/1.1/}"
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_LICENCES = ("{http://web.resource.org/cc/}license", "{http://creativecommons.org/ns#}license")
_NO_LABEL = re.compile(r"(unsorted|hash(\(0x[0-9a-f]+\))?)?")  # leftovers of sorting and of a converter
_MAX_LABEL = 40  # letters; what is longer is a sentence or words run together


@dataclass(frozen=True)
class Metadata:
    """Metadata of an SVG file."""

    title: str
    tags: tuple[str, ...]
    licences: tuple[str, ...]

    @property
    def is_public_domain(self) -> bool:
        """Return whether the only licence is the public domain (which the collection declares)."""
        return all("publicdomain" in licence.replace(" ", "").lower() for licence in self.licences)


def parse_metadata(content: bytes) -> Metadata:
    """Title, tags as written, and licences of one SVG file.

    Raises
    ------
    xml.etree.ElementTree.ParseError
        Not well-formed, or in an encoding that is not known.
    """
    try:
        root = ET.fromstring(content)  # noqa: S314 (files of an installed package)
    except (LookupError, ValueError) as error:
        raise ET.ParseError(str(error)) from error
    titles = ("".join(element.itertext()) for element in root.iter(f"{_DC}title"))
    items = (item for subject in root.iter(f"{_DC}subject") for item in subject.iter(f"{_RDF}li"))
    tags = (" ".join("".join(item.itertext()).split()) for item in items)
    licences = (value for name in _LICENCES for element in root.iter(name) for value in element.attrib.values())
    return Metadata(" ".join(next(titles, "").split()), tuple(filter(None, tags)), tuple(filter(None, licences)))


def labels_of(words: Iterable[str]) -> list[str]:
    """Tags and folder names as labels: parted at commas and slashes, blanks for underscores, cleaned.

    Examples
    --------
    >>> labels_of(["Signs_and_symbols/weather", "rome,italy", "&eacute;toile", "HASH(0x86669dc)", "http://a.org"])
    ['signs and symbols', 'weather', 'rome', 'italy', 'étoile']
    """
    phrases = (html.unescape(word) for word in words if "://" not in word)
    parts = (clean_label(part.replace("_", " ")) for word in phrases for part in re.split(r"[,;/]", word))
    return unique(part for part in parts if len(part) <= _MAX_LABEL and not _NO_LABEL.fullmatch(part))


def stem(path: PurePosixPath) -> str:
    """The name that numbered variants of one drawing share, with its folder.

    Examples
    --------
    >>> stem(PurePosixPath("animals/baby_tux_01.svg")), stem(PurePosixPath("food/cake-12.svg"))
    ('animals/baby_tux', 'food/cake')
    """
    name = re.sub(r"[\W_]*\d*[\W_]*$", "", path.stem)
    return str(path.with_name(name or path.stem))


@dataclass(frozen=True)
class Drawing:
    """One file and the places that show it, as paths inside the collection: its own, then links."""

    file: Path
    places: tuple[PurePosixPath, ...]

    @property
    def id(self) -> str:
        """ "drawing-" and its own place without the ending."""
        return f"drawing-{self.places[0].with_suffix('')}"

    @property
    def folder_names(self) -> list[str]:
        """Names of all folders above all its places."""
        return [name for place in self.places for name in place.parent.parts]


def find_drawings(root: Path) -> Iterator[Drawing]:
    """All SVG files below `root` in order of path; links are further places of the file they lead to."""
    files = sorted(root.rglob("*.svg"))
    links: dict[Path, list[PurePosixPath]] = {}
    for link in filter(Path.is_symlink, files):
        links.setdefault(link.resolve(), []).append(PurePosixPath(link.relative_to(root)))
    for file in files:
        if not file.is_symlink():
            own_path = PurePosixPath(file.relative_to(root))
            yield Drawing(file, (own_path, *links.get(file.resolve(), [])))
