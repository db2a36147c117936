"""The papers' systems under their own names: estimators with the settings that a paper gives; any may be changed."""

from collections.abc import Sequence
from typing import Any

from wsabie.base.errors import InputError
from wsabie.models.full_rank import FullRank
from wsabie.models.linear import LinearRanker
from wsabie.models.parts import Parts
from wsabie.models.wsabie import Wsabie


def vse_ens(rank_scale: float = 0.1, *, paper: bool = False, **changes: Any) -> Wsabie:
    """VSE-ens ([V]): one negative per pair from the adaptive sampler, hinge without rank weight, L2 regularisation.

    Give pictures as ids (identity rows: a free vector each, as in the paper) or as features.

    Parameters
    ----------
    rank_scale : float
        Mean rank of a drawn label over the number of labels (less than .5 however large); [V] tunes it from .001 to 1.
    paper : bool
        The scale as printed, without the number of labels (convention 7).
    **changes
        Other parameters of `Wsabie`. The paper's: dim 100, learning_rate .01, l2 .01, coordinates begin with variance
        .01, free norms, a constant rate.

    Examples
    --------
    >>> vse_ens(dim=20).loss, vse_ens().sampler["name"]
    ('auc', 'adaptive')
    """
    sampler = {"name": "adaptive", "rank_scale": rank_scale, "paper": paper}
    return Wsabie(**{**_AS_IN_V, "loss": "auc", "sampler": sampler, **changes})


def opt_auc(**changes: Any) -> Wsabie:
    """Opt-AUC, the baseline of [V]: one uniform negative per pair, logistic surrogate.

    Examples
    --------
    >>> opt_auc().surrogate
    'logistic'
    """
    return Wsabie(**{**_AS_IN_V, "loss": "auc", "surrogate": "logistic", **changes})


def pamir(**changes: Any) -> LinearRanker:
    """PAMIR for image annotation ([W] sections 5 and 6.3): a linear model and the margin ranking loss.

    Examples
    --------
    >>> pamir(l2=0.001).loss
    'auc'
    """
    return LinearRanker(**{"loss": "auc", **changes})


def full_rank(**changes: Any) -> FullRank:
    """The full-rank model ([W] eq. 1) with the parameters of its terms side by side.

    Parameters
    ----------
    **changes
        blend, joint, threads, seed: of `FullRank`. Others are those of its embedding; what says the same of both terms
        (`SHARED`) is given to both. With "linear__" before its name a parameter is the linear term's alone.

    Examples
    --------
    >>> model = full_rank(dim=20, epochs=3, linear__l2=0.1)
    >>> model.embedding.dim, model.embedding.epochs, model.linear.epochs, model.linear.l2
    (20, 3, 3, 0.1)
    """
    own = {name: changes.pop(name) for name in ("blend", "joint", "threads", "seed") if name in changes}
    linear = {name: value for name, value in changes.items() if name in SHARED}
    for name in [name for name in changes if name.startswith("linear__")]:
        linear[name.removeprefix("linear__")] = changes.pop(name)
    return FullRank(Wsabie(**changes), LinearRanker(**linear), **own)


SHARED = (
    "loss",
    "rows",
    "epochs",
    "schedule",
    "margin",
    "rank_weight",
    "max_trials",
    "sampler",
    "rank_from",
    "surrogate",
    "order_statistic",
    "positives",
    "patience",
    "deterministic",
)
"""Parameters that mean the same to an embedding and to weights."""


_AS_IN_V: dict[str, Any] = {
    "dim": 100,
    "learning_rate": 0.01,
    "schedule": "constant",
    "l2": 0.01,
    "init_scale": 0.1,
    "max_norm": None,
    "positives": "pairs",
}


def objects_and_parts(name: str, relations: Sequence[tuple[str, str]], **changes: Any) -> Parts:
    """The models of [P] 6.2 and 6.5 by their names there, with the settings of [P] 4.3.3.

    Parameters
    ----------
    name : {"Shared (IW)", "Unshared (IW)", "Shared (I)", "Unshared (I)", "Shared (IO)", "Unshared (IO)"}
        Tables of labels; IW scores pairs of labels by what was learned, I not at all, IO by whether training was told
        of them. What is not scored is learned all the same where tables are shared; unshared it is WSABIE.
    relations : sequence of (object label, part label)
    **changes
        Other parameters of `Parts`.

    Examples
    --------
    >>> model = objects_and_parts("Unshared (IO)", [("car", "wheel")], dim=100)
    >>> model.tables, model.label_scores, model.relation_weight, model.dim
    ('unshared', 'known', 0.0, 100)
    """
    tables, _, scored = name.lower().partition(" ")
    scores = {"(iw)": "learned", "(i)": "none", "(io)": "known"}
    if tables not in ("shared", "unshared") or scored not in scores:
        raise InputError(f"[P] has no model {name!r}; choose Shared or Unshared and (IW), (I) or (IO)")
    alone = tables == "unshared" and scored != "(iw)"
    own = {"tables": tables, "label_scores": scores[scored], "relation_weight": 0.0 if alone else 1.0}
    return Parts(relations, **{**_AS_IN_P, **own, **changes})


_AS_IN_P: dict[str, Any] = {
    "dim": 50,
    "score_weight": 0.1,
    "known_score": 100.0,
    "same": True,
    "rank_weight": "top1",
    "max_trials": 100,
    "max_norm": 1.0,
    "learning_rate": {"V": 0.1, "W": 0.01},
    "schedule": "constant",
}
