"""Previews in RAW photos of cameras: the JPEG that the camera stores beside the data of the sensor.

Files are recognised by their content, whatever their ending. DNG, CR2, NEF, ARW and PEF are TIFF files: tags of their
first directory tell them from other TIFF files. `rawpy` (LibRaw) finds the preview, its orientation and its time.
"""

import io
import struct
from datetime import datetime
from typing import IO

from wsabie.core.arrays import UInt8
from wsabie.core.errors import InputError
from wsabie.core.optional_packages import import_optional

RAW_ENDINGS = (".dng", ".cr2", ".cr3", ".nef", ".nrw", ".arw", ".orf", ".rw2", ".rwl", ".raf", ".pef")
_SIGNATURES = (b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FUJIFILMCCD-RAW")  # Olympus, Panasonic and Leica, Fujifilm
_CR3 = b"ftypcrx "  # from the fifth byte
_MAX_ENTRIES = 4096
_SUBFILE, _COMPRESSION, _MAKER, _SUB_DIRECTORIES, _XMP, _DNG_VERSION = 254, 259, 271, 330, 700, 50706
_SENSOR_COMPRESSIONS = (32767, 34713, 65535)  # Sony, Nikon, Pentax
_ORIENTATION, _CAMERA, _CAPTURE_TIME = 0x0112, 0x8769, 0x9003
_EXIF_ORIENTATIONS = {3: 3, 5: 8, 6: 6}  # by LibRaw's flip
_QUALITY = 95


class RawPreviewError(Exception):
    """Error of a RAW photo whose preview cannot be taken: no `rawpy`, or no preview."""


def is_raw(stream: IO[bytes]) -> bool:
    """Return True if a file is a RAW photo; the stream is at its beginning afterwards.

    Examples
    --------
    >>> is_raw(io.BytesIO(b"IIRO" + bytes(8))), is_raw(io.BytesIO(b"II*\\0" + bytes(8)))
    (True, False)
    """
    stream.seek(0)
    head = stream.read(16)
    entries = _read_first_directory(stream, head)
    stream.seek(0)
    if head.startswith(_SIGNATURES) or head.startswith(_CR3, 4) or _DNG_VERSION in entries:
        return True
    is_preview = entries.get(_SUBFILE, (0, 0))[1] == 1 and _MAKER in entries and _SUB_DIRECTORIES in entries
    is_sensor = entries.get(_COMPRESSION, (0, 0))[1] in _SENSOR_COMPRESSIONS and _MAKER in entries
    return bool(entries) and (head[8:10] == b"CR" or is_preview or is_sensor)


def _read_first_directory(stream: IO[bytes], head: bytes) -> dict[int, tuple[int, int]]:
    """Return number of values, and value or offset, by tag; empty for files that are not TIFF."""
    if not head.startswith((b"II*\0", b"MM\0*")) or len(head) < 8:
        return {}
    order = "<" if head[:2] == b"II" else ">"
    stream.seek(struct.unpack_from(order + "I", head, 4)[0])
    n_entries = int.from_bytes(stream.read(2), "little" if order == "<" else "big")
    content = stream.read(12 * min(n_entries, _MAX_ENTRIES))
    entries = {}
    for start in range(0, len(content) - 11, 12):
        tag, kind, count = struct.unpack_from(order + "HHI", content, start)
        is_short = kind == 3 and count == 1
        entries[tag] = (count, struct.unpack_from(order + ("H" if is_short else "I"), content, start + 8)[0])
    return entries


def read_raw_xmp(stream: IO[bytes], max_bytes: int) -> bytes:
    """Return the XMP packet of a RAW photo that is a TIFF file; empty for others."""
    stream.seek(0)
    n_bytes, offset = _read_first_directory(stream, stream.read(16)).get(_XMP, (0, 0))
    stream.seek(offset)
    return stream.read(min(n_bytes, max_bytes))


def open_raw_preview(stream: IO[bytes]) -> IO[bytes]:
    """Return the preview of a RAW photo as a JPEG file, with orientation and capture time as EXIF.

    Raises
    ------
    RawPreviewError
        `rawpy` is not installed, or the photo has no preview.
    """
    try:
        rawpy = import_optional("rawpy", "a RAW photo needs rawpy", "photos", ", or convert it to JPEG")
    except InputError as error:
        raise RawPreviewError(str(error)) from error
    stream.seek(0)
    with rawpy.imread(stream) as photo:
        try:
            preview = photo.extract_thumb()
        except (rawpy.LibRawNoThumbnailError, rawpy.LibRawUnsupportedThumbnailError) as error:
            raise RawPreviewError("this RAW photo has no preview that can be read; convert it to JPEG") from error
        orientation, capture_time = _EXIF_ORIENTATIONS.get(photo.sizes.flip, 1), photo.other.timestamp
    content = preview.data if preview.format == rawpy.ThumbFormat.JPEG else _encode_pixels(preview.data)
    exif = _make_exif(orientation, capture_time)
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(exif)) + exif
    return io.BytesIO(content[:2] + segment + content[2:])  # the first of two EXIF segments counts


def _encode_pixels(pixels: UInt8) -> bytes:
    """Encode a preview (h, w, 3) of uint8 as JPEG."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()


def _make_exif(orientation: int, capture_time: datetime | None) -> bytes:
    """Return an EXIF block; LibRaw says 1970 where the photo has no time."""
    from PIL import Image

    exif = Image.Exif()
    exif[_ORIENTATION] = orientation
    if capture_time is not None and capture_time.year > 1970:
        exif.get_ifd(_CAMERA)[_CAPTURE_TIME] = f"{capture_time:%Y:%m:%d %H:%M:%S}"
    return exif.tobytes()
