"""Tables of the Million Song Dataset: artists, genres and listeners of tracks that are known by their ids.

    unique_tracks.txt        track<SEP>song<SEP>artist<SEP>title
    msd_tagtraum_cd1.cls     track TAB genre, or track TAB genre TAB second genre; comments begin with #
    train_triplets.txt       user TAB song TAB plays

`unique_artists.txt`, which names one track of each artist, says nothing more and is left alone.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.folders import clean_labels
from wsabie.sources.related import Related, Thing
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.rejects import Rejects

TRACKS, GENRES, LISTENERS = "unique_tracks.txt", "*.cls*", "train_triplets.txt"
MOST_TRIPLETS = 20_000_000
"""Lines of a list of listeners; a pair takes about 200 bytes."""
_LONGEST_LINE = 1 << 20


def is_million_song(folder: Path) -> bool:
    """Whether a folder holds the list of tracks."""
    return (folder / TRACKS).is_file()


def relations_in_million_song(
    folder: Path, *, genres: Path | None = None, listeners: Path | None = None, rejects: Rejects | None = None
) -> Related:
    """The artist of every track, and genres and listeners where there are lists of them.

    Parameters
    ----------
    folder : Path
        It holds `unique_tracks.txt`.
    genres : Path or None
        A list of genres; None: the one `.cls` file of the folder, if there is one.
    listeners : Path or None
        A list of users, songs and plays (kind "listener"), of at most 20,000,000 lines; none by default, as the
        published one has 48 million. All tracks of a song get its listeners.
    rejects : Rejects or None
        Lists malformed lines, and genres and listeners of tracks that are not in the list.

    Returns
    -------
    Related
        Of the kinds "artist", "genre", "listener".

    Raises
    ------
    InputError
        Missing, without a usable line, several lists of genres, or too many listeners.
    """
    rejects = Rejects() if rejects is None else rejects
    songs: defaultdict[str, list[str]] = defaultdict(list)
    tracks: dict[str, str] = {}
    for where, line in _lines(folder / TRACKS, rejects):
        try:
            track, song, artist = _track(line)
            if track in tracks:
                raise BadRow("duplicate id", track)
            tracks[track] = artist
            if listeners is not None:
                songs[song].append(track)
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)
    genres = _only_list(folder) if genres is None else genres

    def things() -> Iterator[Thing]:
        yield from (Thing(track, {"artist": (artist,) if artist else ()}) for track, artist in tracks.items())
        if genres is not None:
            yield from _with_genres(genres, tracks, rejects)
        if listeners is not None:
            yield from _with_listeners(listeners, songs, rejects)

    return Related.of(folder, things(), rejects, "tracks")


def songs_of_tracks(path: Path, rejects: Rejects) -> Iterator[tuple[str, str]]:
    """(track, song) of every line of `unique_tracks.txt`, or of the folder that holds it; bad lines are listed."""
    for where, line in _lines(path / TRACKS if path.is_dir() else path, rejects):
        try:
            track, song, _ = _track(line)
            yield track, song
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)


def _only_list(folder: Path) -> Path | None:
    found = sorted(folder.glob(GENRES))
    if len(found) > 1:
        raise InputError(
            f"{shown(folder)} has several lists of genres ({', '.join(shown(file.name) for file in found[:3])}); say "
            "which one with genres=, or move the others away"
        )
    return found[0] if found else None


def _lines(path: Path, rejects: Rejects) -> Iterator[tuple[str, str]]:
    for number, line in numbered_lines(path, _LONGEST_LINE):
        where = f"{shown(path)}:{number}"
        try:
            if line.strip():
                yield where, line.decode("utf-8")
        except UnicodeDecodeError:
            rejects.add(where, "text that is not UTF-8", repr(line[:60]))


def _track(line: str) -> tuple[str, str, str]:
    """(track, song, artist or "")."""
    cells = line.split("<SEP>")
    if len(cells) != 4:
        raise BadRow("line that is not track, song, artist and title", ascii(line[:60]))
    if not cells[0]:
        raise BadRow("row without an id")
    return cells[0], cells[1], next(iter(clean_labels(cells[2:3])), "")


def _with_genres(path: Path, tracks: dict[str, str], rejects: Rejects) -> Iterator[Thing]:
    for where, line in _lines(path, rejects):
        if line.startswith("#"):
            continue
        try:
            track, *genres = line.split("\t")
            if len(genres) not in (1, 2):
                raise BadRow("line that is not a track and its genres", ascii(line[:60]))
            if track not in tracks:
                raise BadRow("track that is not in the list", track)
            yield Thing(track, {"genre": clean_labels(genres)})
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)


def _with_listeners(path: Path, songs: dict[str, list[str]], rejects: Rejects) -> Iterator[Thing]:
    for number, (where, line) in enumerate(_lines(path, rejects)):
        if number == MOST_TRIPLETS:
            raise InputError(f"{shown(path)} has more than {MOST_TRIPLETS:,} lines; give a part of it")
        try:
            cells = line.split("\t")
            if len(cells) != 3 or not cells[2].isdecimal():
                raise BadRow("line that is not user, song and plays", ascii(line[:60]))
            user, song, plays = cells
            if song not in songs:
                raise BadRow("song that is not in the list", song)
            if int(plays):
                yield from (Thing(track, {"listener": clean_labels([user])}) for track in songs[song])
        except BadRow as bad:
            rejects.add(where, bad.reason, bad.detail)
