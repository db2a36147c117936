"""The papers' systems under their own names: estimators with the settings that a paper gives; any may be changed."""

from typing import Any

from wsabie.models.full_rank import FullRank
from wsabie.models.linear import LinearRanker
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
