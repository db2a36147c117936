"""XMP packets: the tags and the date that photo programs write into pictures and beside them.

Read are `dc:subject` (names), `lr:hierarchicalSubject` ("animal|dog", from the broadest), `digiKam:TagsList`
("animal/dog") and, without any of these, `MicrosoftPhoto:LastKeywordXMP` ("animal/dog"). All forms of RDF
that the XMP specification (part 1, ISO 16684-1, section 7) allows are understood: properties as elements or
attributes, any container, values with qualifiers, several descriptions, UTF-8, UTF-16 and UTF-32. Properties
that lie deeper in a packet, such as those of the ingredients of a collage, are not the picture's.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.xml_elements import XmlElement, parse_xml
from wsabie.vocabulary.label_names import normalise_label_name

LARGEST = 16 << 20
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SUBJECT = "http://purl.org/dc/elements/1.1/ subject"
HIERARCHY = "http://ns.adobe.com/lightroom/1.0/ hierarchicalSubject"
TAGS_LIST = "http://www.digikam.org/ns/1.0/ TagsList"
_LAST_KEYWORD = tuple(f"http://ns.microsoft.com/photo/1.0{end} LastKeywordXMP" for end in ("", "/"))
PROPERTY_NAMES = {SUBJECT: "dc:subject", HIERARCHY: "lr:hierarchicalSubject", TAGS_LIST: "digiKam:TagsList"}
"""The properties that name tags, as people know them."""
_SEPARATORS = {HIERARCHY: "|", TAGS_LIST: "/", **dict.fromkeys(_LAST_KEYWORD, "/")}
_DATES = (
    "http://ns.adobe.com/exif/1.0/ DateTimeOriginal",
    "http://ns.adobe.com/photoshop/1.0/ DateCreated",
    "http://ns.adobe.com/xap/1.0/ CreateDate",
)
_EXTENDED = "http://ns.adobe.com/xmp/note/ HasExtendedXMP"
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?)?)?")
_DECLARED = re.compile(rb"""(<\?xml[^>]{0,100}?encoding\s*=\s*["'])([A-Za-z0-9._-]{1,20})""")
_ENCODINGS = {"utf-8", "ascii", "iso8859-1", "cp1252"}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
          (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"), (b"<\0\0\0", "utf-32-le"),
          (b"\0\0\0<", "utf-32-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))  # fmt: skip

TagHierarchy = dict[tuple[str, ...], tuple[str, ...]]
"""Paths of names from the broadest (one name: a plain keyword), each with the properties that say it."""


class XmpPacket(NamedTuple):
    """Properties of a picture in a packet: the values of those that are read.

    Examples
    --------
    >>> XmpPacket({SUBJECT: ["sea"]}).tags, XmpPacket({SUBJECT: []}).tags, XmpPacket({}).tags
    ({('sea',): ('dc:subject',)}, {}, None)
    """

    properties: dict[str, list[str]]

    @property
    def tags(self) -> TagHierarchy | None:
        """Return the tags; an empty dict says that there are none, None that no property for tags is present."""
        return merge_tags(self.properties) if {*PROPERTY_NAMES, *_LAST_KEYWORD} & self.properties.keys() else None

    @property
    def date_taken(self) -> str | None:
        """Return the date when the picture was taken, as much of ISO 8601 as is known."""
        dates = (parse_iso_date(text) for name in _DATES for text in self.properties.get(name, ()))
        return next((date for date in dates if date), None)

    @property
    def extended(self) -> str | None:
        """Return the name of the packet's extension, which lies in other segments of a JPEG file."""
        return next(iter(self.properties.get(_EXTENDED, ())), None)

    def merge(self, packet: "XmpPacket") -> "XmpPacket":
        """Merge two packets into one."""
        return XmpPacket(
            {
                name: self.properties.get(name, []) + packet.properties.get(name, [])
                for name in self.properties | packet.properties
            }
        )


def read_xmp_packet(content: bytes) -> XmpPacket:
    """Parse a packet, or a sidecar.

    Raises
    ------
    RowError
        It is larger than 16 MiB, damaged, unsafe, no XMP, or has a keyword of more levels than `InputLimits.depth`.

    Examples
    --------
    >>> read_xmp_packet(b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description'
    ...     b' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><r:Bag><r:li>sea</r:li><r:li>sky</r:li></r:Bag>'
    ...     b'</dc:subject></r:Description></r:RDF>').tags
    {('sea',): ('dc:subject',), ('sky',): ('dc:subject',)}
    """
    rdf = find_descriptions(convert_to_utf8(content))[-1]
    names = (*PROPERTY_NAMES, *_LAST_KEYWORD, *_DATES, _EXTENDED)
    properties = {name: values for name in names if (values := read_property_values(rdf, name)) is not None}
    _check_depth(properties)
    return XmpPacket(properties)


def _check_depth(properties: Mapping[str, Sequence[str]]) -> None:
    for name, separator in _SEPARATORS.items():
        levels = 1 + max((text.count(separator) for text in properties.get(name, ())), default=0)
        if levels > read_limits().depth:
            excess = f"a keyword has {levels:,} levels"
            raise RowError("unreadable XMP packet", str(make_limit_error("depth", excess, levels)))


def convert_to_utf8(content: bytes) -> bytes:
    """Convert a packet to UTF-8.

    Raises
    ------
    RowError
        It is larger than 16 MiB, or no text.
    """
    if len(content) > LARGEST:
        raise RowError("oversized XMP packet", f"{len(content):,} bytes")
    content = content.lstrip(b" \t\r\n")
    declared = _DECLARED.match(content)
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    try:
        if encoding is None:
            encoding = codecs.lookup(declared[2].decode() if declared else "utf-8").name
            if encoding not in _ENCODINGS:
                raise LookupError(f"the encoding {encoding}")
        text = content.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise RowError("unreadable XMP packet", str(error)) from error
    packet = content.rstrip(b"\0") if encoding == "utf-8" else text.strip("\ufeff\0 \t\r\n").encode()
    declared = _DECLARED.match(packet.removeprefix(codecs.BOM_UTF8))
    if declared and declared[2].lower() != b"utf-8":
        return _DECLARED.sub(rb"\1UTF-8", packet, count=1)
    return packet


def find_descriptions(packet: bytes) -> list[XmlElement]:
    """Return the elements from the root down to rdf:RDF, whose children describe the picture.

    Raises
    ------
    RowError
        Damaged, unsafe, or no XMP.
    """
    try:
        root = parse_xml(packet, "the XMP packet")
    except InputError as error:
        raise RowError("unreadable XMP packet", str(error)) from error
    rdf = next((element for element in root.walk() if element.name == f"{RDF} RDF"), None)
    if rdf is None:
        raise RowError("unreadable XMP packet", "it holds no rdf:RDF")
    return [element for element in root.walk() if element.begin <= rdf.begin and rdf.end <= element.end]


def read_property_values(rdf: XmlElement, name: str) -> list[str] | None:
    """Return all values of a property of the picture in their order; None if it is absent."""
    value_lists = [values for node in rdf.children for values in _get_node_values(node, name)]
    return list(chain(*value_lists)) if value_lists else None


def _get_node_values(node: XmlElement, name: str) -> list[list[str]]:
    value_lists = [_get_values(child) for child in node.children if child.name == name]
    return [[node.attributes[name]], *value_lists] if name in node.attributes else value_lists


def _get_values(element: XmlElement) -> list[str]:
    """Return the texts of a property: of its items if it is a container, otherwise its own."""
    items = [item for box in element.children if box.name in _CONTAINERS for item in box.children]
    if not items and any(box.name in _CONTAINERS for box in element.children):
        return []
    return [_get_text(item) for item in items or [element]]


_CONTAINERS = {f"{RDF} {kind}" for kind in ("Bag", "Seq", "Alt")}


def _get_text(element: XmlElement) -> str:
    """Return the text of a value; one with qualifiers has it in rdf:value."""
    if (value := element.attributes.get(f"{RDF} value")) is not None:
        return value
    for child in element.children:
        if child.name == f"{RDF} value":
            return child.text
        if child.name == f"{RDF} Description":
            return _get_text(child)
    return element.text


def merge_tags(properties: Mapping[str, Sequence[str]]) -> TagHierarchy:
    """Merge the tags of several properties, each once, in the order of `dc:subject`, then of the others.

    A keyword that is the last name of a path is that path: programs write both. An entry of
    `digiKam:TagsList` equals a tag of another property that reads the same with `/` between its names:
    "AC/DC" may be a name.

    Examples
    --------
    >>> list(merge_tags({SUBJECT: ["sea", "dog"], HIERARCHY: ["animal|dog", "water"]}))
    [('sea',), ('animal', 'dog'), ('water',)]
    """
    sources: dict[tuple[str, ...], dict[str, None]] = {}

    def say(path: tuple[str, ...], name: str) -> None:
        if path:
            sources.setdefault(path, {})[PROPERTY_NAMES.get(name, "MicrosoftPhoto:LastKeywordXMP")] = None

    for text in properties.get(SUBJECT, ()):
        say(_make_path([text]), SUBJECT)
    for text in properties.get(HIERARCHY, ()):
        say(_make_path(text.split("|")), HIERARCHY)
    paths = {"/".join(path): path for path in sources}
    for name in (TAGS_LIST,) if PROPERTY_NAMES.keys() & properties.keys() else _LAST_KEYWORD:
        for text in properties.get(name, ()):
            say(paths.get(normalise_label_name(text)) or _make_path(text.split("/")), name)
    return _drop_twins({path: tuple(names) for path, names in sources.items()})


def _make_path(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in map(normalise_label_name, names) if name)


def _drop_twins(tags: TagHierarchy) -> TagHierarchy:
    """Replace keywords that are the last name of paths by these paths."""
    paths_by_name: dict[str, list[tuple[str, ...]]] = {}
    for path in tags:
        if len(path) > 1:
            paths_by_name.setdefault(path[-1], []).append(path)
    merged: TagHierarchy = {}
    for path, sources in tags.items():
        if len(path) == 1 and path[0] in paths_by_name:
            for twin in paths_by_name[path[0]]:
                merged[twin] = tuple(dict.fromkeys((*sources, *tags[twin])))
        else:
            merged.setdefault(path, sources)
    return merged


def parse_iso_date(text: str) -> str | None:
    """Return a date of XMP or EXIF in ISO 8601; None if it is none.

    Examples
    --------
    >>> parse_iso_date("2020:05:31 10:00:00"), parse_iso_date("2020-05"), parse_iso_date("0000:00:00 00:00:00")
    ('2020-05-31T10:00:00', '2020-05', None)
    """
    text = text.strip("\0 \t\r\n")
    if text[4:5] == ":":
        text = text[:10].replace(":", "-") + text[10:].replace(" ", "T", 1)
    if not _DATE.fullmatch(text):
        return None
    try:
        datetime.fromisoformat(text + "2000-01-01"[len(text) :])
    except ValueError:
        return None
    return text
