"""The models and baselines that take part in a comparison, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wsabie.base.errors import InputError
from wsabie.models.systems import SYSTEMS, build

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


def _entrant(name: str, parameters: Options, run: Options) -> Entrant:
    """A system on its own."""
    system = SYSTEMS[name]
    return Entrant(
        name,
        system.title,
        lambda **options: build(name, {**parameters, **options}, **run),
        OPTIONS.get(name, ({},)),
        baseline=name != "wsabie",
        validated=system.trained,
        quick=name in ("nearest", "approximate-nearest", "popularity"),
        compiles=system.trained,
    )


def _ensemble(n: int, parameters: Options, run: Options) -> Entrant:
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.wsabie import Wsabie

    def made(**options: Any) -> Ensemble:
        base = Wsabie(**{**parameters, **options})
        return Ensemble(base, n=n, seed=run["seed"], threads=run["threads"])

    return Entrant(f"ensemble-{n}", f"{n} WARP embeddings", made, baseline=False, validated=True, compiles=True)


def _each(name: str, values: Sequence[float]) -> tuple[Options, ...]:
    return tuple({name: value} for value in values)


OPTIONS: dict[str, tuple[Options, ...]] = {
    "nearest": _each("k", NEIGHBOURS),
    "approximate-nearest": _each("k", NEIGHBOURS),
    "one-vs-rest": _each("C", (1.0, 3.0)),
    "one-vs-rest-pa": _each("C", (0.0003, 0.001, 0.003, 0.01)),
    "one-vs-rest-hinge": _each("C", (0.003, 0.01, 0.03, 0.1)),
    "svm": _each("C", (0.01, 0.03, 0.1)),
    "softmax": _each("C", (1.0, 10.0, 100.0)),
}
"""What is tried on validation rows; the others have their defaults."""

ENSEMBLES = {f"ensemble-{n}": n for n in (2, 3, 10)}
"""Name to members (slides)."""

USUAL = ("wsabie", "nearest", "popularity", "one-vs-rest")
"""Who takes part unless others are named."""

NAMES = (*(name for name, system in SYSTEMS.items() if not system.needs), *ENSEMBLES)
"""Every name that `entrants` knows: what needs more than rows and labels is none."""


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
    if not names:
        raise InputError(f"no model to compare is named; choose from {', '.join(NAMES)}")
    for name in names:
        if name not in NAMES:
            from wsabie.labels.names import closest

            near = closest(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(NAMES)}"
            raise InputError(f"there is no model called {name!r} to compare; {hint}")
    run = {"seed": seed, "threads": threads, "max_minutes": max_minutes, "max_negatives": max_negatives}
    own = parameters or {}
    return [
        _ensemble(ENSEMBLES[name], own, run) if name in ENSEMBLES else _entrant(name, _of(name, own), run)
        for name in dict.fromkeys(names)
    ]


def _of(name: str, parameters: Options) -> Options:
    """Which of the parameters given for `Wsabie` a system takes over: all, the epochs, or none."""
    if name == "wsabie":
        return parameters
    return {p: value for p, value in parameters.items() if p == "epochs" and SYSTEMS[name].trained}
