"""Data of the music tables: audio with names of several kinds, or a generated catalogue of songs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from papers.datasets import (
    PaperData,
    build_three_sides,
    extract_split_rows,
    load_cached_task,
    make_extractable,
    split_generated_task,
)
from papers.record import DataOpener
from papers.synthetic_images import ImageTaskSize, build_truth
from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.evaluation.splits import Split
from wsabie.io.datasets.item_attributes import AttributeTable
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, Item, ItemList, ItemSource
from wsabie.storage.rejects import Rejects
from wsabie.workflows.data_splits import split_rows

GENERATED = "songs:"
SEPARATOR = ": "
"""Separator of kind and name, which tells equal names of two kinds apart."""
ARTISTS = ("artist", "artists", "speaker", "instrument")
GENRES = ("genre", "genres", "style", "family")
_OF_ALL = ("label", "labels")
_SIDES = {"train": 0, "training": 0, "valid": 1, "validation": 1, "val": 1, "dev": 1, "test": 2, "testing": 2}


def open_sounds(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> PaperData:
    """Open the audio of a folder, with its names of all kinds as labels "kind: name".

    Names that every item has are not labels. The sides are those of the published split if there is one, with a tenth
    of the training side for validation.

    Parameters
    ----------
    name : str
        A folder that `wsabie.io.datasets.attribute_recognition.read_attributes` reads. A column of labels counts only
        if there are no other kinds.
    seed, executor, progress, rejects
        As of `open_data`.

    Raises
    ------
    InputError
        No folder, no audio, or no names.
    """
    from wsabie.io.data_sources import open_source
    from wsabie.io.datasets.attribute_recognition import read_attributes

    path, rejects = Path(name), Rejects() if rejects is None else rejects
    files = open_source(path, labels_from="none", rejects=rejects)
    if isinstance(files, FeatureTable) or not path.is_dir() or files.modality != "sounds":
        raise InputError(
            f"{format_path(path)} holds no sounds; give a folder of sounds that have names "
            "(see docs/reference/sources.md)"
        )
    attributes = read_attributes(path)
    kinds = [kind for kind in attributes.pairs if kind not in _OF_ALL] or list(attributes.pairs)
    source = ItemList(path, _label_items(files, attributes.select_kinds(kinds), rejects), "sounds")
    require(
        len(source) > 0, f"no sound in {format_path(path)} has a name of any kind; name some, or give another folder"
    )
    rows, sides = extract_split_rows(source, _make_split(attributes, seed), seed, executor, progress, rejects)
    for side_name, side in (("training", sides.train), ("validation", sides.valid), ("test", sides.test)):
        require(len(side) > 0, f"no sound of {format_path(path)} is left for {side_name}; give more sounds")
    kind_names = ", ".join(
        kind for kind in kinds if any(name.startswith(f"{kind}{SEPARATOR}") for name in rows.label_names)
    )
    about = f"{path.name}, with the names of the kinds {kind_names}; {_format_split(attributes, rows, seed)}"
    return make_extractable(
        PaperData(path.name, about, *build_three_sides(rows, sides)), source, executor, progress, seed=seed
    )


def open_songs(name: str, *, progress: Progress = SILENT, **options: object) -> PaperData:
    """Open a generated catalogue, `songs:S`, or audio as `open_sounds`."""
    if not name.startswith(GENERATED):
        return open_sounds(name, progress=progress, **options)  # type: ignore[arg-type]

    size = parse_song_size(name.removeprefix(GENERATED))
    with progress.stage("songs as words", None, ""):
        task = load_cached_task(name, size)
        Y, names = generate_artists_and_genres(size, task.y)
    rows = FeatureTable(task.X, Y, names, [f"song {i}" for i in range(len(task.y))], counts=True)
    about = (
        f"the generated catalogue {name}: {size.train:,} training songs (the last tenth of them for validation) and "
        f"{size.test:,} test songs of {size.labels:,} artists, as counts of {size.words:,} words"
    )
    return PaperData(name, about, *split_generated_task(rows, task))


SOUNDS = DataOpener(open_sounds, "a folder of sounds with names, such as MagnaTagATune, spoken digits or tagged files")
SONGS = DataOpener(open_songs, f"{GENERATED}S, or a folder of sounds with artists, such as tagged files")


def _label_items(files: ItemSource, attributes: AttributeTable, rejects: Rejects) -> list[Item]:
    """Return the items with names, without names that every item has."""
    items = list(files)
    item_ids, labels = {item.id for item in items}, dict[str, list[str]]()
    for kind, pairs in attributes.pairs.items():
        counts = Counter(name for item_id, name in pairs if item_id in item_ids)
        for item_id, name in pairs:
            if counts[name] < len(items):
                labels.setdefault(item_id, []).append(f"{kind}{SEPARATOR}{name}")
    named_items = []
    for item in items:
        if item.id in labels:
            named_items.append(item._replace(labels=tuple(labels[item.id]), group=attributes.groups.get(item.id)))
        else:
            rejects.add(item.id, "sound without a name")
    return named_items


def _make_split(related: AttributeTable, seed: int) -> Callable[[FeatureTable], Split]:
    """Return a function that chooses the published sides, or random ones if there are none."""

    def choose(rows: FeatureTable) -> Split:
        if not _has_published_split(related):
            return split_rows(rows, "auto", 0.1, 0.1, seed)
        side = np.array([_SIDES.get(related.splits.get(name, ""), -1) for name in rows.ids])
        train, valid, test = (np.flatnonzero(side == number) for number in range(3))
        if not len(valid):
            train, valid = _hold_out_tenth(rows, train, seed)
        return Split(train, valid, test)

    return choose


def _hold_out_tenth(rows: FeatureTable, train: Int64, seed: int) -> tuple[Int64, Int64]:
    parts = split_rows(rows.take(train), "auto", 0.1, 0.0, seed)
    return train[parts.train], train[parts.valid]


def _has_published_split(related: AttributeTable) -> bool:
    return {0, 2} <= {_SIDES.get(side) for side in related.splits.values()}


def _format_split(related: AttributeTable, rows: FeatureTable, seed: int) -> str:
    by = "row" if rows.groups is None else "group"
    if not _has_published_split(related):
        return f"a tenth each for validation and test, by {by}, seed {seed}"
    if 1 in map(_SIDES.get, related.splits.values()):
        return "the published sides"
    return f"the published test side, and a tenth of the training side for validation, by {by}, seed {seed}"


def split_label_kinds(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the kind and the name of each label; the kind is "" unless all labels have the form "kind: name".

    Examples
    --------
    >>> split_label_kinds(["artist: Bach", "genre: fugue"])["genre: fugue"]
    ('genre', 'fugue')
    >>> split_label_kinds(["homem: barba", "barba"])["homem: barba"]
    ('', 'homem: barba')
    """
    has_kinds = all(SEPARATOR in label for label in labels)
    parts = (label.partition(SEPARATOR) for label in labels)
    return {
        label: (kind, name) if has_kinds else ("", label) for label, (kind, _, name) in zip(labels, parts, strict=True)
    }


