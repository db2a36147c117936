"""What the music tables run on: sounds with names of several kinds, or a generated catalogue of songs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.evaluation.splits import Split
from wsabie.sources.records import Item, ItemList, ItemSource, Rows
from wsabie.sources.related import Related
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data, describable, described_rows, generated_sides, kept, three_sides
from wsabie.studies.reproduce.record import Opening
from wsabie.studies.splitting import split_rows

GENERATED = "songs:"
SEPARATOR = ": "
"""Between a kind and a name, so that equal names of two kinds stay two."""
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
) -> Data:
    """Sounds of a folder, with the names of all kinds as labels, as "kind: name"; a name that all have is none.

    The sides are those of the published split where there is one, with a tenth of the training side for validation.

    Parameters
    ----------
    name : str
        A folder that `wsabie.sources.relations.relations_of` reads. A column of labels counts only where there are no
        other kinds.
    seed, executor, progress, rejects
        As of `open_data`.

    Raises
    ------
    InputError
        No folder, no sounds, or no names.
    """
    from wsabie.sources.open import open_source
    from wsabie.sources.relations import relations_of

    path, rejects = Path(name), Rejects() if rejects is None else rejects
    files = open_source(path, labels_from="none", rejects=rejects)
    if isinstance(files, Rows) or not path.is_dir() or files.things != "sounds":
        raise InputError(
            f"{shown(path)} holds no sounds; give a folder of sounds that have names (see docs/sources.md)"
        )
    related = relations_of(path)
    kinds = [kind for kind in related.pairs if kind not in _OF_ALL] or list(related.pairs)
    source = ItemList(path, _named(files, related.of_kinds(kinds), rejects), "sounds")
    require(len(source) > 0, f"no sound in {shown(path)} has a name of any kind; name some, or give another folder")
    rows, sides = described_rows(source, _sides(related, seed), seed, executor, progress, rejects)
    for what, side in (("training", sides.train), ("validation", sides.valid), ("test", sides.test)):
        require(len(side) > 0, f"no sound of {shown(path)} is left for {what}; give more sounds")
    told = ", ".join(kind for kind in kinds if any(name.startswith(f"{kind}{SEPARATOR}") for name in rows.label_names))
    about = f"{path.name}, with the names of the kinds {told}; {_how_split(related, rows, seed)}"
    return describable(Data(path.name, about, *three_sides(rows, sides)), source, executor, progress, seed=seed)


def open_songs(name: str, *, progress: Progress = SILENT, **options: object) -> Data:
    """A generated catalogue, `songs:S`, or what `open_sounds` opens."""
    if not name.startswith(GENERATED):
        return open_sounds(name, progress=progress, **options)  # type: ignore[arg-type]
    from wsabie.studies.reproduce import songs

    size = songs.sized(name.removeprefix(GENERATED))
    with progress.stage("songs as words", None, ""):
        task = kept(name, size)
        Y, names = songs.artists_and_genres(size, task.y)
    rows = Rows(task.X, Y, names, [f"song {i}" for i in range(len(task.y))], counts=True)
    about = (
        f"the generated catalogue {name}: {size.train:,} training songs (the last tenth of them for validation) and "
        f"{size.test:,} test songs of {size.labels:,} artists, as counts of {size.words:,} words"
    )
    return Data(name, about, *generated_sides(rows, task))


SOUNDS = Opening(open_sounds, "a folder of sounds with names, such as MagnaTagATune, spoken digits or tagged files")
SONGS = Opening(open_songs, f"{GENERATED}S, or a folder of sounds with artists, such as tagged files")


def _named(files: ItemSource, related: Related, rejects: Rejects) -> list[Item]:
    """The sounds that have names, with all of them but those that every sound has, which say nothing."""
    items = list(files)
    here, labels = {item.id for item in items}, dict[str, list[str]]()
    for kind, pairs in related.pairs.items():
        counts = Counter(name for thing, name in pairs if thing in here)
        for thing, name in pairs:
            if counts[name] < len(items):
                labels.setdefault(thing, []).append(f"{kind}{SEPARATOR}{name}")
    found = []
    for item in items:
        if item.id in labels:
            found.append(item._replace(labels=tuple(labels[item.id]), group=related.groups.get(item.id)))
        else:
            rejects.add(item.id, "sound without a name")
    return found


def _sides(related: Related, seed: int) -> Callable[[Rows], Split]:
    """The published sides, a tenth of the training side for validation where none is published; or a tenth each."""

    def choose(rows: Rows) -> Split:
        if not _published(related):
            return split_rows(rows, "auto", 0.1, 0.1, seed)
        side = np.array([_SIDES.get(related.splits.get(name, ""), -1) for name in rows.ids])
        train, valid, test = (np.flatnonzero(side == number) for number in range(3))
        if not len(valid):
            train, valid = _tenth(rows, train, seed)
        return Split(train, valid, test)

    return choose


def _tenth(rows: Rows, train: Int64, seed: int) -> tuple[Int64, Int64]:
    parts = split_rows(rows.take(train), "auto", 0.1, 0.0, seed)
    return train[parts.train], train[parts.valid]


def _published(related: Related) -> bool:
    return {0, 2} <= {_SIDES.get(side) for side in related.splits.values()}


def _how_split(related: Related, rows: Rows, seed: int) -> str:
    by = "row" if rows.groups is None else "group"
    if not _published(related):
        return f"a tenth each for validation and test, by {by}, seed {seed}"
    if 1 in map(_SIDES.get, related.splits.values()):
        return "the published sides"
    return f"the published test side, and a tenth of the training side for validation, by {by}, seed {seed}"


def kinds_in(rows: Rows) -> dict[str, Int64]:
    """The columns of the names of each kind.

    Raises
    ------
    InputError
        Labels that have no kind.
    """
    found: dict[str, list[int]] = {}
    for number, label in enumerate(rows.label_names):
        kind, separator, _ = label.partition(SEPARATOR)
        require(bool(separator), f"the label {label!r} is of no kind; give sounds with names, or {GENERATED}S")
        found.setdefault(kind, []).append(number)
    return {kind: np.array(numbers, np.int64) for kind, numbers in found.items()}


def of_kind(data: Data, columns: Int64) -> Data:
    """The same with the names of one kind alone, and the rows that have one."""
    sides = {}
    for name in ("train", "valid", "test"):
        part = getattr(data, name).with_labels(columns)
        sides[name] = part.take(np.flatnonzero((part.Y > 0).getnnz(axis=1)))
    return replace(data, **sides)
