"""Features of the items of declared kinds; images, audio and documents are extracted first."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import Progress
from wsabie.core.validation import require
from wsabie.evaluation.splits import Split
from wsabie.features.base.extraction import fit_extractor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.table_builder import build_label_table
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.alignment import align_table
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.records import FeatureTable, ItemSource, ItemSubset, Source
from wsabie.io.space_declaration import KindDeclaration, RelationDeclaration, SpaceDeclaration
from wsabie.storage.rejects import Rejects
from wsabie.workflows.spaces.relation_holdout import DeclaredData, collect_declared_data
from wsabie.workflows.train.model_training import extract_more_rows, extract_training_rows


def open_declared_data(
    declared: SpaceDeclaration, relations: list[RelationDeclaration], rejects: Rejects
) -> tuple[DeclaredData, dict[str, Source]]:
    """Return the data that relations need, and their sources; only tables have features yet.

    Raises
    ------
    InputError
        As `collect_declared_data`.
    """
    sources: dict[str, Source] = {}

    def outline_rows(kind: KindDeclaration, source: Source) -> FeatureTable:
        sources[kind.name] = source
        return source if isinstance(source, FeatureTable) else build_label_table(source)

    return collect_declared_data(declared, relations, outline_rows, rejects), sources


class EntityFeatureExtractor:
    """Extract the features of the items of every kind; kinds that share a map share an extractor.

    Parameters
    ----------
    seed : int
    executor, progress, rejects
        As in `wsabie.workflows.train.model_training.train_model`.
    work : Path or None
        Folder that keeps extracted features until a space is saved.
    fitting_sides : mapping of str to Split or None
        By kind: the extractors are fitted on the training side of its items alone. None: on all items.

    Attributes
    ----------
    extractors : dict of str to FeatureExtractor
    fingerprints : dict of str to str or None
        Of the data of each kind.
    """

    def __init__(
        self,
        seed: int,
        executor: Executor,
        progress: Progress,
        rejects: Rejects,
        work: Path | None = None,
        taught_by: Mapping[str, Split] | None = None,
    ) -> None:
        self.seed, self.work, self.fitting_sides = seed, work, taught_by
        self.run = (executor, progress, rejects)
        self.extractors: dict[str, FeatureExtractor] = {}
        self.fingerprints: dict[str, str | None] = {}
        self.first_kinds: dict[str, tuple[str, FeatureTable]] = {}

    def rows(self, kind: KindDeclaration, source: Source) -> FeatureTable:
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
            require(not kind.description, f"[kinds.{kind.name}] says how to describe what is rows of features already")
        self.first_kinds[kind.mapped_by] = kind.name, rows
        return rows

    def extract(self, declared: SpaceDeclaration, data: DeclaredData, sources: Mapping[str, Source]) -> DeclaredData:
        """Return the data with the features of all items."""
        rows = {name: self.rows(declared.kinds[name], source) for name, source in sources.items()}
        return replace(data, rows={name: _regroup(table, data.rows[name]) for name, table in rows.items()})

    def extract_more(
        self, data: DeclaredData, sources: Mapping[str, Source], fitted_rows: Mapping[str, FeatureTable]
    ) -> DeclaredData:
        """Return other items of fitted kinds in the features of these kinds.

        Raises
        ------
        InputError
            Items of a kind that has no features.
        """
        rows = {}
        for name, source in sources.items():
            if name not in fitted_rows:
                raise InputError(f"things of the kind {name!r} are known by their names alone; leave its data out")
            rows[name] = _regroup(self._extract_as_fitted(name, source, fitted_rows[name]), data.rows[name])
        return replace(data, rows=rows)

    def _extract_items(self, kind: KindDeclaration, source: ItemSource) -> FeatureTable:
        if self.work is not None:
            work = self.work / "kinds" / f"{len(self.extractors)}"
            rows, self.extractors[kind.name] = extract_training_rows(
                source, kind.description, work, self.seed, *self.run
            )
            return rows
        options, (executor, progress, rejects) = dict(kind.description), self.run
        extractor = create_extractor(options.pop("describe", None), things=source.things, **options, seed=self.seed)
        fitting_items = (
            source if self.fitting_sides is None else ItemSubset(source, self.fitting_sides[kind.name].train)
        )
        terms = self.extractors[kind.name] = fit_extractor(extractor, fitting_items, executor, progress, rejects)
        return terms.transform(source, executor=executor, progress=progress, rejects=rejects)

    def _extract_with_shared_map(
        self, kind: KindDeclaration, source: Source, first_name: str, first_rows: FeatureTable
    ) -> FeatureTable:
        """Return the items in the features of the kind that had the map first."""
        place = f"[kinds.{kind.name}] shares the map of {first_name!r}"
        require(not kind.description, f"{place}, which says how things are described; leave it out here")
        if not isinstance(source, FeatureTable) and first_name not in self.extractors:
            raise InputError(f"{place}, which is made of rows, and {kind.data} holds {source.things}; give rows")
        if first_name in self.extractors:
            self.extractors[kind.name] = self.extractors[first_name]
        return self._extract_as_fitted(first_name, source, first_rows)

    def _extract_as_fitted(self, name: str, source: Source, fitted_rows: FeatureTable) -> FeatureTable:
        executor, progress, rejects = self.run
        rows = extract_more_rows(self.extractors.get(name), source, executor, progress, rejects)
        return align_table(rows, None, fitted_rows.feature_names, fitted_rows.X.shape[1], fitted_rows.dictionary).rows


def _regroup(rows: FeatureTable, outline: FeatureTable) -> FeatureTable:
    """Return the rows in the groups that were known before their features were extracted."""
    if outline.groups is None:
        return rows
    group = dict(zip(outline.ids, outline.groups, strict=True))
    return replace(rows, groups=[group[item_id] for item_id in rows.ids])
