"""Songs that the same people hear, from a list of who heard what: `user TAB song TAB plays`.

That is the layout of the Echo Nest Taste Profile (`train_triplets.txt` of the Million Song Dataset: 48 million lines,
384,546 songs, 1,019,318 users), whose lines may stand in any order. A pair are two songs with common listeners;
its cosine is (common listeners) / sqrt(listeners of one times listeners of the other).
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.progress import SILENT, Progress
from wsabie.sources.build import BadRow, require_rows
from wsabie.sources.million_song import songs_of_tracks
from wsabie.sources.text import lines_up_to, shown
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects

MOST_PLAYS = 100_000_000
"""Usable lines: 8 bytes each, and about 150 for each user and each song."""
_LONGEST_LINE = 1 << 16
_CELLS = 1 << 24
"""Pairs of a song and another that are counted at once, at 12 bytes."""


@dataclass(frozen=True)
class Heard:
    """Who heard what.

    Attributes
    ----------
    songs : list of str
    by : csr_matrix (n_songs, n_users) int32
        1 where a user heard a song.
    capped : int
        Users of whom only some songs count.
    """

    songs: list[str]
    by: Matrix
    capped: int


def read_heard(
    path: Path,
    *,
    known: Mapping[str, Sequence[str]] | None = None,
    heavy: int = 500,
    seed: int = 0,
    rejects: Rejects | None = None,
    progress: Progress = SILENT,
) -> Heard:
    """Read a list of listeners, once.

    Parameters
    ----------
    path : Path
        UTF-8, plain or gzip. Lines of 0 plays say nothing; how often a song was played counts no further.
    known : mapping or None
        Songs that count; None: all.
    heavy : int
        Of a user who heard more songs, this many count, drawn by `seed`: pairs grow with the square of a user's songs.
    rejects : Rejects or None
        Lists malformed lines, and songs that are not known.

    Raises
    ------
    InputError
        Missing, not a single usable line, or more than `MOST_PLAYS`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plays.txt"
    ...     _ = file.write_text("ann\\ta\\t3\\nann\\tb\\t1\\nbob\\ta\\t2\\nbob\\tb\\t9\\nbob\\tc\\t1\\n")
    ...     heard = read_heard(file)
    >>> list(together(heard, least=2))
    [('a', 'b', 2)]
    """
    from scipy.sparse import csr_matrix

    rejects = Rejects() if rejects is None else rejects
    users, songs = dict[str, int](), dict[str, int]()
    who, what = array("i"), array("i")
    with progress.stage("reading", None, "lines") as bar:
        for number, line in lines_up_to(path, _LONGEST_LINE, pipe=True):
            bar.advance()
            try:
                if line is not None and not line.strip():
                    continue
                user, song, plays = _cells(line)
                if known is not None and song not in known:
                    raise BadRow("song that is not in the list", song)
            except BadRow as bad:
                rejects.add(f"{shown(path)}:{number}", bad.reason, bad.detail)
                continue
            if len(who) == MOST_PLAYS:
                raise InputError(f"{shown(path)} has more than {MOST_PLAYS:,} usable lines; give a part of it")
            if plays:
                who.append(users.setdefault(user, len(users)))
                what.append(songs.setdefault(song, len(songs)))
    require_rows(len(who), path, rejects, "lines of user TAB song TAB plays")
    ends = np.frombuffer(who, np.int32), np.frombuffer(what, np.int32)
    by_user = csr_matrix((np.ones(len(who), np.int8), ends), (len(users), len(songs)))
    by_user.sum_duplicates()
    by_user, capped = _capped(by_user, heavy, seed)
    by = by_user.T.tocsr().astype(np.int32)
    by.data[:] = 1
    return Heard(list(songs), by, capped)


def together(
    heard: Heard, *, least: int = 5, cosine: float = 0.0, top: int = 20, progress: Progress = SILENT
) -> Iterator[tuple[str, str, int]]:
    """Pairs of songs with the number of their common listeners, each pair once.

    Parameters
    ----------
    heard : Heard
    least : int
        Common listeners of a pair, at least.
    cosine : float
        Cosine of a pair, at least.
    top : int
        Partners that a song may choose, by cosine and then by order in the file. A pair is there where one of the two
        chose the other, so that a song may have more.
    """
    counts = np.diff(heard.by.indptr)
    usable = np.flatnonzero(counts >= least)
    by = heard.by[usable]
    by_user, sizes = by.T.tocsr(), np.sqrt(counts[usable])
    chosen: list[Int64] = []
    common: list[Int64] = []
    with progress.stage("counting pairs", len(usable), "songs") as bar:
        for lo, hi in _blocks(by, by_user):
            found = by[lo:hi] @ by_user
            enough = np.flatnonzero(found.data >= least)
            row = lo + np.searchsorted(found.indptr, enough, "right") - 1
            other, data = found.indices[enough], found.data[enough]
            alike = data / (sizes[row] * sizes[other])
            keep = (other != row) & (alike >= cosine)
            row, other, alike, data = row[keep], other[keep], alike[keep], data[keep]
            order = np.lexsort((other, -alike, row))
            starts = np.searchsorted(row[order], np.arange(lo, hi))
            best = order[np.arange(len(order)) - starts[row[order] - lo] < top]
            a, b = np.minimum(row, other)[best].astype(np.int64), np.maximum(row, other)[best]
            chosen.append(a * len(usable) + b)
            common.append(data[best])
            bar.advance(hi - lo)
    if not chosen:
        return
    pairs, at = np.unique(np.concatenate(chosen), return_index=True)
    numbers = np.concatenate(common)[at]
    for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
        a, b = divmod(pair, len(usable))
        yield heard.songs[usable[a]], heard.songs[usable[b]], number


def write_together(
    path: Path, pairs: Iterable[tuple[str, str, int]], tracks: Mapping[str, Sequence[str]] | None = None
) -> int:
    """Write pairs as a relation takes them (`id TAB id TAB common listeners`), every track of a song for the song.

    Returns
    -------
    int
        How many there were.
    """
    written = 0
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write("id\tname\tlisteners\n")
        for one, other, common in pairs:
            ends = [(one,), (other,)] if tracks is None else [tracks[one], tracks[other]]
            lines = [f"{a}\t{b}\t{common}\n" for a in ends[0] for b in ends[1]]
            file.writelines(lines)
            written += len(lines)
    return written


def tracks_of_songs(path: Path, *, rejects: Rejects | None = None) -> Mapping[str, Sequence[str]]:
    """The tracks of every song in `unique_tracks.txt`, or in the folder that holds it.

    Raises
    ------
    InputError
        Missing, or without a usable line.
    """
    rejects = Rejects() if rejects is None else rejects
    tracks: defaultdict[str, list[str]] = defaultdict(list)
    for track, song in songs_of_tracks(path, rejects):
        tracks[song].append(track)
    require_rows(len(tracks), path, rejects, "tracks")
    return dict(tracks)


def _cells(line: bytes | None) -> tuple[str, str, int]:
    if line is None:
        raise BadRow(f"line of more than {_LONGEST_LINE >> 10} KiB")
    try:
        cells = line.decode("utf-8").split("\t")
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error
    if len(cells) != 3 or not cells[0].strip() or not cells[1].strip() or not cells[2].isdecimal():
        raise BadRow("line that is not user, song and plays", ascii(line.decode()[:60]))
    return cells[0], cells[1].strip(), int(any(digit != "0" for digit in cells[2]))


def _capped(by_user: Matrix, heavy: int, seed: int) -> tuple[Matrix, int]:
    """At most `heavy` songs of every user."""
    many = np.flatnonzero(np.diff(by_user.indptr) > heavy)
    rng = np.random.default_rng(seed)
    for user in many:
        lo, hi = by_user.indptr[user : user + 2]
        by_user.data[lo + rng.permutation(hi - lo)[heavy:]] = 0
    by_user.eliminate_zeros()
    return by_user, len(many)


def _blocks(by: Matrix, by_user: Matrix) -> Iterator[tuple[int, int]]:
    """Ranges of songs whose common listeners are counted at once."""
    work = np.cumsum(by @ np.diff(by_user.indptr).astype(np.int64))
    lo, n = 0, by.shape[0]
    while lo < n:
        before = work[lo - 1] if lo else 0
        hi = max(lo + 1, int(np.searchsorted(work, before + _CELLS, "right")))
        yield lo, hi
        lo = hi
