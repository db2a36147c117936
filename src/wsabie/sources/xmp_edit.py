"""Other tags in an XMP packet, and every other byte of it as it was.

The packet is not written anew: the properties that name tags are cut out of its text and others put in their place.
So prefixes, comments, padding, the order of attributes and all that other programs keep there stay.
"""

import html
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from wsabie.base.errors import InputError
from wsabie.labels.names import normalise
from wsabie.sources.build import BadRow
from wsabie.sources.safe_xml import Element
from wsabie.sources.xmp import (
    HIERARCHY,
    NAMED,
    RDF,
    SUBJECT,
    TAGS_LIST,
    as_utf8,
    joined_tags,
    values,
    way_to_descriptions,
)

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
Edit = tuple[int, int, bytes]


def properties_of(tags: Iterable[str | Sequence[str]]) -> dict[str, list[str]]:
    """What the three properties say when a picture has `tags`.

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
    >>> list(properties_of(["sea", ("animal", "dog")]).values())
    [['sea', 'dog'], ['sea', 'animal|dog'], ['sea', 'animal/dog']]
    """
    if isinstance(tags, str):
        raise InputError(f"the tags are one text, {tags!a}; give a list of them")
    paths = list(dict.fromkeys(_writable([tag] if isinstance(tag, str) else tag) for tag in tags))
    return {
        SUBJECT: list(dict.fromkeys(path[-1] for path in paths)),
        HIERARCHY: ["|".join(path) for path in paths if "|" not in path[0]],
        TAGS_LIST: ["/".join(path) for path in paths],
    }


def _writable(names: Sequence[str]) -> tuple[str, ...]:
    path = tuple(normalise(name) for name in names)
    for name in path or ("",):
        if not name:
            raise InputError(f"the tag {list(names)!a} has an empty name; give every tag a name")
        if bad := _UNWRITABLE.search(name):
            raise InputError(f"the tag {name!a} holds {bad[0]!a}, which XMP cannot hold; leave that character out")
        if "|" in name and len(path) > 1:
            raise InputError(
                f"the tag {name!a} holds '|', which separates the names of a path; write it in another way"
            )
    return path


def with_tags(packet: bytes, said: Mapping[str, Sequence[str]]) -> bytes | None:
    """A packet in UTF-8 whose tags are those that `said` (from `properties_of`) names; None if they are already.

    The order of tags is no difference, for photo programs do not keep it. `digiKam:TagsList` is only written where it
    was.

    Raises
    ------
    BadRow
        The packet is damaged, unsafe, or no XMP.

    Examples
    --------
    >>> written = with_tags(NEW, properties_of(["sea"]))
    >>> written.count(b"<rdf:li>sea</rdf:li>"), with_tags(written, properties_of(["sea"]))
    (2, None)
    """
    packet = as_utf8(packet)
    way = way_to_descriptions(packet)
    held = {name: found for name in NAMED if (found := values(way[-1], name)) is not None}
    wanted = {name: list(said[name]) for name in NAMED if name != TAGS_LIST or name in held}
    if held and joined_tags(held).keys() == joined_tags(wanted).keys():
        return None
    parts, at = [], 0
    for begin, end, new in sorted(_edits(packet, way, wanted)):
        parts += [packet[at:begin], new]
        at = end
    return b"".join([*parts, packet[at:]])


def _edits(packet: bytes, way: list[Element], wanted: Mapping[str, Sequence[str]]) -> list[Edit]:
    """What to cut out of the packet, and what to put in: where the first old property is, or into a description."""
    rdf = way[-1]
    old = [(node, child) for node in rdf.children for child in node.children if child.name in wanted]
    edits = [(_blank_before(packet, child.begin), child.end, b"") for _, child in old]
    scope = _scope(packet, way)
    for node in rdf.children:
        if wanted.keys() & node.attributes.keys():
            edits += _attributes(packet, node, ChainMap(_scope(packet, [node]), scope), wanted)
    if old:
        node, child = old[0]
        begin, end, _ = edits[0]
        edits[0] = begin, end, _properties(_scope(packet, [*way, node]), wanted, packet[begin : child.begin])
    elif rdf.children:
        node = rdf.children[0]
        first = node.children[0] if node.children else node
        margin = packet[_blank_before(packet, first.begin) : first.begin] + (b"" if node.children else b" ")
        edits.append(_inside(packet, node, _properties(_scope(packet, [*way, node]), wanted, margin)))
    else:
        scope[b"rdf"] = RDF.encode()
        start = b'\n  <rdf:Description xmlns:rdf="%s" rdf:about="">' % RDF.encode()
        edits.append(_inside(packet, rdf, start + _properties(scope, wanted, b"\n   ") + b"\n  </rdf:Description>"))
    return edits


