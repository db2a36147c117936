"""Why a picture cannot be read, in the same words whoever meets it: a source that looks for tags, or who decodes it."""

import errno
import io
from pathlib import Path
from typing import IO

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.containers import UNREADABLE
from wsabie.sources.decoder_messages import silence_decoders
from wsabie.sources.formats import FORMATS
from wsabie.sources.media import PICTURES
from wsabie.sources.picture_structure import inspect_picture

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_SIGNATURES = (b"\xff\xd8\xff", _PNG[:8], b"GIF8", b"II*\0", b"MM\0*", b"BM")
_AVIF = b"ftypavi"  # from the fifth byte, like the next
_FOREIGN = (b"ftyphe", b"ftypmif1", b"ftypmsf1", b"JXL \r\n")  # HEIF, often under the ending of a JPEG; JPEG XL


def verdict(error: Exception, stream: IO[bytes]) -> tuple[str, str]:
    """Reason and detail of what a decoder raised over a picture.

    Raises
    ------
    InputError
        Too many files are open.

    Examples
    --------
    >>> verdict(OSError("unexpected end of file"), io.BytesIO(b"BM" + bytes([200, 0, 0, 0])))
    ('truncated picture', 'OSError: unexpected end of file')
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, Image.DecompressionBombError):
        return "too many pixels", str(error)
    if isinstance(error, UnidentifiedImageError):
        return _unidentified(stream)
    refuse_exhausted(error)
    return _reason(error, stream), f"{type(error).__name__}: {error}"


def as_decoded(bad: BadRow, picture: Path) -> BadRow:
    """What decoding would say of a picture that nothing inside could be read of; other reasons stay as they are."""
    from PIL import Image

    if bad.reason != UNREADABLE:
        return bad
    try:
        with picture.open("rb") as stream:
            if not stream.read(1):
                return BadRow("empty file")
            stream.seek(0)
            try:
                with silence_decoders():
                    inspect_picture(stream)
                    Image.open(stream, formats=FORMATS)
            except Exception as error:  # decoders raise almost anything over hostile bytes
                return BadRow(*verdict(error, stream))
            return BadRow("truncated picture", bad.detail) if is_cut(stream) else bad
    except OSError as error:
        refuse_exhausted(error)
        return BadRow("unreadable file", str(error))


def refuse_exhausted(error: Exception) -> None:
    """The machine's want of handles is no fault of the picture, which would be left out of all that is made of it."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise InputError(
            f"too many files are open ({error}); close some, use fewer --threads, or raise the limit (ulimit -n), and "
            "run the same command again"
        ) from error


def _unidentified(stream: IO[bytes]) -> tuple[str, str]:
    from PIL import features

    stream.seek(0)
    head = stream.read(16)
    if head.startswith(_SIGNATURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return ("truncated picture" if is_cut(stream) else "damaged picture"), "its header cannot be read"
    if head.startswith(_AVIF, 4) and features.check("avif"):
        return "damaged picture", "its header cannot be read"
    if head.startswith((_AVIF, *_FOREIGN), 4):
        return PICTURES.unsupported, PICTURES.convert
    return "not a picture", f"begins with {head[:8].hex(' ')}"


def _reason(error: Exception, stream: IO[bytes]) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return "unreadable file"
    if isinstance(error, EOFError) or "truncated" in str(error).lower():
        stream.seek(0)
        cut = not _is_nonsense(stream.read(len(_PNG)))
    else:
        cut = is_cut(stream)
    return "truncated picture" if cut else "damaged picture"


def is_cut(stream: IO[bytes]) -> bool:
    """Whether the file ends before its own end mark or stated length."""
    length = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    head = stream.read(len(_PNG))
    stream.seek(max(0, length - 16))
    tail = stream.read(16)
    if head[:4] == b"RIFF":
        return length < int.from_bytes(head[4:8], "little") + 8
    if head[:2] == b"BM":
        return length < int.from_bytes(head[2:6], "little")
    if head[:4] == _PNG[:4]:
        return not _is_nonsense(head) and b"IEND" not in tail
    if head[:3] == b"GIF":
        return b"\x3b" not in tail
    return head[:2] == b"\xff\xd8" and b"\xff\xd9" not in tail


def _is_nonsense(head: bytes) -> bool:
    """Whether what follows the signature of a PNG is nothing that a PNG begins with."""
    return head[:8] == _PNG[:8] and not _PNG.startswith(head)
