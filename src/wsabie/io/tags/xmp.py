"""XMP packets: the tags and the date that photo programs write into pictures and beside them.

Read are `dc:subject` (names), `lr:hierarchicalSubject` ("animal|dog", from the broadest), `digiKam:TagsList`
("animal/dog") and, without any of these, `MicrosoftPhoto:LastKeywordXMP` ("animal/dog"). All forms of RDF
that the XMP specification (part 1, ISO 16684-1, section 7) allows are understood: properties as elements or
attributes, any container, values with qualifiers, several descriptions, UTF-8, UTF-16 and UTF-32. Properties
that lie deeper in a packet, such as those of the ingredients of a collage, are not the picture's.

Written are tags alone: the properties that name them are cut out of the text and new ones put in their place. So
prefixes, comments, padding, the order of attributes and everything of other programs stay, byte for byte.

Libraries write the whole packet again, and what other programs put between its tags is lost
(`docs/decisions/picture-tags.md`).
"""

import codecs
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from wsabie.core.errors import InputError, require
from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.io.parsers.xml_elements import XmlElement, parse_xml
from wsabie.storage.rejects import RowError
from wsabie.vocabulary.label_names import normalise_label_name

MAX_PACKET_BYTES = 16 << 20
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

_PROGRAMS = {"darktable", "_digikam_internal_tags_", "digikam internal tags"}
_PROGRAM_PREFIXES = tuple(f"{name}|" for name in _PROGRAMS)

