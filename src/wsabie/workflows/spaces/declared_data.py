"""Data of a declaration: pairs of every relation, and every kind's rows, features extracted first."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wsabie.core.errors import InputError, require
from wsabie.evaluation.splits import Split
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.item_features import build_label_table
from wsabie.features.base.sampling import WorkContext
from wsabie.io.alignment import align_table
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.io.datasets.item_attributes import AttributeTable
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.formats.id_labels import select_listed_ids
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, ItemSource, ItemSubset, Source
from wsabie.io.space_declaration import FITTED_CANDIDATES, KindDeclaration, RelationDeclaration, SpaceDeclaration
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.workflows.model_training import extract_more_rows, extract_training_rows

LABELS = "labels"
IdPairs = list[tuple[str, str]]
RowsOf = Callable[[KindDeclaration, Source], FeatureTable]
"""Returns the rows of a source of a kind, with their features."""


@dataclass(frozen=True)
class DeclaredData:
    """The data of a declaration.

    Attributes
    ----------
    rows : dict of str to FeatureTable
        Rows of the kinds with data.
    pairs : dict of str to list of (query id, target id)
        The pairs of every relation.
    sources : dict of str to Source
        Sources of the kinds with data.
    """

    rows: dict[str, FeatureTable]
    pairs: dict[str, IdPairs]
    sources: dict[str, Source] = field(default_factory=dict)

    @property
    def pair_fingerprints(self) -> dict[str, int]:
        """Checksums of the relations, by which the same pairs are recognised in any order."""
        return {name: sum(zlib.crc32("\t".join(pair).encode()) for pair in pairs) for name, pairs in self.pairs.items()}


def collect_declared_data(declared: SpaceDeclaration, rows_of: RowsOf, rejects: Rejects) -> DeclaredData:
    """Open all data that the relations need; `rows_of` extracts features of items without.

    Raises
    ------
    InputError
        Data that cannot be opened, or a relation without pairs.
    """
    kind_names = {name for relation in declared.relations for name in (relation.query, relation.target)}
    attributes = _read_attributes(declared, rejects)  # before features are extracted: a name may be wrong
    for relation in declared.relations:
        if relation.pairs is not None and not relation.pairs.exists():
            fact = f"there is no file or folder {format_path(relation.pairs)}"
            raise InputError(f"{fact}, the pairs of [relations.{relation.name}]")
    data = DeclaredData({}, {})
    for name, kind in declared.kinds.items():
        if name in kind_names and kind.data is not None:
            data.sources[name] = _open_source(kind, declared.relations, rejects)
            data.rows[name] = _add_groups(rows_of(kind, data.sources[name]), attributes.get(name))
    for relation in declared.relations:
        data.pairs[relation.name] = _collect_pairs(relation, data.rows, attributes, rejects)
    return data


def _open_source(kind: KindDeclaration, relations: list[RelationDeclaration], rejects: Rejects) -> Source:
    has_labels = any(r.names == LABELS and kind.name in (r.query, r.target) for r in relations)
    labels_from = "auto" if has_labels or kind.split is not None else "none"
    source = open_source(str(kind.data), labels_from=labels_from, split=kind.split, rejects=rejects)
    return source if kind.ids is None else select_listed_ids(source, kind.ids, rejects=rejects)


def _read_attributes(declared: SpaceDeclaration, rejects: Rejects) -> dict[str, AttributeTable]:
    """Return the attributes of items by kind, as far as the relations use them."""
    names_by_kind: dict[str, list[str]] = {}
    for relation in declared.relations:
        if relation.names is not None and relation.names != LABELS:
            (kind_name,) = {name for name in (relation.query, relation.target) if declared.kinds[name].data is not None}
            names_by_kind.setdefault(kind_name, []).append(relation.names)
    return {
        name: read_attributes(str(declared.kinds[name].data), kinds=list(dict.fromkeys(names)), rejects=rejects)
        for name, names in names_by_kind.items()
    }


def _add_groups(rows: FeatureTable, attributes: AttributeTable | None) -> FeatureTable:
    """Return the rows with the groups that their attribute table lists."""
    if attributes is None or rows.groups is not None or not attributes.groups:
        return rows
    return replace(rows, groups=[attributes.groups.get(name, name) for name in rows.ids])


def _collect_pairs(
    relation: RelationDeclaration,
    rows: dict[str, FeatureTable],
    attributes: Mapping[str, AttributeTable],
    rejects: Rejects,
) -> IdPairs:
    """Return the pairs of a relation; (item, name) where shared names make the pairs."""
    if relation.pairs is not None:
        kinds = (relation.query, relation.target if relation.candidates is None else None)
        ends = [
            {normalise_label_name(name): name for name in rows[kind].ids} if kind in rows else None for kind in kinds
        ]  # so that pairs share the strings of rows
        pairs = read_id_pairs(relation.pairs, rejects=rejects)
        return list(_select_pairs_with_data(pairs, ends, relation.pairs, rejects))
    by_query = relation.query in rows
    kind_name = relation.query if by_query else relation.target
    named_items = _list_named_items(rows[kind_name], str(relation.names), attributes.get(kind_name))
    return named_items if by_query else [(name, item_id) for item_id, name in named_items]


def _select_pairs_with_data(
    pairs: Iterable[tuple[str, str]], ends: list[dict[str, str] | None], path: Path, rejects: Rejects
) -> Iterator[tuple[str, str]]:
    """Yield the pairs whose items have rows, where their kind has any; reject the others."""
    # names are normalised as in a space, or one pair could stand in training and, spelt differently, in
    # validation
    for pair in pairs:
        names = [normalise_label_name(name) for name in pair]
        query, target = (name if ids is None else ids.get(name) for name, ids in zip(names, ends, strict=True))
        if query is not None and target is not None:
            yield query, target
        else:
            where = " ".join(map(format_path, [str(path), *names]))
            rejects.add(where, "pair of an entity without data", names[0 if query is None else 1])


def _list_named_items(rows: FeatureTable, names: str, attributes: AttributeTable | None) -> IdPairs:
    """Return (item, name) for all items with rows."""
    if attributes is None or names == LABELS:
        Y = rows.Y.tocoo()
        return [(rows.ids[i], rows.label_names[y]) for i, y, v in zip(Y.row, Y.col, Y.data, strict=True) if v > 0]
    item_ids = set(rows.ids)
    return [pair for pair in attributes.pairs[names] if pair[0] in item_ids]


def select_relations(declared: SpaceDeclaration, only: tuple[str, ...] = ()) -> SpaceDeclaration:
    """Return the declaration with the relations of these names, for training; all if no names are given.

    Raises
    ------
    InputError
        There is no such relation, or it is declared for evaluation only.
    """
    relations = {declared_relation.name: declared_relation for declared_relation in declared.relations}
    unknown = [name for name in only if name not in relations]
    if unknown:
        raise InputError(f"{declared.path} declares no relation {unknown[0]!r}; it declares {', '.join(relations)}")
    selected = [relations[name] for name in only] if only else declared.relations
    evaluation_relation = next((relation.name for relation in selected if relation.candidates is not None), None)
    if evaluation_relation is not None:
        fact = f'{declared.path} [relations.{evaluation_relation}] says candidates = "{FITTED_CANDIDATES}"'
        raise InputError(f"{fact}, which is for evaluation; give the declaration of training")
    return declared._replace(relations=selected)


def open_declared_data(declared: SpaceDeclaration, rejects: Rejects) -> DeclaredData:
    """Return the data that the relations need; only tables have features yet.

    Raises
    ------
    InputError
        As `collect_declared_data`.
    """

    def outline_rows(kind: KindDeclaration, source: Source) -> FeatureTable:
        return source if isinstance(source, FeatureTable) else build_label_table(source)

    return collect_declared_data(declared, outline_rows, rejects)


@dataclass
class EntityFeatureExtractor:
    """Extract the features of the items of every kind; kinds that share a map share an extractor.

    Parameters
    ----------
    seed : int
    context : WorkContext
    work : Path or None
        Folder that keeps extracted features until a space is saved.
    fitting_sides : mapping of str to Split or None
        By kind: the extractors are fitted on the training side of its items alone. None: on all items.

    Attributes
    ----------
    extractors : dict of str to FeatureExtractor
    fingerprints : dict of str to str or None
        Fingerprints of the data of each kind.
    """

    seed: int
    context: WorkContext
    work: Path | None = None
    fitting_sides: Mapping[str, Split] | None = None
    extractors: dict[str, FeatureExtractor] = field(default_factory=dict)
    fingerprints: dict[str, str | None] = field(default_factory=dict)
    first_kinds: dict[str, tuple[str, FeatureTable]] = field(default_factory=dict)

    def extract_kind(self, kind: KindDeclaration, source: Source) -> FeatureTable:
        """Return the items of a kind in the features of its map.

        Raises
        ------
        InputError
            Data whose features cannot be extracted so.
        """
        self.fingerprints[kind.name] = compute_fingerprint_or_none(source)
        if kind.mapped_by in self.first_kinds:
            return self._extract_with_shared_map(kind, source, *self.first_kinds[kind.mapped_by])
        rows = source if isinstance(source, FeatureTable) else self._extract_items(kind, source)
        if rows is source:
            problem = f"[kinds.{kind.name}] says how to extract features, and the data are rows of features already"
            require(not kind.feature_options, problem)
        self.first_kinds[kind.mapped_by] = kind.name, rows
        return rows

    def extract(self, declared: SpaceDeclaration, data: DeclaredData) -> DeclaredData:
        """Return the data with the features of all items."""
        rows = {name: self.extract_kind(declared.kinds[name], source) for name, source in data.sources.items()}
        return replace(data, rows={name: _regroup(table, data.rows[name]) for name, table in rows.items()})

    def extract_more(
        self, kind: KindDeclaration, source: Source, fitted_rows: Mapping[str, FeatureTable]
    ) -> FeatureTable:
        """Return other items of a fitted kind in the features of its fitted rows.

        Raises
        ------
        InputError
            Items of a kind that has no features.
        """
        name = kind.name
        require(name in fitted_rows, f"entities of the kind {name!r} are known by names alone; leave its data out")
        return self._extract_as_fitted(name, source, fitted_rows[name])

    def _extract_items(self, kind: KindDeclaration, source: ItemSource) -> FeatureTable:
        work = None if self.work is None else self.work / "kinds" / f"{len(self.extractors)}"
        sides = self.fitting_sides
        fitting_items = None if sides is None else ItemSubset(source, sides[kind.name].train)
        settings = kind.feature_options, work, self.seed, self.context, fitting_items
        rows, self.extractors[kind.name] = extract_training_rows(source, *settings)
        return rows

    def _extract_with_shared_map(
        self, kind: KindDeclaration, source: Source, first_name: str, first_rows: FeatureTable
    ) -> FeatureTable:
        """Return the items in the features of the kind that had the map first."""
        fact = f"[kinds.{kind.name}] shares the map of {first_name!r}"
        require(not kind.feature_options, f"{fact}, which says how features are extracted; leave it out here")
        if not isinstance(source, FeatureTable) and first_name not in self.extractors:
            raise InputError(f"{fact}, which is made of rows, and {kind.data} holds {source.modality}; give rows")
        if first_name in self.extractors:
            self.extractors[kind.name] = self.extractors[first_name]
        return self._extract_as_fitted(first_name, source, first_rows)

    def _extract_as_fitted(self, name: str, source: Source, fitted_rows: FeatureTable) -> FeatureTable:
        rows = extract_more_rows(self.extractors.get(name), source, self.context)
        width, digest = fitted_rows.X.shape[1], fitted_rows.extractor_fingerprint
        return align_table(rows, None, fitted_rows.feature_names, width, digest).rows


def _regroup(rows: FeatureTable, outline: FeatureTable) -> FeatureTable:
    """Return the rows in the groups that were known before their features were extracted."""
    if outline.groups is None:
        return rows
    group = dict(zip(outline.ids, outline.groups, strict=True))
    return replace(rows, groups=[group[item_id] for item_id in rows.ids])
