"""Data of a record: a name or a path becomes rows for training, validation and test."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.evaluation.splits import Split
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.records import FeatureTable, ItemSource, Source
from wsabie.storage.atomic_files import WriteError
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.concept_matching import LabelConcepts
from wsabie.vocabulary.label_similarity import SiblingSimilarity
from wsabie.workflows.compare.comparison_task import SiblingsOf
from wsabie.workflows.data_splits import split_rows

GENERATED = "visterm:"


class LabelRelations(NamedTuple):
    """Relations between labels, as pairs (object label, part label) by name.

    Attributes
    ----------
    training : list of pairs
        Relations of training and validation.
    true : list of pairs
        Relations of the test quadruplets; equal to `training` except in the null setting.
    unseen : list of pairs
        Further true relations that training lacks.
    """

    training: list[tuple[str, str]]
    true: list[tuple[str, str]]
    unseen: list[tuple[str, str]]


@dataclass(frozen=True)
class PaperData:
    """A collection in three parts.

    Attributes
    ----------
    name : str
    about : str
        One or two sentences about the data and their split.
    train, valid, test : FeatureTable
    min_rows : int
        Labels with fewer training rows are left out.
    published_split : bool
        Test rows are those of the publication, which may repeat training rows.
    similar : callable or None
        Label names -> their similarities (`LabelSimilarity`), where they are known.
    extract : callable or None
        Names of features (`wsabie.features.extractor_registry.create_extractor`) -> the same images on the same sides,
        with these features; None where rows are not images.
    couples : list of (id, id) or None
        Rows that belong together.
    artists : str or None
        Kind of the names that are artists; None: a kind with that name.
    hierarchy : Hierarchy or None
        Is-a relations among the ids of rows.
    related : LabelRelations or None
    source : ItemSource or None
        The images of the rows, by id.
    meaning : callable or None
        Labels -> their concepts (`LabelConcepts`).
    """

    name: str
    about: str
    train: FeatureTable
    valid: FeatureTable
    test: FeatureTable
    min_rows: int = 1
    published_split: bool = False
    similar: SiblingsOf | None = None
    extract: "Callable[..., PaperData] | None" = None
    couples: "list[tuple[str, str]] | None" = field(default=None, repr=False)
    artists: str | None = None
    hierarchy: Hierarchy | None = field(default=None, repr=False)
    related: LabelRelations | None = field(default=None, repr=False)
    source: ItemSource | None = field(default=None, repr=False)
    meaning: Callable[[Sequence[str]], LabelConcepts] | None = field(default=None, repr=False)

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
            "fingerprint": {name: compute_fingerprint(rows) for name, rows in sides.items()},
        }


def open_data(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
) -> PaperData:
    """Open the data of a name or path.

    Parameters
    ----------
    name : str
        "sample" (the bundled images), "visterm:S" (a generated task, see `synthetic_images.SIZES`;
        "visterm:web:200000" takes another number of training rows), or the path of a collection in any supported
        format. For a folder with Mulan's `*train*.arff` and `*test*.arff` the published test rows are the test.
    seed : int
        Of the split.
    executor, progress, rejects
        As in `FeatureExtractor.transform`.

    Raises
    ------
    InputError
        There is no such task, or the collection cannot be read.

    Examples
    --------
    >>> open_data("visterm:huge")
    Traceback (most recent call last):
    wsabie.core.errors.InputError: there is no visual-word task 'huge'; choose from tiny, S, M, imagenet, web
    """
    rejects = Rejects() if rejects is None else rejects
    if name == "sample":
        return _open_sample(seed, executor, progress)
    if name.startswith(GENERATED):
        return _open_generated(name.removeprefix(GENERATED), progress)
    path = Path(name)
    sides = _find_published_files(path)
    if sides is not None:
        return _read_mulan(path, *sides, rejects)
    return _open_collection(path, seed, executor, progress, rejects)


def _open_sample(seed: int, executor: Executor | None, progress: Progress) -> PaperData:
    from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
    from wsabie.samples import PARTS, get_sample_path
    from wsabie.workflows.demos import (
        DESCRIPTIONS,
        MIN_PICTURES,
        N_VISUAL_WORDS,
        SIZE,
        create_visual_words,
        extract_sample,
        open_sample_images,
    )

    pictures = open_sample_images("all")
    rows, sides = extract_sample(pictures, create_visual_words(seed), seed=seed, executor=executor, progress=progress)
    descriptions = " ".join(DESCRIPTIONS[part] for part in PARTS)
    about = (
        f"the bundled sample collection ({descriptions.removesuffix('.')}), as visual words learned from the training "
        f"side; a tenth each for validation and test, by group, seed {seed}"
    )
    kinds = read_hierarchy(*map(get_sample_path, PARTS))
    data = PaperData(
        "sample", about, *build_three_sides(rows, sides), min_rows=MIN_PICTURES, similar=kinds.find_siblings
    )
    return make_extractable(data, pictures, executor, progress, n_words=N_VISUAL_WORDS, size=SIZE, seed=seed)


def build_three_sides(rows: FeatureTable, sides: Split) -> tuple[FeatureTable, FeatureTable, FeatureTable]:
    """Return the rows for training, validation and test."""
    return rows.take(sides.train), rows.take(sides.valid), rows.take(sides.test)


def make_extractable(
    data: PaperData, source: ItemSource, executor: Executor | None, progress: Progress, **options: Any
) -> PaperData:
    """Add a function that extracts other features of the images on the same sides."""
    side_of = {name: number for number, rows in enumerate((data.train, data.valid, data.test)) for name in rows.ids}

    def choose(rows: FeatureTable) -> Split:
        side = np.array([side_of.get(name, -1) for name in rows.ids])
        return Split(*(np.flatnonzero(side == number) for number in range(3)))

    def extract(names: str, **changes: Any) -> PaperData:
        from wsabie.features.extractor_registry import create_extractor
        from wsabie.workflows.report.report_input import extract_split

        extractor_options = {
            n: value for n, value in options.items() if n != "n_words" or "visual-words" in names.split(",")
        }
        extractor = create_extractor(names, **extractor_options, **changes)
        known_rejects = Rejects()  # the first extraction has reported unreadable images
        rows, sides = extract_split(
            source, extractor, choose, executor=executor, progress=progress, rejects=known_rejects
        )
        train, valid, test = build_three_sides(rows, sides)
        return replace(data, train=train, valid=valid, test=test, extract=extract)

    return replace(data, extract=extract)


def _open_generated(name: str, progress: Progress) -> PaperData:
    from scipy.sparse import csr_matrix

    from papers import synthetic_images

    size = synthetic_images.parse_task_size(name)
    with progress.stage("pictures as words", None, ""):
        task, parents = load_cached_task(name, size), synthetic_images.build_truth(size).parents
    names = [f"family {parent} label {label_id}" for label_id, parent in enumerate(parents)]
    values = np.ones(len(task.y), np.int8)
    Y = csr_matrix((values, task.y, np.arange(len(task.y) + 1)), shape=(len(task.y), task.n_labels))
    rows = FeatureTable(task.X, Y, names, [f"picture {i}" for i in range(len(task.y))], counts=True)
    about = (
        f"the generated visual-word task {name}: {size.train:,} training rows (the last tenth of them for validation) "
        f"and {size.test:,} test rows over {synthetic_images.N_WORDS:,} visual words, one of {size.labels:,} labels "
        "each, with "
        "the statistics of the first paper's ImageNet experiment"
    )
    return PaperData(f"{GENERATED}{name}", about, *split_generated_task(rows, task), similar=_build_family_similarity)


def split_generated_task(rows: FeatureTable, task: Any) -> tuple[FeatureTable, FeatureTable, FeatureTable]:
    """Return the rows of a generated task for training, validation and test."""
    cuts = (range(task.n_fit), range(task.n_fit, task.n_train), range(task.n_train, len(rows)))
    train, valid, test = (rows.take(np.arange(cut.start, cut.stop)) for cut in cuts)
    return train, valid, test


def _build_family_similarity(labels: Sequence[str]) -> SiblingSimilarity:
    """Return the similarity that makes labels of one family siblings."""
    return Hierarchy((label, label.partition(" label ")[0]) for label in labels).find_siblings(labels)


def load_cached_task(name: str, size: Any) -> Any:
    """Load a generated task from the user's cache, or generate and cache it."""
    from papers import synthetic_images

    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wsabie" / "visterms"
    except RuntimeError:  # a user without a home
        return synthetic_images.generate_task(size)[0]
    file = folder / f"{name.replace(':', '-')}.npz"
    if file.exists():
        return synthetic_images.read_task(file)
    task, _ = synthetic_images.generate_task(size)
    with suppress(WriteError):  # the next run generates it again
        synthetic_images.save_task(task, file)
    return task


