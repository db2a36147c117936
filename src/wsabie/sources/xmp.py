"""XMP packets: the tags and the date that photo programs write into pictures and beside them.

Read are `dc:subject` (names), `lr:hierarchicalSubject` ("animal|dog", from the broadest), `digiKam:TagsList`
("animal/dog") and, where none of these is there, `MicrosoftPhoto:LastKeywordXMP` ("animal/dog"). All forms of RDF that
the XMP specification (part 1, ISO 16684-1, section 7) allows are understood: properties as elements or attributes, any
container, values with qualifiers, several descriptions, UTF-8, UTF-16 and UTF-32. Properties of other things that lie
deeper in a packet, such as the ingredients of a collage, are not the picture's.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.limits import current_limits, limit_error
from wsabie.labels.names import normalise
from wsabie.sources.build import BadRow
from wsabie.sources.safe_xml import Element, parse_xml

LARGEST = 16 << 20
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SUBJECT = "http://purl.org/dc/elements/1.1/ subject"
HIERARCHY = "http://ns.adobe.com/lightroom/1.0/ hierarchicalSubject"
TAGS_LIST = "http://www.digikam.org/ns/1.0/ TagsList"
_LAST_KEYWORD = tuple(f"http://ns.microsoft.com/photo/1.0{end} LastKeywordXMP" for end in ("", "/"))
NAMED = {SUBJECT: "dc:subject", HIERARCHY: "lr:hierarchicalSubject", TAGS_LIST: "digiKam:TagsList"}
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

Tags = dict[tuple[str, ...], tuple[str, ...]]
"""Paths of names from the broadest (one name: a plain keyword), each with the properties that say it."""


class Packet(NamedTuple):
    """What a packet says of its picture: the values of those properties that are read.

    Examples
    --------
    >>> Packet({SUBJECT: ["sea"]}).tags, Packet({SUBJECT: []}).tags, Packet({}).tags
    ({('sea',): ('dc:subject',)}, {}, None)
    """

    said: dict[str, list[str]]

    @property
    def tags(self) -> Tags | None:
        """The tags; an empty dict says that there are none, None that no property for tags is there."""
        return joined_tags(self.said) if {*NAMED, *_LAST_KEYWORD} & self.said.keys() else None

    @property
    def taken(self) -> str | None:
        """When the picture was taken, as much of ISO 8601 as is known."""
        dates = (iso_date(text) for name in _DATES for text in self.said.get(name, ()))
        return next((date for date in dates if date), None)

    @property
    def extended(self) -> str | None:
        """The name of the packet's extension, which lies in other segments of a JPEG file."""
        return next(iter(self.said.get(_EXTENDED, ())), None)

    def with_more(self, other: "Packet") -> "Packet":
        """Both packets in one."""
        return Packet({name: self.said.get(name, []) + other.said.get(name, []) for name in self.said | other.said})


def read_packet(content: bytes) -> Packet:
    """What a packet, or a sidecar, says.

    Raises
    ------
    BadRow
        It is larger than 16 MiB, damaged, unsafe, no XMP, or has a keyword of more levels than `Limits.depth`.

    Examples
    --------
    >>> read_packet(b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><r:Description'
    ...     b' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><r:Bag><r:li>sea</r:li><r:li>sky</r:li></r:Bag>'
    ...     b'</dc:subject></r:Description></r:RDF>').tags
    {('sea',): ('dc:subject',), ('sky',): ('dc:subject',)}
    """
    rdf = way_to_descriptions(as_utf8(content))[-1]
    wanted = (*NAMED, *_LAST_KEYWORD, *_DATES, _EXTENDED)
    said = {name: found for name in wanted if (found := values(rdf, name)) is not None}
    _check_depth(said)
    return Packet(said)


def _check_depth(said: Mapping[str, Sequence[str]]) -> None:
    for name, separator in _SEPARATORS.items():
        levels = 1 + max((text.count(separator) for text in said.get(name, ())), default=0)
        if levels > current_limits().depth:
            excess = f"a keyword has {levels:,} levels"
            raise BadRow("unreadable XMP packet", str(limit_error("depth", excess, levels)))


def as_utf8(content: bytes) -> bytes:
    """A packet in UTF-8, as it is if it was.

    Raises
    ------
    BadRow
        It is larger than 16 MiB, or no text.
    """
    if len(content) > LARGEST:
        raise BadRow("oversized XMP packet", f"{len(content):,} bytes")
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
        raise BadRow("unreadable XMP packet", str(error)) from error
    packet = content.rstrip(b"\0") if encoding == "utf-8" else text.strip("\ufeff\0 \t\r\n").encode()
    declared = _DECLARED.match(packet.removeprefix(codecs.BOM_UTF8))
    if declared and declared[2].lower() != b"utf-8":
        return _DECLARED.sub(rb"\1UTF-8", packet, count=1)
    return packet


