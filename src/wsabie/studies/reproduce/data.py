"""What a record runs on: a name or a path becomes rows for training, validation and test."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.splits import Split
from wsabie.labels.hierarchy import Hierarchy
from wsabie.labels.matching import Matched
from wsabie.labels.similar import SharedParents
from wsabie.sources.fingerprint import fingerprint
from wsabie.sources.records import ItemSource, Rows, Source
from wsabie.storage.atomic import UnwritableError
from wsabie.storage.rejects import Rejects
from wsabie.studies.splitting import split_rows
from wsabie.studies.task import SiblingsOf

GENERATED = "visterm:"


class Related(NamedTuple):
    """Relations between labels, as pairs (object label, part label) by name.

    Attributes
    ----------
    told : list of pairs
        What training and validation are told.
    true : list of pairs
        What test quadruplets are of; those of `told` but where it is a lie (null setting).
    unseen : list of pairs
        Further ones that hold, and that training is not told of.
    """

    told: list[tuple[str, str]]
    true: list[tuple[str, str]]
    unseen: list[tuple[str, str]]


@dataclass(frozen=True)
class Data:
    """A collection in three parts.

    Attributes
    ----------
    name : str
    about : str
        What it is and how it was split, in a sentence or two.
    train, valid, test : Rows
    min_rows : int
        Labels with fewer training rows are left out.
    published_split : bool
        Test rows are those of the publication, which may repeat training rows.
    similar : callable or None
        Label names -> which of them are alike (`Similar`), where that is known.
    described : callable or None
        Names of descriptions (`wsabie.features.registry.describer`) -> the same pictures on the same sides, described
        so; None where rows are no pictures.
    couples : list of (id, id) or None
        Rows that belong together.
    artists : str or None
        Of names of several kinds the one that stands for artists; None: one that is called so.
    hierarchy : Hierarchy or None
        What is a kind of what, among the ids of rows.
    related : Related or None
        Relations between labels.
    source : ItemSource or None
        The pictures of the rows, by id.
    meaning : callable or None
        Labels -> what they mean (`Matched`).
    """

    name: str
    about: str
    train: Rows
    valid: Rows
    test: Rows
    min_rows: int = 1
    published_split: bool = False
    similar: SiblingsOf | None = None
    described: "Callable[[str], Data] | None" = None
    couples: "list[tuple[str, str]] | None" = field(default=None, repr=False)
    artists: str | None = None
    hierarchy: Hierarchy | None = field(default=None, repr=False)
    related: Related | None = field(default=None, repr=False)
    source: ItemSource | None = field(default=None, repr=False)
    meaning: Callable[[Sequence[str]], Matched] | None = field(default=None, repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and fingerprints, for JSON."""
        sides = {"train": self.train, "valid": self.valid, "test": self.test}
        return {
            "name": self.name,
            "about": self.about,
            "features": int(self.train.X.shape[1]),
            "labels": len(self.train.label_names),
            "rows": {name: len(rows) for name, rows in sides.items()},
            "fingerprint": {name: fingerprint(rows) for name, rows in sides.items()},
        }


