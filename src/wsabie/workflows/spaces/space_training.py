"""From a declaration to a space: extract features, hold items out, train or tune, save, evaluate."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wsabie.core.errors import InputError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.features.base.sampling import WorkContext
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, Source
from wsabie.io.space_declaration import KindDeclaration, SpaceDeclaration, compute_declaration_fingerprint
from wsabie.models.base import parameter_defaults
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.entity_space.relation_data import prepare_relation_data
from wsabie.models.entity_space.relations import EntityKind, Relation, drop_unknown_pairs
from wsabie.models.entity_space.space import Space
from wsabie.models.entity_space.space_annotator import SpaceAnnotator
from wsabie.storage.rejects import Rejects
from wsabie.training.epoch_stats import EpochStats
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.workflows.model_training import TrainingOutcome
from wsabie.workflows.spaces import declared_data
from wsabie.workflows.spaces.relation_holdout import RelationHoldout, build_entity_kind, build_relation, split_relations
from wsabie.workflows.tune import model_tuning, search_spaces
from wsabie.workflows.tune.trial_study import open_study
from wsabie.workflows.work_folder import find_work_folder, hold_work_folder

log = logging.getLogger("wsabie")
WORK_FILES = r"kinds|checkpoint"
"""Names of the work files beside the space, until it is saved."""
_CANDIDATES = "learning_rate epochs dim max_norm margin rank_weight max_sampled similarity"


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
    holdout_share : float
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
    holdout_share: float = 0.1
    only: tuple[str, ...] = ()
    stop_on: str = "mean"
    resume: bool = False

    @property
    def work(self) -> Path:
        """Folder of unfinished work."""
        return find_work_folder(self.model)


def train_space(
    recipe: SpaceRecipe, context: WorkContext, on_epoch: Callable[[EpochStats], None] | None = None
) -> TrainingOutcome:
    """Train on the data that a file declares, and save the space with its feature extractors.

    Raises
    ------
    InputError
        Data that cannot be used, what `Space.fit` refuses, or another process that trains this space.
    """
    declared, seed = declared_data.select_relations(recipe.declared, recipe.only), recipe.space.seed
    with hold_work_folder(recipe.work, resume=recipe.resume):
        extractor = declared_data.EntityFeatureExtractor(seed, context, recipe.work)
        data = declared_data.collect_declared_data(declared, extractor.extract_kind, context.rejects)
        split = split_relations(declared, data, recipe.holdout_share, seed).with_numbered_pairs()
        rows, pair_fingerprints = data.rows, data.pair_fingerprints
        del data  # its pairs by name may take more memory than the space
        recipe.space.fit(
            split.training,
            validation=split.holdout,
            stop_on=recipe.stop_on,
            checkpoint=recipe.work / "checkpoint",
            resume=recipe.resume,
            progress=context.progress,
            on_epoch=on_epoch,
        )
        facts = save_space(recipe, rows, pair_fingerprints, split, extractor)
    return TrainingOutcome(facts, recipe.space.history_)


def save_space(
    recipe: SpaceRecipe,
    rows: Mapping[str, FeatureTable],
    pair_fingerprints: Mapping[str, int],
    split: RelationHoldout,
    extractor: declared_data.EntityFeatureExtractor,
    **facts: JsonObject,
) -> JsonObject:
    """Save the fitted space, and return the facts of its training, to which `facts` are added.

    The held-out items belong to the data too, and are added first.
    """
    declared = declared_data.select_relations(recipe.declared, recipe.only)
    all_facts = {
        "source": format_path(declared.path),
        "declaration": compute_declaration_fingerprint(declared),
        "pairs": {relation.name: relation.n_pairs for relation in split.training},
        "holdout_pairs": {relation.name: relation.n_pairs for relation in split.holdout},
        "fingerprints": extractor.fingerprints,
        "pair_fingerprints": pair_fingerprints,
        "skipped": len(extractor.context.rejects),
        **facts,
    }
    for kind in split.holdout_kinds:
        recipe.space.add(kind)
    columns = {
        name: {"feature_names": data.feature_names, "extractor_fingerprint": data.extractor_fingerprint}
        for name, data in rows.items()
    }
    SpaceAnnotator(recipe.space, extractor.extractors, columns, all_facts).save(recipe.model)
    return all_facts


def evaluate_space(
    annotator: SpaceAnnotator,
    declared: SpaceDeclaration,
    ks: tuple[int, ...],
    context: WorkContext,
    *,
    hierarchy: Hierarchy | None = None,
    allow_overlap: bool = False,
) -> dict[str, Evaluation]:
    """Evaluate every relation on the items and pairs of another declaration.

    Raises
    ------
    InputError
        It has none of the relations, or the items of training (unless `allow_overlap`).
    """
    facts, relation_names = annotator.facts, [name for name, _, _ in annotator.space.relations_]
    fingerprints = facts.get("fingerprints", {}), facts.get("pair_fingerprints", {})
    training_data = TrainingFingerprints(relation_names, *fingerprints, allow_overlap)

    def rows_of(kind: KindDeclaration, source: Source) -> FeatureTable:
        return annotator.rows(kind.name, source, **context._asdict()).rows

    relations, _ = training_data.open_test_data(declared, rows_of, context.rejects)
    for relation in relations:
        _warn_of_unknown_pairs(relation, annotator.space)
    return annotator.space.evaluate(relations, ks, hierarchy=hierarchy)


@dataclass(frozen=True)
class TrainingFingerprints:
    """Fingerprints of training data, which must not be evaluated on.

    Attributes
    ----------
    relations : list of str
    fingerprints : mapping of str to str or None
        Fingerprints of the data of each kind.
    pair_fingerprints : mapping of str to int
        Checksums of the pairs of each relation.
    allow_overlap : bool
        Accept data of training.
    """

    relations: list[str]
    fingerprints: Mapping[str, str | None]
    pair_fingerprints: Mapping[str, int]
    allow_overlap: bool = False

    def open_test_data(
        self, declared: SpaceDeclaration, rows_of: declared_data.RowsOf, rejects: Rejects
    ) -> tuple[list[Relation], declared_data.DeclaredData]:
        """Open other data with the features of training; return the relations that were learned, and the data.

        Raises
        ------
        InputError
            The declaration has no such relation, or items or pairs of training.
        """

        def rows_of_other_items(kind: KindDeclaration, source: Source) -> FeatureTable:
            fingerprint = compute_fingerprint_or_none(source)
            if not self.allow_overlap and fingerprint is not None and fingerprint == self.fingerprints.get(kind.name):
                fact = f"{kind.data} is what the space was trained on"
                raise InputError(f"{fact}; give other data, or add `allow_overlap`")
            return rows_of(kind, source)

        declared = self._select_learned(declared)
        data = declared_data.collect_declared_data(declared, rows_of_other_items, rejects)
        return self._build_relations(declared, data), data

    def _select_learned(self, declared: SpaceDeclaration) -> SpaceDeclaration:
        """Return a declaration with the relations that were learned; warn of others."""
        learned_relations = [relation for relation in declared.relations if relation.name in self.relations]
        if not learned_relations:
            names = ", ".join(sorted(self.relations))
            raise InputError(f"{declared.path} declares none of the relations that were learned: {names}")
        for relation in declared.relations:
            if relation.name not in self.relations:
                message = "%s: the space has learned no relation %r, so that it is not judged"
                log.warning(message, declared.path, relation.name)
        return declared._replace(relations=learned_relations)

    def _build_relations(self, declared: SpaceDeclaration, data: declared_data.DeclaredData) -> list[Relation]:
        """Build the relations of a declaration for evaluation; refuse pairs of training."""
        for relation in declared.relations:
            fingerprint = self.pair_fingerprints.get(relation.name)
            is_other = relation.pairs is None or data.pair_fingerprints[relation.name] != fingerprint
            fact = f"the pairs of {relation.name!r} are those that the space was trained on"
            require(self.allow_overlap or is_other, f"{fact}; give others, or add `allow_overlap`")
        kinds = {name: build_entity_kind(declared.kinds[name], rows) for name, rows in data.rows.items()}
        built = []
        for relation in declared.relations:
            query = kinds.get(relation.query, relation.query)
            target = relation.target if relation.candidates is not None else kinds.get(relation.target, relation.target)
            built.append(build_relation(relation, data.pairs[relation.name], query, target))
        return built


def _warn_of_unknown_pairs(relation: Relation, space: Space) -> None:
    """Warn of pairs that are left out because the space does not know an item in them."""
    queries, targets = (
        end.names() if isinstance(end, EntityKind) and end.X is not None else space.find_entities(name).vocabulary
        for end, name in ((relation.query, relation.query_kind), (relation.target, relation.target_kind))
    )
    if n_dropped := drop_unknown_pairs(relation, queries, targets)[1]:
        message = "%s: %s pairs are left out, the space does not know their entities"
        log.warning(message, relation.name, f"{n_dropped:,}")


def apply_parameters(space: Space, declared: SpaceDeclaration, overrides: JsonObject) -> Space:
    """Set the parameters of a declaration on a space; `overrides` win.

    Raises
    ------
    InputError
        There is no such parameter.
    """
    parameters = space.get_params()
    unknown = sorted(set(declared.parameters) - set(parameters))
    require(not unknown, f"{declared.path} [space] says {unknown[:1]}; the parameters are {', '.join(parameters)}")
    return space.set_params(**{**declared.parameters, **overrides})  # type: ignore[no-any-return]


def build_space_search_space(
    declared: SpaceDeclaration, changes: search_spaces.ParameterValues
) -> search_spaces.ParameterSpace:
    """Build the search space of a declaration; its [space] values are fixed unless `changes` differ.

    Parameters
    ----------
    declared : SpaceDeclaration
    changes : mapping
        As of `build_search_space`.

    Raises
    ------
    InputError
        An unknown parameter, or values that it cannot take.
    """
    has_data = {
        tuple(declared.kinds[name].data is not None for name in (relation.query, relation.target))
        for relation in declared.relations
    }
    can_begin_at_ridge = (True, True) not in has_data and has_data != {(False, False)}
    names = _CANDIDATES + " negatives" * any(target for _, target in has_data) + " init" * can_begin_at_ridge
    integers = frozenset({"dim", "epochs", "max_sampled", "patience", "negatives"})
    auto = partial(_resolve_auto, "auto" if can_begin_at_ridge else "random")
    model = search_spaces.TunableModel("space", Space, search_spaces.select_dimensions(names), auto, integers)
    fixed = {name: value for name, value in declared.parameters.items() if name not in model.untuned}
    return search_spaces.build_model_search_space(model, {**fixed, **changes})


def _resolve_auto(init: str, shape: TrainingShape, parameters: search_spaces.ParameterValues) -> JsonObject:
    """Return the values of "auto"; `init` is the start that "auto" means for these relations."""
    init = init if parameters["init"] == "auto" else parameters["init"]
    parameters = {**parameters, "pair_weighting": "mean", "init": init}
    start = "ridge" if parameter_defaults.has_ridge_start(parameters) else "random"
    rate = parameter_defaults.default_embedding_rate(parameters, shape)
    epochs = parameter_defaults.default_epochs(shape)
    return {"learning_rate": rate, "epochs": epochs, "max_norm": parameter_defaults.MAX_NORM, "init": start}


def tune_space(plan: model_tuning.TuningPlan, recipe: SpaceRecipe, context: WorkContext) -> model_tuning.TuningResult:
    """Search, train the best setting again and save it; an interrupted search continues.

    Parameters
    ----------
    plan : TuningPlan
        Its search is that of `build_space_search_space`.
    recipe : SpaceRecipe
        `recipe.model` is the folder of the space; trials.jsonl and trials.csv are written beside it. Of its space only
        the seed and the threads are used.
    context : WorkContext

    Raises
    ------
    InputError
        Optuna is missing, data cannot be used, no held-out pair is left, the folder holds the trials of another search,
        or no trial finished.
    """
    seed, folder = recipe.space.seed, recipe.model.parent
    declared = declared_data.select_relations(recipe.declared, recipe.only)
    outlines = declared_data.open_declared_data(declared, context.rejects)
    fingerprints = {name: compute_fingerprint_or_none(source) for name, source in outlines.sources.items()}
    declaration = {"kinds or relations": compute_declaration_fingerprint(recipe.declared)}
    identity = plan.identity([fingerprints, outlines.pair_fingerprints], seed, recipe.holdout_share, **declaration)
    with open_study(folder / "trials.jsonl", identity) as study:
        extractor = declared_data.EntityFeatureExtractor(seed, context, recipe.work)
        data = extractor.extract(declared, outlines)
        split = split_relations(declared, data, recipe.holdout_share, seed)
        problem = "no held-out pair is of entities that training knows; hold out more, or give more pairs"
        require(bool(split.holdout), problem)
        n_pairs = prepare_relation_data(split.training).n_pairs
        shape = TrainingShape(n_pairs, n_pairs, 2**31 - 1)

        def fit(
            parameters: JsonObject, on_epoch: model_tuning.EpochCallback | None, progress: Progress = SILENT
        ) -> Space:
            space: Space = plan.search.model.build(**parameters, seed=seed, threads=recipe.space.threads)
            options: JsonObject = {"stop_on": recipe.stop_on, "progress": progress, "on_epoch": on_epoch}
            return space.fit(split.training, validation=split.holdout, **options)

        task = model_tuning.TrialTask(fit, None, seed, shape, plan)
        best = model_tuning.run_trial_search(study, task, folder, context)
        recipe = replace(recipe, space=fit(best.parameters, None, context.progress))
        tuning_facts = model_tuning.collect_tuning_facts(best, study.trials, plan)
        facts = save_space(recipe, data.rows, data.pair_fingerprints, split, extractor, tuning=tuning_facts)
    fingerprint_text = ", ".join(f"{name} {mark}" for name, mark in fingerprints.items())
    return model_tuning.TuningResult(plan, shape, study.trials, best, {**facts, "fingerprint": fingerprint_text})
