"""What a collection of files may be of: how they are told by their endings, and where labels lie inside them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.sources.picture_tags import keywords_in
from wsabie.sources.records import Things
from wsabie.sources.tags import labels_in_tags


class Medium(NamedTuple):
    """One kind of file.

    Attributes
    ----------
    things, thing : str
        What they are called.
    endings, unread : tuple of str
        Of files that are read, and of formats that are not.
    inside : str
        What `labels_from` calls the labels inside the files.
    written : str
        The same in a sentence.
    labels_in : callable
        Those of one file.
    such_as, convert : str
        Which formats are not read, and what to do about one.
    """

    things: Things
    thing: str
    endings: tuple[str, ...]
    unread: tuple[str, ...]
    inside: str
    written: str
    labels_in: Callable[[Path], Sequence[str]]
    such_as: str
    convert: str

    @property
    def unsupported(self) -> str:
        """The reason by which files of other formats are counted."""
        return f"unsupported {self.thing} format"

    @property
    def unlabelled(self) -> str:
        """The reason by which files without labels are counted."""
        return f"{self.thing} without labels"


PICTURES = Medium(
    "pictures",
    "picture",
    (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".avif", ".ppm", ".pgm",
     ".pbm", ".pnm"),
    (".heic", ".heif", ".hif", ".jxl", ".jp2", ".psd", ".xcf", ".svg", ".tga", ".exr", ".dng", ".cr2", ".cr3", ".nef",
     ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw"),
    "xmp",
    "keywords in them or in sidecars beside them (1.jpg.xmp)",
    keywords_in,
    "such as HEIC or raw ones of cameras",
    "convert it to JPEG or PNG",
)  # fmt: skip
SOUNDS = Medium(
    "sounds",
    "sound",
    (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf", ".w64"),
    (".m4a", ".m4b", ".aac", ".mp4", ".wma", ".ape", ".wv", ".mpc", ".dsf", ".mid", ".midi", ".amr"),
    "tags",
    "embedded tags of genre and artist",
    labels_in_tags,
    "such as AAC or Windows Media",
    "convert it to FLAC, Ogg or MP3",
)
MEDIA = (PICTURES, SOUNDS)
DOCUMENTS = Medium(
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


def medium_of(name: str, unread: bool = False) -> Medium | None:
    """Of which medium a file is by its ending; with `unread`: of which one it would be, could it be read.

    Examples
    --------
    >>> medium_of("a/Song.MP3").things, medium_of("notes.txt"), medium_of("song.m4a", unread=True).things
    ('sounds', None, 'sounds')
    """
    return next((one for one in MEDIA if name.lower().endswith(one.unread if unread else one.endings)), None)


def document_of(name: str, unread: bool = False) -> Medium | None:
    """The same of documents, which only those ask for who want no rows."""
    return DOCUMENTS if name.lower().endswith(DOCUMENTS.unread if unread else DOCUMENTS.endings) else None
