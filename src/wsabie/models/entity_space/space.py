"""Many kinds of items in one space, trained on all their relations (Bengio 2012, parts II and III).

`wsabie.training.relation_turns` decides in which order the relations train within an epoch.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, asdict, dataclass, replace
from pathlib import Path
from typing import Literal, Self, cast

import numpy as np
from scipy.sparse import csr_matrix, hstack

from wsabie.core.errors import require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import to_json_value
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.models.base import hyperparameters
from wsabie.models.base.feature_matrix import take_rows
from wsabie.models.base.parameter_defaults import TrainingShape, has_ridge_start
from wsabie.models.base.ridge_start import place_at_ridge
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.entity_space.fitted_entities import add_entities, grow_space
from wsabie.models.entity_space.fitted_space import FittedSpace
from wsabie.models.entity_space.relation_data import RelationData, SpaceMonitor, prepare_relation_data
from wsabie.models.entity_space.relations import EntityKind, Relation, require_unique_names
from wsabie.training.checkpoints import CheckpointFolder, identify_run
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import TrainingData

_MANY_LABELS = 2**31 - 1
"""Number of labels for settings, because targets differ from relation to relation."""


@dataclass(eq=False, repr=False)
class Space(hyperparameters.LoopParameters, FittedSpace):
    """Joint embedding of several kinds of items, such as tracks, artists, tags and documents.

    Each kind has a table: free vectors, or a map V from features, which gives new items a point too. A relation is a
    ranking task over two kinds: given an item of the first, related items of the second shall come first. Bengio 2012
    has artists of a track, tracks of an artist, artists like an artist, tracks like a track and tags of a track in
    part II, documents like a document in part III. All relations are learned together with the WARP loss, in
    alternating blocks of pairs.

    Parameters
    ----------
    dim : int, default 100
    loss : {"warp", "auc"}, default "warp"
    similarity : {"dot", "euclidean", "cosine"}, default "dot"
    max_norm : float, "auto" or None
        Limit on the norm of rows of all tables; None means no limit.
    epochs : int or "auto"
        Passes over the pairs of all relations; "auto" depends on the number of pairs, see `Wsabie`.
    learning_rate : float or "auto"
        Learning rate of the first epoch for all tables.
    schedule : {"linear", "constant"}, default "linear"
    margin : float, default 1.0
    rank_weight : {"precision", "mean_rank", "top1"} or array, default "precision"
    max_sampled : int, "auto" or None
        Negatives drawn in search of a violator.
    negatives : int, default 256
        Items with features that are encoded for a block of pairs, whose negatives are drawn from them. 0: the
        positives of a block are each other's negatives, and ranks count among them.
    init : {"auto", "random", "ridge"}, default "auto"
        "ridge": maps from features and the free vectors that their items are paired with begin at a ridge regression,
        as in `Wsabie`; other tables begin at random. "auto" is "ridge" with the WARP loss, inner products or cosines,
        and no stated `learning_rate` or `init_scale`, unless a relation joins two kinds with features.
    init_scale : float, {"V": float, "W": float} or None
        Standard deviation of the first tables, V of maps from features and W of free vectors; None is 1/sqrt(dim).
    patience : int or None
        With held-out pairs: epochs without a better figure before training stops, in the second half of the schedule.
    threads : int or None
        None uses every core that this process may use; the bits do not depend on it.
    seed : int, default 0

    Attributes
    ----------
    kinds_ : dict of str to FittedEntities
        Names (`entity_names`) and points of every kind.
    relations_ : list of (name, query kind, target kind)
    history_ : list of EpochStats
    settings_ : dict
    space_ : MultiRelationSpace

    Examples
    --------
    >>> from wsabie import EntityKind, Relation
    >>> tracks = EntityKind("track", np.eye(4, dtype=np.float32), ["a", "b", "c", "d"])
    >>> by = [("a", "Bach"), ("b", "Bach"), ("c", "Cage"), ("d", "Cage")]
    >>> space = Space(dim=8, epochs=30, threads=1).fit([Relation(tracks, "artist", by)])
    >>> [space.annotate("track", "artist", np.eye(4)[[i]], k=1)[0][0][0] for i in (0, 3)]
    ['Bach', 'Cage']
    """

    dim: int = 100
    _: KW_ONLY
    loss: Literal["warp", "auc"] = "warp"
    negatives: int = 256
    init: Literal["auto", "random", "ridge"] = "auto"
    _own_limits = ("negatives",)

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
        """Train a new space, or with `resume` continue from the checkpoint.

        Parameters
        ----------
        relations : sequence of Relation
        validation : sequence of Relation
            Held-out pairs of some relations, by the same names. A kind with its own features
            (`EntityKind("track", X)`) has new items; other pairs are between items of the training data.
        stop_on : str
            Figure that chooses the epoch: "mean" of the relations' mean average precision, or one relation.
        checkpoint, resume, fingerprint, progress, on_epoch
            See `Wsabie.fit`.

        Raises
        ------
        InputError
            Kinds, pairs or parameters that cannot be used; the message says which.
        DivergenceError
            Training produced numbers that are not finite.
        """
        self.check_parameters()
        parameters = self._list_parameters()
        data = prepare_relation_data(relations, self.init if has_ridge_start(parameters) else "random")
        parameters["init"] = "ridge" if data.ridge_pairs else "random"
        # `compute_pair_weights` weighs pairs per query
        shape = TrainingShape(data.n_pairs, data.n_pairs, _MANY_LABELS)
        settings = hyperparameters.resolve_settings(parameters, shape)
        fitted = copy(self)
        fitted.kinds_ = data.entities
        fitted.relations_ = [(relation.name, relation.query_kind, relation.target_kind) for relation in relations]
        fitted.settings_ = to_json_value(asdict(settings))
        std = hyperparameters.resolve_init_scale(self.init_scale, self.dim)
        scales = {kind.table: std["V" if kind.n_features else "W"] for kind in data.entities.values()}
        rng = np.random.default_rng([self.seed, 0])
        fitted.space_ = MultiRelationSpace.random(data.table_sizes, self.dim, self.similarity, rng, scales)
        place_tables_at_ridge(fitted.space_, data, settings)
        monitor = None
        if validation:
            require_unique_names(validation)
            monitor = SpaceMonitor([data.holdout_pairs(relation) for relation in validation], settings.threads, stop_on)
        checkpoints = None
        if checkpoint is not None:
            training_data = [fingerprint, data.checksum(), None if monitor is None else monitor.identity()]
            names = ("dim", "similarity", "negatives", "init", "init_scale")
            identity = identify_run(settings, {name: getattr(self, name) for name in names}, training_data)
            checkpoints = CheckpointFolder(checkpoint, identity, resume=resume)
        trainer = Trainer(settings, monitor=monitor, on_epoch=on_epoch, checkpoints=checkpoints, progress=progress)
        fitted.history_ = trainer.train(fitted.space_, TrainingData(data.blocks(self.negatives)))
        with KernelThreads(settings.threads) as threads:
            for kind in fitted.kinds_.values():
                if kind.n_features:
                    kind.points = kind.compute_points(fitted.space_, data.inputs[kind.name], threads.split)
        self._replace_state(fitted)
        return self

    def partial_fit(self, relations: Sequence[Relation], *, epochs: int = 5) -> Self:
        """Continue training with more items and pairs; numbers stay, and new items get the next ones.

        Maps from features stay fixed, so all points keep their meaning and old features are not needed again. The map
        gives new items with features their points; new items without begin at the mean of the points that they are
        paired with. Then the free vectors of the given pairs are trained against all items, with a quarter of `fit`'s
        learning rate. On an unfitted space this is `fit`.

        Parameters
        ----------
        relations : sequence of Relation
            Pairs of new or old items. New relations are possible between kinds of which one has no features.
        epochs : int

        Raises
        ------
        InputError
            See `fit`; or a kind with features is unknown to the space.
        DivergenceError
            Training diverged; the space is unchanged.

        Examples
        --------
        >>> from wsabie import EntityKind, Relation
        >>> tracks = EntityKind("track", np.eye(4, dtype=np.float32), ["a", "b", "c", "d"])
        >>> by = [("a", "Bach"), ("b", "Bach"), ("c", "Cage"), ("d", "Cage")]
        >>> space = Space(dim=8, epochs=30, threads=1).fit([Relation(tracks, "artist", by)])
        >>> space.partial_fit([Relation("track", "artist", [("d", "John Cage")])]).entity_names("artist")
        ['Bach', 'Cage', 'John Cage']
        """
        self._check_run(epochs)
        if not hasattr(self, "space_"):
            return self._fit_first(epochs, relations)
        n_past_epochs = len(self.history_)
        growth = grow_space(self.kinds_, self.space_, relations, self.seed)
        history: list[EpochStats] = []
        if growth.blocks:
            data = TrainingData(growth.blocks)
            shape = TrainingShape(data.n_pairs, data.n_pairs, _MANY_LABELS)
            settings = hyperparameters.resolve_continued_settings(
                self._list_parameters(), self.settings_, shape, epochs, self.seed + n_past_epochs
            )
            history = Trainer(settings).train(growth.points, data)
        old_relations = {name for name, _, _ in self.relations_}
        new_relations = {block.ends.name for block in growth.blocks if block.ends} - old_relations
        ends = [(relation.name, relation.query_kind, relation.target_kind) for relation in relations]
        self.relations_ = [*self.relations_, *(relation for relation in ends if relation[0] in new_relations)]
        moved = {name: table for name, table in growth.points.tables.items() if name not in growth.points.frozen}
        self.kinds_, self.space_ = growth.kinds, replace(self.space_, tables=self.space_.tables | moved)
        self.history_ = [*self.history_, *(replace(stats, epoch=n_past_epochs + stats.epoch) for stats in history)]
        return self

    def add(self, kind: EntityKind) -> Self:
        """Add items to a kind with features, at the points that its map gives; nothing is trained.

        Items that the space has already move to the points of their new features.

        Parameters
        ----------
        kind : EntityKind
            Items with features.

        Raises
        ------
        InputError
            The space does not know the kind, or the kind has no features or other ones.
        """
        entities = self.find_entities(kind.name)
        grown = add_entities(replace(entities, vocabulary=entities.vocabulary.copy()), kind, self.space_)
        self.kinds_ = {**self.kinds_, kind.name: grown}
        return self

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        self._check_run(self.epochs)

    def _check_run(self, epochs: int | hyperparameters.Auto) -> None:
        hyperparameters.check_types(type(self), {**self.get_params(), "epochs": epochs})
        is_usable = hyperparameters.is_whole(self.negatives) and 0 <= self.negatives <= 65536
        require(is_usable, f"negatives is {self.negatives!r}; choose a whole number from 0 to 65,536")
        hyperparameters.check_training(self._list_parameters())


def place_tables_at_ridge(space: MultiRelationSpace, data: RelationData, settings: TrainingSettings) -> None:
    """Move the tables of `data.ridge_pairs` to ridge regressions, one for each kind with features.

    All free vectors that items of the kind are paired with are the labels of one regression, so that they share the
    map. Items without such a pair are no rows of it.
    """
    for name, pairs in data.ridge_pairs.items():
        kind, inputs = data.entities[name], data.inputs[name]
        scaling = cast(RowScaling, kind.scaling)
        Y = csr_matrix(hstack(list(pairs.values())) > 0, dtype=np.int8)
        with_pairs = np.flatnonzero(np.diff(Y.indptr))
        if len(with_pairs) < Y.shape[0]:
            inputs, Y = take_rows(inputs, with_pairs), Y[with_pairs]
        vectors = [space.tables[free_name] for free_name in pairs]
        labels, bias = np.concatenate(vectors), np.zeros(Y.shape[1], np.float32)
        regression = JointSpace(space.dim, space.similarity, space.tables[kind.table], labels, bias)
        rows = TrainingRows(inputs, Y)
        with KernelThreads(settings.threads) as threads:
            place_at_ridge(regression, rows, scaling, settings.margin, threads.split, settings.seed)
        ends = np.cumsum([len(table) for table in vectors])
        for table, part in zip(vectors, np.split(regression.labels, ends[:-1]), strict=True):
            table[:] = part
