"""Editor of the tags in an XMP packet that leaves every other byte unchanged.

The properties that name tags are cut out of the text and new ones put in their place. So prefixes, comments,
padding, the order of attributes and everything of other programs stay.
"""

import html
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from wsabie.core.errors import InputError
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.xml_elements import XmlElement
from wsabie.io.tags.xmp import (
    HIERARCHY,
    PROPERTY_NAMES,
    RDF,
    SUBJECT,
    TAGS_LIST,
    convert_to_utf8,
    find_descriptions,
    merge_tags,
    read_property_values,
)
from wsabie.vocabulary.label_names import normalise_label_name

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
    if isinstance(tags, str):
        raise InputError(f"the tags are one text, {tags!a}; give a list of them")
    paths = list(dict.fromkeys(_check_writable([tag] if isinstance(tag, str) else tag) for tag in tags))
    return {
        SUBJECT: list(dict.fromkeys(path[-1] for path in paths)),
        HIERARCHY: ["|".join(path) for path in paths if "|" not in path[0]],
        TAGS_LIST: ["/".join(path) for path in paths],
    }


def _check_writable(names: Sequence[str]) -> tuple[str, ...]:
    path = tuple(normalise_label_name(name) for name in names)
    for name in path or ("",):
        if not name:
            raise InputError(f"the tag {list(names)!a} has an empty name; give every tag a name")
        if match := _UNWRITABLE.search(name):
            raise InputError(f"the tag {name!a} holds {match[0]!a}, which XMP cannot hold; leave that character out")
        if "|" in name and len(path) > 1:
            raise InputError(
                f"the tag {name!a} holds '|', which separates the names of a path; write it in another way"
            )
    return path


def replace_tags(packet: bytes, properties: Mapping[str, Sequence[str]]) -> bytes | None:
    """Return a UTF-8 packet with the tags of `properties` (from `make_tag_properties`).

    None if it has these tags already. The order of tags is no difference, for photo programs do not keep it.
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
    old_properties = {
        name: values for name in PROPERTY_NAMES if (values := read_property_values(ancestors[-1], name)) is not None
    }
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
            edits += _cut_attributes(packet, node, ChainMap(_collect_namespaces(packet, [node]), scope), properties)
    if old:
        node, child = old[0]
        begin, end, _ = edits[0]
        edits[0] = (
            begin,
            end,
            _format_properties(
                _collect_namespaces(packet, [*ancestors, node]), properties, packet[begin : child.begin]
            ),
        )
    elif rdf.children:
        node = rdf.children[0]
        first = node.children[0] if node.children else node
        margin = packet[_find_blank_start(packet, first.begin) : first.begin] + (b"" if node.children else b" ")
        edits.append(
            _insert_at_end(
                packet, node, _format_properties(_collect_namespaces(packet, [*ancestors, node]), properties, margin)
            )
        )
    else:
        scope[b"rdf"] = RDF.encode()
        start = b'\n  <rdf:Description xmlns:rdf="%s" rdf:about="">' % RDF.encode()
        edits.append(
            _insert_at_end(
                packet, rdf, start + _format_properties(scope, properties, b"\n   ") + b"\n  </rdf:Description>"
            )
        )
    return edits


def _cut_attributes(
    packet: bytes, node: XmlElement, scope: Mapping[bytes, bytes], properties: Mapping[str, Sequence[str]]
) -> list[TextEdit]:
    """Return the cuts of the same properties where they are attributes."""
    names = {tuple(name.encode().split(b" ")) for name in properties}
    matches = [(match, *match[1].partition(b":")[::2]) for match in _iterate_attributes(packet, node)]
    return [(*match.span(), b"") for match, prefix, name in matches if (scope.get(prefix), name) in names]


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
    """Return the position where the blanks before a place begin."""
    while packet[position - 1 : position] in (b" ", b"\t", b"\r", b"\n"):
        position -= 1
    return position
