"""Objects and parts of one image as test data (Mesnil et al. 2014, section 6.4), from image regions."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from papers.data.object_part_data import warn_few_relations
from papers.data.synset_images import (
    Pairs,
    format_synset_label,
    list_source_labels,
    list_stated_parts,
    open_english_sample,
    relabel_with_synsets,
)
from papers.datasets import LabelRelations, PaperData, build_three_sides
from papers.record import DataOpener
from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.evaluation.splits import Split
from wsabie.io.records import FeatureTable, Item, ItemList
from wsabie.io.regions import RegionCrop
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_matching import LabelConcepts, match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_quadruplets import count_quadruplets
from wsabie.workflows.data_splits import split_rows

CAR_SYNSET = "n02958343"
"""Synset of the object in the images of car parts: a car."""
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
) -> PaperData:
    """Open the sample collection and car parts: training on both, the test on regions of held-out images.

    Parameters
    ----------
    name : str
        The folder of the car parts of Pasupa et al. (2021): annotations.json in `trainingset` and `testset`.
    seed, executor, progress, rejects
        As of `open_data`.
    knowledge, inherit
        As of `open_synset_images`.

    Raises
    ------
    InputError
        No such folder, or no WordNet.
    """
    from wsabie.features.extractors.visual_words import VisualWords
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
    from wsabie.workflows.demos import N_VISUAL_WORDS, SIZE
    from wsabie.workflows.report.report_input import extract_split

    if not knowledge:
        raise InputError("objects and their parts are joined by WordNet; name it with --knowledge FOLDER")
    knowledge_graph, rejects, folder = (
        read_knowledge_graph(*knowledge),
        Rejects() if rejects is None else rejects,
        Path(name),
    )
    collection = _join_collections(folder, knowledge_graph, rejects)
    extractor = VisualWords(n_words=N_VISUAL_WORDS, size=SIZE, seed=seed)
    rows, sides = extract_split(
        collection.pictures,
        extractor,
        lambda rows: _split_sides(rows, seed),
        executor=executor,
        progress=progress,
        rejects=rejects,
    )
    stated = [
        (format_synset_label(knowledge_graph, object_synset), format_synset_label(knowledge_graph, part_synset))
        for object_synset, part_synset in list_stated_parts(collection.matched, inherit=inherit, sample=True)
    ]
    training_relations, test_relations = _select_usable_pairs(stated, rows, sides.train), _collect_relations(collection)
    about = (
        f"the sample collection and {folder.name}: {len(sides.train):,} training pictures and regions of "
        f"{len(rows.label_names):,} synsets; training is told of {len(training_relations):,} part-of pairs of "
        "WordNet. The test: "
        f"{len(collection.couples):,} parts of {len(sides.test) - len(collection.couples):,} cars that were "
        "held out, of "
        f"{len(test_relations):,} relations, {len(test_relations - set(training_relations)):,} of which "
        f"training is not told of; seed {seed}"
    )
    related = LabelRelations(
        training_relations, sorted(test_relations), sorted(test_relations - set(training_relations))
    )
    sets = build_three_sides(rows, sides)
    return warn_few_relations(
        PaperData("car-parts", about, *sets, couples=collection.couples, related=related, source=collection.pictures)
    )


OPENING = DataOpener(
    open_regions,
    "the folder of the car parts of Pasupa et al. (2021), with --knowledge WORDNET",
    ("knowledge", "inherit"),
)


class _JoinedCollection(NamedTuple):
    """The sample and the regions as one collection, its concepts, and pairs of test regions by id."""

    pictures: ItemList
    matched: LabelConcepts
    couples: list[tuple[str, str]]


def _join_collections(folder: Path, knowledge_graph: KnowledgeGraph, rejects: Rejects) -> _JoinedCollection:
    from wsabie.io.vocabulary.knowledge_graphs import read_label_table
    from wsabie.samples import get_table_path

    meanings, classes = (read_label_table(get_table_path(table)) for table in ("label_concepts", "car_part_concepts"))
    sample = open_english_sample()
    concepts = match_labels(
        knowledge_graph, [*list_source_labels(sample, meanings), *sorted({*classes.values(), CAR_SYNSET})], meanings
    )
    label_of_class, car_label = (
        {label: format_synset_label(knowledge_graph, synset) for label, synset in classes.items()},
        format_synset_label(knowledge_graph, CAR_SYNSET),
    )
    train, test = (_read_regions(folder / side, label_of_class, car_label, rejects) for side in (_TRAINING, _TEST))
    couples = [(str(item.group), item.id) for item in test if isinstance(item.content, RegionCrop)]
    return _JoinedCollection(
        ItemList(folder, [*relabel_with_synsets(sample, concepts), *train, *test]), concepts, couples
    )


def _read_regions(folder: Path, label_of_class: dict[str, str], car_label: str, rejects: Rejects) -> list[Item]:
    """Return images and regions with synset labels; their ids begin with the folder's name."""
    from wsabie.io.data_sources import open_source
    from wsabie.io.formats.region_items import add_full_images

    file, prefix, items = folder / "annotations.json", f"{folder.name}/", list[Item]()
    source = open_source(file, rejects=rejects)
    if isinstance(source, FeatureTable):
        raise InputError(f"{file} holds rows; give COCO's JSON")
    for item in add_full_images(source, car_label):
        labels = tuple(label_of_class.get(label, label) for label in item.labels)
        if labels[0] == car_label or labels[0] in label_of_class.values():
            items.append(item._replace(id=prefix + item.id, labels=labels, group=f"{prefix}{item.group}"))
    return items


def _split_sides(rows: FeatureTable, seed: int) -> Split:
    """Return the published test regions, and a tenth of all other images for validation, by group."""
    is_test = np.array([name.startswith(f"{_TEST}/") for name in rows.ids])
    training_rows = np.flatnonzero(~is_test)
    parts = split_rows(rows.take(training_rows), "auto", 0.1, 0.0, seed)
    return Split(training_rows[parts.train], training_rows[parts.valid], np.flatnonzero(is_test))


def _select_usable_pairs(pairs: Pairs, rows: FeatureTable, side: Int64) -> Pairs:
    """Return the pairs that have quadruplets on a side."""
    label_ids = {label: y for y, label in enumerate(rows.label_names)}
    known_pairs = [pair for pair in pairs if all(end in label_ids for end in pair)]
    if not known_pairs:
        raise InputError("no part-of pair is between synsets with two pictures; give more of WordNet, or --inherit")
    ends = np.array([[label_ids[end] for end in pair] for pair in known_pairs])
    usable = count_quadruplets(rows.Y, ends, rows=side) > 0
    return [pair for pair, is_usable in zip(known_pairs, usable, strict=True) if is_usable]


def _collect_relations(collection: _JoinedCollection) -> set[tuple[str, str]]:
    """Return the labels of the couples."""
    labels = {item.id: item.labels[0] for item in collection.pictures}
    return {(labels[object_item], labels[part_item]) for object_item, part_item in collection.couples}
