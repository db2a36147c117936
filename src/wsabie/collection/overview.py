"""Views of a collection: status, facets of items, details of a label, and completion of names."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, starmap
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, and_, func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.annotations.training_examples import MIN_ITEMS, MIN_LABELS, count_tagged
from wsabie.collection.db.damage import find_damage
from wsabie.collection.db.database import begin_read, begin_snapshot, group_pairs, select_in
from wsabie.collection.db.journal import JournalEntry, read_history
from wsabie.collection.db.tables import annotations, items, labels, merge_exclusions, models, suggestions, synonyms
from wsabie.collection.folder.collection import Collection
from wsabie.collection.folder.drafts import list_drafts
from wsabie.collection.labels import label_store
from wsabie.collection.labels.label_list import LabelSummary, build_label_query, make_label
from wsabie.collection.learning.suggestions import count_pending
from wsabie.collection.registry.model_registry import LoadedModel, find_usable_model
from wsabie.collection.registry.thresholds import PRECISIONS
from wsabie.collection.scan.roots import list_roots
from wsabie.collection.search.query_parsing import read_names
from wsabie.collection.search.text_search import find_nearest_labels
from wsabie.core.errors import InputError

MAX_CHILDREN = 500
"""Largest number of listed children, the most frequent."""

_SYNONYM_SHARE = 4  # one in so many places is reserved for synonyms
STATES = ("present", "missing", "unreadable")


@dataclass(frozen=True)
class LabelSynonym:
    """Other name of a label."""

    name: str
    language: str


@dataclass(frozen=True)
class PrecisionThreshold:
    """Lowest probability whose suggestions reach `precision`; None if there is none."""

    precision: float
    probability: float | None


@dataclass(frozen=True)
class LabelThreshold(PrecisionThreshold):
    """Threshold of a label, its own or that of all labels."""

    is_label_specific: bool


@dataclass(frozen=True)
class LabelEvaluation:
    """Evaluation of the model in use for one label on held-out items.

    Attributes
    ----------
    model : int
    is_trained : bool
        The model was trained on the label.
    suggestions, correct : int
        Number of suggestions, and of correct ones.
    thresholds : list of LabelThreshold
    """

    model: int
    is_trained: bool
    suggestions: int
    correct: int
    thresholds: list[LabelThreshold]


@dataclass(frozen=True)
class LabelDetails(LabelSummary):
    """Label with its names, relations and evaluation.

    Attributes
    ----------
    names : list of LabelSynonym
        Synonyms.
    ancestors : list of LabelCount
        Ancestors, nearest first.
    child_labels : list of LabelCount
        Children, most frequent first; 500 at most.
    merge_exclusions : list of LabelCount
        Labels excluded from merging with it.
    open_suggestions : int
        Number of undecided suggestions of the model in use.
    evaluation : LabelEvaluation or None
        None if no model opens.
    """

    names: list[LabelSynonym]
    ancestors: list[label_store.LabelCount]
    child_labels: list[label_store.LabelCount]
    merge_exclusions: list[label_store.LabelCount]
    open_suggestions: int
    evaluation: LabelEvaluation | None


def read_label_details(collection: Collection, label_id: int) -> LabelDetails:
    """Return a label by its id.

    Raises
    ------
    NotFoundError
        The label is missing or was merged.
    """
    loaded_model, _ = find_usable_model(collection)  # those that need a model report its absence
    with begin_read(collection.engine) as connection:
        label_store.read_label(connection, label_id)
        row = connection.execute(build_label_query(label_id)).one()
        s, c = synonyms.c, labels.c
        query = select(s.name, s.language).where(s.label_id == label_id).order_by(s.language, s.name)
        names = list(starmap(LabelSynonym, connection.execute(query)))
        is_child = (c.parent_id == label_id) & c.merged_into.is_(None)
        children = connection.scalars(select(c.id).where(is_child)).all()
        model, merge_targets = find_model_in_use(connection), label_store.read_merge_targets(connection)
        equivalent_ids = [label_id, *(merged_id for merged_id, target in merge_targets.items() if target == label_id)]
        child_labels = _read_labels(connection, children)
        return LabelDetails(
            **vars(make_label(row, [synonym.name for synonym in names], len(children))),
            names=names,
            ancestors=_read_labels(connection, label_store.list_ancestors(connection, label_id)),
            child_labels=sorted(child_labels, key=lambda label: (-label.items, label.name))[:MAX_CHILDREN],
            merge_exclusions=_read_labels(connection, _read_exclusions(connection, equivalent_ids, merge_targets)),
            open_suggestions=0 if model is None else count_pending(connection, model, label=label_id),
            evaluation=None if loaded_model is None else _evaluate_label(loaded_model, connection, equivalent_ids),
        )


def find_label_neighbours(
    collection: Collection, label_id: int, k: int = 10
) -> list[tuple[label_store.LabelCount, float]]:
    """Return the nearest labels with their cosines, nearest first; none if no model knows the label.

    Raises
    ------
    NotFoundError
        There is no such label.
    """
    with begin_snapshot(collection.engine) as connection:
        label_store.read_label(connection, label_id)
        cosines = find_nearest_labels(collection, label_id, k)
        return [(label, cosines[label.id]) for label in _read_labels(connection, list(cosines))]


def _read_labels(connection: Connection, label_ids: Sequence[int]) -> list[label_store.LabelCount]:
    """Return labels by their ids, in this order, without merged ones."""
    item_counts = dict(select_in(connection, label_store.ITEMS_BY_LABEL, annotations.c.label_id, label_ids))
    query = select(labels.c.id, labels.c.name, labels.c.language).where(labels.c.merged_into.is_(None))
    rows = select_in(connection, query, labels.c.id, label_ids)
    by_id = {
        label: label_store.LabelCount(label, name, language, item_counts.get(label, 0))
        for label, name, language in rows
    }
    return [by_id[label_id] for label_id in label_ids if label_id in by_id]


def _read_exclusions(connection: Connection, equivalent_ids: Sequence[int], merge_targets: dict[int, int]) -> list[int]:
    """Return the labels that must not be merged with any of these; merged ones give their targets."""
    c, excluded_ids = merge_exclusions.c, set[int]()
    for column in (c.label_a, c.label_b):
        for pair in select_in(connection, select(c.label_a, c.label_b), column, equivalent_ids):
            excluded_ids |= {merge_targets.get(label_id, label_id) for label_id in pair}
    return sorted(excluded_ids - {equivalent_ids[0]})


def _evaluate_label(model: LoadedModel, connection: Connection, equivalent_ids: list[int]) -> LabelEvaluation | None:
    label_id = equivalent_ids[0]
    try:
        suggestions = model.holdout_suggestions
        limits = [model.find_threshold(precision) for precision in PRECISIONS]
    except InputError:
        return None
    is_of_label = np.isin(suggestions.labels, equivalent_ids)
    is_trained = label_id in model.read_current_labels(connection).tolist()
    n_suggestions, n_correct = int(is_of_label.sum()), int(suggestions.right[is_of_label].sum())
    thresholds = [
        LabelThreshold(limit.precision, limit.by_label.get(label_id, limit.common), label_id in limit.by_label)
        for limit in limits
    ]
    return LabelEvaluation(model.id, is_trained, n_suggestions, n_correct, thresholds)


@dataclass(frozen=True)
class LabelCompletion(label_store.LabelCount):
    """Completed label; `synonym` is the one that matches (None: its name), `language` that of the match."""

    synonym: str | None


def complete_label(collection: Collection, start: str, k: int = 20) -> list[LabelCompletion]:
    """Return labels with a name that begins with `start`, in any language; main names come first.

    A quarter of the places is reserved for matching synonyms, even if many main names match.
    """
    prefix = start.casefold()
    with begin_read(collection.engine) as connection:
        names_index = read_names(connection)
        label_ids, languages = names_index.ids, names_index.languages
        matches = [name for name in label_ids if name.casefold().startswith(prefix)]
        matches.sort(key=lambda name: (len(name), name))
        own_matches = dict.fromkeys(label_ids[name] for name in matches if name not in names_index.synonyms)
        by_synonym: dict[int, str] = {}
        for name in matches:
            if label_ids[name] not in own_matches:
                by_synonym.setdefault(label_ids[name], name)
        n_synonyms = max(k - len(own_matches), min(k // _SYNONYM_SHARE, len(by_synonym)))
        shown_ids = [*islice(own_matches, k - n_synonyms), *islice(by_synonym, n_synonyms)]
        labels = [(label, by_synonym.get(label.id)) for label in _read_labels(connection, shown_ids)]
    return [
        LabelCompletion(label.id, label.name, languages.get(synonym or "", label.language), label.items, synonym)
        for label, synonym in labels
    ]


class RootStatus(NamedTuple):
    """Folder with its reachability, its items by state, and its source of tags."""

    folder: str
    reachable: bool
    items: dict[str, int]
    tags: str | None


class AnnotationCount(NamedTuple):
    """Number of annotations of one state and origin."""

    state: str
    origin: str
    annotations: int


class ActiveModel(NamedTuple):
    """Model whose suggestions are shown."""

    id: int
    created_at: str
    method: str
    folder: str


class TrainingReadiness(NamedTuple):
    """Amount of tags, and presence of sub-folders whose names are not used as tags and of labels.

    Attributes
    ----------
    tagged_items, tagged_labels : int
        As `count_tagged` returns them.
    folders, labels : bool
    """

    tagged_items: int
    tagged_labels: int
    folders: bool
    labels: bool

    @property
    def is_sufficient(self) -> bool:
        """True if there are enough tags to train a model."""
        return self.tagged_items >= MIN_ITEMS and self.tagged_labels >= MIN_LABELS


class CollectionStatus(NamedTuple):
    """Status of a collection.

    Attributes
    ----------
    modality : str or None
    items : dict
        Counts by state: "present", "missing", "unreadable".
    roots : tuple of RootStatus
    labels : int
    annotations : tuple of AnnotationCount
    model : ActiveModel or None
    suggestions : int
        Number of undecided suggestions of the model in use.
    last : tuple of JournalEntry
    damage : tuple of str or None
        Faults of the database; None: not searched.
    drafts : tuple of str
        Drafts that killed exports left among the pictures.
    """

    modality: str | None
    items: dict[str, int]
    roots: tuple[RootStatus, ...]
    labels: int
    annotations: tuple[AnnotationCount, ...]
    model: ActiveModel | None
    suggestions: int
    last: tuple[JournalEntry, ...]
    damage: tuple[str, ...] | None
    drafts: tuple[str, ...] = ()


def read_status(collection: Collection, *, check: bool = False) -> CollectionStatus:
    """Return the status of a collection; with `check` the whole database is searched for damage."""
    faults = tuple(find_damage(collection.engine)) if check else None
    root_list = list_roots(collection)
    with begin_read(collection.engine) as connection:
        query = select(items.c.root_id, items.c.state, func.count()).group_by(items.c.root_id, items.c.state)
        by_root = group_pairs((root, (state, count)) for root, state, count in connection.execute(query))
        is_unmerged = labels.c.merged_into.is_(None)
        n_labels = connection.scalar(select(func.count()).where(is_unmerged).select_from(labels)) or 0
        a, m = annotations.c, models.c
        query = select(a.state, a.origin, func.count()).group_by(a.state, a.origin).order_by(a.state, a.origin)
        tag_counts = tuple(starmap(AnnotationCount, connection.execute(query)))
        query = select(m.id, m.created_at, m.method, m.folder).where(m.in_use.is_(True))
        model = next(starmap(ActiveModel, connection.execute(query)), None)
        waiting = _count_waiting(connection, model.id).total() if model else 0
    counts = [entry for entries in by_root.values() for entry in entries]
    item_counts = {state: sum(n for other, n in counts if other == state) for state in STATES}
    roots = tuple(
        RootStatus(str(root.folder), root.folder.is_dir(), dict(by_root[root.id]), root.options.get("tags"))
        for root in root_list
    )
    modality = next((root.options["modality"] for root in root_list if "modality" in root.options), None)
    last = tuple(read_history(collection.engine, 5))
    drafts = tuple(map(str, list_drafts(collection.place)))
    return CollectionStatus(modality, item_counts, roots, n_labels, tag_counts, model, waiting, last, faults, drafts)


def check_readiness(collection: Collection, *, imported: bool = False) -> TrainingReadiness:
    """Return what a collection has for training its first model; `imported` is that of `count_tagged`."""
    with begin_read(collection.engine) as connection:
        tagged = count_tagged(connection, imported=imported)
        label = connection.execute(select(labels.c.id).limit(1)).first()
        nested_item = connection.execute(select(items.c.id).where(items.c.folder != "").limit(1)).first()
    uses_folder_names = any(root.options.get("tags") == "folders" for root in list_roots(collection))
    has_folders = nested_item is not None and not uses_folder_names
    return TrainingReadiness(*tagged, has_folders, label is not None)


def _count_waiting(connection: Connection, model: int) -> Counter[int]:
    """Return the number of undecided suggestions of each label."""
    s, a = suggestions.c, annotations.c
    suggested = select(s.label_id, func.count()).where(s.model_id == model).group_by(s.label_id)
    is_suggested = and_(s.model_id == model, s.item_id == a.item_id, s.label_id == a.label_id)
    annotation_query = select(a.label_id, func.count()).join_from(annotations, suggestions, is_suggested)
    counts = Counter[int](dict(connection.execute(suggested).all()))
    counts.subtract(dict(connection.execute(annotation_query.where(a.region == "").group_by(a.label_id)).all()))
    return counts


@dataclass(frozen=True)
class FolderFacet:
    """Folder of a root with the number of present items directly in it."""

    root: int
    folder: str
    items: int


@dataclass(frozen=True)
class LabelFacet:
    """Label with the number of items that accept, reject, or still await it."""

    id: int
    name: str
    accepted: int
    rejected: int
    open_suggestions: int


@dataclass(frozen=True)
class Facets:
    """Folders in order, and labels with the most accepted first."""

    folders: tuple[FolderFacet, ...]
    labels: tuple[LabelFacet, ...]


def read_facets(collection: Collection) -> Facets:
    """Return folders and labels with their counts; label counts include items in any state."""
    c, a = items.c, annotations.c
    folders = select(c.root_id, c.folder, func.count()).where(c.state == "present").group_by(c.root_id, c.folder)
    annotation_query = select(a.label_id, a.state, func.count()).group_by(a.label_id, a.state)
    with begin_read(collection.engine) as connection:
        folder_facets = tuple(starmap(FolderFacet, connection.execute(folders.order_by(c.root_id, c.folder))))
        counts = Counter({(row[0], row[1]): row[2] for row in connection.execute(annotation_query)})
        model = find_model_in_use(connection)
        waiting = Counter[int]() if model is None else _count_waiting(connection, model)
        names = label_store.read_label_names(connection)
    label_facets = [
        LabelFacet(label_id, name, counts[label_id, "accepted"], counts[label_id, "rejected"], waiting[label_id])
        for label_id, name in names.items()
    ]
    return Facets(folder_facets, tuple(sorted(label_facets, key=lambda label: (-label.accepted, label.name))))
