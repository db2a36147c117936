"""Tags of a picture, from the file beside it or from inside it.

The first of these that names tags counts, and the others are not read for them:

1. The sidecar, `photo.jpg.xmp` (digiKam, darktable, Immich) or else `photo.xmp` (Lightroom, PhotoPrism). The
longer name wins, for it is about this one file, and `photo.xmp` may be about `photo.cr2`. A sidecar wins over
the picture, for programs write it where they leave pictures alone: tags that were removed there are still
inside the picture.

2. The XMP packet in the picture, and its extension where the packet itself names none.

3. IPTC keywords of JPEG files, which are cut at 64 bytes and often in an unstated character set.

4. XPKeywords in EXIF, of Windows.

An empty list of tags counts too: somebody has removed them. The date comes from the sidecar, from EXIF, or
from the XMP in the picture, in this order.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeVar

from wsabie.core.errors import InputError
from wsabie.core.input_files import format_open_error, open_input
from wsabie.io.image_inspection import inspect_image, open_picture, silence_decoders
from wsabie.io.raw_photos import is_raw, open_raw_preview, read_raw_xmp
from wsabie.io.tags import embedded_metadata, xmp
from wsabie.io.tags.embedded_metadata import UNREADABLE
from wsabie.io.tags.xmp import MAX_PACKET_BYTES, TagHierarchy, XmpPacket
from wsabie.storage.rejects import RowError
from wsabie.vocabulary.encoding_repair import repair_encoding
from wsabie.vocabulary.label_names import normalise_label_name

_T = TypeVar("_T")
_EXIF, _DATE_TAKEN, _OFFSET, _ORIENTATION, _TIFF_XMP = 0x8769, 0x9003, 0x9011, 0x0112, 700
IPTC, WINDOWS = "IPTC keywords", "XPKeywords"
_XP_KEYWORDS = 0x9C9E


class ImageTags(NamedTuple):
    """Tags, date and size of a picture, from its sidecar or its file.

    Attributes
    ----------
    tags : dict of tuple of str to tuple of str
        Paths of names from the broadest (one name: a plain keyword) in their order, each with the properties that
        say it ("dc:subject", "lr:hierarchicalSubject" ...).
    source : Path or None
        The file that says so: the sidecar or the picture; None where none names tags.
    date_taken : str or None
        When the picture was taken, as much of ISO 8601 as is known.
    size : tuple of int or None
        Width and height in pixels as they are stored, before the picture is turned.
    orientation : int
        How it is to be turned: 1 (not at all) to 8, as EXIF counts.
    problems : tuple of RowError
        Reasons of unreadable tags.
    """

    tags: TagHierarchy
    source: Path | None
    date_taken: str | None
    size: tuple[int, int] | None
    orientation: int
    problems: tuple[RowError, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the last names of all tags, each once."""
        return tuple(dict.fromkeys(path[-1] for path in self.tags))

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Return the tags that have broader ones."""
        return tuple(path for path in self.tags if len(path) > 1)


class _Header(NamedTuple):
    """Facts that Pillow reads from a picture without decoding it."""

    size: tuple[int, int]
    orientation: int
    date_taken: str | None
    packet: bytes
    keywords: list[str] | None


def read_image_tags(picture: Path) -> ImageTags:
    """Read the tags of a picture, with its date, size and orientation; damage goes to `problems`.

    Parameters
    ----------
    picture : Path
        File, whose sidecar (`NAME.xmp`) is read too.

    Returns
    -------
    ImageTags
        Tags of the sidecar; if it has none, of the first block of the picture that has some: XMP, IPTC, Windows.

    Examples
    --------
    >>> from wsabie import write_sidecar
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     photo = Path(folder) / "1.jpg"
    ...     _ = photo.write_bytes(b"no picture")
    ...     _ = write_sidecar(photo, ["sea", ("animal", "dog")])
    ...     image_tags = read_image_tags(photo)
    >>> image_tags.names, image_tags.paths, image_tags.source.name, [p.reason for p in image_tags.problems]
    (('sea', 'dog'), (('animal', 'dog'),), '1.jpg.xmp', ['unreadable picture'])
    """
    problems: list[RowError] = []

    def attempt(reader: Callable[[Path], _T]) -> _T | None:
        try:
            return reader(picture)
        except RowError as error:
            if not any(error.reason == problem.reason for problem in problems):
                problems.append(error)
            return None

    header, sidecar, packet = attempt(_read_header), attempt(_read_sidecar_packet), attempt(_read_embedded_packet)
    dates = (facts.date_taken for facts in (sidecar, header, packet) if facts)
    tags, source = sidecar.tags if sidecar else None, find_sidecar(picture)
    if tags is None:
        tags, source = packet.tags if packet else None, picture
    for read in (_read_iptc_tags, _read_windows_tags):
        tags = attempt(read) if tags is None else tags
    return ImageTags(
        tags or {},
        None if tags is None else source,
        next(filter(None, dates), None),
        header.size if header else None,
        header.orientation if header else 1,
        tuple(problems),
    )


def read_keywords(picture: Path) -> tuple[str, ...]:
    """Return the last names of a picture's tags, each once: its labels where nothing else names any.

    Raises
    ------
    RowError
        As `read_tag_paths`.
    """
    return tuple(dict.fromkeys(path[-1] for path in read_tag_paths(picture)))


def read_tag_paths(picture: Path) -> tuple[tuple[str, ...], ...]:
    """Return a picture's tags as paths of names from the broadest; of plain keywords one name.

    Raises
    ------
    RowError
        No picture, or what might name its tags is damaged or unsafe. Others are not taken in its place.
    """
    packet = _read_sidecar_packet(picture)
    if packet is None or packet.tags is None:
        return read_embedded_tag_paths(picture)
    return xmp.drop_program_tags(packet.tags)


def read_embedded_tag_paths(picture: Path) -> tuple[tuple[str, ...], ...]:
    """Return the tags inside the picture, as `read_tag_paths` does, without its sidecar.

    Raises
    ------
    RowError
        As `read_tag_paths`.
    """
    packet = _read_embedded_packet(picture)
    tags = packet.tags if packet else None
    for read in (_read_iptc_tags, _read_windows_tags):
        tags = read(picture) if tags is None else tags
    return xmp.drop_program_tags(tags or ())


def find_sidecar(picture: Path) -> Path | None:
    """Return the sidecar that counts, None if there is none.

    Its name may differ in letter case and in the form of accents, unless a picture of that spelling exists.
    """
    suffix = picture.suffix
    stems, suffixes = _list_spellings(picture.stem), _list_spellings(suffix) if suffix else [""]
    full_names = [(stem + ending, stem + ending) for stem, ending in product(stems, suffixes)]
    for sidecar_stem, owner in [*full_names, *((stem, stem + suffix) for stem in stems)]:
        for path in (picture.with_name(sidecar_stem + ending) for ending in (".xmp", ".XMP")):
            if os.path.lexists(path) and (owner == picture.name or not os.path.lexists(picture.with_name(owner))):
                return path
    return None


def _list_spellings(name: str) -> list[str]:
    """Return a name as it is, then in other letter cases and forms of accents."""
    cases = (name, name.lower(), name.upper(), name.capitalize())
    forms = () if name.isascii() else (unicodedata.normalize(form, case) for form in ("NFC", "NFD") for case in cases)
    return list(dict.fromkeys((*cases, *forms)))


def read_sidecar(path: Path) -> bytes:
    """Read the content of a sidecar.

    Raises
    ------
    RowError
        It is a link, no regular file, larger than 16 MiB, or cannot be read.
    """
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise RowError("sidecar that is a link", path.name)
        if not stat.S_ISREG(mode):
            raise RowError("sidecar that is not a file", path.name)
        with open_input(path) as stream:
            content = stream.read(MAX_PACKET_BYTES + 1)
        if len(content) > MAX_PACKET_BYTES:
            raise RowError("oversized XMP packet", f"{path.name}: more than {MAX_PACKET_BYTES:,} bytes")
        return content
    except (OSError, InputError) as error:
        raise RowError("unreadable sidecar", f"{path.name}: {format_open_error(error)}") from error


def _read_sidecar_packet(picture: Path) -> XmpPacket | None:
    path = find_sidecar(picture)
    if path is None or not (content := read_sidecar(path)).strip():
        return None
    try:
        return xmp.read_xmp_packet(content)
    except RowError as error:
        raise RowError("unreadable sidecar", f"{path.name}: {error.detail or error.reason}") from error


def _read_embedded_packet(picture: Path) -> XmpPacket | None:
    metadata = embedded_metadata.read_embedded_metadata(picture)
    if metadata is None:
        content = _read_header(picture).packet
        return xmp.read_xmp_packet(content) if content else None
    if not metadata.packets or not metadata.packets[0].strip(b"\0 \t\r\n"):
        return None
    packet = xmp.read_xmp_packet(metadata.packets[0])
    if packet.tags is None and packet.extended:
        return packet.merge(xmp.read_xmp_packet(embedded_metadata.assemble_extended_xmp(metadata, packet.extended)))
    return packet


def _read_iptc_tags(picture: Path) -> TagHierarchy | None:
    metadata = embedded_metadata.read_embedded_metadata(picture)
    block = embedded_metadata.find_iptc_block(b"".join(metadata.resources)) if metadata else None
    return _make_flat_tags(embedded_metadata.read_iptc_keywords(block) if block else None, IPTC)


def _read_windows_tags(picture: Path) -> TagHierarchy | None:
    with suppress(RowError):  # of a picture that is damaged the others say more
        return _make_flat_tags(_read_header(picture).keywords, WINDOWS)
    return None


def _make_flat_tags(texts: list[str] | None, source: str) -> TagHierarchy | None:
    texts = None if texts is None else [re.sub("[\0-\x1f]", " ", repair_encoding(text)) for text in texts]
    names = None if texts is None else dict.fromkeys(map(normalise_label_name, texts))
    return None if names is None else {(name,): (source,) for name in names if name}


def _read_header(picture: Path) -> _Header:
    """Read the facts that Pillow finds in the header, not the pixels."""
    try:
        with silence_decoders(), open_input(picture) as stream:
            raw = is_raw(stream)
            content = open_raw_preview(stream) if raw else stream
            exif = inspect_image(content).exif
            image = open_picture(content)
            if exif is not None:
                image.info.setdefault("exif", exif)
            packet = image.info.get("xmp") or getattr(image, "tag_v2", {}).get(_TIFF_XMP)
            packet = read_raw_xmp(stream, MAX_PACKET_BYTES + 1) if raw else packet
            packet = packet.encode() if isinstance(packet, str) else packet
            size, (orientation, date, keywords) = image.size, _read_exif(image)
    except Exception as error:  # Pillow raises almost anything on damaged files
        raise RowError(UNREADABLE, str(error)[:100]) from error
    return _Header(size, orientation, date, packet if isinstance(packet, bytes) else b"", keywords)


def _read_exif(image: object) -> tuple[int, str | None, list[str] | None]:
    """Return (orientation, date, keywords of Windows): 1 and None where EXIF is damaged or does not say."""
    from PIL import Image

    try:
        exif = Image.Image.getexif(image) if isinstance(image, Image.Image) else Image.Exif()
        inner = exif.get_ifd(_EXIF)
        orientation, date_text, offset = exif.get(_ORIENTATION), inner.get(_DATE_TAKEN), inner.get(_OFFSET)
        content = exif.get(_XP_KEYWORDS)
        texts = bytes(content).decode("utf-16-le", "ignore").strip("\0") if content else ""
    except Exception:  # as above; the picture is none the worse
        return 1, None, None
    date = xmp.parse_iso_date(date_text) if isinstance(date_text, str) else None
    zoned = xmp.parse_iso_date(date + offset.strip("\0 ")) if date and isinstance(offset, str) else None
    orientation = orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1
    return orientation, zoned or date, texts.split(";") if texts else None
