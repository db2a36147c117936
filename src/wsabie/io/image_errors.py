"""Reasons why a picture cannot be read, in the same words for tag readers and decoders."""

import errno
import io
from pathlib import Path
from typing import IO

from wsabie.core.errors import InputError
from wsabie.io.image_inspection import inspect_image, is_heif, open_picture, register_heif, silence_decoders
from wsabie.io.modalities import PICTURES
from wsabie.io.raw_photos import RawPreviewError, is_raw, open_raw_preview
from wsabie.io.tags.embedded_metadata import UNREADABLE, iterate_chunks
from wsabie.storage.rejects import RowError

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_SIGNATURES = (b"\xff\xd8\xff", _PNG[:8], b"GIF8", b"II*\0", b"MM\0*", b"BM")
_AVIF = b"ftypavi"  # from the fifth byte
_JPEG_XL = b"JXL \r\n"  # from the fifth byte too


def explain_decoding_error(error: Exception, stream: IO[bytes]) -> tuple[str, str]:
    """Return reason and detail of a decoder's error over a picture.

    Raises
    ------
    InputError
        Too many files are open.

    Examples
    --------
    >>> explain_decoding_error(OSError("unexpected end of file"), io.BytesIO(b"BM" + bytes([200, 0, 0, 0])))
    ('truncated picture', 'OSError: unexpected end of file')
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, RawPreviewError):
        return PICTURES.unsupported_reason, str(error)
    if isinstance(error, Image.DecompressionBombError):
        return "too many pixels", str(error)
    if isinstance(error, UnidentifiedImageError):
        return _explain_unidentified(stream)
    refuse_exhausted_handles(error)
    return _choose_reason(error, stream), f"{type(error).__name__}: {error}"


def refine_by_decoding(row_error: RowError, picture: Path) -> RowError:
    """Return the decoder's reason for a picture whose metadata cannot be read; keep other reasons."""
    if row_error.reason != UNREADABLE:
        return row_error
    try:
        with picture.open("rb") as stream:
            if not stream.read(1):
                return RowError("empty file")
            stream.seek(0)
            try:
                with silence_decoders():
                    content = open_raw_preview(stream) if is_raw(stream) else stream
                    inspect_image(content)
                    open_picture(content)
            except Exception as error:  # decoders raise almost anything over hostile bytes
                return RowError(*explain_decoding_error(error, stream))
            return RowError("truncated picture", row_error.detail) if is_truncated(stream) else row_error
    except OSError as error:
        refuse_exhausted_handles(error)
        return RowError("unreadable file", str(error))


def refuse_exhausted_handles(error: Exception) -> None:
    """Raise InputError if the machine has no file handles left; that is not a fault of the picture."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise InputError(
            f"too many files are open ({error}); close some, use fewer `threads`, or raise the limit (ulimit -n), and "
            "run the same command again"
        ) from error


def _explain_unidentified(stream: IO[bytes]) -> tuple[str, str]:
    from PIL import features

    stream.seek(0)
    head = stream.read(16)
    if head.startswith(_SIGNATURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return ("truncated picture" if is_truncated(stream) else "damaged picture"), "its header cannot be read"
    if is_heif(head) and not register_heif():
        return PICTURES.unsupported_reason, "HEIC needs more: pip install 'wsabie[photos]', or convert it to JPEG"
    if is_heif(head) or (head.startswith(_AVIF, 4) and features.check("avif")):
        return "damaged picture", "its header cannot be read"
    if head.startswith((_AVIF, _JPEG_XL), 4):
        return PICTURES.unsupported_reason, PICTURES.advice
    return "not a picture", f"begins with {head[:8].hex(' ')}"


def _choose_reason(error: Exception, stream: IO[bytes]) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return "unreadable file"
    if isinstance(error, EOFError) or "truncated" in str(error).lower():
        stream.seek(0)
        is_cut = not _is_nonsense(stream.read(len(_PNG)))
    else:
        is_cut = is_truncated(stream)
    return "truncated picture" if is_cut else "damaged picture"


def is_truncated(stream: IO[bytes]) -> bool:
    """Return True if a file lacks its end mark or is shorter than it states; data may follow the mark.

    Decoders can read some of these files.
    """
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
        return not _is_nonsense(head) and b"IEND" not in tail and not _has_end_mark(stream, "PNG")
    if head[:3] == b"GIF":
        return b"\x3b" not in tail
    return head[:2] == b"\xff\xd8" and b"\xff\xd9" not in tail and not _has_end_mark(stream, "JPEG")


def _has_end_mark(stream: IO[bytes], container: str) -> bool:
    """Return True if a file ends before other data: phones add films, thumbnails and notes to a picture."""
    try:
        *_, last = iterate_chunks(stream, container)
    except RowError:
        return False
    stream.seek(last.end)
    byte, is_found = b"", container == "PNG"
    while not is_found and (block := stream.read(1 << 20)):
        is_found, byte = b"\xff\xd9" in byte + block, block[-1:]
    return is_found


def _is_nonsense(head: bytes) -> bool:
    """Return True if a PNG signature is followed by bytes that no PNG begins with."""
    return head[:8] == _PNG[:8] and not _PNG.startswith(head)
