"""Every system of the papers by its name: how it is made, with which settings, from which parameters.

`wsabie train --kind`, `wsabie compare` and `wsabie tune` take their names from here. Code is imported when one is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from wsabie.base.errors import InputError

if TYPE_CHECKING:
    from wsabie.models.base import LabelModel

Values = dict[str, Any]


@dataclass(frozen=True)
class System:
    """How a system is made.

    Attributes
    ----------
    title : str
    maker : str
        module:callable, an estimator or a function of `wsabie.models.presets`.
    settings : dict
        Parameters that make it what it is.
    trained : bool
        Trained by the loops, in epochs that validation rows choose; with checkpoints.
    needs : {"", "relations", "vectors"}
        What it has to be given beside rows and labels: relations between labels, or word vectors.
    """

    title: str
    maker: str
    settings: Values = field(default_factory=dict)
    trained: bool = True
    needs: Literal["", "relations", "vectors"] = ""


_MODELS = "wsabie.models."
_one_vs_rest = partial(System, maker=_MODELS + "one_vs_rest:OneVsRest", trained=False)

SYSTEMS: Mapping[str, System] = {
    "wsabie": System("WARP embedding", _MODELS + "wsabie:Wsabie"),
    "wsabie-auc": System("AUC embedding", _MODELS + "wsabie:Wsabie", {"loss": "auc"}),
    "owpc-sgd": System("OWPC-SGD embedding", _MODELS + "wsabie:Wsabie", {"loss": "owpc"}),
    "linear-warp": System("linear WARP", _MODELS + "linear:LinearRanker"),
    "pamir": System("PAMIR", _MODELS + "presets:pamir"),
    "full-rank": System("full-rank WARP", _MODELS + "presets:full_rank"),
    "vse-ens": System("VSE-ens", _MODELS + "presets:vse_ens"),
    "opt-auc": System("Opt-AUC", _MODELS + "presets:opt_auc"),
    "parts": System("objects and parts", _MODELS + "parts:Parts", needs="relations"),
    "nearest": System("k nearest neighbours", _MODELS + "nearest:NearestNeighbours", trained=False),
    "approximate-nearest": System(
        "k neighbours in a tree leaf", _MODELS + "approximate:ApproximateNeighbours", trained=False
    ),
    "popularity": System("most frequent labels", _MODELS + "popularity:Popularity", trained=False),
    "one-vs-rest": _one_vs_rest("one-versus-rest", settings={"learner": "logistic"}),
    "one-vs-rest-pa": _one_vs_rest("one-versus-rest, PA-I", settings={"learner": "passive-aggressive"}),
    "one-vs-rest-hinge": _one_vs_rest("one-versus-rest, hinge SGD", settings={"learner": "hinge"}),
    "svm": _one_vs_rest("one-versus-rest, linear SVM", settings={"learner": "svm"}),
    "softmax": System("softmax", _MODELS + "softmax:Softmax", trained=False),
    "devise": System("DeViSE", _MODELS + "devise:Devise", needs="vectors"),
    "conse": System("ConSE", _MODELS + "conse:Conse", trained=False, needs="vectors"),
}
"""By name, in the order of lists."""


def build(name: str, parameters: Mapping[str, Any] | None = None, **run: Any) -> "LabelModel":
    """A system, not yet fitted.

    Parameters
    ----------
    name : str
        Of `SYSTEMS`.
    parameters : mapping or None
        In place of its own; names as in `parameters_of`.
    **run
        Such as seed and threads: given as far as the system has them.

    Raises
    ------
    InputError
        An unknown name, or a parameter that the system lacks.

    Examples
    --------
    >>> build("wsabie-auc", {"dim": 50}, seed=3).get_params()["dim"]
    50
    >>> type(build("popularity", seed=3)).__name__
    'Popularity'
    """
    system = system_of(name)
    given, known = dict(parameters or {}), parameters_of(name)
    for parameter in given:
        refuse_unknown(name, parameter)
    own = {parameter: value for parameter, value in run.items() if parameter in known}
    made: LabelModel = _maker(system)(**{**system.settings, **own, **given})
    return made


def parameters_of(name: str) -> Values:
    """Every parameter of a system with its value.

    Those of the full-rank model are those of its embedding, its own, and "linear__..." for what the linear term has
    otherwise.

    Examples
    --------
    >>> parameters_of("pamir")["loss"], parameters_of("vse-ens")["rank_scale"], parameters_of("full-rank")["dim"]
    ('auc', 0.1, 100)
    """
    system = system_of(name)
    maker = _maker(system)
    found: Values = maker(**system.settings).get_params()
    for key in [key for key in found if key.startswith("embedding__")]:
        found.setdefault(key.removeprefix("embedding__"), found[key])
    left_out = {"embedding", "linear", "linear__seed", "linear__threads"}
    named = {p.name: p.default for p in signature(maker).parameters.values() if p.kind is not p.VAR_KEYWORD}
    return {
        **{p: value for p, value in named.items() if p not in found},
        **{p: value for p, value in found.items() if p not in left_out and not p.startswith("embedding__")},
    }


def refuse_unknown(name: str, parameter: str, where: str = "") -> None:
    """Refuse what is no parameter of a system; the sentence names the closest one, or all.

    Raises
    ------
    InputError
    """
    known = parameters_of(name)
    if parameter not in known:
        from difflib import get_close_matches

        near = get_close_matches(parameter, known, 1)
        all_known = f"its parameters are {', '.join(sorted(known))}" if known else "it takes no parameters"
        hint = f"did you mean {near[0]}?" if near else all_known
        raise InputError(f"{where}{name} has no parameter {parameter}; {hint}")


def system_of(name: str) -> System:
    """The system of a name.

    Raises
    ------
    InputError
        There is none; the sentence names the closest, or all.
    """
    if name not in SYSTEMS:
        from wsabie.labels.names import closest

        near = closest(name, list(SYSTEMS), n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(SYSTEMS)}"
        raise InputError(f"there is no kind of model called {name!r}; {hint}")
    return SYSTEMS[name]


def _maker(system: System) -> Any:
    module, name = system.maker.split(":")
    return getattr(import_module(module), name)