def way_to_descriptions(packet: bytes) -> list[Element]:
    """From the root of a packet in UTF-8 down to rdf:RDF, whose children describe the picture.

    Raises
    ------
    BadRow
        Damaged, unsafe, or no XMP.
    """
    try:
        root = parse_xml(packet, "the XMP packet")
    except InputError as error:
        raise BadRow("unreadable XMP packet", str(error)) from error
    rdf = next((element for element in root.walk() if element.name == f"{RDF} RDF"), None)
    if rdf is None:
        raise BadRow("unreadable XMP packet", "it holds no rdf:RDF")
    return [element for element in root.walk() if element.begin <= rdf.begin and rdf.end <= element.end]


def values(rdf: Element, name: str) -> list[str] | None:
    """All values of a property of the picture in their order; None where it is not there at all."""
    said = [found for node in rdf.children for found in _said_by(node, name)]
    return list(chain(*said)) if said else None


def _said_by(node: Element, name: str) -> list[list[str]]:
    said = [_values_of(child) for child in node.children if child.name == name]
    return [[node.attributes[name]], *said] if name in node.attributes else said


def _values_of(element: Element) -> list[str]:
    """The texts of a property: of its items if it is a container, otherwise its own."""
    items = [item for box in element.children if box.name in _CONTAINERS for item in box.children]
    if not items and any(box.name in _CONTAINERS for box in element.children):
        return []
    return [_text_of(item) for item in items or [element]]


_CONTAINERS = {f"{RDF} {kind}" for kind in ("Bag", "Seq", "Alt")}


def _text_of(element: Element) -> str:
    """The text of a value; one with qualifiers has it in rdf:value."""
    if (value := element.attributes.get(f"{RDF} value")) is not None:
        return value
    for child in element.children:
        if child.name == f"{RDF} value":
            return child.text
        if child.name == f"{RDF} Description":
            return _text_of(child)
    return element.text


def joined_tags(said: Mapping[str, Sequence[str]]) -> Tags:
    """The tags that several properties name, each once, in the order of `dc:subject`, then of the others.

    A keyword that is the last name of a path is that path: programs write both. An entry of `digiKam:TagsList` is what
    another property says when that reads the same with `/` between its names: "AC/DC" may be a name.

    Examples
    --------
    >>> list(joined_tags({SUBJECT: ["sea", "dog"], HIERARCHY: ["animal|dog", "water"]}))
    [('sea',), ('animal', 'dog'), ('water',)]
    """
    found: dict[tuple[str, ...], dict[str, None]] = {}

    def say(path: tuple[str, ...], name: str) -> None:
        if path:
            found.setdefault(path, {})[NAMED.get(name, "MicrosoftPhoto:LastKeywordXMP")] = None

    for text in said.get(SUBJECT, ()):
        say(_path([text]), SUBJECT)
    for text in said.get(HIERARCHY, ()):
        say(_path(text.split("|")), HIERARCHY)
    known = {"/".join(path): path for path in found}
    for name in (TAGS_LIST,) if NAMED.keys() & said.keys() else _LAST_KEYWORD:
        for text in said.get(name, ()):
            say(known.get(normalise(text)) or _path(text.split("/")), name)
    return _without_twins({path: tuple(names) for path, names in found.items()})


def _path(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in map(normalise, names) if name)


def _without_twins(tags: Tags) -> Tags:
    """Keywords that are the last name of paths give way to these."""
    longer: dict[str, list[tuple[str, ...]]] = {}
    for path in tags:
        if len(path) > 1:
            longer.setdefault(path[-1], []).append(path)
    kept: Tags = {}
    for path, said in tags.items():
        if len(path) == 1 and path[0] in longer:
            for twin in longer[path[0]]:
                kept[twin] = tuple(dict.fromkeys((*said, *tags[twin])))
        else:
            kept.setdefault(path, said)
    return kept


def iso_date(text: str) -> str | None:
    """A date as XMP or EXIF writes it, in ISO 8601; None if it is none.

    Examples
    --------
    >>> iso_date("2020:05:31 10:00:00"), iso_date("2020-05"), iso_date("0000:00:00 00:00:00")
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
