"""Million Song Dataset: artists, genres and listeners of tracks, and songs with common listeners.

    unique_tracks.txt        track<SEP>song<SEP>artist<SEP>title
    msd_tagtraum_cd1.cls     track TAB genre, or track TAB genre TAB second genre; comments begin with #
    train_triplets.txt       user TAB song TAB plays

`unique_artists.txt`, which names one track of each artist, says nothing more and is left alone.

The last list is the Echo Nest Taste Profile: 48 million lines, 384,546 songs, 1,019,318 users, in any order. A pair are
two songs with common listeners; its cosine is (common listeners) / sqrt(listeners of one times listeners of the other).
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Progress
from wsabie.io.datasets.item_attributes import AttributeTable, ItemAttributes
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.parsers import text_files
from wsabie.io.parsers.array_builders import Row, decode_row, iterate_parsed, require_rows
from wsabie.storage.rejects import Rejects, RowError

TRACKS, GENRES = "unique_tracks.txt", "*.cls*"
MAX_TRIPLETS = 20_000_000
"""Lines of a list of listeners; a pair takes about 200 bytes."""
_MAX_LINE_BYTES = 1 << 20
MAX_PLAYS = 100_000_000
"""Usable lines: 8 bytes each, and about 150 for each user and each song."""
_MAX_PLAY_LINE_BYTES = 1 << 16
_CELLS = 1 << 24
"""Pairs of a song and another that are counted at once, at 12 bytes."""


def is_million_song(folder: Path) -> bool:
    """Return True if a folder holds the list of tracks."""
    return (folder / TRACKS).is_file()


def read_million_song_attributes(
    folder: Path, *, genres: Path | None = None, listeners: Path | None = None, rejects: Rejects
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
    rejects : Rejects
        Lists malformed lines, and genres and listeners of tracks that are not in the list.

    Returns
    -------
    AttributeTable
        Attributes of the kinds "artist", "genre", "listener".

    Raises
    ------
    InputError
        Missing, without a usable line, several lists of genres, or too many listeners.
    """
    songs: defaultdict[str, list[str]] = defaultdict(list)
    tracks: dict[str, str] = {}
    for number, (track, song, artist) in _parse_lines(folder / TRACKS, _parse_track, rejects):
        with rejects.catch(folder / TRACKS, number):
            if track in tracks:
                raise RowError("duplicate id", track)
            tracks[track] = artist
            if listeners is not None:
                songs[song].append(track)
    genres = _find_genre_list(folder) if genres is None else genres

    def iterate_items() -> Iterator[ItemAttributes]:
        yield from (ItemAttributes(track, {"artist": (artist,) if artist else ()}) for track, artist in tracks.items())
        if genres is not None:
            yield from _iterate_genres(genres, tracks, rejects)
        if listeners is not None:
            yield from _iterate_listeners(listeners, songs, rejects)

    return AttributeTable.from_items(folder, iterate_items(), rejects, "tracks")


def _find_genre_list(folder: Path) -> Path | None:
    files = sorted(folder.glob(GENRES))
    if len(files) > 1:
        problem = f"{folder} has several lists of genres ({', '.join(file.name for file in files[:3])})"
        raise InputError(f"{problem}; say which one with genres=, or move the others away")
    return files[0] if files else None


def _parse_lines(path: Path, parse: Callable[[str], Row], rejects: Rejects) -> Iterator[tuple[int, Row]]:
    """Yield (line number, parsed line) of lines that are not empty."""
    lines = text_files.iterate_numbered_lines(path, _MAX_LINE_BYTES, skip_blank=True)
    return iterate_parsed(path, lines, lambda line: parse(decode_row(line)), rejects)


def _parse_track(line: str) -> tuple[str, str, str]:
    """Return (track, song, artist or "") of a line."""
    cells = line.split("<SEP>")
    if len(cells) != 4:
        raise RowError("line that is not track, song, artist and title", ascii(line[:60]))
    if not cells[0]:
        raise RowError("row without an id")
    return cells[0], cells[1], next(iter(normalise_labels(cells[2:3])), "")


def _iterate_genres(path: Path, tracks: dict[str, str], rejects: Rejects) -> Iterator[ItemAttributes]:
    def parse(line: str) -> ItemAttributes | None:
        if line.startswith("#"):
            return None
        track, *genres = line.split("\t")
        if len(genres) not in (1, 2):
            raise RowError("line that is not a track and its genres", ascii(line[:60]))
        if track not in tracks:
            raise RowError("track that is not in the list", track)
        return ItemAttributes(track, {"genre": normalise_labels(genres)})

    return (item for _, item in _parse_lines(path, parse, rejects) if item)


