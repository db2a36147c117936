"""From a declaration to a space: extract features, hold items out, train, save, evaluate."""

import logging
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import Progress
from wsabie.core.validation import require
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, Source
from wsabie.io.space_declaration import (
    KNOWN,
    KindDeclaration,
    RelationDeclaration,
    SpaceDeclaration,
    declaration_digest,
)
from wsabie.models.annotators.space_annotator import SpaceAnnotator
from wsabie.models.entity_space.relations import EntityKind, Relation, drop_unknown_pairs
from wsabie.models.entity_space.space import Space
from wsabie.storage.rejects import Rejects
from wsabie.training.epoch_stats import EpochStats
from wsabie.vocabulary.hierarchy import Hierarchy
from wsabie.workflows.spaces.entity_features import EntityFeatureExtractor
from wsabie.workflows.spaces.relation_holdout import (
    DeclaredData,
    RelationHoldout,
    build_entity_kind,
    build_relation,
    collect_declared_data,
    split_relations,
)
from wsabie.workflows.train.work_folder import find_work_folder, hold_work_folder

log = logging.getLogger("wsabie")
KEPT = r"kinds|checkpoint"
"""Names of the work files beside the space, until it is saved."""


@dataclass(frozen=True)
class SpaceRecipe:
    """Settings of training a space.

    Attributes
    ----------
    declared : SpaceDeclaration
    model : Path
        Folder that it is saved to.
    space : Space
        Not fitted yet.
    hold_out : float
        Share of the items with features, and of the pairs of items without, that chooses the epoch.
    only : tuple of str
        Relations to learn; empty: all.
    stop_on : str
        As of `Space.fit`.
    resume : bool
    """

    declared: SpaceDeclaration
    model: Path
    space: Space
    hold_out: float = 0.1
    only: tuple[str, ...] = ()
    stop_on: str = "mean"
    resume: bool = False

    @property
    def work(self) -> Path:
        """Folder of unfinished work."""
        return find_work_folder(self.model)


@dataclass(frozen=True)
class TrainedSpace:
    """A saved space: its facts and the figures of its epochs."""

    facts: dict[str, Any]
    history: list[EpochStats]


def train_space(
    recipe: SpaceRecipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
    on_epoch: Callable[[EpochStats], None] | None = None,
) -> TrainedSpace:
    """Train on the data that a file declares, and save the space with its feature extractors.

    Raises
    ------
    InputError
        Data that cannot be used, what `Space.fit` refuses, or another process that trains this space.
    """
    declared, seed = recipe.declared, recipe.space.seed
    relations = select_relations(declared, recipe.only)
    with hold_work_folder(recipe.work, resume=recipe.resume):
        extractor = EntityFeatureExtractor(seed, executor, progress, rejects, recipe.work)
        data = collect_declared_data(declared, relations, extractor.rows, rejects)
        holdout = split_relations(declared, relations, data, recipe.hold_out, seed).with_numbered_pairs()
        facts = collect_space_facts(recipe, relations, data, holdout, extractor)
        data = replace(data, couples={})  # pairs by name may take more memory than the space
        recipe.space.fit(
            holdout.learnt,
            validation=holdout.held_out,
            stop_on=recipe.stop_on,
            checkpoint=recipe.work / "checkpoint",
            resume=recipe.resume,
            progress=progress,
            on_epoch=on_epoch,
        )
        facts = {**facts, "skipped": len(rejects)}
        save_space(recipe.space, recipe.model, data, holdout, extractor, facts)
    return TrainedSpace(facts, recipe.space.history_)


def collect_space_facts(
    recipe: SpaceRecipe,
    relations: list[RelationDeclaration],
    data: DeclaredData,
    holdout: RelationHoldout,
    extractor: EntityFeatureExtractor,
) -> dict[str, Any]:
    """Return the facts of its training that a space is saved with."""
    return {
        "source": format_path(recipe.declared.path),
        "declaration": declaration_digest(recipe.declared, relations),
        "pairs": {relation.name: relation.n_pairs for relation in holdout.learnt},
        "held_out_pairs": {relation.name: relation.n_pairs for relation in holdout.held_out},
        "fingerprints": extractor.fingerprints,
        "pair_marks": compute_relation_marks(relations, data),
    }


def save_space(
    space: Space,
    model: Path,
    data: DeclaredData,
    holdout: RelationHoldout,
    extractor: EntityFeatureExtractor,
    facts: dict[str, Any],
) -> None:
    """Add the held-out items to the space, since they belong to the collection too, and save it."""
    for kind in holdout.aside:
        space.add(kind)
    columns = {
        name: {"feature_names": rows.feature_names, "dictionary": rows.dictionary} for name, rows in data.rows.items()
    }
    SpaceAnnotator(space, extractor.extractors, columns, facts).save(model)


