"""Packets, segments and blocks of metadata, byte by byte."""

import hashlib
import struct
from pathlib import Path

from PIL import PngImagePlugin

from wsabie.io.tags.embedded_metadata import XMP_HEAD
from wsabie.io.tags.xmp import NEW, make_tag_properties, replace_tags

FILES = Path(__file__).parent / "io" / "xmp_files"
NOTE = "http://ns.adobe.com/xmp/note/"


def packet(*tags):
    return replace_tags(NEW, make_tag_properties(tags))


def segment(marker, content):
    return b"\xff" + marker + struct.pack(">H", len(content) + 2) + content


def dataset(record, number, content):
    return b"\x1c" + bytes([record, number]) + struct.pack(">H", len(content)) + content


def resource(number, content, name=b""):
    title = bytes([len(name)]) + name
    return (
        b"8BIM" + struct.pack(">H", number) + title + b"\0" * (len(title) % 2)
        + struct.pack(">I", len(content)) + content + b"\0" * (len(content) % 2)
    )  # fmt: skip


def iptc(*keywords, utf8=False):
    head = dataset(1, 90, b"\x1b%G") if utf8 else b""
    return head + dataset(2, 0, b"\0\2") + b"".join(dataset(2, 25, keyword) for keyword in keywords)


def with_segments(picture, path, *segments):
    content = picture(path).read_bytes()
    path.write_bytes(content[:2] + b"".join(segments) + content[2:])
    return path


def resources(content):
    return segment(b"\xed", b"Photoshop 3.0\0" + content)


def png_packet(content, zip=False):
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", content.decode(), zip=zip)
    return info


def extended(content, name=None, total_bytes=None, step=500):
    """A main packet that names its extension, and the segments of that."""
    name = name or hashlib.md5(content, usedforsecurity=False).hexdigest().upper()
    main = NEW.replace(b'rdf:about=""', f'rdf:about="" xmlns:n="{NOTE}" n:HasExtendedXMP="{name}"'.encode())
    head = b"http://ns.adobe.com/xmp/extension/\0" + name.encode()
    parts = [
        segment(b"\xe1", head + struct.pack(">II", total_bytes or len(content), at) + content[at : at + step])
        for at in range(0, len(content), step)
    ]
    return segment(b"\xe1", XMP_HEAD + main), parts
