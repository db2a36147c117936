"""Choice of the kind of model by rows that the candidates did not learn from."""

import logging
from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Float32, Float64, Matrix
from wsabie.core.json_conversion import JsonObject
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.models.base.feature_matrix import convert_to_matrix
from wsabie.models.base.label_matrix import Labels, count_label_rows
from wsabie.models.base.label_model import Candidates, Exclusion, LabelModel, Ranking, read_column_names
from wsabie.models.estimator_specs import find_name
from wsabie.models.one_vs_rest import OneVsRest, TrainingCost
from wsabie.models.stacking.fusion import Fusion, build_members
from wsabie.models.stacking.held_out_scores import Groups, HeldOut, check_hold_out, iterate_folds, score_fold
from wsabie.storage.model_folder import ModelState

log = logging.getLogger("wsabie")
MAX_LOSS = 0.005
"""Most nDCG that a smaller model may lose against the best one."""
MAX_COST = TrainingCost(n_bytes=100_000_000, seconds=5.0)
"""Largest one-versus-rest that is tried, by its estimate for one core: the same choice on every machine."""


@dataclass(frozen=True)
class Trial:
    """A candidate on the held-out rows.

    Attributes
    ----------
    kind : str
        Name of the system.
    ndcg, low, high : float
        Mean nDCG@k, and its 95 % interval.
    seconds : float
        Duration of its trainings.
    n_bytes : int
        Size of the model.
    """

    kind: str
    ndcg: float
    low: float
    high: float
    seconds: float
    n_bytes: int


def choose_model(ndcg: Sequence[Float64], sizes: Sequence[int]) -> int:
    """Return the number of the smallest model that is as good as the best one; see `AutoRanker`.

    Examples
    --------
    >>> good, noise = np.full(100, 0.5), np.tile([0.02, -0.02], 50)
    >>> choose_model([good, good + noise, good - 0.2], sizes=[20, 10, 1])
    1
    """
    best = int(np.argmax([figures.mean() for figures in ndcg]))
    for number in np.argsort(sizes, kind="stable"):
        loss = paired_bootstrap(ndcg[best], ndcg[number])
        if loss.low <= 0 and loss.mean <= MAX_LOSS:
            return int(number)
    return best