def _iterate_listeners(path: Path, songs: dict[str, list[str]], rejects: Rejects) -> Iterator[ItemAttributes]:
    def parse(line: str) -> list[ItemAttributes]:
        user, song, plays = _parse_play(line)
        if song not in songs:
            raise RowError("song that is not in the list", song)
        names = {"listener": normalise_labels([user])} if plays else {}
        return [ItemAttributes(track, names) for track in songs[song]] if names else []

    for number, items in _parse_lines(path, parse, rejects):
        if number > MAX_TRIPLETS:
            raise InputError(f"{path} has more than {MAX_TRIPLETS:,} lines; give a part of it")
        yield from items


@dataclass(frozen=True)
class ListeningCounts:
    """Songs and the users who heard them.

    Attributes
    ----------
    songs : list of str
    song_users : csr_matrix (n_songs, n_users) int32
        1 where a user heard a song.
    n_capped : int
        Users of whom only some songs count.
    """

    songs: list[str]
    song_users: Matrix
    n_capped: int


def read_listening_counts(
    path: Path,
    *,
    song_filter: Mapping[str, Sequence[str]] | None = None,
    heavy: int = 500,
    seed: int = 0,
    rejects: Rejects,
    progress: Progress = SILENT,
) -> ListeningCounts:
    """Read a list of listeners, in one pass.

    Parameters
    ----------
    path : Path
        UTF-8, plain or gzip. Lines of 0 plays say nothing; how often a song was played counts no further.
    song_filter : mapping or None
        Songs that count; None: all.
    heavy : int
        Largest number of songs that count for a user, drawn by `seed`: pairs grow with the square of a user's songs.
    rejects : Rejects
        Lists malformed lines, and songs that are not known.

    Raises
    ------
    InputError
        Missing, not a single usable line, or more than `MAX_PLAYS`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plays.txt"
    ...     _ = file.write_text("ann\\ta\\t3\\nann\\tb\\t1\\nbob\\ta\\t2\\nbob\\tb\\t9\\nbob\\tc\\t1\\n")
    ...     counts = read_listening_counts(file, rejects=Rejects())
    >>> list(find_co_listened_pairs(counts, least=2))
    [('a', 'b', 2)]
    """
    from scipy.sparse import csr_matrix

    users, songs = dict[str, int](), dict[str, int]()
    user_ids, song_ids = array("i"), array("i")
    with progress.stage("reading", None, "lines") as bar:
        for number, line in text_files.iterate_bounded_numbered_lines(path, _MAX_PLAY_LINE_BYTES, pipe=True):
            bar.advance()
            with rejects.catch(path, number):
                if line is None:
                    raise RowError(f"line of more than {_MAX_PLAY_LINE_BYTES >> 10} KiB")
                if not line.strip():
                    continue
                user, song, plays = _parse_play(decode_row(line))
                if song_filter is not None and song not in song_filter:
                    raise RowError("song that is not in the list", song)
                if len(user_ids) == MAX_PLAYS:
                    raise InputError(f"{path} has more than {MAX_PLAYS:,} usable lines; give a part of it")
                if plays:
                    user_ids.append(users.setdefault(user, len(users)))
                    song_ids.append(songs.setdefault(song, len(songs)))
    require_rows(len(user_ids), path, rejects, "lines of user TAB song TAB plays")
    ends = np.frombuffer(user_ids, np.int32), np.frombuffer(song_ids, np.int32)
    by_user = csr_matrix((np.ones(len(user_ids), np.int8), ends), (len(users), len(songs)))
    by_user.sum_duplicates()
    by_user, capped = _cap_users(by_user, heavy, seed)
    song_users = by_user.T.tocsr().astype(np.int32)
    song_users.data[:] = 1
    return ListeningCounts(list(songs), song_users, capped)


