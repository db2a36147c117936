"""The slides' Big-data: artists of songs, songs of artists, songs like a song, apart and in one space ([S] part II)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.models.relations import Kind, Relation
from wsabie.models.told import itself
from wsabie.sources.declaration import DeclaredRelation
from wsabie.sources.records import Rows, groups_of, label_counts
from wsabie.studies.dealing import related_by
from wsabie.studies.relation_methods import cosines, in_spaces
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.in_space import COSINE, SPACE, SPACES, best_space, figures_of
from wsabie.studies.reproduce.models import available, compare_on
from wsabie.studies.reproduce.music_data import ARTISTS, GENRES, SEPARATOR, kinds_in, of_kind
from wsabie.studies.reproduce.record import Cell, Entry, Findings, Found, Record, Setting

KS = (1, 6)
SONGS, ARTIST, GENRE = "song", "artist", "genre"
SIMILAR = "similar"
TASKS = (ARTIST, SONGS, SIMILAR, GENRE)


@dataclass(frozen=True)
class Tasks:
    """The tasks on one side of the data.

    Attributes
    ----------
    relations : dict of str to Relation
        By the name of the task.
    rows : Rows
    """

    relations: dict[str, Relation]
    rows: Rows


@dataclass(frozen=True)
class Music:
    """The three sides, and the columns of artists and genres."""

    data: Data
    artists: str
    columns: dict[str, Any]

    @classmethod
    def of(cls, data: Data) -> "Music":
        """Names with enough training songs; the kind that stands for artists, and that of genres where there is one.

        Raises
        ------
        InputError
            There are no artists.
        """
        kinds, counts = kinds_in(data.train), label_counts(data.train)
        wanted = ARTISTS if data.artists is None else (data.artists,)
        artists = next((kind for kind in wanted if kind in kinds), None)
        if artists is None:
            raise InputError(
                f"{data.name} has no names of the kind {wanted[0]!r}; choose --artists among {', '.join(kinds)}"
            )
        genres = next((kind for kind in GENRES if kind in kinds and kind != artists), None)
        found = {ARTIST: kinds[artists]} | ({} if genres is None else {GENRE: kinds[genres]})
        found = {task: columns[counts[columns] >= max(data.min_rows, 1)] for task, columns in found.items()}
        return cls(data, artists, found)

    def tasks(self, rows: Rows, *, training: bool) -> Tasks:
        """The tasks on some rows; in training every kind is told with its names."""
        track = Kind("track", rows.X, rows.ids)
        ends: dict[str, Any] = {task: task for task in self.columns}
        if training:
            ends = {task: Kind(task, None, [_bare(rows, y) for y in ys]) for task, ys in self.columns.items()}
        said = {task: (rows.Y.tocsr()[:, ys] > 0).astype(np.int8) for task, ys in self.columns.items()}
        Y = said[ARTIST].tocoo()
        couples = [(rows.ids[i], str(y)) for i, y in zip(Y.row, Y.col, strict=True)]
        alike = DeclaredRelation(SIMILAR, "track", "track", None, self.artists, 1.0)
        relations = {
            ARTIST: Relation(track, ends[ARTIST], said[ARTIST], ARTIST),
            SONGS: Relation(ends[ARTIST], track, said[ARTIST].T.tocsr(), SONGS),
            SIMILAR: related_by(alike, couples, track, track),
        }
        if GENRE in said:
            relations[GENRE] = Relation(track, ends[GENRE], said[GENRE], GENRE)
        return Tasks({name: one for name, one in relations.items() if _n_pairs(one)}, rows)


def _bare(rows: Rows, y: int) -> str:
    return rows.label_names[y].partition(SEPARATOR)[2]


def _n_pairs(relation: Relation) -> int:
    """Pairs of two things; those of a thing with itself are none."""
    own = np.count_nonzero(relation.pairs.diagonal()) if relation.query is relation.target else 0
    return relation.n_pairs - int(own)


def big_data(record: Record, setting: Setting) -> Findings:
    """All rows of the slides' table: artists of a song, songs of an artist, songs like a song, genres of a song."""
    music = Music.of(setting.given)
    learnt = music.tasks(setting.given.train, training=True)
    held, test = (music.tasks(rows, training=False) for rows in (setting.given.valid, setting.given.test))
    for side, tasks in (("training", learnt), ("test", test)):
        for task in (ARTIST, SIMILAR):
            if task not in tasks.relations:
                raise InputError(
                    f"no two {side} songs of {setting.given.name} have one {music.artists}; choose another kind with "
                    "--artists"
                )
    rows, missing = _classifiers(record, setting, music)
    notes = [_told(music, test)]
    for entry in record.entries:
        if entry.entrant == COSINE:
            rows.append(_cosine(entry, setting.given, test))
        elif entry.entrant in (SPACE, SPACES):
            found, told = _space(entry, (learnt, held, test), setting)
            rows.append(found)
            notes.append(told)
    by = groups_of(test.rows, _judged(test, SIMILAR))
    songs = groups_of(test.rows, _judged(test, ARTIST))
    columns = {f"{task} p@{k}": groups for task, groups in ((SIMILAR, by), (ARTIST, songs)) for k in KS if groups}
    return Findings(rows, missing, notes=notes, groups=columns)


