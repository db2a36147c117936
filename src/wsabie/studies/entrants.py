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


def _trained(name: str, title: str, build: Callable[..., Any], seed: int, threads: int | None) -> Entrant:
    """A model that the loops of training train, as its defaults make it."""
    ready = partial(build, seed=seed, threads=threads)
    return Entrant(name, title, ready, validated=True, compiles=True)


def _papers_own(seed: int, threads: int | None) -> list[Entrant]:
    """The other models of the papers."""
    from wsabie.models import presets
    from wsabie.models.linear import LinearRanker
    from wsabie.models.wsabie import Wsabie

    return [
        _trained("wsabie-auc", "AUC embedding", partial(Wsabie, loss="auc"), seed, threads),
        _trained("linear-warp", "linear WARP", LinearRanker, seed, threads),
        _trained("pamir", "PAMIR", presets.pamir, seed, threads),
        _trained("full-rank", "full-rank WARP", _full_rank, seed, threads),
        _trained("vse-ens", "VSE-ens", presets.vse_ens, seed, threads),
        _trained("opt-auc", "Opt-AUC", presets.opt_auc, seed, threads),
    ]


def _paper(name: str, seed: int, threads: int | None) -> Entrant:
    return next(entrant for entrant in _papers_own(seed, threads) if entrant.name == name)


def _full_rank(epochs: Any = "auto", **parameters: Any) -> Any:
    from wsabie.models.full_rank import FullRank
    from wsabie.models.linear import LinearRanker
    from wsabie.models.wsabie import Wsabie

    return FullRank(Wsabie(epochs=epochs), LinearRanker(epochs=epochs), **parameters)


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


NAMES = ("wsabie", "nearest", "one-vs-rest", "popularity")
"""Who takes part unless others are named."""

PAPERS_OWN = ("wsabie-auc", "linear-warp", "pamir", "full-rank", "vse-ens", "opt-auc")
KNOWN = (*NAMES, *PAPERS_OWN)
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
        Of `KNOWN`; one that comes twice takes part once.
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
        "nearest": _nearest,
        "one-vs-rest": partial(_one_vs_rest, threads, max_minutes),
        "popularity": _popularity,
        **{name: partial(_paper, name, seed, threads) for name in PAPERS_OWN},
    }
    if not names:
        raise InputError(f"no model to compare is named; choose from {', '.join(KNOWN)}")
    for name in names:
        if name not in made:
            near = closest(name, KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(KNOWN)}"
            raise InputError(f"there is no model called {name!r} to compare; {hint}")
    return [made[name]() for name in dict.fromkeys(names)]