def open_data(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> Data:
    """The data of a name or path.

    Parameters
    ----------
    name : str
        "sample" (the bundled pictures), "visterm:S" (a generated task, see `visterms.SIZES`; "visterm:web:200000"
        takes another number of training rows), or the path of a collection in any supported format. A folder that
        holds Mulan's `*train*.arff` and `*test*.arff` keeps the published test rows.
    seed : int
        Of the split.
    executor, progress, rejects
        As in `VisualTerms.transform`.

    Raises
    ------
    InputError
        There is no such task, or the collection cannot be read.

    Examples
    --------
    >>> open_data("visterm:huge")
    Traceback (most recent call last):
    wsabie.base.errors.InputError: there is no visual-word task 'huge'; choose from tiny, S, M, imagenet, web
    """
    rejects = Rejects() if rejects is None else rejects
    if name == "sample":
        return _sample(seed, executor, progress)
    if name.startswith(GENERATED):
        return _generated(name.removeprefix(GENERATED), progress)
    path = Path(name)
    sides = _published(path)
    if sides is not None:
        return _mulan(path, *sides, rejects)
    return _collection(path, seed, executor, progress, rejects)


def _sample(seed: int, executor: Executor | None, progress: Progress) -> Data:
    from wsabie.samples import sample_path
    from wsabie.sources.is_a import read_hierarchy
    from wsabie.studies.demo import (
        DESCRIPTION,
        MIN_PICTURES,
        N_TERMS,
        SIZE,
        described_sample,
        parts_of,
        sample_pictures,
    )

    parts, pictures = parts_of("all"), sample_pictures("all")
    _, rows, sides = described_sample(pictures, seed=seed, executor=executor, progress=progress)
    about = (
        f"the bundled sample collection ({' '.join(DESCRIPTION[part] for part in parts).removesuffix('.')}), as "
        f"visual terms learnt from the training side; a tenth each for validation and test, by group, seed {seed}"
    )
    kinds = read_hierarchy(*map(sample_path, parts))
    name = "sample" if len(parts) > 1 else parts[0]  # a wheel brings the emoji alone
    data = Data(name, about, *three_sides(rows, sides), min_rows=MIN_PICTURES, similar=kinds.similar)
    return describable(data, pictures, executor, progress, n_terms=N_TERMS, size=SIZE, seed=seed)


def three_sides(rows: Rows, sides: Split) -> tuple[Rows, Rows, Rows]:
    """The rows for training, validation and test."""
    return rows.take(sides.train), rows.take(sides.valid), rows.take(sides.test)


def describable(data: Data, source: ItemSource, executor: Executor | None, progress: Progress, **options: Any) -> Data:
    """The data with a way to describe their pictures anew; sides stay, what is learnt is learnt from the training."""
    side_of = {name: number for number, rows in enumerate((data.train, data.valid, data.test)) for name in rows.ids}

    def choose(rows: Rows) -> Split:
        at = np.array([side_of.get(name, -1) for name in rows.ids])
        return Split(*(np.flatnonzero(at == number) for number in range(3)))

    def described(named: str) -> Data:
        from wsabie.features.registry import describer
        from wsabie.studies.pictures import describe_split

        own = {n: value for n, value in options.items() if n != "n_terms" or "terms" in named.split(",")}
        how = describer(named, **own)
        known = Rejects()  # the first description has told of what cannot be read
        rows, sides = describe_split(source, how, choose, executor=executor, progress=progress, rejects=known)
        train, valid, test = three_sides(rows, sides)
        return replace(data, train=train, valid=valid, test=test, described=described)

    return replace(data, described=described)


def _generated(name: str, progress: Progress) -> Data:
    from scipy.sparse import csr_matrix

    from wsabie.studies.reproduce import visterms

    size = visterms.sized(name)
    with progress.stage("pictures as words", None, ""):
        task, parents = kept(name, size), visterms.world_of(size).parents
    names = [f"family {parent} label {y}" for y, parent in enumerate(parents)]
    one = np.ones(len(task.y), np.int8)
    Y = csr_matrix((one, task.y, np.arange(len(task.y) + 1)), shape=(len(task.y), task.n_labels))
    rows = Rows(task.X, Y, names, [f"picture {i}" for i in range(len(task.y))], counts=True)
    about = (
        f"the generated visual-word task {name}: {size.train:,} training rows (the last tenth of them for validation) "
        f"and {size.test:,} test rows over {visterms.N_WORDS:,} visual words, one of {size.labels:,} labels each, with "
        "the statistics of the first paper's ImageNet experiment"
    )
    return Data(f"{GENERATED}{name}", about, *generated_sides(rows, task), similar=_families)


def generated_sides(rows: Rows, task: Any) -> tuple[Rows, Rows, Rows]:
    """The rows of a generated task for training, validation and test."""
    cuts = (range(task.n_fit), range(task.n_fit, task.n_train), range(task.n_train, len(rows)))
    train, valid, test = (rows.take(np.arange(cut.start, cut.stop)) for cut in cuts)
    return train, valid, test


def _families(labels: Sequence[str]) -> SharedParents:
    """Labels of one family are siblings."""
    return Hierarchy((label, label.partition(" label ")[0]) for label in labels).similar(labels)


def kept(name: str, size: Any) -> Any:
    """A generated task, from the user's cache where it is there, and put there where that can be written."""
    from wsabie.studies.reproduce import visterms

    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wsabie" / "visterms"
    except RuntimeError:  # a user without a home
        return visterms.made(size)[0]
    file = folder / f"{name.replace(':', '-')}.npz"
    if file.exists():
        return visterms.read(file)
    task, _ = visterms.made(size)
    with suppress(UnwritableError):  # it is made anew next time
        visterms.save(task, file)
    return task


def _published(path: Path) -> tuple[Path, Path] | None:
    """Mulan's training and test file in a folder."""
    if not path.is_dir():
        return None
    found = [sorted(path.glob(f"*{side}*.arff")) for side in ("train", "test")]
    return (found[0][0], found[1][0]) if all(len(files) == 1 for files in found) else None


def _mulan(path: Path, train: Path, test: Path, rejects: Rejects) -> Data:
    """The published test rows; every tenth training row is validation."""
    from wsabie.sources.align import align
    from wsabie.sources.mulan import read_mulan

    rows = read_mulan(train, rejects=rejects)
    held_out = align(
        read_mulan(test, rejects=rejects), rows.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary
    )
    tenth = np.arange(len(rows)) % 10 == 9
    about = f"{train.name} and {test.name} with the published test rows; every tenth training row is validation"
    name = train.name.lower().partition("-")[0]
    return Data(
        name,
        about,
        rows.take(np.flatnonzero(~tenth)),
        rows.take(np.flatnonzero(tenth)),
        held_out.rows,
        published_split=True,
    )


def _collection(path: Path, seed: int, executor: Executor | None, progress: Progress, rejects: Rejects) -> Data:
    from wsabie.sources.open import open_source

    source = open_source(path, rejects=rejects, progress=progress)
    if not len(source):
        raise InputError(f"{path} holds nothing to use; look at the list that --rejects FILE writes")
    rows, sides = described_rows(
        source, lambda rows: split_rows(rows, "auto", 0.1, 0.1, seed), seed, executor, progress, rejects
    )
    by = "row" if rows.groups is None else "group"
    about = f"{path.name}, a tenth each for validation and test, by {by}, seed {seed}"
    data = Data(path.name, about, *three_sides(rows, sides))
    if isinstance(source, Rows) or source.things != "pictures":
        return data
    return describable(data, source, executor, progress, seed=seed)


def described_rows(
    source: Source,
    choose: Callable[[Rows], Any],
    seed: int,
    executor: Executor | None,
    progress: Progress,
    rejects: Rejects,
    named: str | None = None,
    **options: Any,
) -> tuple[Rows, Any]:
    """Rows and their sides; what is not rows yet is described by what the training side teaches."""
    if isinstance(source, Rows):
        return source, choose(source)
    from wsabie.features.registry import describer
    from wsabie.studies.pictures import describe_split

    terms = describer(named, things=source.things, seed=seed, **options)
    return describe_split(source, terms, choose, executor=executor, progress=progress, rejects=rejects)
