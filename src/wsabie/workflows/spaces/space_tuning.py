"""Tuning of an entity space: trials on held-out pairs; the best setting is trained again and saved."""

from collections.abc import Callable, Mapping
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.json_conversion import to_json_value
from wsabie.core.progress import SILENT, Progress
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.space_declaration import SpaceDeclaration
from wsabie.models.base import auto_defaults
from wsabie.models.base.auto_defaults import TrainingShape
from wsabie.models.entity_space.relation_data import prepare_relation_data
from wsabie.models.entity_space.space import Space
from wsabie.storage.rejects import Rejects
from wsabie.training.epoch_stats import EpochStats
from wsabie.workflows.spaces.entity_features import EntityFeatureExtractor, open_declared_data
from wsabie.workflows.spaces.relation_holdout import DeclaredData, RelationHoldout, split_relations
from wsabie.workflows.spaces.space_training import (
    SpaceRecipe,
    collect_space_facts,
    compute_pair_mark,
    save_space,
    select_relations,
)
from wsabie.workflows.tune.model_tuning import collect_tuning_facts, run_trial_search
from wsabie.workflows.tune.search_spaces import (
    ChoiceParameter,
    ParameterSpace,
    RangeParameter,
    TunableModel,
    build_model_search_space,
)
from wsabie.workflows.tune.trial_journal import open_journal
from wsabie.workflows.tune.trial_proposals import require_optuna
from wsabie.workflows.tune.trials import TrialTraining
from wsabie.workflows.tune.tuning_results import TuningPlan, TuningResult

NAME = "space"
_CANDIDATES: dict[str, ChoiceParameter | RangeParameter] = {
    "learning_rate": RangeParameter(0.2, 4.0, log=True, relative=True),
    "epochs": RangeParameter(0.5, 2.0, log=True, relative=True),
    "dim": ChoiceParameter((50, 100, 150, 200)),
    "max_norm": RangeParameter(1.0, 3.0),
    "margin": RangeParameter(0.3, 1.5),
    "rank_weight": ChoiceParameter(("precision", "top1", "mean_rank")),
    "max_trials": ChoiceParameter((100, 300, "auto")),
    "similarity": ChoiceParameter(("dot", "cosine", "euclidean")),
}
_NEGATIVES = ChoiceParameter((0, 64, 256, 1024))


def build_space_search_space(declared: SpaceDeclaration, changes: Mapping[str, Any]) -> ParameterSpace:
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
    candidates = {**_CANDIDATES, "negatives": _NEGATIVES} if has_target_data else _CANDIDATES
    model = TunableModel(
        NAME, Space, candidates, _resolve_auto, frozenset({"dim", "epochs", "max_trials", "patience", "negatives"})
    )
    fixed = {name: value for name, value in declared.parameters.items() if name not in model.untuned}
    return build_model_search_space(model, {**fixed, **changes})


def _resolve_auto(shape: TrainingShape, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "learning_rate": auto_defaults.default_learning_rate(shape),
        "epochs": auto_defaults.default_epochs(shape),
        "max_norm": auto_defaults.MAX_NORM,
    }


def tune_space(
    plan: TuningPlan, recipe: SpaceRecipe, *, executor: Executor, progress: Progress, rejects: Rejects
) -> TuningResult:
    """Search, train the best setting again and save it; an interrupted search continues.

    Parameters
    ----------
    plan : TuningPlan
        Its search is that of `build_space_search_space`.
    recipe : SpaceRecipe
        `recipe.model` is the folder of the space; trials.jsonl and trials.csv are written beside it. Of its space only
        the seed and the threads are used.
    executor, progress, rejects
        As in `train_space`.

    Raises
    ------
    InputError
        Optuna is missing, data cannot be used, no held-out pair is left, the folder holds the trials of another search,
        or no trial finished.
    """
    require_optuna()
    declared, seed, folder = recipe.declared, recipe.space.seed, recipe.model.parent
    relations = select_relations(declared, recipe.only)
    outlines, sources = open_declared_data(declared, relations, rejects)
    fingerprints = {name: compute_fingerprint_or_none(source) for name, source in sources.items()}
    with open_journal(folder / "trials.jsonl", _identity(plan, recipe, outlines, fingerprints)) as log:
        extractor = EntityFeatureExtractor(seed, executor, progress, rejects, recipe.work)
        data = extractor.extract(declared, outlines, sources)
        holdout = split_relations(declared, relations, data, recipe.hold_out, seed)
        if not holdout.held_out:
            raise InputError("no held-out pair is of things that training knows; hold out more, or give more pairs")
        n_pairs = prepare_relation_data(holdout.learnt).n_pairs
        shape = TrainingShape(n_pairs, n_pairs, 2**31 - 1)
        fit = _make_fit(plan, recipe, holdout)
        best = run_trial_search(
            log, TrialTraining(fit, _best_validation_figure, seed), shape, plan, folder, executor, progress
        )
        space = fit(best.parameters, None, progress)
        facts = {
            **collect_space_facts(recipe, relations, data, holdout, extractor),
            "skipped": len(rejects),
            "tuning": collect_tuning_facts(best, log.trials, plan),
        }
        save_space(space, recipe.model, data, holdout, extractor, facts)
    fingerprint_text = ", ".join(f"{name} {mark}" for name, mark in fingerprints.items())
    return TuningResult(plan, shape, log.trials, best, {**facts, "fingerprint": fingerprint_text}, None, None)


def _make_fit(plan: TuningPlan, recipe: SpaceRecipe, holdout: RelationHoldout) -> Callable[..., Space]:
    run = {"seed": recipe.space.seed, "threads": recipe.space.threads}

    def fit(
        parameters: dict[str, Any], on_epoch: Callable[[EpochStats], None] | None, progress: Progress = SILENT
    ) -> Space:
        space: Space = plan.search.kind.build(**parameters, **run)
        return space.fit(
            holdout.learnt, validation=holdout.held_out, stop_on=recipe.stop_on, progress=progress, on_epoch=on_epoch
        )

    return fit


def _best_validation_figure(space: Space) -> float:
    return max(stats.validation or 0.0 for stats in space.history_)


def _identity(
    plan: TuningPlan, recipe: SpaceRecipe, data: DeclaredData, fingerprints: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the facts that must agree for trials to be comparable."""
    declared = recipe.declared
    kinds = {name: [kind.description, kind.map, kind.scaling] for name, kind in declared.kinds.items()}
    facts: dict[str, Any] = to_json_value(
        {
            "data": [fingerprints, {name: compute_pair_mark(couples) for name, couples in data.couples.items()}],
            "metric": plan.metric,
            **plan.search.as_dict(),
            "seed": recipe.space.seed,
            "hold_out": recipe.hold_out,
            "kinds": kinds,
            "relations": [
                [relation.name, relation.query, relation.target, relation.names, relation.weight]
                for relation in declared.relations
            ],
            "halving": plan.halving,
        }
    )
    return facts
