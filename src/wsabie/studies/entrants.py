"""The models and baselines that take part in a comparison, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from wsabie.base.errors import InputError
from wsabie.labels.names import closest

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

PENALTIES = (1.0, 3.0)
"""Inverse penalties of one-versus-rest that are tried."""


def _wsabie(seed: int, threads: int | None, parameters: Options) -> Entrant:
    from wsabie.models.wsabie import Wsabie

    build = partial(Wsabie, **{"seed": seed, "threads": threads, **parameters})
    return Entrant("wsabie", "WARP embedding", build, baseline=False, validated=True, compiles=True)


def _ensemble(n: int, seed: int, threads: int | None, parameters: Options) -> Entrant:
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.wsabie import Wsabie

    def build(**options: Any) -> Ensemble:
        return Ensemble(Wsabie(**{**parameters, **options}), n=n, seed=seed, threads=threads)

    return Entrant(f"ensemble-{n}", f"{n} WARP embeddings", build, baseline=False, validated=True, compiles=True)


def _nearest() -> Entrant:
    from wsabie.models.nearest import NearestNeighbours

    options = tuple({"k": k} for k in NEIGHBOURS)
    return Entrant("nearest", "k nearest neighbours", NearestNeighbours, options, quick=True)


def _popularity() -> Entrant:
    from wsabie.models.popularity import Popularity

    return Entrant("popularity", "most frequent labels", Popularity, quick=True)


def _one_vs_rest(threads: int | None, max_minutes: float) -> Entrant:
    from wsabie.models.one_vs_rest import OneVsRest

    build = partial(OneVsRest, threads=threads, max_minutes=max_minutes)
    return Entrant("one-vs-rest", "one-versus-rest", build, tuple({"C": C} for C in PENALTIES))


ENSEMBLES = (2, 3, 10)
"""Sizes of ensembles ([W] section 6 and slides)."""

NAMES = ("wsabie", *(f"ensemble-{n}" for n in ENSEMBLES), "nearest", "one-vs-rest", "popularity")
"""Every name that `entrants` knows."""


def entrants(
    names: Sequence[str] = NAMES,
    *,
    seed: int = 0,
    threads: int | None = None,
    max_minutes: float = 2.0,
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
    parameters : dict or None
        Of `Wsabie`, in place of its defaults.

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
        **{f"ensemble-{n}": partial(_ensemble, n, seed, threads, parameters or {}) for n in ENSEMBLES},
        "nearest": _nearest,
        "one-vs-rest": partial(_one_vs_rest, threads, max_minutes),
        "popularity": _popularity,
    }
    if not names:
        raise InputError(f"no model to compare is named; choose from {', '.join(NAMES)}")
    for name in names:
        if name not in made:
            near = closest(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(NAMES)}"
            raise InputError(f"there is no model called {name!r} to compare; {hint}")
    return [made[name]() for name in dict.fromkeys(names)]
