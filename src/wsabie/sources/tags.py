"""What sounds say of themselves: artist, album and genre in ID3, Vorbis comments and their like, read by mutagen."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow

_NAMES = {
    "artist": ("artist", "TPE1"),
    "album": ("album", "TALB"),
    "title": ("title", "TIT2"),
    "genre": ("genre", "TCON"),
}
"""As the easy forms of tags call them, and the frames of ID3 inside WAV and AIFF."""

_BETWEEN = re.compile(r"[;\0]|(?<=\s)/(?=\s)")


class Tags(NamedTuple):
    """What a sound says of itself; empty where it says nothing."""

    artist: tuple[str, ...] = ()
    album: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    genre: tuple[str, ...] = ()


def tags_in(path: Path) -> Tags:
    """The tags of a file.

    Raises
    ------
    BadRow
        They cannot be read.
    InputError
        mutagen is not installed.
    """
    try:
        import mutagen
    except ImportError as error:
        raise InputError(
            "tags inside sounds need mutagen, which is not installed; run: pip install 'wsabie[audio]', or label the "
            "sounds by sub-folders or by metadata.csv"
        ) from error
    try:
        file = mutagen.File(path, easy=True)
    except Exception as error:
        raise BadRow("tags that cannot be read", str(error)[:200]) from error
    held = getattr(file, "tags", None)
    if not held:
        return Tags()
    return Tags(**{name: _texts(held, keys) for name, keys in _NAMES.items()})


def labels_in_tags(path: Path) -> tuple[str, ...]:
    """Genres and artists of a sound: its labels where nothing else names any."""
    tags = tags_in(path)
    return (*tags.genre, *tags.artist)


def _texts(held: Any, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The values of the first key that is there."""
    for key in keys:
        try:
            found = held.get(key)
        except (KeyError, ValueError):  # a format that has no such key
            continue
        if found:
            values = getattr(found, "text", found)
            parts = (part.strip() for value in values for part in _BETWEEN.split(str(value)))
            return tuple(dict.fromkeys(part for part in parts if part))
    return ()
