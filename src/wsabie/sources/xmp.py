"""Keywords that programs write into pictures: `dc:subject` of the embedded XMP packet."""

import warnings
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.formats import FORMATS
from wsabie.sources.safe_xml import parse_xml

_SUBJECT = "http://purl.org/dc/elements/1.1/ subject"
_ITEM = "http://www.w3.org/1999/02/22-rdf-syntax-ns# li"
_LARGEST = 16 << 20


def keywords_in(path: Path) -> tuple[str, ...]:
    """The `dc:subject` keywords of a JPEG, PNG, WebP, TIFF or AVIF file in their order; none without an XMP packet.

    Raises
    ------
    BadRow
        No picture, or an XMP packet that is damaged or unsafe.
    """
    packet = _packet(path)
    return keywords_of(packet) if packet else ()


def keywords_of(packet: bytes) -> tuple[str, ...]:
    """The `dc:subject` keywords of an XMP packet.

    Raises
    ------
    BadRow
        The packet is damaged, too large, or has a document type.

    Examples
    --------
    >>> keywords_of(b'<r xmlns:d="http://purl.org/dc/elements/1.1/"'
    ...     b' xmlns:f="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    ...     b'<d:subject><f:Bag><f:li>sea</f:li><f:li>sky</f:li></f:Bag></d:subject></r>')
    ('sea', 'sky')
    """
    if len(packet) > _LARGEST:
        raise BadRow("oversized XMP packet", f"{len(packet):,} bytes")
    try:
        root = parse_xml(packet.strip(b"\0 \t\r\n"), "the XMP packet")
    except InputError as error:
        raise BadRow("unreadable XMP packet", str(error)) from error
    subjects = [e for e in root.walk() if e.name == _SUBJECT]
    items = [item.text.strip() for subject in subjects for item in subject.walk() if item.name == _ITEM]
    return tuple(dict.fromkeys(name for name in items if name))


def _packet(path: Path) -> bytes:
    """The XMP packet as Pillow finds it while it reads the header, not the pixels."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a size warning; nothing is decoded here
            with Image.open(path, formats=FORMATS) as image:
                found = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or _tiff_packet(image)
    except Exception as error:  # Pillow raises almost anything on damaged files
        raise BadRow("unreadable picture", str(error)[:100]) from error
    return found.encode() if isinstance(found, str) else bytes(found or b"")


def _tiff_packet(image: object) -> bytes:
    tags = getattr(image, "tag_v2", None)
    return bytes(tags.get(700, b"")) if tags is not None else b""
