"""Tuning a space of many kinds of things: trials on the held-out pairs, the best setting trained again and saved."""

from collections.abc import Callable, Mapping
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.models import defaults
from wsabie.models.defaults import Shape
from wsabie.models.space import Space
from wsabie.models.told import told
from wsabie.sources.declaration import Declared
from wsabie.sources.fingerprint import fingerprint_or_none
from wsabie.storage.rejects import Rejects
from wsabie.studies.dealing import Collected, Dealt, deal
from wsabie.studies.journal import journal
from wsabie.studies.proposals import require_optuna
from wsabie.studies.relating import SpaceRecipe, chosen, facts_of, keep, mark_of
from wsabie.studies.search_spaces import Choice, ModelKind, Range, Search, search_of
from wsabie.studies.things import Things, opened
from wsabie.studies.trials import Training
from wsabie.studies.tuned import Plan, Tuned
from wsabie.studies.tuning import remembered, searched
from wsabie.training.stats import EpochStats

NAME = "space"
_TRIED: dict[str, Choice | Range] = {
    "learning_rate": Range(0.2, 4.0, log=True, relative=True),
    "epochs": Range(0.5, 2.0, log=True, relative=True),
    "dim": Choice((50, 100, 150, 200)),
    "max_norm": Range(1.0, 3.0),
    "margin": Range(0.3, 1.5),
    "rank_weight": Choice(("precision", "top1", "mean_rank")),
    "max_trials": Choice((100, 300, "auto")),
    "similarity": Choice(("dot", "cosine", "euclidean")),
}
_NEGATIVES = Choice((0, 64, 256, 1024))


def space_search(declared: Declared, changes: Mapping[str, Any]) -> Search:
    """What is tried for a declaration: what its [space] says is fixed, unless `changes` say otherwise.

    Parameters
    ----------
    declared : Declared
    changes : mapping
        As of `search`.

    Raises
    ------
    InputError
        An unknown parameter, or values that it cannot take.
    """
    encoded = any(declared.kinds[one.target].data is not None for one in declared.relations)
    tried = {**_TRIED, "negatives": _NEGATIVES} if encoded else _TRIED
    kind = ModelKind(NAME, Space, tried, _auto, frozenset({"dim", "epochs", "max_trials", "patience", "negatives"}))
    said = {name: value for name, value in declared.parameters.items() if name not in kind.untuned}
    return search_of(kind, {**said, **changes})


def _auto(shape: Shape, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "learning_rate": defaults.learning_rate(shape),
        "epochs": defaults.epochs(shape),
        "max_norm": defaults.MAX_NORM,
    }


def tune_space(plan: Plan, recipe: SpaceRecipe, *, executor: Executor, progress: Progress, rejects: Rejects) -> Tuned:
    """Search, train the best setting again, save it; a search that was stopped goes on.

    Parameters
    ----------
    plan : Plan
        Its search is that of `space_search`.
    recipe : SpaceRecipe
        `recipe.model` is the folder of the space; trials.jsonl and trials.csv are written beside it. Of its space the
        seed and the threads count.
    executor, progress, rejects
        As in `train_space`.

    Raises
    ------
    InputError
        Optuna is missing, data that cannot be used, no held-out pair, the folder holds the trials of another search, or
        no trial came to its end.
    """
    require_optuna()
    declared, seed, folder = recipe.declared, recipe.space.seed, recipe.model.parent
    relations = chosen(declared, recipe.only)
    outlines, sources = opened(declared, relations, rejects)
    prints = {name: fingerprint_or_none(source) for name, source in sources.items()}
    with journal(folder / "trials.jsonl", _identity(plan, recipe, outlines, prints)) as log:
        things = Things(seed, executor, progress, rejects, recipe.work)
        data = things.described(declared, outlines, sources)
        dealt = deal(declared, relations, data, recipe.hold_out, seed)
        if not dealt.held_out:
            raise InputError("no held-out pair is of things that training knows; hold out more, or give more pairs")
        n_pairs = told(dealt.learnt).n_pairs
        shape = Shape(n_pairs, n_pairs, 2**31 - 1)
        fit = _fitting(plan, recipe, dealt)
        best = searched(log, Training(fit, _reported, seed), shape, plan, folder, executor, progress)
        space = fit(best.parameters, None, progress)
        facts = {
            **facts_of(recipe, relations, data, dealt, things),
            "skipped": len(rejects),
            "tuning": remembered(best, log.trials, plan),
        }
        keep(space, recipe.model, data, dealt, things, facts)
    known = ", ".join(f"{name} {mark}" for name, mark in prints.items())
    return Tuned(plan, shape, log.trials, best, {**facts, "fingerprint": known}, None, None)


def _fitting(plan: Plan, recipe: SpaceRecipe, dealt: Dealt) -> Callable[..., Space]:
    run = {"seed": recipe.space.seed, "threads": recipe.space.threads}

    def fit(
        parameters: dict[str, Any], on_epoch: Callable[[EpochStats], None] | None, progress: Progress = SILENT
    ) -> Space:
        space: Space = plan.search.kind.build(**parameters, **run)
        return space.fit(
            dealt.learnt, validation=dealt.held_out, stop_on=recipe.stop_on, progress=progress, on_epoch=on_epoch
        )

    return fit


def _reported(space: Space) -> float:
    return max(stats.validation or 0.0 for stats in space.history_)


def _identity(plan: Plan, recipe: SpaceRecipe, data: Collected, prints: Mapping[str, str | None]) -> dict[str, Any]:
    """What must agree for trials to be comparable."""
    declared = recipe.declared
    kinds = {name: [kind.description, kind.map, kind.scaling] for name, kind in declared.kinds.items()}
    found: dict[str, Any] = plain(
        {
            "data": [prints, {name: mark_of(couples) for name, couples in data.couples.items()}],
            "metric": plan.metric,
            **plan.search.as_dict(),
            "seed": recipe.space.seed,
            "hold_out": recipe.hold_out,
            "kinds": kinds,
            "relations": [[one.name, one.query, one.target, one.names, one.weight] for one in declared.relations],
            "halving": plan.halving,
        }
    )
    return found