TagHierarchy = dict[tuple[str, ...], tuple[str, ...]]
"""Paths of names from the broadest (one name: a plain keyword), each with the properties that hold it."""
NEW = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="wsabie">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
""".encode()
"""A packet without properties, in the form of Adobe's programs."""
_PREFIXES = {SUBJECT: "dc", HIERARCHY: "lr", TAGS_LIST: "digiKam"}
_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*+>""")
_ATTRIBUTE = re.compile(rb"""(?<!\s)\s++([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")
_UNWRITABLE = re.compile("[\0-\x08\x0e-\x1b\x7f\ufffe\uffff]")
TextEdit = tuple[int, int, bytes]
_CONTAINERS = {f"{RDF} {kind}" for kind in ("Bag", "Seq", "Alt")}


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
        names = self.properties | packet.properties
        return XmpPacket({name: self.properties.get(name, []) + packet.properties.get(name, []) for name in names})


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
    properties = _read_properties(rdf, names)
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
    if len(content) > MAX_PACKET_BYTES:
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
        raise RowError("unreadable XMP packet", f"{error}; save the file as UTF-8") from error
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
    value_lists = []
    for node in rdf.children:
        value_lists += [[node.attributes[name]]] if name in node.attributes else []
        value_lists += [_get_values(child) for child in node.children if child.name == name]
    return list(chain(*value_lists)) if value_lists else None


def _read_properties(rdf: XmlElement, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of the properties that are present."""
    return {name: values for name in names if (values := read_property_values(rdf, name)) is not None}


def _get_values(element: XmlElement) -> list[str]:
    """Return the texts of a property: of its items if it is a container, otherwise its own."""
    boxes = [box for box in element.children if box.name in _CONTAINERS]
    return [_get_text(item) for item in ([item for box in boxes for item in box.children] if boxes else [element])]


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

    def add_tag(path: tuple[str, ...], name: str) -> None:
        if path:
            sources.setdefault(path, {})[PROPERTY_NAMES.get(name, "MicrosoftPhoto:LastKeywordXMP")] = None

    for text in properties.get(SUBJECT, ()):
        add_tag(_make_path([text]), SUBJECT)
    for text in properties.get(HIERARCHY, ()):
        add_tag(_make_path(text.split("|")), HIERARCHY)
    paths = {"/".join(path): path for path in sources}
    for name in (TAGS_LIST,) if PROPERTY_NAMES.keys() & properties.keys() else _LAST_KEYWORD:
        for text in properties.get(name, ()):
            add_tag(paths.get(normalise_label_name(text)) or _make_path(text.split("/")), name)
    return _drop_twins({path: tuple(names) for path, names in sources.items()})


def drop_program_tags(tags: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return tags without those that programs keep for themselves, and without keywords from their parts.

    Examples
    --------
    >>> drop_program_tags([("darktable", "format", "jpg"), ("format",), ("animal", "gull"), ("sea",)])
    (('animal', 'gull'), ('sea',))
    """
    paths = tuple(tags)
    tags = tuple(tuple(p[0].split("|")) if p[0].casefold().startswith(_PROGRAM_PREFIXES) else p for p in paths)
    parts = {name for path in tags if path[0].casefold() in _PROGRAMS and len(path) > 1 for name in path}
    return tuple(
        path for path in tags if path[0] not in parts or (len(path) > 1 and path[0].casefold() not in _PROGRAMS)
    )


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
    with suppress(ValueError):
        if _DATE.fullmatch(text) and datetime.fromisoformat(text + "2000-01-01"[len(text) :]):
            return text
    return None


def make_tag_properties(tags: Iterable[str | Sequence[str]]) -> dict[str, list[str]]:
    """Return the values of the three properties for a picture with `tags`.

    Parameters
    ----------
    tags : iterable of str or of sequences of str
        Names, or paths of names from the broadest. A name that holds "|" is only in `dc:subject`; one that holds "/"
        looks like a path to programs that read `digiKam:TagsList`, which has no other way to write it.

    Raises
    ------
    InputError
        They are one text and no list; or a name is empty, holds characters that XML cannot hold (control characters,
        half a surrogate pair), or holds "|" inside a path.

    Examples
    --------
    >>> list(make_tag_properties(["sea", ("animal", "dog")]).values())
    [['sea', 'dog'], ['sea', 'animal|dog'], ['sea', 'animal/dog']]
    """
    require(not isinstance(tags, str), f"the tags are one text, {tags!a}; give a list of them")
    paths = list(dict.fromkeys(_check_writable([tag] if isinstance(tag, str) else tag) for tag in tags))
    return {
        SUBJECT: list(dict.fromkeys(path[-1] for path in paths)),
        HIERARCHY: ["|".join(path) for path in paths if "|" not in path[0]],
        TAGS_LIST: ["/".join(path) for path in paths],
    }


def _check_writable(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if match := _UNWRITABLE.search(" ".join(name.split()).encode("utf-8", "ignore").decode()):
            raise InputError(f"the tag {name!a} holds {match[0]!a}, which XMP cannot hold; leave that character out")
    path = tuple(normalise_label_name(name) for name in names)
    for name in path or ("",):
        require(bool(name), f"the tag {list(names)!a} has an empty name; give every tag a name")
        if "|" in name and len(path) > 1:
            raise InputError(
                f"the tag {name!a} holds '|', which separates the names of a path; write it in another way"
            )
    return path


def replace_tags(packet: bytes, properties: Mapping[str, Sequence[str]]) -> bytes | None:
    """Return a UTF-8 packet with the tags of `properties` (from `make_tag_properties`).

    None if it has these tags already. The order of tags is not a difference, for photo programs do not keep it.
    `digiKam:TagsList` is only written where it was.

    Raises
    ------
    RowError
        The packet is damaged, unsafe, or no XMP.

    Examples
    --------
    >>> written = replace_tags(NEW, make_tag_properties(["sea"]))
    >>> written.count(b"<rdf:li>sea</rdf:li>"), replace_tags(written, make_tag_properties(["sea"]))
    (2, None)
    """
    packet = convert_to_utf8(packet)
    ancestors = find_descriptions(packet)
    old_properties = _read_properties(ancestors[-1], PROPERTY_NAMES)
    new_properties = {
        name: list(properties[name]) for name in PROPERTY_NAMES if name != TAGS_LIST or name in old_properties
    }
    if old_properties and merge_tags(old_properties).keys() == merge_tags(new_properties).keys():
        return None
    parts, position = [], 0
    for begin, end, new in sorted(_find_edits(packet, ancestors, new_properties)):
        parts += [packet[position:begin], new]
        position = end
    return b"".join([*parts, packet[position:]])


def _find_edits(packet: bytes, ancestors: list[XmlElement], properties: Mapping[str, Sequence[str]]) -> list[TextEdit]:
    """Return the cuts and insertions: at the first old property, or inside a description."""
    rdf = ancestors[-1]
    old = [(node, child) for node in rdf.children for child in node.children if child.name in properties]
    edits = [(_find_blank_start(packet, child.begin), child.end, b"") for _, child in old]
    scope = _collect_namespaces(packet, ancestors)
    for node in rdf.children:
        if properties.keys() & node.attributes.keys():
            edits += _cut_attributes(packet, node, scope, properties)
    if rdf.children:
        node = old[0][0] if old else rdf.children[0]
        first = old[0][1] if old else (node.children or [node])[0]
        margin = packet[_find_blank_start(packet, first.begin) : first.begin] + (b"" if node.children else b" ")
        new = _format_properties(_collect_namespaces(packet, [*ancestors, node]), properties, margin)
        if old:
            edits[0] = (*edits[0][:2], new)
        else:
            edits.append(_insert_at_end(packet, node, new))
    else:
        scope[b"rdf"] = RDF.encode()
        start = b'\n  <rdf:Description xmlns:rdf="%s" rdf:about="">' % RDF.encode()
        new = _format_properties(scope, properties, b"\n   ")
        edits.append(_insert_at_end(packet, rdf, start + new + b"\n  </rdf:Description>"))
    return edits


def _cut_attributes(packet: bytes, node: XmlElement, scope: dict[bytes, bytes], names: Iterable[str]) -> list[TextEdit]:
    """Return the cuts of properties of these names where they are attributes."""
    inner_scope = scope | _collect_namespaces(packet, [node])
    cut_names = {tuple(name.encode().split(b" ")) for name in names}
    matches = [(match, *match[1].partition(b":")[::2]) for match in _iterate_attributes(packet, node)]
    return [(*match.span(), b"") for match, prefix, name in matches if (inner_scope.get(prefix), name) in cut_names]


def _iterate_attributes(packet: bytes, element: XmlElement) -> Iterator[re.Match[bytes]]:
    return _ATTRIBUTE.finditer(packet, element.begin, _match_start_tag(packet, element).end())


def _match_start_tag(packet: bytes, element: XmlElement) -> re.Match[bytes]:
    match = _TAG.match(packet, element.begin)
    if match is None:
        raise RowError("unreadable XMP packet", "a tag without an end")
    return match


def _collect_namespaces(packet: bytes, ancestors: list[XmlElement]) -> dict[bytes, bytes]:
    """Return the namespaces of the prefixes inside the last element of a path from the root."""
    scope: dict[bytes, bytes] = {}
    for element in ancestors:
        for match in _iterate_attributes(packet, element):
            kind, _, prefix = match[1].partition(b":")
            if kind == b"xmlns":
                scope[prefix] = html.unescape(match[2][1:-1].decode()).encode()
    return scope


def _format_properties(scope: dict[bytes, bytes], properties: Mapping[str, Sequence[str]], margin: bytes) -> bytes:
    """Return the properties as elements, each after `margin`."""
    _, newline, indent = margin.rpartition(b"\n")
    steps = [newline + indent + b" " * depth if newline else b"" for depth in range(3)]
    parts = []
    for number, (name, texts) in enumerate(properties.items()):
        uri, _, local = name.partition(" ")
        prefix, declared = _choose_prefix(scope, uri, _PREFIXES[name])
        rdf, declared_rdf = _choose_prefix(scope, RDF, "rdf")
        tag, box = prefix + local.encode(), rdf + (b"Seq" if name == TAGS_LIST else b"Bag")
        items = [b"%b<%bli>%b</%bli>" % (steps[2], rdf, html.escape(t, quote=False).encode(), rdf) for t in texts]
        parts += [steps[0] if number else margin, b"<%b%b%b>" % (tag, declared, declared_rdf)]
        parts += [steps[1], b"<%b>" % box, *items, steps[1], b"</%b>" % box, steps[0], b"</%b>" % tag]
    return b"".join(parts)


def _choose_prefix(scope: dict[bytes, bytes], uri: str, default: str) -> tuple[bytes, bytes]:
    """Return the prefix of a namespace with its colon, and its declaration if it is new."""
    prefix = next((prefix for prefix, bound in scope.items() if bound == uri.encode()), None)
    if prefix is not None:
        return prefix + b":" * bool(prefix), b""
    while default.encode() in scope:
        default += "_"
    return default.encode() + b":", b' xmlns:%b="%b"' % (default.encode(), uri.encode())


def _insert_at_end(packet: bytes, element: XmlElement, new: bytes) -> TextEdit:
    """Return the insertion of text at the end of an element."""
    tag = _match_start_tag(packet, element)
    if tag.end() == element.end:
        name = re.split(rb"[\s/]", tag[0][1:], maxsplit=1)[0]
        return tag.end() - 2, tag.end(), b">" + new + b"</" + name + b">"
    position = _find_blank_start(packet, packet.rindex(b"</", 0, element.end))
    return position, position, new


def _find_blank_start(packet: bytes, position: int) -> int:
    """Return the start of the blanks before a position."""
    while packet[position - 1 : position] in (b" ", b"\t", b"\r", b"\n"):
        position -= 1
    return position
