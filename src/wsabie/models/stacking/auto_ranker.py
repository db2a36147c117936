"""Choice of the kind of model by rows that the candidates did not learn from."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int64, Matrix
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import count_label_rows
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.label_model import Candidates, Exclusion, LabelModel, Ranking
from wsabie.models.base.parameter_defaults import WEIGHT_TRIALS, TrainingShape, default_epochs, default_linear_epochs
from wsabie.models.baselines import NearestMean
from wsabie.models.estimator_specs import find_name
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import RIDGE_DIRECTIONS, LinearRanker
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.models.ridge import MAX_EXACT_FEATURES, Ridge
from wsabie.models.stacking.fusion import Fusion, build_members
from wsabie.models.stacking.fusion_weights import search_weights
from wsabie.models.stacking.holdout_scores import Fold, HoldoutModel, HoldoutScores, score_fold
from wsabie.storage.model_folder import ModelState

log = logging.getLogger("wsabie")
MAX_LOSS = 0.005
"""Most nDCG that a smaller model may lose against the best one."""
FEW_ROWS = 300
"""Held-out rows from which on a candidate can be surely worse than another."""
MIN_SECONDS = 2.0
"""Least budget, so that small data are held out in all parts."""


SECONDS_PER_PRODUCT = 1.5e-9
"""Time of the product of a value of a sparse row and an entry of a table outside the cache, on one core."""
SECONDS_PER_DENSE_PRODUCT = 2e-11
"""Time of a product in a matrix product of dense arrays."""
SECONDS_PER_DRAW = 2.2e-10
"""Time of a drawn label in training, per dimension."""
SECONDS_PER_VISIT = 4e-7
"""Time of a visit of a pair in training, beside products and draws."""
MAX_BYTES = 100_000_000
"""Largest one-versus-rest that is tried."""
COST_SHARE = 0.25
"""Share of the estimate of `OneVsRest.work`, which is high because it is for refusing jobs of hours."""
SECONDS_PER_HOLDOUT_ROW = 2.5e-4
"""Time per held-out row of the search for weights and of the intervals."""
LABELS_PER_DRAW = 30
"""Labels per further draw until a violator is found, on average."""


class DataSize(NamedTuple):
    """Size of training data: the rows of each label, and the stored values of the rows."""

    shape: TrainingShape
    label_rows: Int64
    n_values: int
    is_sparse: bool

    @classmethod
    def measure(cls, rows: Matrix, targets: Matrix) -> "DataSize":
        """Measure rows and their signed label matrix."""
        label_rows, is_sparse = count_label_rows(targets), hasattr(rows, "tocsr")
        shape = TrainingShape(rows.shape[0], int(label_rows.sum()), targets.shape[1], rows.shape[1])
        return cls(shape, label_rows, rows.nnz if is_sparse else rows.size, is_sparse)

    @property
    def row_values(self) -> float:
        """Mean number of stored values of a row."""
        return self.n_values / max(self.shape.n_rows, 1)

    def count_draws(self, most: float) -> float:
        """Return the mean number of draws of a visit."""
        return min(most, 1 + self.shape.n_labels / LABELS_PER_DRAW)


@singledispatch
def estimate_seconds(model: LabelModel, size: DataSize) -> float:
    """Return the estimated seconds of a fit on one core of 2.5 GHz, and of scoring a fifth of the rows.

    The estimate comes from constants, so that every machine chooses alike; a fit may take half or twice as long.
    """
    raise NotImplementedError(type(model).__name__)


@estimate_seconds.register(Wsabie)
def _estimate_embedding(model: Any, size: DataSize) -> float:
    per_dimension = SECONDS_PER_DENSE_PRODUCT * 3 * size.row_values + SECONDS_PER_DRAW * size.count_draws(1000)
    visit = SECONDS_PER_VISIT + model.dim * per_dimension
    return float(default_epochs(size.shape) * size.shape.n_pairs * visit)


@estimate_seconds.register(LinearRanker)
def _estimate_linear(model: Any, size: DataSize) -> float:
    products = size.row_values * size.count_draws(WEIGHT_TRIALS)
    per_product = SECONDS_PER_PRODUCT if size.is_sparse else SECONDS_PER_DENSE_PRODUCT
    visit = SECONDS_PER_VISIT + 2 * per_product * products
    return _estimate_ridge(model, size) + default_linear_epochs(size.shape) * size.shape.n_pairs * visit


@estimate_seconds.register(Ridge)
def _estimate_ridge(model: Any, size: DataSize) -> float:
    n, _, n_labels, width = size.shape
    if size.is_sparse and width > MAX_EXACT_FEATURES:
        return SECONDS_PER_PRODUCT * RIDGE_DIRECTIONS * 6 * size.n_values
    side = min(n, width)
    solution = SECONDS_PER_DENSE_PRODUCT * (side**3 / 3 + side**2 * n_labels)
    if size.is_sparse:
        return solution + SECONDS_PER_PRODUCT * size.n_values * size.row_values + _estimate_sums(model, size)
    return solution + SECONDS_PER_DENSE_PRODUCT * n * width * side + _estimate_sums(model, size)


@estimate_seconds.register(NearestMean)
def _estimate_sums(model: Any, size: DataSize) -> float:
    return 10 * SECONDS_PER_PRODUCT * size.n_values * size.shape.n_pairs / max(size.shape.n_rows, 1)


@estimate_seconds.register(NearestNeighbours)
def _estimate_neighbours(model: Any, size: DataSize) -> float:
    per_product = SECONDS_PER_PRODUCT if size.is_sparse else SECONDS_PER_DENSE_PRODUCT
    return per_product * size.n_values / 5 * size.n_values / size.shape.n_features


@estimate_seconds.register(OneVsRest)
def _estimate_one_vs_rest(model: Any, size: DataSize) -> float:
    cost = OneVsRest(threads=1).work(size.n_values, size.shape.n_features, size.label_rows, size.shape.n_rows)
    return cost.seconds * COST_SHARE if cost.n_bytes <= MAX_BYTES else np.inf


@dataclass(frozen=True)
class KindTrial:
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


def build_trial(model: Any, ndcg: Float64, seconds: float) -> KindTrial:
    """Return the trial of a model with the nDCG of each held-out row."""
    return KindTrial(find_name(model), *bootstrap_all({"": ndcg})[""], float(seconds), int(model.n_bytes))


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
class AutoRanker(HoldoutModel):
    """Ranker of the kind that ranks held-out rows best.

    Candidates are the members of `Fusion`, one-versus-rest, and the fusion of them all. They learn from a part of the
    rows, as `Fusion` describes, and rank the others. The smallest model that is as good as the best one is kept: the
    95 % interval of the paired difference includes 0, and the difference is at most .005. It then learns from all rows.

    The budget holds for all trainings, by estimates from constants, so that every machine chooses alike; the log
    (`logging.getLogger("wsabie")`) states it first. The cheapest candidates come first, and those that it does not
    reach are left out. After each part that is held out, from 300 rows on, candidates leave that are surely worse than
    the best one and no help to the fusion. The next part follows if the budget allows it.

    Parameters
    ----------
    k : int, default 10
        Length of the lists whose nDCG decides.
    hold_out : float or None, default None
        Share of the rows that is held out, once; None: as `Fusion` holds them out.
    budget : float, default 6.0
        Time of all trainings, as a multiple of one of `Wsabie()`; two seconds are always allowed.
    threads : int or None, default None
        Threads of candidates that have this parameter; None uses every core that this process may use.
    seed : int, default 0
        Seed of the held-out rows, and of candidates that have a seed.

    Attributes
    ----------
    best_ : fitted estimator
        The model that was kept. `save` saves it alone.
    trials_ : list of KindTrial
        Candidates with their figures; empty if no row can be held out, because each label has one row: then
        `Wsabie()` is kept.

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
    budget: float = 6.0
    threads: int | None = None
    seed: int = 0

    def _learn(self, rows: Matrix, targets: Matrix, folds: Iterable[Fold], options: dict[str, Any]) -> None:
        """Try the candidates, and train the one that is kept."""
        self.trials_: list[KindTrial] = []
        parts: list[HoldoutScores] = []
        candidates, costs, limit = self._plan(DataSize.measure(rows, targets))
        for fold in folds:
            share, overhead = len(fold[0]) / rows.shape[0], SECONDS_PER_HOLDOUT_ROW * len(fold[1])
            if sum(len(part.n_positives) for part in parts) >= FEW_ROWS:
                numbers = self._find_survivors(candidates, HoldoutScores.join(parts).standardise())
                parts = [part.select(numbers) for part in parts]
                candidates, costs = [candidates[i] for i in numbers], [costs[i] for i in numbers]
            if parts and limit < (share + 1) * sum(costs) + overhead:
                break
            limit -= share * sum(costs) + overhead
            if part := score_fold(candidates, rows, targets, fold, **options):
                parts.append(part)
        if parts:
            self._choose(candidates, HoldoutScores.join(parts).standardise())
        else:
            log.info("each label has one row or group, so that no row can be held out; auto takes kind wsabie untried")
            (self.best_,) = build_members([Wsabie()], self.threads, self.seed, 0)
        fit_model = self.best_.fit_members if isinstance(self.best_, Fusion) else self.best_.fit
        fit_model(rows, targets, **options)
        self.best_._copy_schema(self)

    def _plan(self, size: DataSize) -> tuple[list[LabelModel], list[float], float]:
        """Return the unfitted candidates, their estimated seconds, and the budget in seconds, for the log."""
        members = build_members(None, self.threads, self.seed, size.shape.n_features * size.shape.n_labels)
        members.append(OneVsRest(threads=self.threads, seed=self.seed))
        costs = np.array([estimate_seconds(member, size) for member in members])
        limit = max(self.budget * costs[0], MIN_SECONDS)
        order = [number for number in np.argsort(costs, kind="stable").tolist() if number]
        # `Wsabie` comes in any case; a candidate is trained twice or more
        n_affordable = int(np.sum(2 * np.cumsum(costs[order]) <= limit - 2 * costs[0]))
        numbers = sorted([0, *order[:n_affordable]], key=lambda number: costs[number])
        names = ", ".join(find_name(members[number]) for number in numbers)
        expensive_names = ", ".join(find_name(members[number]) for number in order[n_affordable:])
        reason = f", and leaves out what costs more: {expensive_names}" if expensive_names else ""
        log.info(f"auto tries {names} and their fusion, for about {limit:.1f} s on one core{reason}")
        return [members[number] for number in numbers], costs[numbers].tolist(), limit

    def _find_survivors(self, candidates: Sequence[LabelModel], holdout: HoldoutScores) -> list[int]:
        """Return the numbers of candidates that the next part tests too, and record the trials of the losers."""
        ndcg = [holdout.compute_ndcg(unit, self.k) for unit in np.eye(len(candidates))]
        best, weights = int(np.argmax([figures.mean() for figures in ndcg])), search_weights(holdout, self.k)
        numbers = range(len(candidates))
        survivors = [i for i in numbers if weights[i] > 0 or paired_bootstrap(ndcg[best], ndcg[i]).low <= 0]
        losers = [i for i in numbers if i not in survivors]
        self.trials_ += [build_trial(candidates[i], ndcg[i], holdout.seconds[i]) for i in losers]
        return survivors

    def _choose(self, candidates: Sequence[LabelModel], holdout: HoldoutScores) -> None:
        """Set the trials, and the best model, not yet fitted to all rows."""
        fusion_weights = search_weights(holdout, self.k)
        fusion = Fusion(k=self.k, hold_out=self.hold_out, threads=self.threads, seed=self.seed)
        fusion.set_members(candidates, fusion_weights, holdout)
        models: list[Any] = [*candidates, fusion]
        weights = [*np.eye(len(candidates)), fusion_weights]
        ndcg = [holdout.compute_ndcg(model_weights, self.k) for model_weights in weights]
        trials = [
            build_trial(model, figures, holdout.seconds[model_weights > 0].sum())
            for model, figures, model_weights in zip(models, ndcg, weights, strict=True)
        ]
        self.trials_ += trials
        self.best_ = models[choose_model(ndcg, [trial.n_bytes for trial in trials])]

    def rank(self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None) -> Ranking:
        return self._get_best_model().rank(X, k, exclude=exclude, candidates=candidates)

    def scores(self, X: Matrix) -> Float32:
        return self._get_best_model().scores(X)

    def score(self, X: Matrix, Y: Labels) -> float:
        """Return the mean average precision on rows with labels, 0 to 1.

        Parameters
        ----------
        X, Y
            See `Wsabie.score`.

        Returns
        -------
        float
        """
        return float(self._get_best_model().score(X, Y))

    @property
    def label_vectors(self) -> Float32:
        """Vectors of the labels, if the kept model has some; a view."""
        return self._get_best_model().label_vectors

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        self._check_fitted()
        return int(self.best_.n_bytes)

    def facts(self) -> JsonObject:
        """Return sizes and figures of the kept model, and the trials, JSON-able.

        Returns
        -------
        dict
            Facts of the best model, and "trials".
        """
        best, trials = self._get_best_model(), [asdict(trial) for trial in self.trials_]
        return {**best.facts(), "kind": find_name(best), "list_length": self.k, "trials": trials}

    def to_state(self) -> ModelState:
        """Return the kept model as JSON-able config and named arrays.

        Returns
        -------
        ModelState
        """
        return self._get_best_model().to_state()

    def _get_best_model(self) -> LabelModel:
        self._check_fitted()
        best: LabelModel = self.best_
        return best