def _attributes(
    packet: bytes, node: Element, scope: Mapping[bytes, bytes], wanted: Mapping[str, Sequence[str]]
) -> list[Edit]:
    """The same properties cut out where they are attributes."""
    names = {tuple(name.encode().split(b" ")) for name in wanted}
    found = [(match, *match[1].partition(b":")[::2]) for match in _attributes_in(packet, node)]
    return [(*match.span(), b"") for match, prefix, name in found if (scope.get(prefix), name) in names]


def _attributes_in(packet: bytes, element: Element) -> Iterator[re.Match[bytes]]:
    return _ATTRIBUTE.finditer(packet, element.begin, _start_tag(packet, element).end())


def _start_tag(packet: bytes, element: Element) -> re.Match[bytes]:
    found = _TAG.match(packet, element.begin)
    if found is None:
        raise BadRow("unreadable XMP packet", "a tag without an end")
    return found


def _scope(packet: bytes, way: list[Element]) -> dict[bytes, bytes]:
    """The namespaces of the prefixes that hold inside the last element of a way from the root."""
    scope: dict[bytes, bytes] = {}
    for element in way:
        for match in _attributes_in(packet, element):
            kind, _, prefix = match[1].partition(b":")
            if kind == b"xmlns":
                scope[prefix] = html.unescape(match[2][1:-1].decode()).encode()
    return scope


def _properties(scope: dict[bytes, bytes], wanted: Mapping[str, Sequence[str]], margin: bytes) -> bytes:
    """The properties as elements, each after `margin`."""
    _, newline, indent = margin.rpartition(b"\n")
    steps = [newline + indent + b" " * depth if newline else b"" for depth in range(3)]
    parts = []
    for number, (name, texts) in enumerate(wanted.items()):
        uri, _, local = name.partition(" ")
        own, declared = _prefix(scope, uri, _PREFIXES[name])
        rdf, declared_rdf = _prefix(scope, RDF, "rdf")
        tag, box = own + local.encode(), rdf + (b"Seq" if name == TAGS_LIST else b"Bag")
        items = [b"%b<%bli>%b</%bli>" % (steps[2], rdf, html.escape(t, quote=False).encode(), rdf) for t in texts]
        parts += [steps[0] if number else margin, b"<%b%b%b>" % (tag, declared, declared_rdf)]
        parts += [steps[1], b"<%b>" % box, *items, steps[1], b"</%b>" % box, steps[0], b"</%b>" % tag]
    return b"".join(parts)


def _prefix(scope: dict[bytes, bytes], uri: str, usual: str) -> tuple[bytes, bytes]:
    """The prefix of a namespace with its colon, and its declaration where it is not known."""
    prefix = next((prefix for prefix, bound in scope.items() if bound == uri.encode()), None)
    if prefix is not None:
        return prefix + b":" * bool(prefix), b""
    while usual.encode() in scope:
        usual += "_"
    return usual.encode() + b":", b' xmlns:%b="%b"' % (usual.encode(), uri.encode())


def _inside(packet: bytes, element: Element, new: bytes) -> Edit:
    """Put something in at the end of an element."""
    tag = _start_tag(packet, element)
    if tag.end() == element.end:
        name = re.split(rb"[\s/]", tag[0][1:], maxsplit=1)[0]
        return tag.end() - 2, tag.end(), b">" + new + b"</" + name + b">"
    at = _blank_before(packet, packet.rindex(b"</", 0, element.end))
    return at, at, new


def _blank_before(packet: bytes, at: int) -> int:
    """Where the blanks before a place begin."""
    while packet[at - 1 : at] in (b" ", b"\t", b"\r", b"\n"):
        at -= 1
    return at
