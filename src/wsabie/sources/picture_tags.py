"""The tags of a picture, from the file beside it or from inside it.

The first of these that names tags counts, and the others are not read for them:

1. The sidecar, `photo.jpg.xmp` (digiKam, darktable, Immich) or else `photo.xmp` (Lightroom, PhotoPrism). The longer
   name wins, for it is about this one file, and `photo.xmp` may be about `photo.cr2`. A sidecar wins over the picture,
   for programs write it where they leave pictures alone: tags that were removed there are still inside the picture.
2. The XMP packet in the picture, and its extension where the packet itself names none.
3. IPTC keywords of JPEG files, which are cut at 64 bytes and often in a character set that is not said.

An empty list of tags counts too: somebody has removed them. The date comes from the sidecar, from EXIF, or from the
XMP in the picture, in this order.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from wsabie.base.errors import InputError
from wsabie.base.input_files import fault_text, open_input
from wsabie.labels.names import normalise
from wsabie.sources.build import BadRow
from wsabie.sources.containers import UNREADABLE, embedded_in, extension
from wsabie.sources.decoder_messages import silence_decoders
from wsabie.sources.formats import FORMATS
from wsabie.sources.iptc import iptc_block, iptc_keywords
from wsabie.sources.picture_structure import inspect_picture
from wsabie.sources.xmp import LARGEST, Packet, Tags, iso_date, read_packet

_T = TypeVar("_T")
_EXIF, _TAKEN, _OFFSET, _ORIENTATION, _TIFF_XMP = 0x8769, 0x9003, 0x9011, 0x0112, 700
IPTC = "IPTC keywords"


class PictureTags(NamedTuple):
    """What a picture and its sidecar say.

    Attributes
    ----------
    tags : dict of tuple of str to tuple of str
        Paths of names from the broadest (one name: a plain keyword) in their order, each with the properties that
        say it ("dc:subject", "lr:hierarchicalSubject" ...).
    source : Path or None
        The file that says so: the sidecar or the picture; None where none names tags.
    taken : str or None
        When the picture was taken, as much of ISO 8601 as is known.
    size : tuple of int or None
        Width and height in pixels as they are stored, before the picture is turned.
    orientation : int
        How it is to be turned: 1 (not at all) to 8, as EXIF counts.
    problems : tuple of BadRow
        What could not be read.
    """

    tags: Tags
    source: Path | None
    taken: str | None
    size: tuple[int, int] | None
    orientation: int
    problems: tuple[BadRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The last names of all tags, each once."""
        return tuple(dict.fromkeys(path[-1] for path in self.tags))

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The tags that have broader ones."""
        return tuple(path for path in self.tags if len(path) > 1)


class _Header(NamedTuple):
    """What Pillow tells of a picture without decoding it."""

    size: tuple[int, int]
    orientation: int
    taken: str | None
    packet: bytes


def read_tags(picture: Path) -> PictureTags:
    """The tags of a picture, with its date, size and orientation. What is damaged is listed and the rest still comes.

    Examples
    --------
    >>> from wsabie.sources.write_tags import write_sidecar
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     photo = Path(folder) / "1.jpg"
    ...     _ = photo.write_bytes(b"no picture")
    ...     _ = write_sidecar(photo, ["sea", ("animal", "dog")])
    ...     found = read_tags(photo)
    >>> found.names, found.paths, found.source.name, [problem.reason for problem in found.problems]
    (('sea', 'dog'), (('animal', 'dog'),), '1.jpg.xmp', ['unreadable picture'])
    """
    problems: list[BadRow] = []

    def attempt(read: Callable[[Path], _T]) -> _T | None:
        try:
            return read(picture)
        except BadRow as bad:
            if not any(bad.reason == one.reason for one in problems):
                problems.append(bad)
            return None

    header = attempt(_header)
    packets = [attempt(_beside), attempt(_inside)]
    told = [packet.tags if packet else None for packet in packets]
    if told == [None, None]:
        told.append(attempt(_iptc))
    number = next((number for number, tags in enumerate(told) if tags is not None), None)
    dates = [packet.taken if packet else None for packet in packets]
    dates.insert(1, header.taken if header else None)
    return PictureTags(
        {} if number is None else told[number] or {},
        None if number is None else (sidecar_of(picture) if number == 0 else picture),
        next((date for date in dates if date), None),
        header.size if header else None,
        header.orientation if header else 1,
        tuple(problems),
    )


def keywords_in(picture: Path) -> tuple[str, ...]:
    """The last names of a picture's tags, each once: its labels where nothing else names any.

    Raises
    ------
    BadRow
        As `paths_in`.
    """
    return tuple(dict.fromkeys(path[-1] for path in paths_in(picture)))


def paths_in(picture: Path) -> tuple[tuple[str, ...], ...]:
    """A picture's tags as paths of names from the broadest; of plain keywords one name.

    Raises
    ------
    BadRow
        No picture, or what might name its tags is damaged or unsafe. Others are not taken in its place.
    """
    found = _beside(picture)
    return paths_inside(picture) if found is None or found.tags is None else tuple(found.tags)


def paths_inside(picture: Path) -> tuple[tuple[str, ...], ...]:
    """As `paths_in`, of the picture itself, whatever a sidecar says.

    Raises
    ------
    BadRow
        As `paths_in`.
    """
    found = _inside(picture)
    return tuple(_iptc(picture) or () if found is None or found.tags is None else found.tags)


def sidecars_of(picture: Path) -> tuple[Path, Path]:
    """Where the sidecars of a picture may be, the one that wins first.

    Examples
    --------
    >>> [path.name for path in sidecars_of(Path("a/photo.jpg"))]
    ['photo.jpg.xmp', 'photo.xmp']
    """
    return picture.with_name(picture.name + ".xmp"), picture.with_suffix(".xmp")


def sidecar_of(picture: Path) -> Path | None:
    """The sidecar that counts, None if there is none."""
    return next((path for path in sidecars_of(picture) if os.path.lexists(path)), None)


def read_sidecar(path: Path) -> bytes:
    """The content of a sidecar.

    Raises
    ------
    BadRow
        It is a link, no regular file, larger than 16 MiB, or cannot be read.
    """
    try:
        held = path.lstat()
        if stat.S_ISLNK(held.st_mode):
            raise BadRow("sidecar that is a link", path.name)
        if not stat.S_ISREG(held.st_mode):
            raise BadRow("sidecar that is no file", path.name)
        if held.st_size > LARGEST:
            raise BadRow("oversized XMP packet", f"{path.name}: {held.st_size:,} bytes")
        with open_input(path) as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise BadRow("oversized XMP packet", f"{path.name}: more than {LARGEST:,} bytes")
        return content
    except (OSError, InputError) as error:
        raise BadRow("unreadable sidecar", f"{path.name}: {fault_text(error)}") from error


def _beside(picture: Path) -> Packet | None:
    path = sidecar_of(picture)
    if path is None or not (content := read_sidecar(path)).strip():
        return None
    try:
        return read_packet(content)
    except BadRow as bad:
        raise BadRow("unreadable sidecar", f"{path.name}: {bad.detail or bad.reason}") from bad


def _inside(picture: Path) -> Packet | None:
    found = embedded_in(picture)
    if found is None:
        content = _header(picture).packet
        return read_packet(content) if content else None
    if not found.packets or not found.packets[0].strip(b"\0 \t\r\n"):
        return None
    packet = read_packet(found.packets[0])
    if packet.tags is None and packet.extended:
        return packet.with_more(read_packet(extension(found, packet.extended)))
    return packet


def _iptc(picture: Path) -> Tags | None:
    found = embedded_in(picture)
    block = iptc_block(b"".join(found.resources)) if found else None
    texts = iptc_keywords(block) if block else None
    names = None if texts is None else dict.fromkeys(normalise(text) for text in texts)
    return None if names is None else {(name,): (IPTC,) for name in names if name}


def _header(picture: Path) -> _Header:
    """What Pillow finds while it reads the header, not the pixels."""
    from PIL import Image

    try:
        with silence_decoders(), open_input(picture) as stream:
            exif = inspect_picture(stream).exif
            image = Image.open(stream, formats=FORMATS)
            if exif is not None:
                image.info.setdefault("exif", exif)
            packet = image.info.get("xmp") or getattr(image, "tag_v2", {}).get(_TIFF_XMP)
            packet = packet.encode() if isinstance(packet, str) else packet
            size, (orientation, taken) = image.size, _exif(image)
    except Exception as error:  # Pillow raises almost anything on damaged files
        raise BadRow(UNREADABLE, str(error)[:100]) from error
    return _Header(size, orientation, taken, packet if isinstance(packet, bytes) else b"")


def _exif(image: object) -> tuple[int, str | None]:
    """(orientation, date): 1 and None where EXIF is damaged or does not say."""
    from PIL import Image

    try:
        held = Image.Image.getexif(image) if isinstance(image, Image.Image) else Image.Exif()
        inner = held.get_ifd(_EXIF)
        orientation, taken, offset = held.get(_ORIENTATION), inner.get(_TAKEN), inner.get(_OFFSET)
    except Exception:  # as above; the picture is none the worse
        return 1, None
    date = iso_date(taken) if isinstance(taken, str) else None
    zoned = iso_date(date + offset.strip("\0 ")) if date and isinstance(offset, str) else None
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1, zoned or date
