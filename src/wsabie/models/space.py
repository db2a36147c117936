"""Many kinds of things in one space, trained on all their relations together ([S], parts II and III)."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.models import defaults
from wsabie.models.growing import grown, with_things
from wsabie.models.judging import SpaceMonitor
from wsabie.models.known_space import KnownSpace
from wsabie.models.parameters import check_parameters, continued, first_scale, resolve
from wsabie.models.relations import Kind, Relation, refuse_twins
from wsabie.models.told import told
from wsabie.space.joint import SimilarityName
from wsabie.space.shared import SharedSpace
from wsabie.training.checkpoints import Checkpoints
from wsabie.training.losses import RankWeight
from wsabie.training.settings import Schedule, Settings
from wsabie.training.stats import EpochStats
from wsabie.training.threads import Threads
from wsabie.training.trainer import Trainer

Auto = Literal["auto"]


class Space(KnownSpace):
    """Tracks, artists, tags, documents: points of one space, near to each other where they belong together.

    Each kind of things has a table: free vectors, or a map from features (V, so that things which training never saw
    have a point too). A relation is a ranking task over two of them: given a thing of the first kind, the things of
    the second that belong to it are to come first ([S], part II: artists of a track, tracks of an artist, artists like
    an artist, tracks like a track, tags of a track; part III: documents like a document). All are learned together with
    the WARP loss, a block of pairs of one relation after a block of another.

    Parameters
    ----------
    dim : int, default 100
    loss : {"warp", "auc"}, default "warp"
    similarity : {"dot", "euclidean", "cosine"}, default "dot"
    max_norm : float, "auto" or None
        Rows of all tables are held to this norm; None leaves them free.
    epochs : int or "auto"
        Passes over the pairs of all relations; "auto" is as for `Wsabie`, by the number of all pairs.
    learning_rate : float or "auto"
        Step of the first epoch for all tables.
    schedule : {"linear", "constant"}, default "linear"
    margin : float, default 1.0
    rank_weight : {"precision", "mean_rank", "top1"} or array, default "precision"
    max_trials : int, "auto" or None
        Negatives drawn in search of a violator.
    negatives : int, default 256
        Where things with features are ranked: how many of them are encoded for a block of pairs, so that its negatives
        are drawn from these. 0: the positives of a block are each other's negatives, and ranks are ranks among them.
    init_scale : float, {"V": float, "W": float} or None
        Standard deviation of the first tables, V of maps from features and W of free vectors; None is 1/sqrt(dim).
    patience : int or None
        With held-out pairs: epochs without a better figure before training stops, in the second half of the schedule.
    threads : int or None
        None uses every core that this process may use; the bits do not depend on it.
    seed : int, default 0

    Attributes
    ----------
    kinds_ : dict of str to KnownKind
        Names (`things`) and points of every kind.
    relations_ : list of (name, query kind, target kind)
    history_ : list of EpochStats
    settings_ : dict
    space_ : SharedSpace

    Examples
    --------
    >>> from wsabie import Kind, Relation
    >>> tracks = Kind("track", np.eye(4, dtype=np.float32), ["a", "b", "c", "d"])
    >>> by = [("a", "Bach"), ("b", "Bach"), ("c", "Cage"), ("d", "Cage")]
    >>> space = Space(dim=8, epochs=30, threads=1).fit([Relation(tracks, "artist", by)])
    >>> [space.annotate("track", "artist", np.eye(4)[[i]], k=1)[0][0][0] for i in (0, 3)]
    ['Bach', 'Cage']
    """

    def __init__(
        self,
        dim: int = 100,
        *,
        loss: Literal["warp", "auc"] = "warp",
        similarity: SimilarityName = "dot",
        max_norm: float | Auto | None = "auto",
        epochs: int | Auto = "auto",
        learning_rate: float | Auto = "auto",
        schedule: Schedule = "linear",
        margin: float = 1.0,
        rank_weight: RankWeight = "precision",
        max_trials: int | Auto | None = "auto",
        negatives: int = 256,
        init_scale: float | Mapping[str, float] | None = None,
        patience: int | None = None,
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.dim = dim
        self.loss = loss
        self.similarity = similarity
        self.max_norm = max_norm
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.margin = margin
        self.rank_weight = rank_weight
        self.max_trials = max_trials
        self.negatives = negatives
        self.init_scale = init_scale
        self.patience = patience
        self.threads = threads
        self.seed = seed

    # ---- training

    def fit(
        self,
        relations: Sequence[Relation],
        *,
        validation: Sequence[Relation] = (),
        stop_on: str = "mean",
        checkpoint: str | Path | None = None,
        resume: bool = False,
        fingerprint: str = "",
        progress: Progress = SILENT,
        on_epoch: Callable[[EpochStats], None] | None = None,
    ) -> Self:
        """Train from nothing (or, with `resume`, from the checkpoint).

        Parameters
        ----------
        relations : sequence of Relation
        validation : sequence of Relation
            Held-out pairs of some of them, by the same names. A kind with features of its own (`Kind("track", X)`)
            brings things that training does not see; else the pairs are between things that it does.
        stop_on : str
            What chooses the epoch: "mean" (of the mean average precision over these relations), or one of them.
        checkpoint, resume, fingerprint, progress, on_epoch
            As of `Wsabie.fit`.

        Raises
        ------
        InputError
            Kinds, pairs or parameters that cannot be used; the sentence says which.
        DivergenceError
            Training produced numbers that are not finite.
        """
        self.check_parameters()
        data = told(relations)
        settings = self._settings(data.n_pairs)
        fitted = copy(self)
        fitted.kinds_ = data.known
        fitted.relations_ = [(one.name, one.query_kind, one.target_kind) for one in relations]
        fitted.settings_ = plain(asdict(settings))
        std = first_scale(self.init_scale, self.dim)
        scales = {kind.table: std["V" if kind.n_features else "W"] for kind in data.known.values()}
        rng = np.random.default_rng([self.seed, 0])
        fitted.space_ = SharedSpace.random(data.table_sizes, self.dim, self.similarity, rng, scales)
        monitor = None
        if validation:
            refuse_twins(validation)
            monitor = SpaceMonitor([data.judged(one) for one in validation], settings.threads, stop_on)
        checkpoints = None
        if checkpoint is not None:
            told_of = [fingerprint, data.checksum(), None if monitor is None else monitor.identity()]
            checkpoints = Checkpoints(checkpoint, self._identity(settings, told_of), resume=resume)
        trainer = Trainer(settings, monitor=monitor, on_epoch=on_epoch, checkpoints=checkpoints, progress=progress)
        blocks = data.blocks(self.negatives)
        fitted.history_ = trainer.train(fitted.space_, lambda epoch: blocks, _visits(blocks))
        with Threads(settings.threads) as threads:
            for kind in fitted.kinds_.values():
                if kind.n_features:
                    kind.points = kind.points_of(fitted.space_, data.inputs[kind.name], threads)
        self.__dict__.pop("_searched", None)
        self.__dict__.update(fitted.__dict__)
        return self

    def partial_fit(self, relations: Sequence[Relation], *, epochs: int = 5) -> Self:
        """Go on with more things and pairs; numbers stay, new things get the next ones.

        What features are mapped by stays as it is, so that all points keep their meaning and no features need to be
        given again. New things with features are where the map puts them; new ones without begin at the mean of the
        points that they are paired with. Then free vectors are trained on the given pairs, against everything known,
        with a quarter of `fit`'s learning rate. On a space that was never fitted this is `fit`.

        Parameters
        ----------
        relations : sequence of Relation
            Pairs that involve new things, known ones or both; other relations than `fit` had are learned too, between
            kinds of which one has no features.
        epochs : int

        Raises
        ------
        InputError
            As `fit`; or features of a kind that the space does not know.
        DivergenceError
            The space is as it was.

        Examples
        --------
        >>> from wsabie import Kind, Relation
        >>> tracks = Kind("track", np.eye(4, dtype=np.float32), ["a", "b", "c", "d"])
        >>> by = [("a", "Bach"), ("b", "Bach"), ("c", "Cage"), ("d", "Cage")]
        >>> space = Space(dim=8, epochs=30, threads=1).fit([Relation(tracks, "artist", by)])
        >>> space.partial_fit([Relation("track", "artist", [("d", "John Cage")])]).things("artist")
        ['Bach', 'Cage', 'John Cage']
        """
        check_parameters({**_FIXED, **self.get_params(), "epochs": epochs})
        if not hasattr(self, "space_"):
            fresh = self.epochs
            try:
                self.set_params(epochs=epochs).fit(relations)
                return self
            finally:
                self.set_params(epochs=fresh)
        before = len(self.history_)
        more = grown(self.kinds_, self.space_, relations, self.seed)
        n_pairs = _visits(more.blocks)
        history: list[EpochStats] = []
        if more.blocks:
            shape = defaults.Shape(n_pairs, n_pairs, 2**31 - 1)
            parameters = {**_FIXED, **self.get_params()}
            settings = continued(parameters, self.settings_, shape, epochs, self.seed + before)
            history = Trainer(settings).train(more.points, lambda epoch: more.blocks, n_pairs)
        known = {name for name, _, _ in self.relations_}
        learned = {block.ends.name for block in more.blocks} - known
        self.relations_ = [
            *self.relations_,
            *((one.name, one.query_kind, one.target_kind) for one in relations if one.name in learned),
        ]
        self.kinds_, self.space_ = more.kinds, more.settled()
        self.history_ = [*self.history_, *(replace(stats, epoch=before + stats.epoch) for stats in history)]
        self.__dict__.pop("_searched", None)
        return self

    def add(self, kind: Kind) -> Self:
        """Place more things of a kind with features where its map puts them; nothing is trained.

        Things that are known already move to where their new features put them.

        Raises
        ------
        InputError
            The space does not know the kind, its things have no features, or others.
        """
        known = self.known(kind.name)
        more = with_things(replace(known, things=known.things.copy()), kind, self.space_)
        self.kinds_ = {**self.kinds_, kind.name: more}
        self.__dict__.pop("_searched", None)
        return self

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        require(self.loss in ("warp", "auc"), f"loss is {self.loss!r}; choose one of warp, auc")
        negatives = self.negatives
        usable = (
            isinstance(negatives, (int, np.integer)) and not isinstance(negatives, bool) and 0 <= negatives <= 65536
        )
        require(usable, f"negatives is {negatives!r}; choose a whole number from 0 to 65,536")
        check_parameters({**_FIXED, **self.get_params()})

    def _settings(self, n_pairs: int) -> Settings:
        """Every "auto" resolved; a relation with many pairs a query weighs them in `told.pair_weights`."""
        return resolve({**_FIXED, **self.get_params()}, defaults.Shape(n_pairs, n_pairs, 2**31 - 1))

    def _identity(self, settings: Settings, data: list[Any]) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("dim", "similarity", "negatives", "init_scale")}
        identity = {**asdict(settings), **named, "data": data}
        del identity["threads"]
        same: dict[str, Any] = plain(identity)
        return same


_FIXED: Mapping[str, Any] = {
    "order_statistic": None,
    "sampler": "uniform",
    "rank_from": "auto",
    "surrogate": "hinge",
    "l2": 0.0,
    "positives": "mean",
    "label_bias": False,
    "deterministic": True,
}
"""Parameters of `Wsabie` that a space has no choice of."""


def _visits(blocks: Sequence[Any]) -> int:
    """Pairs that are visited in an epoch."""
    return int(sum(round(len(block.targets.labels) * block.weight) for block in blocks))
