"""The papers' systems under their own names: estimators with the settings that a paper gives; any may be changed."""

from typing import Any, Literal

from wsabie.models.full_rank import FullRank
from wsabie.models.linear import LinearRanker
from wsabie.models.wsabie import Wsabie


def vse_ens(rank_scale: float = 0.1, *, paper: bool = False, **changes: Any) -> Wsabie:
    """VSE-ens ([V]): one negative per pair from the adaptive sampler, hinge without rank weight, L2 regularisation.

    Give pictures as ids (identity rows: a free vector each, as in the paper) or as features.

    Parameters
    ----------
    rank_scale : float
        Mean rank of a drawn label over the number of labels; [V] tunes it from .001 to 1.
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


def full_rank(epochs: int | Literal["auto"] = "auto", **changes: Any) -> FullRank:
    """The full-rank model of default terms ([W] eq. 1), both of as many epochs.

    Examples
    --------
    >>> full_rank(epochs=3).linear.epochs
    3
    """
    return FullRank(Wsabie(epochs=epochs), LinearRanker(epochs=epochs), **changes)


_AS_IN_V: dict[str, Any] = {
    "dim": 100,
    "learning_rate": 0.01,
    "schedule": "constant",
    "l2": 0.01,
    "init_scale": 0.1,
    "max_norm": None,
    "positives": "pairs",
}
