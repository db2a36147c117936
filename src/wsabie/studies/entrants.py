"""The models and baselines that take part in a comparison, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from wsabie.base.errors import InputError

Options = dict[str, Any]


@dataclass(frozen=True)
class Entrant:
    """How to make one model.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    build : callable
        Makes an unfitted model from the parameters in an option. Its `fit(X, Y, label_names=, progress=)`, `rank`
        and `scores` are called.
    options : tuple of dict
        Parameters to try; with more than one, the best on the validation rows stays.
    baseline : bool
    validated : bool
        `fit` takes `validation=(X, Y)` and stops by it.
    quick : bool
        `fit` takes no time and shows no progress of its own.
    compiles : bool
        A short `fit` with `epochs=1` comes first, so that compilation is not counted as training.
    """

    name: str
    title: str
    build: Callable[..., Any]
    options: tuple[Options, ...] = ({},)
    baseline: bool = True
    validated: bool = False
    quick: bool = False
    compiles: bool = False


NEIGHBOURS = (5, 10, 20, 50, 100)
"""Numbers of neighbours that are tried."""

STRENGTHS = {
    "logistic": (1.0, 3.0),
    "passive-aggressive": (0.0003, 0.001, 0.003, 0.01),
    "hinge": (0.003, 0.01, 0.03, 0.1),
    "svm": (0.01, 0.03, 0.1),
}
"""C of one-versus-rest that are tried, by learner."""


def _wsabie(seed: int, threads: int | None, parameters: Options) -> Entrant:
    from wsabie.models.wsabie import Wsabie

    build = partial(Wsabie, **{"seed": seed, "threads": threads, **parameters})
    return Entrant("wsabie", "WARP embedding", build, baseline=False, validated=True, compiles=True)


def _of_the_papers(name: str, seed: int, threads: int | None, parameters: Options) -> Entrant:
    """Another model that the loops of training train, with its defaults."""
    from wsabie.models import presets
    from wsabie.models.linear import LinearRanker
    from wsabie.models.wsabie import Wsabie

    builds: dict[str, Callable[..., Any]] = {
        "wsabie-auc": partial(Wsabie, loss="auc"),
        "owpc-sgd": partial(Wsabie, loss="owpc"),
        "linear-warp": LinearRanker,
        "pamir": presets.pamir,
        "full-rank": presets.full_rank,
        "vse-ens": presets.vse_ens,
        "opt-auc": presets.opt_auc,
    }
    given = {"epochs": parameters["epochs"]} if "epochs" in parameters else {}
    build = partial(builds[name], seed=seed, threads=threads, **given)
    return Entrant(name, OF_THE_PAPERS[name], build, validated=True, compiles=True)


def _ensemble(n: int, seed: int, threads: int | None, parameters: Options) -> Entrant:
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.wsabie import Wsabie

    def build(**options: Any) -> Ensemble:
        return Ensemble(Wsabie(**{**parameters, **options}), n=n, seed=seed, threads=threads)

    return Entrant(f"ensemble-{n}", f"{n} WARP embeddings", build, baseline=False, validated=True, compiles=True)


def _nearest() -> Entrant:
    from wsabie.models.nearest import NearestNeighbours

    return Entrant("nearest", "k nearest neighbours", NearestNeighbours, _each("k", NEIGHBOURS), quick=True)


def _approximate(seed: int) -> Entrant:
    from wsabie.models.approximate import ApproximateNeighbours

    build = partial(ApproximateNeighbours, seed=seed)
    return Entrant("approximate-nearest", "k neighbours in a tree leaf", build, _each("k", NEIGHBOURS), quick=True)


def _popularity() -> Entrant:
    from wsabie.models.popularity import Popularity

    return Entrant("popularity", "most frequent labels", Popularity, quick=True)


def _one_vs_rest(name: str, title: str, learner: Any, parameters: Options) -> Entrant:
    from wsabie.models.one_vs_rest import OneVsRest

    return Entrant(name, title, partial(OneVsRest, learner=learner, **parameters), _each("C", STRENGTHS[learner]))


def _each(name: str, values: Sequence[float]) -> tuple[Options, ...]:
    return tuple({name: value} for value in values)


ONE_VS_REST = {
    "one-vs-rest": ("one-versus-rest", "logistic"),
    "one-vs-rest-pa": ("one-versus-rest, PA-I", "passive-aggressive"),
    "one-vs-rest-hinge": ("one-versus-rest, hinge SGD", "hinge"),
    "svm": ("one-versus-rest, linear SVM", "svm"),
}
"""Name to title and learner."""

OF_THE_PAPERS = {
    "wsabie-auc": "AUC embedding",
    "owpc-sgd": "OWPC-SGD embedding",
    "linear-warp": "linear WARP",
    "pamir": "PAMIR",
    "full-rank": "full-rank WARP",
    "vse-ens": "VSE-ens",
    "opt-auc": "Opt-AUC",
}
"""Name to title."""

ENSEMBLES = {f"ensemble-{n}": n for n in (2, 3, 10)}
"""Name to members ([W] section 6 and slides)."""

USUAL = ("wsabie", "nearest", "popularity", "one-vs-rest")
"""Who takes part unless others are named."""

NAMES = (*USUAL, *OF_THE_PAPERS, *ENSEMBLES, "approximate-nearest", "one-vs-rest-pa", "one-vs-rest-hinge", "svm")
"""Every name that `entrants` knows."""


def entrants(
    names: Sequence[str] = USUAL,
    *,
    seed: int = 0,
    threads: int | None = None,
    max_minutes: float = 2.0,
    max_negatives: int | None = None,
    parameters: Options | None = None,
) -> list[Entrant]:
    """The entrants of the given names, in their order.

    Parameters
    ----------
    names : sequence of str
        Of `NAMES`; one that comes twice takes part once.
    seed : int
    threads : int or None
        None uses every core that this process may use.
    max_minutes : float
        One-versus-rest is skipped when one of its fits would take longer, by estimate.
    max_negatives : int or None
        Of one-versus-rest: random rows without the label that each label is shown; None: all of them.
    parameters : dict or None
        Of `Wsabie`, in place of its defaults; "epochs" counts for every model that the loops of training train.

    Raises
    ------
    InputError
        An unknown name, or none at all.

    Examples
    --------
    >>> [entrant.title for entrant in entrants(["popularity", "nearest"])]
    ['most frequent labels', 'k nearest neighbours']
    """
    made: dict[str, Callable[[], Entrant]] = {
        "wsabie": partial(_wsabie, seed, threads, parameters or {}),
        **{name: partial(_ensemble, n, seed, threads, parameters or {}) for name, n in ENSEMBLES.items()},
        "nearest": _nearest,
        "approximate-nearest": partial(_approximate, seed),
        "popularity": _popularity,
        **{name: partial(_of_the_papers, name, seed, threads, parameters or {}) for name in OF_THE_PAPERS},
    }
    linear = {"seed": seed, "threads": threads, "max_minutes": max_minutes, "max_negatives": max_negatives}
    for name, (title, learner) in ONE_VS_REST.items():
        made[name] = partial(_one_vs_rest, name, title, learner, linear)
    if not names:
        raise InputError(f"no model to compare is named; choose from {', '.join(NAMES)}")
    for name in names:
        if name not in made:
            from wsabie.labels.names import closest

            near = closest(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(NAMES)}"
            raise InputError(f"there is no model called {name!r} to compare; {hint}")
    return [made[name]() for name in dict.fromkeys(names)]
