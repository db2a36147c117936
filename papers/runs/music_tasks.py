"""Music tasks of Bengio et al. 2012, part II: artists, songs, similar songs, apart and in one space."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from papers.data.music_data import ARTISTS, GENRES, SEPARATOR, list_kind_columns, select_kind
from papers.datasets import PaperData
from papers.record import Cell, FindingRow, PaperRecord, RecordEntry, RunFindings, RunSettings
from papers.runs.best_space import COSINE, SPACE, SPACES, find_best_space, format_space_figures
from papers.runs.model_tables import compare_on_data, list_available_entrants
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable, count_labels, get_groups
from wsabie.io.space_declaration import RelationDeclaration
from wsabie.models.entity_space.relations import EntityKind, Relation, build_self_exclusion
from wsabie.workflows.spaces.relation_holdout import build_relation
from wsabie.workflows.spaces.relation_methods import evaluate_cosine

KS = (1, 6)
SONGS, ARTIST, GENRE = "song", "artist", "genre"
SIMILAR = "similar"
TASKS = (ARTIST, SONGS, SIMILAR, GENRE)


@dataclass(frozen=True)
class MusicTasks:
    """The tasks on one side of the data.

    Attributes
    ----------
    relations : dict of str to Relation
        By the name of the task.
    rows : FeatureTable
    """

    relations: dict[str, Relation]
    rows: FeatureTable


@dataclass(frozen=True)
class MusicData:
    """The three sides, and the columns of artists and genres."""

    data: PaperData
    artists: str
    columns: dict[str, Any]

    @classmethod
    def from_data(cls, data: PaperData) -> "MusicData":
        """Select names with enough training songs, the kind of artists, and that of genres if there is one.

        Raises
        ------
        InputError
            There are no artists.
        """
        kinds, counts = list_kind_columns(data.train), count_labels(data.train)
        artist_kinds = ARTISTS if data.artists is None else (data.artists,)
        artists = next((kind for kind in artist_kinds if kind in kinds), None)
        if artists is None:
            raise InputError(
                f"{data.name} has no names of the kind {artist_kinds[0]!r}; choose --artists among {', '.join(kinds)}"
            )
        genres = next((kind for kind in GENRES if kind in kinds and kind != artists), None)
        task_columns = {ARTIST: kinds[artists]} | ({} if genres is None else {GENRE: kinds[genres]})
        task_columns = {
            task: columns[counts[columns] >= max(data.min_rows, 1)] for task, columns in task_columns.items()
        }
        return cls(data, artists, task_columns)

    def tasks(self, rows: FeatureTable, *, training: bool) -> MusicTasks:
        """Return the tasks on some rows; in training every kind lists its names."""
        track = EntityKind("track", rows.X, rows.ids)
        kinds_or_names: dict[str, Any] = {task: task for task in self.columns}
        if training:
            kinds_or_names = {
                task: EntityKind(task, None, [_get_bare_name(rows, column) for column in column_list])
                for task, column_list in self.columns.items()
            }
        memberships = {
            task: (rows.Y.tocsr()[:, column_list] > 0).astype(np.int8) for task, column_list in self.columns.items()
        }
        Y = memberships[ARTIST].tocoo()
        couples = [(rows.ids[i], str(column)) for i, column in zip(Y.row, Y.col, strict=True)]
        similar_declaration = RelationDeclaration(SIMILAR, "track", "track", None, self.artists, 1.0)
        relations = {
            ARTIST: Relation(track, kinds_or_names[ARTIST], memberships[ARTIST], ARTIST),
            SONGS: Relation(kinds_or_names[ARTIST], track, memberships[ARTIST].T.tocsr(), SONGS),
            SIMILAR: build_relation(similar_declaration, couples, track, track),
        }
        if GENRE in memberships:
            relations[GENRE] = Relation(track, kinds_or_names[GENRE], memberships[GENRE], GENRE)
        return MusicTasks({name: relation for name, relation in relations.items() if _count_pairs(relation)}, rows)


def _get_bare_name(rows: FeatureTable, y: int) -> str:
    return rows.label_names[y].partition(SEPARATOR)[2]


def _count_pairs(relation: Relation) -> int:
    """Return the pairs of two different items."""
    n_self_pairs = np.count_nonzero(relation.pairs.diagonal()) if relation.query is relation.target else 0
    return relation.n_pairs - int(n_self_pairs)


def run_big_data(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Run all rows of the slides' table: artists, songs of an artist, similar songs and genres."""
    music = MusicData.from_data(setting.required_data)
    training = music.tasks(setting.required_data.train, training=True)
    validation, test = (
        music.tasks(rows, training=False) for rows in (setting.required_data.valid, setting.required_data.test)
    )
    for side, tasks in (("training", training), ("test", test)):
        for task in (ARTIST, SIMILAR):
            if task not in tasks.relations:
                raise InputError(
                    f"no two {side} songs of {setting.required_data.name} have one {music.artists}; choose "
                    "another kind with "
                    "--artists"
                )
    rows, missing = _evaluate_classifiers(record, setting, music)
    notes = [_describe_tasks(music, test)]
    for entry in record.entries:
        if entry.entrant == COSINE:
            rows.append(_evaluate_cosine(entry, setting.required_data, test))
        elif entry.entrant in (SPACE, SPACES):
            finding, note = _evaluate_space(entry, (training, validation, test), setting)
            rows.append(finding)
            notes.append(note)
    similar_groups = get_groups(test.rows, _find_query_rows(test, SIMILAR))
    songs = get_groups(test.rows, _find_query_rows(test, ARTIST))
    columns = {
        f"{task} p@{k}": groups for task, groups in ((SIMILAR, similar_groups), (ARTIST, songs)) for k in KS if groups
    }
    return RunFindings(rows, missing, notes=notes, groups=columns)