def _judged(tasks: Tasks, task: str) -> Any:
    """The songs that ask in a task: those with something to find."""
    pairs = tasks.relations[task].pairs.tocsr()
    own = pairs.diagonal() > 0 if task == SIMILAR else 0
    return np.flatnonzero(np.diff(pairs.indptr) - own)


def _classifiers(record: Record, setting: Setting, music: Music) -> tuple[list[Found], dict[str, str]]:
    """Models that rank artists alone."""
    data = of_kind(setting.given, music.columns[ARTIST])
    entries = tuple(entry for entry in record.entries if entry.entrant not in (COSINE, SPACE, SPACES))
    taking_part, missing = available(replace(record, entries=entries), replace(setting, data=data))
    found = compare_on(data, taking_part, setting, ks=KS)
    missing |= {skipped.name: skipped.reason for skipped in found.skipped}
    rows = [Found(e.name, e.title, *figures_of(ARTIST, e.evaluation, KS)) for e in found.entries]
    return rows, missing


def _cosine(entry: Entry, data: Data, test: Tasks) -> Found:
    """Songs like a song by their features."""
    relation, X = test.relations[SIMILAR], test.rows.X
    Y = (relation.pairs > 0).astype(np.int8)
    found = cosines(data.train.X, X, X, Y, KS, exclude=itself(Y))
    return Found(entry.row, "cosine of the features, tf-idf", *figures_of(SIMILAR, found, KS))


def _space(entry: Entry, sides: tuple[Tasks, Tasks, Tasks], setting: Setting) -> tuple[Found, str]:
    """One space for all tasks, or one for each, and the figures of all; what was chosen, in words."""
    learnt, held, test = (side.relations for side in sides)
    groups = [list(learnt)] if entry.entrant == SPACE else [[task] for task in learnt]
    figures: dict[str, Cell] = {}
    per_row: dict[str, Any] = {}
    rates = []
    for found in in_spaces(
        groups, (learnt, held, test), lambda told, judged: best_space(told, judged, setting, **entry.parameters), KS
    ):
        rates.append(f"{found.told:.3g}" if len(groups) == 1 else f"{found.told:.3g} ({found.names[0]})")
        for task, evaluation in found.figures.items():
            means, values = figures_of(task, evaluation, KS)
            figures |= means
            per_row |= values
    note = f"{entry.row}: {', '.join(rates)} times the default learning rate, by the MAP of the validation songs."
    return Found(entry.row, entry.entrant, figures, per_row), note


def _told(music: Music, test: Tasks) -> str:
    known = ", ".join(f"{task}: {_n_pairs(relation):,} pairs" for task, relation in test.relations.items())
    kind = "" if music.artists == ARTIST else f"The kind {music.artists!r} stands for artists. "
    return f"{kind}{len(music.columns[ARTIST]):,} artists; to be found in the test: {known}."
