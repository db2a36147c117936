"""Models and baselines of a comparison, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.models.estimator_specs import SYSTEMS, build_estimator

if TYPE_CHECKING:
    from wsabie.models.base.label_model import LabelModel

Options = JsonObject
NEIGHBOURS = (5, 10, 20, 50, 100)
"""Candidate numbers of neighbours."""
OPTIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "nearest": ("k", NEIGHBOURS),
    "approximate-nearest": ("k", NEIGHBOURS),
    "ridge": ("penalty", (1.0, 3.0, 10.0)),
    "kernel-ridge": ("penalty", (0.1, 0.3, 1.0)),
    "one-vs-rest": ("C", (1.0, 3.0)),
    "one-vs-rest-pa": ("C", (0.0003, 0.001, 0.003, 0.01)),
    "one-vs-rest-hinge": ("C", (0.003, 0.01, 0.03, 0.1)),
    "svm": ("C", (0.01, 0.03, 0.1)),
    "softmax": ("C", (1.0, 10.0, 100.0)),
}
"""Parameter of a system that validation rows choose, and its values; the others have their defaults."""
ENSEMBLES = {f"ensemble-{n}": n for n in (2, 3, 10)}
"""Number of members by name (Bengio et al. 2012)."""
USUAL = ("wsabie", "nearest", "popularity", "one-vs-rest")
"""Default entrants."""
NAMES = (*(name for name, system in SYSTEMS.items() if not system.needs), *ENSEMBLES)
"""Names that `build_entrants` knows; systems that need more than rows and labels are missing."""


@dataclass(frozen=True)
class Entrant:
    """A model that takes part in a comparison.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    build : callable
        Makes an unfitted model from the parameters of an option. The comparison calls its `fit(X, Y, label_names=,
        progress=)`, `rank` and `scores`.
    options : tuple of dict
        Candidate parameters; with several, the best on the validation rows is used.
    baseline : bool
    trained : bool
        `fit` takes `validation=(X, Y)` and stops by it. A short `fit` with `epochs=1` comes first, so that compilation
        does not count as training.
    quick : bool
        `fit` is fast and shows no progress of its own.
    """

    name: str
    title: str
    build: Callable[..., "LabelModel"]
    options: tuple[Options, ...] = ({},)
    baseline: bool = True
    trained: bool = False
    quick: bool = False


def _make_ensemble(n_members: int, parameters: Options, run: Options, **options: Any) -> "LabelModel":
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.joint_embedding.estimator import Wsabie

    return Ensemble(Wsabie(**{**parameters, **options}), n=n_members, seed=run["seed"], threads=run["threads"])


def _make_estimator(name: str, parameters: Options, run: Options, **options: Any) -> "LabelModel":
    return build_estimator(name, {**parameters, **options}, **run)


def build_entrants(
    names: Sequence[str] = USUAL,
    *,
    seed: int = 0,
    threads: int | None = None,
    max_minutes: float = 2.0,
    max_negatives: int | None = None,
    parameters: Options | None = None,
) -> list[Entrant]:
    """Build the entrants with these names, in their order.

    Parameters
    ----------
    names : sequence of str
        Some of `NAMES`; a repeated name takes part once.
    seed : int
    threads : int or None
        None uses every core that this process may use.
    max_minutes : float
        One-versus-rest is skipped if the estimate of one fit is longer.
    max_negatives : int or None
        One-versus-rest: random negative rows per label; None: all of them.
    parameters : dict or None
        Parameters of `Wsabie` in place of its defaults; "epochs" applies to every model that the training loops train.

    Raises
    ------
    InputError
        An unknown name, or no name at all.

    Examples
    --------
    >>> [entrant.title for entrant in build_entrants(["popularity", "nearest"])]
    ['most frequent labels', 'k nearest neighbours']
    """
    require(len(names) > 0, f"no model to compare is named; choose from {', '.join(NAMES)}")
    for name in names:
        if name not in NAMES:
            from wsabie.vocabulary.name_suggestions import find_closest_names

            matches = find_closest_names(name, NAMES, n=1)
            hint = f"did you mean {matches[0]!r}?" if matches else f"choose from {', '.join(NAMES)}"
            raise InputError(f"there is no model called {name!r} to compare; {hint}")
    run = {"seed": seed, "threads": threads, "max_minutes": max_minutes, "max_negatives": max_negatives}
    parameters = parameters or {}
    epochs = {name: value for name, value in parameters.items() if name == "epochs"}
    entrants = []
    for name in dict.fromkeys(names):
        if name in ENSEMBLES:
            build = partial(_make_ensemble, ENSEMBLES[name], parameters, run)
            entrants.append(Entrant(name, f"{ENSEMBLES[name]} WARP embeddings", build, baseline=False, trained=True))
            continue
        system, (parameter, values) = SYSTEMS[name], OPTIONS.get(name, ("", ()))
        overrides = parameters if name == "wsabie" else epochs if system.trained else {}
        entrant = Entrant(
            name,
            system.title,
            partial(_make_estimator, name, overrides, run),
            tuple({parameter: value} for value in values) or ({},),
            baseline=name != "wsabie",
            trained=system.trained,
            quick=name in ("nearest", "approximate-nearest", "nearest-mean", "popularity"),
        )
        entrants.append(entrant)
    return entrants