def list_kind_columns(rows: FeatureTable) -> dict[str, Int64]:
    """Return the columns of the names of each kind.

    Raises
    ------
    InputError
        Labels that have no kind.
    """
    columns: dict[str, list[int]] = {}
    for number, label in enumerate(rows.label_names):
        kind, separator, _ = label.partition(SEPARATOR)
        require(bool(separator), f"the label {label!r} is of no kind; give sounds with names, or {GENERATED}S")
        columns.setdefault(kind, []).append(number)
    return {kind: np.array(numbers, np.int64) for kind, numbers in columns.items()}


def select_kind(data: PaperData, columns: Int64) -> PaperData:
    """Return the data with the names of one kind alone, and the rows that have one."""
    sides = {}
    for name in ("train", "valid", "test"):
        part = getattr(data, name).with_labels(columns)
        sides[name] = part.take(np.flatnonzero((part.Y > 0).getnnz(axis=1)))
    return replace(data, **sides)


WORDS = 2_000
SIZES = {
    "tiny": ImageTaskSize(800, 200, 40, WORDS),
    "S": ImageTaskSize(32_250, 7_750, 2_000, WORDS),
    "L": ImageTaskSize(771_901, 185_994, 26_972, WORDS),
}


def parse_song_size(name: str) -> ImageTaskSize:
    """Return the size of a catalogue.

    Raises
    ------
    InputError
        There is no such catalogue.

    Examples
    --------
    >>> parse_song_size("S").labels
    2000
    """
    if name not in SIZES:
        raise InputError(f"there is no catalogue of songs {name!r}; choose from {', '.join(SIZES)}")
    return SIZES[name]


def generate_artists_and_genres(size: ImageTaskSize, y: Any) -> tuple[Any, list[str]]:
    """Generate artists and genres of songs from their artists' numbers.

    Returns Y, csr_matrix (n, n_names) int8, and the names.
    """
    from scipy.sparse import csr_matrix

    parents = build_truth(size).parents
    genres, genre_of = np.unique(parents, return_inverse=True)
    columns = np.stack([y, size.labels + genre_of[y]], axis=1).ravel()
    names = [f"artist: artist {i}" for i in range(size.labels)] + [f"genre: genre {i}" for i in range(len(genres))]
    starts = np.arange(0, len(columns) + 1, 2)
    return csr_matrix((np.ones(len(columns), np.int8), columns, starts), (len(y), len(names))), names
