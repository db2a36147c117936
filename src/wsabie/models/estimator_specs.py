"""Table of all systems by name, with their estimators, settings and parameters.

Training, comparisons and searches for parameters take their names from here. The code of a system is imported
when it is built.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.models.base.label_model import LabelModel

Values = dict[str, Any]
_MODELS = "wsabie.models."


@dataclass(frozen=True)
class EstimatorSpec:
    """Entry of the table of systems.

    Attributes
    ----------
    title : str
    maker : str
        module:callable, an estimator or a function of `wsabie.models.paper_presets`.
    settings : dict
        Parameters that define the system.
    trained : bool
        It is trained in epochs, with validation rows and checkpoints.
    needs : {"", "relations", "vectors"}
        Input beside rows and labels: relations between labels, or word vectors.
    """

    title: str
    maker: str
    settings: Values = field(default_factory=dict)
    trained: bool = True
    needs: Literal["", "relations", "vectors"] = ""


_one_vs_rest = partial(EstimatorSpec, maker=_MODELS + "one_vs_rest:OneVsRest", trained=False)

SYSTEMS: Mapping[str, EstimatorSpec] = {
    "wsabie": EstimatorSpec("WARP embedding", _MODELS + "joint_embedding.estimator:Wsabie"),
    "wsabie-auc": EstimatorSpec("AUC embedding", _MODELS + "joint_embedding.estimator:Wsabie", {"loss": "auc"}),
    "owpc-sgd": EstimatorSpec("OWPC-SGD embedding", _MODELS + "joint_embedding.estimator:Wsabie", {"loss": "owpc"}),
    "linear-warp": EstimatorSpec("linear WARP", _MODELS + "linear_ranker:LinearRanker"),
    "pamir": EstimatorSpec("PAMIR", _MODELS + "paper_presets:make_pamir"),
    "full-rank": EstimatorSpec("full-rank WARP", _MODELS + "paper_presets:make_full_rank"),
    "vse-ens": EstimatorSpec("VSE-ens", _MODELS + "paper_presets:make_vse_ens"),
    "opt-auc": EstimatorSpec("Opt-AUC", _MODELS + "paper_presets:make_opt_auc"),
    "parts": EstimatorSpec("objects and parts", _MODELS + "object_parts.ranker:ObjectParts", needs="relations"),
    "nearest": EstimatorSpec("k nearest neighbours", _MODELS + "nearest_neighbours:NearestNeighbours", trained=False),
    "approximate-nearest": EstimatorSpec(
        "k neighbours in a tree leaf", _MODELS + "nearest_neighbours:ApproximateNeighbours", trained=False
    ),
    "nearest-mean": EstimatorSpec("nearest mean", _MODELS + "baselines:NearestMean", trained=False),
    "ridge": EstimatorSpec("ridge regression", _MODELS + "ridge:Ridge", trained=False),
    "kernel-ridge": EstimatorSpec("kernel ridge regression", _MODELS + "ridge:KernelRidge", trained=False),
    "fusion": EstimatorSpec("fusion", _MODELS + "stacking.fusion:Fusion", trained=False),
    "auto": EstimatorSpec("best kind", _MODELS + "stacking.auto_ranker:AutoRanker", trained=False),
    "popularity": EstimatorSpec("most frequent labels", _MODELS + "baselines:Popularity", trained=False),
    "one-vs-rest": _one_vs_rest("one-versus-rest", settings={"learner": "logistic"}),
    "one-vs-rest-pa": _one_vs_rest("one-versus-rest, PA-I", settings={"learner": "passive-aggressive"}),
    "one-vs-rest-hinge": _one_vs_rest("one-versus-rest, hinge SGD", settings={"learner": "hinge"}),
    "svm": _one_vs_rest("one-versus-rest, linear SVM", settings={"learner": "svm"}),
    "softmax": EstimatorSpec("softmax", _MODELS + "softmax:Softmax", trained=False),
    "devise": EstimatorSpec("DeViSE", _MODELS + "devise:Devise", needs="vectors"),
    "conse": EstimatorSpec("ConSE", _MODELS + "conse:Conse", trained=False, needs="vectors"),
}
"""All systems by name, in the order in which lists show them; `loader` says which are no kind of folder."""


def build_estimator(name: str, parameters: Mapping[str, Any] | None = None, **run_parameters: Any) -> "LabelModel":
    """Build the unfitted estimator of a system.

    Parameters
    ----------
    name : str
        A key of `SYSTEMS`.
    parameters : mapping or None
        Values that replace the defaults; names are those of `list_parameters`.
    **run_parameters
        Parameters such as seed and threads; those that the system lacks are ignored.

    Raises
    ------
    InputError
        The name is unknown, or the system lacks a parameter.

    Examples
    --------
    >>> build_estimator("wsabie-auc", {"dim": 50}, seed=3).get_params()["dim"]
    50
    >>> type(build_estimator("popularity", seed=3)).__name__
    'Popularity'
    """
    system = find_spec(name)
    overrides, defaults = dict(parameters or {}), list_parameters(name)
    for parameter in overrides:
        check_parameter_name(name, parameter)
    run_parameters = {parameter: value for parameter, value in run_parameters.items() if parameter in defaults}
    estimator: LabelModel = resolve_name(system.maker)(**{**system.settings, **run_parameters, **overrides})
    return estimator


def list_parameters(name: str) -> Values:
    """Return every parameter of a system with its default value.

    The full-rank model has the parameters of its embedding, its own, and "linear__..." for different values of the
    linear term.

    Examples
    --------
    >>> list_parameters("pamir")["loss"], list_parameters("vse-ens")["rank_scale"], list_parameters("full-rank")["dim"]
    ('auc', 0.1, 100)
    """
    system = find_spec(name)
    maker = resolve_name(system.maker)
    parameters: Values = maker(**system.settings).get_params()
    for key in [key for key in parameters if key.startswith("embedding__")]:
        parameters.setdefault(key.removeprefix("embedding__"), parameters[key])
    left_out = {"embedding", "linear", "linear__seed", "linear__threads"}
    maker_defaults = {p.name: p.default for p in signature(maker).parameters.values() if p.kind is not p.VAR_KEYWORD}
    return {
        **{p: value for p, value in maker_defaults.items() if p not in parameters},
        **{p: value for p, value in parameters.items() if p not in left_out and not p.startswith("embedding__")},
    }


def check_parameter_name(name: str, parameter: str, where: str = "") -> None:
    """Raise InputError for an unknown parameter of a system; the message names the closest one, or all.

    Raises
    ------
    InputError
    """
    parameters = list_parameters(name)
    if parameter not in parameters:
        from difflib import get_close_matches

        near = get_close_matches(parameter, parameters, 1)
        choices = f"its parameters are {', '.join(sorted(parameters))}" if parameters else "it takes no parameters"
        hint = f"did you mean {near[0]}?" if near else choices
        raise InputError(f"{where}{name} has no parameter {parameter}; {hint}")


def find_name(estimator: "LabelModel") -> str:
    """Return the name of the first system of this class; the kind of its folder if there is none.

    Examples
    --------
    >>> find_name(build_estimator("pamir"))
    'linear-warp'
    """
    maker = f"{type(estimator).__module__}:{type(estimator).__name__}"
    return next((name for name, spec in SYSTEMS.items() if spec.maker == maker), estimator.kind)


def find_spec(name: str) -> EstimatorSpec:
    """Return the entry of a system.

    Raises
    ------
    InputError
        The name is unknown; the message names the closest one, or all.
    """
    if name not in SYSTEMS:
        from wsabie.vocabulary.name_suggestions import find_closest_names

        near = find_closest_names(name, list(SYSTEMS), n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(SYSTEMS)}"
        raise InputError(f"there is no kind of model called {name!r}; {hint}")
    return SYSTEMS[name]