def _find_published_files(path: Path) -> tuple[Path, Path] | None:
    """Return Mulan's training and test file in a folder; None if there are none."""
    if not path.is_dir():
        return None
    files_by_side = [sorted(path.glob(f"*{side}*.arff")) for side in ("train", "test")]
    return (files_by_side[0][0], files_by_side[1][0]) if all(len(files) == 1 for files in files_by_side) else None


def _read_mulan(path: Path, train: Path, test: Path, rejects: Rejects) -> PaperData:
    """Read the published test rows; every tenth training row is validation."""
    from wsabie.io.alignment import align_table
    from wsabie.io.formats.mulan import read_mulan

    rows = read_mulan(train, rejects=rejects)
    held_out = align_table(
        read_mulan(test, rejects=rejects),
        rows.label_names,
        rows.feature_names,
        rows.X.shape[1],
        rows.extractor_fingerprint,
    )
    tenth = np.arange(len(rows)) % 10 == 9
    about = f"{train.name} and {test.name} with the published test rows; every tenth training row is validation"
    name = train.name.lower().partition("-")[0]
    return PaperData(
        name,
        about,
        rows.take(np.flatnonzero(~tenth)),
        rows.take(np.flatnonzero(tenth)),
        held_out.rows,
        published_split=True,
    )