def _find_query_rows(tasks: MusicTasks, task: str) -> Any:
    """Return the query songs of a task: those with targets."""
    pairs = tasks.relations[task].pairs.tocsr()
    self_pairs = pairs.diagonal() > 0 if task == SIMILAR else 0
    return np.flatnonzero(np.diff(pairs.indptr) - self_pairs)


def _evaluate_classifiers(
    record: PaperRecord, setting: RunSettings, music: MusicData
) -> tuple[list[FindingRow], dict[str, str]]:
    """Evaluate models that rank artists only."""
    data = select_kind(setting.required_data, music.columns[ARTIST])
    entries = tuple(entry for entry in record.entries if entry.entrant not in (COSINE, SPACE, SPACES))
    entrants, missing = list_available_entrants(replace(record, entries=entries), replace(setting, data=data))
    comparison = compare_on_data(data, entrants, setting, ks=KS)
    missing |= {skipped.name: skipped.reason for skipped in comparison.skipped}
    rows = [
        FindingRow(model_entry.name, model_entry.title, *format_space_figures(ARTIST, model_entry.evaluation, KS))
        for model_entry in comparison.entries
    ]
    return rows, missing


def _evaluate_cosine(entry: RecordEntry, data: PaperData, test: MusicTasks) -> FindingRow:
    """Evaluate similar songs by their features."""
    relation, X = test.relations[SIMILAR], test.rows.X
    Y = (relation.pairs > 0).astype(np.int8)
    evaluation = evaluate_cosine(data.train.X, X, X, Y, KS, exclude=build_self_exclusion(Y))
    return FindingRow(entry.row, "cosine of the features, tf-idf", *format_space_figures(SIMILAR, evaluation, KS))


def _evaluate_space(
    entry: RecordEntry, sides: tuple[MusicTasks, MusicTasks, MusicTasks], setting: RunSettings
) -> tuple[FindingRow, str]:
    """Evaluate one space for all tasks, or one per task, and describe the choice in words."""
    relations = sides[0].relations, sides[1].relations, sides[2].relations
    groups = [list(relations[0])] if entry.entrant == SPACE else [[task] for task in relations[0]]
    figures: dict[str, Cell] = {}
    per_row: dict[str, Any] = {}
    rates = []
    for names in groups:
        training, validation, test = ([side[name] for name in names if name in side] for side in relations)
        space, rate = find_best_space(training, validation, setting, **entry.parameters)
        rates.append(f"{rate:.3g}" if len(groups) == 1 else f"{rate:.3g} ({names[0]})")
        for task, evaluation in space.evaluate(test, ks=KS).items():
            means, values = format_space_figures(task, evaluation, KS)
            figures |= means
            per_row |= values
    note = f"{entry.row}: {', '.join(rates)} times the default learning rate, by the MAP of the validation songs."
    return FindingRow(entry.row, entry.entrant, figures, per_row), note


def _describe_tasks(music: MusicData, test: MusicTasks) -> str:
    pair_counts = ", ".join(f"{task}: {_count_pairs(relation):,} pairs" for task, relation in test.relations.items())
    kind = "" if music.artists == ARTIST else f"The kind {music.artists!r} stands for artists. "
    return f"{kind}{len(music.columns[ARTIST]):,} artists; to be found in the test: {pair_counts}."