def find_co_listened_pairs(
    listening: ListeningCounts, *, least: int = 5, cosine: float = 0.0, top: int = 20, progress: Progress = SILENT
) -> Iterator[tuple[str, str, int]]:
    """Yield pairs of songs with the number of their common listeners, each pair once.

    Parameters
    ----------
    listening : ListeningCounts
    least : int
        Common listeners of a pair, at least.
    cosine : float
        Cosine of a pair, at least.
    top : int
        Partners that a song may choose, by cosine and then by order in the file. A pair is there where one of the two
        chose the other, so that a song may have more.
    """
    counts = np.diff(listening.song_users.indptr)
    song_numbers = np.flatnonzero(counts >= least)
    song_users = listening.song_users[song_numbers]
    by_user, sizes = song_users.T.tocsr(), np.sqrt(counts[song_numbers])
    pair_keys: list[Int64] = []
    common: list[Int64] = []
    with progress.stage("counting pairs", len(song_numbers), "songs") as bar:
        for lo, hi in _iterate_blocks(song_users, by_user):
            products = song_users[lo:hi] @ by_user
            frequent = np.flatnonzero(products.data >= least)
            row = lo + np.searchsorted(products.indptr, frequent, "right") - 1
            partner, data = products.indices[frequent], products.data[frequent]
            cosines = data / (sizes[row] * sizes[partner])
            keep = (partner != row) & (cosines >= cosine)
            row, partner, cosines, data = row[keep], partner[keep], cosines[keep], data[keep]
            order = np.lexsort((partner, -cosines, row))
            starts = np.searchsorted(row[order], np.arange(lo, hi))
            best = order[np.arange(len(order)) - starts[row[order] - lo] < top]
            a, b = np.minimum(row, partner)[best].astype(np.int64), np.maximum(row, partner)[best]
            pair_keys.append(a * len(song_numbers) + b)
            common.append(data[best])
            bar.advance(hi - lo)
    if not pair_keys:
        return
    pairs, first_rows = np.unique(np.concatenate(pair_keys), return_index=True)
    numbers = np.concatenate(common)[first_rows]
    for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
        a, b = divmod(pair, len(song_numbers))
        yield listening.songs[song_numbers[a]], listening.songs[song_numbers[b]], number


def write_co_listened_pairs(
    path: Path, pairs: Iterable[tuple[str, str, int]], tracks: Mapping[str, Sequence[str]] | None = None
) -> int:
    """Write pairs as a relation, `id TAB id TAB common listeners`, with every track of a song.

    Returns
    -------
    int
        How many there were.
    """

    def lines() -> Iterator[str]:
        yield "id\tname\tlisteners"
        for first, second, common in pairs:
            ends = [(first,), (second,)] if tracks is None else [tracks[first], tracks[second]]
            yield from (f"{a}\t{b}\t{common}" for a in ends[0] for b in ends[1])

    return text_files.write_lines(path, lines()) - 1


def read_song_tracks(path: Path, *, rejects: Rejects) -> Mapping[str, Sequence[str]]:
    """Return the tracks of every song in `unique_tracks.txt`, or in the folder that holds it.

    Raises
    ------
    InputError
        Missing, or without a usable line.
    """
    tracks: defaultdict[str, list[str]] = defaultdict(list)
    for _, (track, song, _) in _parse_lines(path / TRACKS if path.is_dir() else path, _parse_track, rejects):
        tracks[song].append(track)
    require_rows(len(tracks), path, rejects, "tracks")
    return dict(tracks)


def _parse_play(line: str) -> tuple[str, str, bool]:
    """Return (user, song, whether it was played) of a line; there may be thousands of digits."""
    cells = line.split("\t")
    if len(cells) != 3 or not cells[0].strip() or not cells[1].strip() or not cells[2].isdecimal():
        raise RowError("line that is not user, song and plays", ascii(line[:60]))
    return cells[0], cells[1].strip(), any(digit != "0" for digit in cells[2])


def _cap_users(by_user: Matrix, heavy: int, seed: int) -> tuple[Matrix, int]:
    """Keep at most `heavy` songs of every user; return the matrix and the number of users cut."""
    heavy_users = np.flatnonzero(np.diff(by_user.indptr) > heavy)
    rng = np.random.default_rng(seed)
    for user in heavy_users:
        lo, hi = by_user.indptr[user : user + 2]
        by_user.data[lo + rng.permutation(hi - lo)[heavy:]] = 0
    by_user.eliminate_zeros()
    return by_user, len(heavy_users)


def _iterate_blocks(song_users: Matrix, by_user: Matrix) -> Iterator[tuple[int, int]]:
    """Yield ranges of songs whose common listeners are counted at once."""
    work = np.cumsum(song_users @ np.diff(by_user.indptr).astype(np.int64))
    lo, n = 0, song_users.shape[0]
    while lo < n:
        start = work[lo - 1] if lo else 0
        hi = max(lo + 1, int(np.searchsorted(work, start + _CELLS, "right")))
        yield lo, hi
        lo = hi
