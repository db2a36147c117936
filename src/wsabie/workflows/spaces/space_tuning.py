"""Tuning of an entity space: trials on held-out pairs; the best setting is trained again and saved."""

from collections.abc import Mapping
from dataclasses import replace

from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.core.progress import SILENT, Progress
from wsabie.features.base.sampling import WorkContext
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.space_declaration import SpaceDeclaration, compute_declaration_digest
from wsabie.models.base.hyperparameters import MAX_NORM, TrainingShape, default_epochs, default_learning_rate
from wsabie.models.entity_space.relation_data import prepare_relation_data
from wsabie.models.entity_space.space import Space
from wsabie.workflows.spaces.declared_data import (
    DeclaredData,
    EntityFeatureExtractor,
    open_declared_data,
    select_relations,
)
from wsabie.workflows.spaces.relation_holdout import split_relations
from wsabie.workflows.spaces.space_training import SpaceRecipe, collect_space_facts, save_space
from wsabie.workflows.tune.model_tuning import EpochCallback, TrialTask, collect_tuning_facts, run_trial_search
from wsabie.workflows.tune.search_spaces import (
    ParameterSpace,
    ParameterValues,
    TunableModel,
    build_model_search_space,
    select_dimensions,
)
from wsabie.workflows.tune.trial_study import open_study
from wsabie.workflows.tune.tuning_results import TuningPlan, TuningResult

NAME = "space"
_CANDIDATES = "learning_rate epochs dim max_norm margin rank_weight max_sampled similarity"


def build_space_search_space(declared: SpaceDeclaration, changes: ParameterValues) -> ParameterSpace:
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
    has_target_data = any(declared.kinds[relation.target].data is not None for relation in declared.relations)
    candidates = select_dimensions(f"{_CANDIDATES} negatives" if has_target_data else _CANDIDATES)
    model = TunableModel(
        NAME, Space, candidates, _resolve_auto, frozenset({"dim", "epochs", "max_sampled", "patience", "negatives"})
    )
    fixed = {name: value for name, value in declared.parameters.items() if name not in model.untuned}
    return build_model_search_space(model, {**fixed, **changes})


def _resolve_auto(shape: TrainingShape, parameters: ParameterValues) -> JsonObject:
    return {
        "learning_rate": default_learning_rate(shape),
        "epochs": default_epochs(shape),
        "max_norm": MAX_NORM,
    }


def tune_space(plan: TuningPlan, recipe: SpaceRecipe, run: WorkContext) -> TuningResult:
    """Search, train the best setting again and save it; an interrupted search continues.

    Parameters
    ----------
    plan : TuningPlan
        Its search is that of `build_space_search_space`.
    recipe : SpaceRecipe
        `recipe.model` is the folder of the space; trials.jsonl and trials.csv are written beside it. Of its space only
        the seed and the threads are used.
    run : WorkContext

    Raises
    ------
    InputError
        Optuna is missing, data cannot be used, no held-out pair is left, the folder holds the trials of another search,
        or no trial finished.
    """
    declared, seed, folder = recipe.declared, recipe.space.seed, recipe.model.parent
    relations = select_relations(declared, recipe.only)
    outlines = open_declared_data(declared, relations, run.rejects)
    fingerprints = {name: compute_fingerprint_or_none(source) for name, source in outlines.sources.items()}
    with open_study(folder / "trials.jsonl", _identity(plan, recipe, outlines, fingerprints)) as study:
        extractor = EntityFeatureExtractor(seed, run, recipe.work)
        data = extractor.extract(declared, outlines)
        holdout = split_relations(declared, relations, data, recipe.hold_out, seed)
        if not holdout.held_out:
            raise InputError("no held-out pair is of things that training knows; hold out more, or give more pairs")
        n_pairs = prepare_relation_data(holdout.training).n_pairs
        shape = TrainingShape(n_pairs, n_pairs, 2**31 - 1)

        def fit(parameters: JsonObject, on_epoch: EpochCallback | None, progress: Progress = SILENT) -> Space:
            space: Space = plan.search.kind.build(**parameters, seed=seed, threads=recipe.space.threads)
            return space.fit(
                holdout.training,
                validation=holdout.held_out,
                stop_on=recipe.stop_on,
                progress=progress,
                on_epoch=on_epoch,
            )

        best = run_trial_search(study, TrialTask(fit, None, seed, shape, plan), folder, run)
        recipe = replace(recipe, space=fit(best.parameters, None, run.progress))
        facts = {
            **collect_space_facts(recipe, data, holdout, extractor.fingerprints),
            "skipped": len(run.rejects),
            "tuning": collect_tuning_facts(best, study.trials, plan),
        }
        save_space(recipe, data, holdout, extractor, facts)
    fingerprint_text = ", ".join(f"{name} {mark}" for name, mark in fingerprints.items())
    return TuningResult(plan, shape, study.trials, best, {**facts, "fingerprint": fingerprint_text}, None, None)


def _identity(
    plan: TuningPlan, recipe: SpaceRecipe, data: DeclaredData, fingerprints: Mapping[str, str | None]
) -> JsonObject:
    """Return the facts that must agree for trials to be comparable."""
    return {
        "data": [fingerprints, data.pair_marks],
        "metric": plan.metric,
        **plan.search.as_dict(),
        "seed": recipe.space.seed,
        "hold_out": recipe.hold_out,
        "kinds or relations": compute_declaration_digest(recipe.declared, recipe.declared.relations),
        "halving": plan.halving,
    }
