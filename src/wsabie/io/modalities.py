"""Modalities of files: pictures, sounds and documents, with their endings and embedded labels."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.io.raw_photos import RAW_ENDINGS
from wsabie.io.records import ModalityName
from wsabie.io.tags.audio_tags import read_audio_labels
from wsabie.io.tags.image_tags import read_keywords


class Modality(NamedTuple):
    """Modality of files.

    Attributes
    ----------
    name, singular : str
        Its name in the plural and in the singular.
    endings, unread_endings : tuple of str
        Endings of files that are read, and of unsupported formats.
    label_source : str
        Name of the embedded labels in `labels_from`.
    label_description : str
        The same in a sentence.
    read_labels : callable
        Reads the embedded labels of a file.
    unread_examples, advice : str
        Examples of unsupported formats, and what to do about such a file.
    """

    name: ModalityName
    singular: str
    endings: tuple[str, ...]
    unread_endings: tuple[str, ...]
    label_source: str
    label_description: str
    read_labels: Callable[[Path], Sequence[str]]
    unread_examples: str
    advice: str

    @property
    def unsupported_reason(self) -> str:
        """Return the reason by which files of other formats are counted."""
        return f"unsupported {self.singular} format"

    @property
    def unlabelled_reason(self) -> str:
        """Return the reason by which files without labels are counted."""
        return f"{self.singular} without labels"


PICTURES = Modality(
    "pictures",
    "picture",
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".avif", ".ppm", ".pgm",
     ".pbm", ".pnm", ".mpo", ".jpg_large", ".heic", ".heif", ".hif", *RAW_ENDINGS),
    (".jxl", ".jp2", ".psd", ".xcf", ".svg", ".tga", ".exr", ".srw", ".iiq", ".x3f", ".gpr", ".crw", ".kdc", ".dcr",
     ".mrw", ".erf", ".3fr", ".fff", ".mef", ".mos", ".sr2", ".srf", ".avci", ".jxr", ".j2k"),
    "xmp",
    "keywords in them or in sidecars beside them (1.jpg.xmp)",
    read_keywords,
    "such as Photoshop or JPEG XL",
    "convert it to JPEG or PNG",
)  # fmt: skip
SOUNDS = Modality(
    "sounds",
    "sound",
    (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf", ".w64"),
    (".m4a", ".m4b", ".aac", ".mp4", ".wma", ".ape", ".wv", ".mpc", ".dsf", ".mid", ".midi", ".amr"),
    "tags",
    "embedded tags of genre and artist",
    read_audio_labels,
    "such as AAC or Windows Media",
    "convert it to FLAC, Ogg or MP3",
)
MEDIA = (PICTURES, SOUNDS)
DOCUMENTS = Modality(
    "documents",
    "document",
    (".txt", ".text", ".md", ".rst", ".txt.gz"),
    (".pdf", ".doc", ".docx", ".odt", ".rtf", ".html", ".htm", ".epub", ".tex"),
    "none",
    "nothing",
    lambda path: (),
    "such as PDF or HTML",
    "convert it to plain text",
)
"""Not among `MEDIA`: text lies beside pictures and sounds, and files of text may hold rows."""


def detect_modality(name: str, is_unread: bool = False, candidates: Sequence[Modality] = MEDIA) -> Modality | None:
    """Return the modality of a file by its ending; with `is_unread` by endings of unsupported formats.

    Documents are not a candidate, because files of text may hold rows.

    Examples
    --------
    >>> (
    ...     detect_modality("a/Song.MP3").name,
    ...     detect_modality("notes.txt"),
    ...     detect_modality("song.m4a", is_unread=True).name,
    ... )
    ('sounds', None, 'sounds')
    """
    name = name.lower()
    return next(
        (kind for kind in candidates if name.endswith(kind.unread_endings if is_unread else kind.endings)), None
    )
