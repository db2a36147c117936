"""Estimators with the settings of systems from the papers; all settings can be changed."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from wsabie.core.errors import InputError
from wsabie.models.full_rank import FullRank
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.object_parts.ranker import ObjectParts

SHARED = signature(LinearRanker).parameters.keys() - {
    "max_norm", "learning_rate", "l2", "label_bias", "threads", "seed"
}  # fmt: skip
"""Parameters with the same meaning for the embedding and the linear term."""
_VSE_ENS_SETTINGS: dict[str, Any] = {
    "dim": 100,
    "learning_rate": 0.01,
    "schedule": "constant",
    "l2": 0.01,
    "init_scale": 0.1,
    "max_norm": None,
    "pair_weighting": "pairs",
}
_OBJECT_PARTS_SETTINGS: dict[str, Any] = {
    "dim": 50,
    "score_weight": 0.1,
    "known_score": 100.0,
    "same": True,
    "rank_weight": "top1",
    "max_sampled": 100,
    "max_norm": 1.0,
    "learning_rate": {"V": 0.1, "W": 0.01},
    "schedule": "constant",
}


def make_vse_ens(rank_scale: float = 0.1, *, paper: bool = False, **changes: Any) -> Wsabie:
    """Build VSE-ens (Guo et al. 2018): adaptive sampler, one negative per pair, unweighted hinge, L2.

    Pictures can be ids (identity rows, so each has a free vector as in the paper) or rows of features.

    Parameters
    ----------
    rank_scale : float
        Mean rank of a drawn label over the number of labels (always less than .5); the paper tunes it from .001 to 1.
    paper : bool
        Use the scale as printed, without the number of labels (convention 7).
    **changes
        Other parameters of `Wsabie`. The paper has dim 100, learning_rate .01, l2 .01, initial coordinates of variance
        .01, free norms, and a constant rate.

    Returns
    -------
    Wsabie
        Not fitted.

    Examples
    --------
    >>> make_vse_ens(dim=20).loss, make_vse_ens().sampler["name"]
    ('auc', 'adaptive')
    """
    sampler = {"name": "adaptive", "rank_scale": rank_scale, "paper": paper}
    return Wsabie(**{**_VSE_ENS_SETTINGS, "loss": "auc", "sampler": sampler, **changes})


def make_opt_auc(**changes: Any) -> Wsabie:
    """Build Opt-AUC, the baseline of Guo et al. 2018: one uniform negative per pair, logistic surrogate.

    Parameters
    ----------
    **changes
        Other parameters of `Wsabie`; settings of the paper as in `make_vse_ens`.

    Returns
    -------
    Wsabie
        Not fitted.

    Examples
    --------
    >>> make_opt_auc().surrogate
    'logistic'
    """
    return Wsabie(**{**_VSE_ENS_SETTINGS, "loss": "auc", "surrogate": "logistic", **changes})


def make_pamir(**changes: Any) -> LinearRanker:
    """Build PAMIR (Weston et al. 2010, sections 5 and 6.3): a linear model with a margin ranking loss.

    Parameters
    ----------
    **changes
        Parameters of `LinearRanker`.

    Returns
    -------
    LinearRanker
        Not fitted.

    Examples
    --------
    >>> make_pamir(l2=0.001).loss
    'auc'
    """
    return LinearRanker(**{"loss": "auc", **changes})


def make_full_rank(**changes: Any) -> FullRank:
    """Build the full-rank model (Weston et al. 2010, eq. 1) from the parameters of both terms.

    Parameters
    ----------
    **changes
        blend, joint, threads and seed are parameters of `FullRank`, others those of its embedding. Parameters in
        `SHARED` apply to both terms. A parameter with the prefix "linear__" applies to the linear term only.

    Examples
    --------
    >>> model = make_full_rank(dim=20, epochs=3, linear__l2=0.1)
    >>> model.embedding.dim, model.embedding.epochs, model.linear.epochs, model.linear.l2
    (20, 3, 3, 0.1)
    """
    model_parameters = {name: changes.pop(name) for name in ("blend", "joint", "threads", "seed") if name in changes}
    linear = {name: value for name, value in changes.items() if name in SHARED}
    for name in [name for name in changes if name.startswith("linear__")]:
        linear[name.removeprefix("linear__")] = changes.pop(name)
    return FullRank(Wsabie(**changes), LinearRanker(**linear), **model_parameters)


def make_objects_and_parts(name: str, relations: Sequence[tuple[str, str]], **changes: Any) -> ObjectParts:
    """Build a model of Mesnil et al. 2014 (sections 6.2, 6.5) by its name, with the settings of 4.3.3.

    Parameters
    ----------
    name : {"Shared (IW)", "Unshared (IW)", "Shared (I)", "Unshared (I)", "Shared (IO)", "Unshared (IO)"}
        Tables of labels, and the scores of pairs of labels: IW are learned scores, I none, IO a constant for pairs in
        the training relations. Shared tables learn pairs even if these are not scored; unshared ones are WSABIE then.
    relations : sequence of (object label, part label)
    **changes
        Other parameters of `ObjectParts`.

    Returns
    -------
    ObjectParts
        Not fitted.

    Raises
    ------
    InputError
        There is no model of this name.

    Examples
    --------
    >>> model = make_objects_and_parts("Unshared (IO)", [("car", "wheel")], dim=100)
    >>> model.tables, model.label_scores, model.relation_weight, model.dim
    ('unshared', 'known', 0.0, 100)
    """
    tables, _, scored = name.lower().partition(" ")
    scores = {"(iw)": "learned", "(i)": "none", "(io)": "known"}
    if tables not in ("shared", "unshared") or scored not in scores:
        raise InputError(f"Mesnil et al. 2014 have no model {name!r}; choose Shared or Unshared and (IW), (I) or (IO)")
    ignores_relations = tables == "unshared" and scored != "(iw)"
    preset = {"tables": tables, "label_scores": scores[scored], "relation_weight": 0.0 if ignores_relations else 1.0}
    return ObjectParts(relations, **{**_OBJECT_PARTS_SETTINGS, **preset, **changes})