def _open_collection(
    path: Path, seed: int, executor: Executor | None, progress: Progress, rejects: Rejects
) -> PaperData:
    from wsabie.io.data_sources import open_source

    source = open_source(path, rejects=rejects, progress=progress)
    if not len(source):
        raise InputError(f"{path} holds nothing to use; look at the list that --rejects FILE writes")
    rows, sides = extract_split_rows(
        source, lambda rows: split_rows(rows, "auto", 0.1, 0.1, seed), seed, executor, progress, rejects
    )
    by = "row" if rows.groups is None else "group"
    about = f"{path.name}, a tenth each for validation and test, by {by}, seed {seed}"
    data = PaperData(path.name, about, *build_three_sides(rows, sides))
    if isinstance(source, FeatureTable) or source.modality != "pictures":
        return data
    return make_extractable(data, source, executor, progress, seed=seed)


def extract_split_rows(
    source: Source,
    choose: Callable[[FeatureTable], Any],
    seed: int,
    executor: Executor | None,
    progress: Progress,
    rejects: Rejects,
    feature_names: str | None = None,
    **options: Any,
) -> tuple[FeatureTable, Any]:
    """Return rows and their sides; extractors are fitted on the training side."""
    if isinstance(source, FeatureTable):
        return source, choose(source)
    from wsabie.features.extractor_registry import create_extractor
    from wsabie.workflows.report.report_input import extract_split

    extractor = create_extractor(feature_names, modality=source.modality, seed=seed, **options)
    return extract_split(source, extractor, choose, executor=executor, progress=progress, rejects=rejects)