@dataclass(eq=False, repr=False)
class AutoRanker(LabelModel):
    """Ranker of the kind that ranks held-out rows best.

    Candidates are the members of `Fusion`, one-versus-rest where a core trains it in about five seconds, and the fusion
    of them all. They learn from a part of the rows, as `Fusion` describes, and rank the others. The smallest model that
    is as good as the best one is kept: the 95 % interval of the paired difference includes 0, and the difference is at
    most .005. It then learns from all rows.

    Parameters
    ----------
    k : int, default 10
        Length of the lists whose nDCG decides.
    hold_out : float or None, default None
        Share of the rows that is held out, once; None: as `Fusion` holds them out.
    threads : int or None
    seed : int, default 0

    Attributes
    ----------
    best_ : fitted estimator
        The model that was kept. `save` saves it alone.
    trials_ : list of Trial
        What was tried; empty if no row can be held out, because each label has one row: then `Wsabie()` is kept.

    Examples
    --------
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = AutoRanker(threads=1).fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10)
    >>> model.annotate(X[[0]], k=1)[0][0][0]
    'red'
    >>> len(model.trials_)
    7
    """

    kind = "auto"

    k: int = 10
    _: KW_ONLY
    hold_out: float | None = None
    threads: int | None = None
    seed: int = 0

    def fit(
        self,
        X: Matrix,
        Y: Labels,
        *,
        label_names: Sequence[str] | None = None,
        groups: Groups = None,
        progress: Progress = SILENT,
    ) -> Self:
        """Try the candidates, and train the one that is kept; parameters and errors are those of `Fusion.fit`."""
        self.check_parameters()
        fitted = copy(self)
        inputs, targets = fitted._open_rows(X, Y, label_names)
        rows = convert_to_matrix(inputs, fitted.n_features_in_)
        options: dict[str, Any] = {"label_names": list(fitted.vocabulary_), "progress": progress}
        candidates = self._build_candidates(rows, targets)
        folds = iterate_folds(csr_matrix(targets > 0), groups, self.seed, self.hold_out)
        parts = [part for fold in folds if (part := score_fold(candidates, rows, targets, fold, **options))]
        if parts:
            fitted._choose(candidates, HeldOut.join(parts))
        else:
            log.info("each label has one row or group, so that no row can be held out; auto takes kind wsabie untried")
            fitted.best_, fitted.trials_ = candidates[0], []
        fit_model = fitted.best_.fit_members if isinstance(fitted.best_, Fusion) else fitted.best_.fit
        fit_model(rows, targets, **options)
        fitted.best_.feature_names_in_ = fitted.feature_names_in_ = read_column_names(X)
        self._replace_state(fitted)
        return self

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        check_hold_out(self.hold_out)

    def _choose(self, candidates: Sequence[LabelModel], held_out: HeldOut) -> None:
        """Set the trials, and the best model, not yet fitted to all rows."""
        fusion, fusion_weights = Fusion(**self.get_params()), held_out.scores.search_weights(self.k)
        fusion.set_members(candidates, fusion_weights, held_out)
        models: list[Any] = [*candidates, fusion]
        weights = [*np.eye(len(candidates)), fusion_weights]
        ndcg = [held_out.scores.compute_ndcg(of_model, self.k) for of_model in weights]
        self.trials_ = [
            Trial(
                find_name(model),
                *bootstrap_all({"": figures})[""],
                float(held_out.seconds[used > 0].sum()),
                model.n_bytes,
            )
            for model, figures, used in zip(models, ndcg, weights, strict=True)
        ]
        best = choose_model(ndcg, [trial.n_bytes for trial in self.trials_])
        self.best_ = models[best]

    def _build_candidates(self, rows: Matrix, targets: Matrix) -> list[LabelModel]:
        """Return the unfitted candidates; one-versus-rest is one if it costs little."""
        candidates = build_members(None, self.threads, self.seed, rows.shape[1] * targets.shape[1])
        one_vs_rest = OneVsRest(threads=self.threads, seed=self.seed)
        n_values = rows.nnz if hasattr(rows, "tocsr") else rows.size
        cost = OneVsRest(threads=1).work(n_values, rows.shape[1], count_label_rows(targets), rows.shape[0])
        is_cheap = cost.n_bytes <= MAX_COST.n_bytes and cost.seconds <= MAX_COST.seconds
        return [*candidates, one_vs_rest] if is_cheap else candidates

    def rank(self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None) -> Ranking:
        """Return the k best labels of each row; see `Wsabie.rank`."""
        return self._best_model().rank(X, k, exclude=exclude, candidates=candidates)

    def scores(self, X: Matrix) -> Float32:
        """Return all scores, (n, n_labels) float32; see `Wsabie.scores`."""
        return self._best_model().scores(X)

    def score(self, X: Matrix, Y: Labels) -> float:
        """Return the mean average precision on rows with labels; see `Wsabie.score`."""
        self._check_fitted()
        return float(self.best_.score(X, Y))

    @property
    def label_vectors(self) -> Float32:
        """Vectors of the labels, if the kept model has some; a view."""
        return self._best_model().label_vectors

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        self._check_fitted()
        return int(self.best_.n_bytes)

    def facts(self) -> JsonObject:
        """Return sizes and figures of the kept model, and the trials, JSON-able."""
        best = self._best_model()
        return {
            **best.facts(),
            "kind": find_name(best),
            "list_length": self.k,
            "trials": [asdict(trial) for trial in self.trials_],
        }

    def to_parts(self) -> ModelState:
        """Return the kept model as JSON-able config and named arrays."""
        return self._best_model().to_parts()

    def _best_model(self) -> LabelModel:
        self._check_fitted()
        best: LabelModel = self.best_
        return best
