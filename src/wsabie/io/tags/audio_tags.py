"""Tags of sounds: artist, album and genre in ID3, Vorbis comments and similar forms, read by mutagen."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.optional_packages import import_optional
from wsabie.storage.rejects import RowError

_NAMES = {
    "artist": ("artist", "TPE1"),
    "album": ("album", "TALB"),
    "title": ("title", "TIT2"),
    "genre": ("genre", "TCON"),
}
"""Tag names in mutagen's easy mode, and the ID3 frames of WAV and AIFF."""

_BETWEEN = re.compile(r"[;\0]|(?<=\s)/(?=\s)")


class AudioTags(NamedTuple):
    """Tags of a sound; empty where there are none."""

    artist: tuple[str, ...] = ()
    album: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    genre: tuple[str, ...] = ()


def read_audio_tags(path: Path) -> AudioTags:
    """Read the tags of a file.

    Raises
    ------
    RowError
        They cannot be read.
    InputError
        mutagen is not installed.
    """
    remedy = ", or label the sounds by sub-folders or by metadata.csv"
    mutagen = import_optional("mutagen", "tags inside sounds need mutagen", "audio", remedy)
    try:
        file = mutagen.File(path, easy=True)
    except Exception as error:
        raise RowError("tags that cannot be read", str(error)[:200]) from error
    file_tags = getattr(file, "tags", None)
    if not file_tags:
        return AudioTags()
    return AudioTags(**{name: _get_texts(file_tags, keys) for name, keys in _NAMES.items()})


def read_audio_labels(path: Path) -> tuple[str, ...]:
    """Return genres and artists of a sound: its labels where nothing else names any."""
    tags = read_audio_tags(path)
    return (*tags.genre, *tags.artist)


def _get_texts(file_tags: Any, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of the first key that is present."""
    for key in keys:
        try:
            frame = file_tags.get(key)
        except (KeyError, ValueError):  # a format that has no such key
            continue
        if frame:
            values = getattr(frame, "text", frame)
            parts = (part.strip() for value in values for part in _BETWEEN.split(str(value)))
            return tuple(dict.fromkeys(part for part in parts if part))
    return ()
