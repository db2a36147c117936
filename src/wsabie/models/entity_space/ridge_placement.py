"""Ridge start of a space: maps from features, and the free vectors that their items are paired with."""

from typing import cast

import numpy as np
from scipy.sparse import csr_matrix, hstack

from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.multi_relation_space import MultiRelationSpace
from wsabie.models.base.feature_matrix import take_rows
from wsabie.models.base.ridge_start import place_at_ridge
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.entity_space.relation_data import RelationData
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.settings import TrainingSettings


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
