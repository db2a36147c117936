"""Pictures of things beside regions of other pictures: objects and parts of the same picture to judge by ([P] 6.4)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.splits import Split
from wsabie.labels.matching import match_labels
from wsabie.labels.quadruplets import count_quadruplets
from wsabie.sources.records import Item, ItemList, Rows
from wsabie.sources.regions import Cutout
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data, Related, three_sides
from wsabie.studies.reproduce.parts_data import warned
from wsabie.studies.reproduce.parts_pictures import in_english, labels_of, named, stated_parts, with_synsets
from wsabie.studies.reproduce.record import Opening
from wsabie.studies.splitting import split_rows

WHOLE = "n02958343"
"""What the pictures of car parts show: a car."""
_TENTH = 10


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
    from wsabie.samples import table_path
    from wsabie.sources.knowledge import read_knowledge, read_label_table
    from wsabie.studies.demo import N_TERMS, SIZE
    from wsabie.studies.pictures import describe_split

    if not knowledge:
        raise InputError("objects and their parts are joined by WordNet; name it with --knowledge FOLDER")
    known, rejects = read_knowledge(*knowledge), Rejects() if rejects is None else rejects
    meanings, classes = (read_label_table(table_path(table)) for table in ("meanings", "car_parts"))
    sample = in_english()
    synsets = sorted({*classes.values(), WHOLE})
    matched = match_labels(known, [*labels_of(sample, meanings), *synsets], meanings)
    calls = {label: named(known, synset) for label, synset in classes.items()}
    train, couples = _regions(Path(name) / "trainingset", calls, named(known, WHOLE), "train/", rejects)
    test, couples = _regions(Path(name) / "testset", calls, named(known, WHOLE), "test/", rejects)
    pictures = ItemList(Path(name), [*with_synsets(sample, matched), *train, *test])

    def choose(rows: Rows) -> Split:
        return _sides(rows, seed)

    terms = VisualTerms(n_terms=N_TERMS, size=SIZE, seed=seed)
    rows, sides = describe_split(pictures, terms, choose, executor=executor, progress=progress, rejects=rejects)
    number = {label: y for y, label in enumerate(rows.label_names)}
    pairs = [(named(known, a), named(known, b)) for a, b in stated_parts(matched, inherit=inherit, sample=True)]
    pairs = [pair for pair in pairs if all(end in number for end in pair)]
    ends = np.array([[number[a], number[b]] for a, b in pairs])
    there = count_quadruplets(rows.Y, ends, rows=sides.train) > 0
    told = [pair for pair, usable in zip(pairs, there, strict=True) if usable]
    tested = set(_labels_of_couples(pictures, couples))
    about = (
        f"the sample collection and {Path(name).name}: {len(sides.train):,} training pictures, {len(train):,} of them "
        f"or of the validation side cars and their parts; {len(rows.label_names):,} synsets; training is told of "
        f"{len(told):,} part-of pairs of WordNet. The test: {len(couples):,} parts of {len(test) - len(couples):,} "
        f"cars that were held out, {len(tested):,} relations, {len(tested - set(told)):,} of which training is not "
        f"told of; seed {seed}"
    )
    related = Related(told, sorted(tested), sorted(tested - set(told)))
    data = Data("car-parts", about, *three_sides(rows, sides), couples=couples, related=related, source=pictures)
    return warned(data)


OPENING = Opening(
    open_regions,
    "the folder of the car parts of Pasupa et al. (2021), with --knowledge WORDNET",
    ("knowledge", "inherit"),
)


def _regions(
    folder: Path, calls: dict[str, str], whole: str, prefix: str, rejects: Rejects
) -> tuple[list[Item], list[tuple[str, str]]]:
    """Pictures and regions under labels of synsets, and the ids of each picture with each of its regions."""
    from wsabie.sources.open import open_source
    from wsabie.sources.region_parts import with_pictures

    file = folder / "annotations.json"
    source = open_source(file, rejects=rejects)
    if isinstance(source, Rows):
        raise InputError(f"{file} holds rows; give COCO's JSON")
    items = []
    for item in with_pictures(source, whole):
        labels = tuple(calls.get(label, label) for label in item.labels)
        if labels[0] == whole or labels[0] in calls.values():
            items.append(item._replace(id=prefix + item.id, labels=labels, group=f"{prefix}{item.group}"))
    couples = [(str(item.group), item.id) for item in items if isinstance(item.content, Cutout)]
    return items, couples


def _sides(rows: Rows, seed: int) -> Split:
    """Regions for the test as they were published, and of all other pictures a tenth for validation, by group."""
    test = np.array([name.startswith("test/") for name in rows.ids])
    others = np.flatnonzero(~test)
    parts = split_rows(rows.take(others), "auto", 1 / _TENTH, 0.0, seed)
    return Split(others[parts.train], others[parts.valid], np.flatnonzero(test))


def _labels_of_couples(source: ItemList, couples: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    labels = {item.id: item.labels[0] for item in source}
    return [(labels[one], labels[other]) for one, other in couples]
