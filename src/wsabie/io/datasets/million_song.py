"""Tables of the Million Song Dataset: artists, genres and listeners of tracks with ids.

    unique_tracks.txt        track<SEP>song<SEP>artist<SEP>title
    msd_tagtraum_cd1.cls     track TAB genre, or track TAB genre TAB second genre; comments begin with #
    train_triplets.txt       user TAB song TAB plays

`unique_artists.txt`, which names one track of each artist, says nothing more and is left alone.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.datasets.item_attributes import AttributeTable, ItemAttributes
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.parsers.text_files import format_path, iterate_numbered_lines
from wsabie.storage.rejects import Rejects

TRACKS, GENRES, LISTENERS = "unique_tracks.txt", "*.cls*", "train_triplets.txt"
MOST_TRIPLETS = 20_000_000
"""Lines of a list of listeners; a pair takes about 200 bytes."""
_LONGEST_LINE = 1 << 20


def is_million_song(folder: Path) -> bool:
    """Return whether a folder holds the list of tracks."""
    return (folder / TRACKS).is_file()


def read_million_song_attributes(
    folder: Path, *, genres: Path | None = None, listeners: Path | None = None, rejects: Rejects | None = None
) -> AttributeTable:
    """Read the artist of every track, and genres and listeners where there are lists of them.

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
    AttributeTable
        Of the kinds "artist", "genre", "listener".

    Raises
    ------
    InputError
        Missing, without a usable line, several lists of genres, or too many listeners.
    """
    rejects = Rejects() if rejects is None else rejects
    songs: defaultdict[str, list[str]] = defaultdict(list)
    tracks: dict[str, str] = {}
    for where, line in _iterate_lines(folder / TRACKS, rejects):
        try:
            track, song, artist = _parse_track(line)
            if track in tracks:
                raise RowError("duplicate id", track)
            tracks[track] = artist
            if listeners is not None:
                songs[song].append(track)
        except RowError as error:
            rejects.add(where, error.reason, error.detail)
    genres = _find_genre_list(folder) if genres is None else genres

    def iterate_items() -> Iterator[ItemAttributes]:
        yield from (ItemAttributes(track, {"artist": (artist,) if artist else ()}) for track, artist in tracks.items())
        if genres is not None:
            yield from _with_genres(genres, tracks, rejects)
        if listeners is not None:
            yield from _with_listeners(listeners, songs, rejects)

    return AttributeTable.of(folder, iterate_items(), rejects, "tracks")


def read_track_songs(path: Path, rejects: Rejects) -> Iterator[tuple[str, str]]:
    """Yield (track, song) of every line of `unique_tracks.txt`; bad lines are listed.

    The path may be the folder that holds it.
    """
    for where, line in _iterate_lines(path / TRACKS if path.is_dir() else path, rejects):
        try:
            track, song, _ = _parse_track(line)
            yield track, song
        except RowError as error:
            rejects.add(where, error.reason, error.detail)


def _find_genre_list(folder: Path) -> Path | None:
    files = sorted(folder.glob(GENRES))
    if len(files) > 1:
        raise InputError(
            f"{format_path(folder)} has several lists of genres "
            f"({', '.join(format_path(file.name) for file in files[:3])}); say "
            "which one with genres=, or move the others away"
        )
    return files[0] if files else None


def _iterate_lines(path: Path, rejects: Rejects) -> Iterator[tuple[str, str]]:
    for number, line in iterate_numbered_lines(path, _LONGEST_LINE):
        where = f"{format_path(path)}:{number}"
        try:
            if line.strip():
                yield where, line.decode("utf-8")
        except UnicodeDecodeError:
            rejects.add(where, "text that is not UTF-8", repr(line[:60]))


def _parse_track(line: str) -> tuple[str, str, str]:
    """Return (track, song, artist or "") of a line."""
    cells = line.split("<SEP>")
    if len(cells) != 4:
        raise RowError("line that is not track, song, artist and title", ascii(line[:60]))
    if not cells[0]:
        raise RowError("row without an id")
    return cells[0], cells[1], next(iter(normalise_labels(cells[2:3])), "")


def _with_genres(path: Path, tracks: dict[str, str], rejects: Rejects) -> Iterator[ItemAttributes]:
    for where, line in _iterate_lines(path, rejects):
        if line.startswith("#"):
            continue
        try:
            track, *genres = line.split("\t")
            if len(genres) not in (1, 2):
                raise RowError("line that is not a track and its genres", ascii(line[:60]))
            if track not in tracks:
                raise RowError("track that is not in the list", track)
            yield ItemAttributes(track, {"genre": normalise_labels(genres)})
        except RowError as error:
            rejects.add(where, error.reason, error.detail)


def _with_listeners(path: Path, songs: dict[str, list[str]], rejects: Rejects) -> Iterator[ItemAttributes]:
    for number, (where, line) in enumerate(_iterate_lines(path, rejects)):
        if number == MOST_TRIPLETS:
            raise InputError(f"{format_path(path)} has more than {MOST_TRIPLETS:,} lines; give a part of it")
        try:
            cells = line.split("\t")
            if len(cells) != 3 or not cells[2].isdecimal():
                raise RowError("line that is not user, song and plays", ascii(line[:60]))
            user, song, plays = cells
            if song not in songs:
                raise RowError("song that is not in the list", song)
            if int(plays):
                yield from (ItemAttributes(track, {"listener": normalise_labels([user])}) for track in songs[song])
        except RowError as error:
            rejects.add(where, error.reason, error.detail)
