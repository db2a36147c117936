"""Pictures of things beside regions of other pictures: objects and parts of the same picture to judge by ([P] 6.4)."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.splits import Split
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.matching import Matched, match_labels
from wsabie.labels.quadruplets import count_quadruplets
from wsabie.sources.records import Item, ItemList, Rows
from wsabie.sources.regions import Cutout
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data, Related, three_sides
from wsabie.studies.reproduce.parts_data import warned
from wsabie.studies.reproduce.parts_pictures import Pairs, in_english, labels_of, named, stated_parts, with_synsets
from wsabie.studies.reproduce.record import Opening
from wsabie.studies.splitting import split_rows

WHOLE = "n02958343"
"""What the pictures of car parts show: a car."""
_TRAINING, _TEST = "trainingset", "testset"


def open_regions(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
    knowledge: Sequence[Path] = (),
    inherit: bool = False,
) -> Data:
    """The sample collection and car parts: training on both, the test on regions of pictures that were held out.

    Parameters
    ----------
    name : str
        The folder of the car parts of Pasupa et al. (2021): annotations.json in `trainingset` and `testset`.
    seed, executor, progress, rejects
        As of `open_data`.
    knowledge, inherit
        As of `parts_pictures.pictures_with_parts`.

    Raises
    ------
    InputError
        No such folder, or no WordNet.
    """
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.sources.knowledge import read_knowledge
    from wsabie.studies.demo import N_TERMS, SIZE
    from wsabie.studies.pictures import describe_split

    if not knowledge:
        raise InputError("objects and their parts are joined by WordNet; name it with --knowledge FOLDER")
    known, rejects, folder = read_knowledge(*knowledge), Rejects() if rejects is None else rejects, Path(name)
    joined = _joined(folder, known, rejects)
    terms = VisualTerms(n_terms=N_TERMS, size=SIZE, seed=seed)
    rows, sides = describe_split(
        joined.pictures,
        terms,
        lambda rows: _sides(rows, seed),
        executor=executor,
        progress=progress,
        rejects=rejects,
    )
    stated = [(named(known, a), named(known, b)) for a, b in stated_parts(joined.matched, inherit=inherit, sample=True)]
    told, tested = _with_pictures(stated, rows, sides.train), _relations_of(joined)
    about = (
        f"the sample collection and {folder.name}: {len(sides.train):,} training pictures and regions of "
        f"{len(rows.label_names):,} synsets; training is told of {len(told):,} part-of pairs of WordNet. The test: "
        f"{len(joined.couples):,} parts of {len(sides.test) - len(joined.couples):,} cars that were held out, of "
        f"{len(tested):,} relations, {len(tested - set(told)):,} of which training is not told of; seed {seed}"
    )
    related = Related(told, sorted(tested), sorted(tested - set(told)))
    sets = three_sides(rows, sides)
    return warned(Data("car-parts", about, *sets, couples=joined.couples, related=related, source=joined.pictures))


OPENING = Opening(
    open_regions,
    "the folder of the car parts of Pasupa et al. (2021), with --knowledge WORDNET",
    ("knowledge", "inherit"),
)


class _Joined(NamedTuple):
    """The sample and the regions as one collection, what its labels mean, and couples of test regions by id."""

    pictures: ItemList
    matched: Matched
    couples: list[tuple[str, str]]


def _joined(folder: Path, known: Knowledge, rejects: Rejects) -> _Joined:
    from wsabie.samples import table_path
    from wsabie.sources.knowledge import read_label_table

    meanings, classes = (read_label_table(table_path(table)) for table in ("meanings", "car_parts"))
    sample = in_english()
    matched = match_labels(known, [*labels_of(sample, meanings), *sorted({*classes.values(), WHOLE})], meanings)
    calls, whole = {label: named(known, synset) for label, synset in classes.items()}, named(known, WHOLE)
    train, test = (_regions(folder / side, calls, whole, rejects) for side in (_TRAINING, _TEST))
    couples = [(str(item.group), item.id) for item in test if isinstance(item.content, Cutout)]
    return _Joined(ItemList(folder, [*with_synsets(sample, matched), *train, *test]), matched, couples)


def _regions(folder: Path, calls: dict[str, str], whole: str, rejects: Rejects) -> list[Item]:
    """Pictures and regions under labels of synsets; the name of the folder stands before their ids."""
    from wsabie.sources.open import open_source
    from wsabie.sources.region_parts import with_pictures

    file, prefix, items = folder / "annotations.json", f"{folder.name}/", list[Item]()
    source = open_source(file, rejects=rejects)
    if isinstance(source, Rows):
        raise InputError(f"{file} holds rows; give COCO's JSON")
    for item in with_pictures(source, whole):
        labels = tuple(calls.get(label, label) for label in item.labels)
        if labels[0] == whole or labels[0] in calls.values():
            items.append(item._replace(id=prefix + item.id, labels=labels, group=f"{prefix}{item.group}"))
    return items


def _sides(rows: Rows, seed: int) -> Split:
    """Regions for the test as they were published, and of all other pictures a tenth for validation, by group."""
    test = np.array([name.startswith(f"{_TEST}/") for name in rows.ids])
    others = np.flatnonzero(~test)
    parts = split_rows(rows.take(others), "auto", 0.1, 0.0, seed)
    return Split(others[parts.train], others[parts.valid], np.flatnonzero(test))


def _with_pictures(pairs: Pairs, rows: Rows, side: Int64) -> Pairs:
    """The pairs that have quadruplets on a side."""
    number = {label: y for y, label in enumerate(rows.label_names)}
    there = [pair for pair in pairs if all(end in number for end in pair)]
    if not there:
        raise InputError("no part-of pair is between synsets with two pictures; give more of WordNet, or --inherit")
    ends = np.array([[number[end] for end in pair] for pair in there])
    usable = count_quadruplets(rows.Y, ends, rows=side) > 0
    return [pair for pair, kept in zip(there, usable, strict=True) if kept]


def _relations_of(joined: _Joined) -> set[tuple[str, str]]:
    """The labels of the couples."""
    labels = {item.id: item.labels[0] for item in joined.pictures}
    return {(labels[one], labels[other]) for one, other in joined.couples}