def select_relations(declared: SpaceDeclaration, only: tuple[str, ...]) -> list[RelationDeclaration]:
    """Return the relations with these names, for training; all if no names are given.

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
    evaluation_relation = next((relation.name for relation in selected if relation.among is not None), None)
    if evaluation_relation is not None:
        raise InputError(
            f'{declared.path} [relations.{evaluation_relation}] says among = "{KNOWN}", which is for `wsabie '
            "evaluate`; give the "
            "declaration of training"
        )
    return selected


def evaluate_space(
    annotator: SpaceAnnotator,
    declared: SpaceDeclaration,
    ks: tuple[int, ...],
    *,
    hierarchy: Hierarchy | None = None,
    allow_overlap: bool = False,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> dict[str, Evaluation]:
    """Evaluate every relation on the items and pairs of another declaration.

    Raises
    ------
    InputError
        It has none of the relations, or the items of training (unless `allow_overlap`).
    """
    facts, relation_names = annotator.facts, [name for name, _, _ in annotator.space.relations_]
    marks = TrainingMarks(relation_names, facts.get("fingerprints", {}), facts.get("pair_marks", {}), allow_overlap)

    def rows_of(kind: KindDeclaration, source: Source) -> FeatureTable:
        marks.refuse_training_items(kind, source)
        return annotator.rows(kind.name, source, executor=executor, progress=progress, rejects=rejects).rows

    relations = marks.select_learned(declared)
    data = collect_declared_data(declared, relations, rows_of, rejects)
    evaluation_relations = select_evaluation_relations(declared, relations, data, marks)
    for relation in evaluation_relations:
        _warn_of_unknown_pairs(relation, annotator.space)
    return annotator.space.evaluate(evaluation_relations, ks, hierarchy=hierarchy)


@dataclass(frozen=True)
class TrainingMarks:
    """Marks of training data, which must not be evaluated on.

    Attributes
    ----------
    relations : list of str
    fingerprints : mapping of str to str or None
        Of the data of each kind.
    pair_marks : mapping of str to int
        Of the pairs of each relation.
    allow_overlap : bool
        Accept data of training.
    """

    relations: list[str]
    fingerprints: Mapping[str, str | None]
    pair_marks: Mapping[str, int]
    allow_overlap: bool = False

    def select_learned(self, declared: SpaceDeclaration) -> list[RelationDeclaration]:
        """Return the relations of a declaration that were learned; warn of others.

        Raises
        ------
        InputError
            There are none.
        """
        learned_relations = [relation for relation in declared.relations if relation.name in self.relations]
        require(
            bool(learned_relations),
            f"{declared.path} declares none of the relations that were learned: {', '.join(sorted(self.relations))}",
        )
        for relation in declared.relations:
            if relation.name not in self.relations:
                log.warning(
                    "%s: the space has learned no relation %r, so that it is not judged", declared.path, relation.name
                )
        return learned_relations

    def refuse_training_items(self, kind: KindDeclaration, source: Source) -> None:
        """Raise InputError if these are the items of training."""
        fingerprint = compute_fingerprint_or_none(source)
        require(
            self.allow_overlap or fingerprint is None or fingerprint != self.fingerprints.get(kind.name),
            f"{kind.data} is what the space was trained on; give other data, or add --allow-overlap",
        )


def select_evaluation_relations(
    declared: SpaceDeclaration, relations: list[RelationDeclaration], data: DeclaredData, marks: TrainingMarks
) -> list[Relation]:
    """Build the relations of a declaration for evaluation.

    Raises
    ------
    InputError
        Pairs of training.
    """
    for relation in relations:
        is_training_pairs = relation.pairs is not None and compute_pair_mark(
            data.couples[relation.name]
        ) == marks.pair_marks.get(relation.name)
        require(
            marks.allow_overlap or not is_training_pairs,
            f"the pairs of {relation.name!r} are those that the space was trained on; give others, or add "
            "--allow-overlap",
        )
    kinds = {name: build_entity_kind(declared.kinds[name], rows) for name, rows in data.rows.items()}
    return [
        build_relation(
            relation,
            data.couples[relation.name],
            kinds.get(relation.query, relation.query),
            relation.target if relation.among is not None else kinds.get(relation.target, relation.target),
        )
        for relation in relations
    ]


def _warn_of_unknown_pairs(relation: Relation, space: Space) -> None:
    """Warn of pairs that are left out because the space does not know an item in them."""
    names_of_ends = [
        end.names() if isinstance(end, EntityKind) and end.X is not None else space.known(name).things
        for end, name in ((relation.query, relation.query_kind), (relation.target, relation.target_kind))
    ]
    left_out = drop_unknown_pairs(relation, names_of_ends[0], names_of_ends[1])[1]
    if left_out:
        log.warning("%s: %s pairs are left out, the space does not know their things", relation.name, f"{left_out:,}")


def compute_relation_marks(relations: list[RelationDeclaration], data: DeclaredData) -> dict[str, int]:
    """Return the marks of the pairs of relations."""
    return {relation.name: compute_pair_mark(data.couples[relation.name]) for relation in relations}


def compute_pair_mark(couples: Iterable[tuple[str, str]]) -> int:
    """Return a checksum by which the same pairs are recognised in any order."""
    return sum(zlib.crc32(f"{query}\t{target}".encode()) for query, target in couples)


def apply_parameters(space: Space, declared: SpaceDeclaration, overrides: Mapping[str, Any]) -> Space:
    """Set the parameters of a declaration on a space; those of the command line win.

    Raises
    ------
    InputError
        There is no such parameter.
    """
    parameters = space.get_params()
    unknown = sorted(set(declared.parameters) - set(parameters))
    require(not unknown, f"{declared.path} [space] says {unknown[:1]}; the parameters are {', '.join(parameters)}")
    return space.set_params(**{**declared.parameters, **overrides})  # type: ignore[no-any-return]
