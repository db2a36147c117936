"""Counts and moments of rows in shards, updated a shard at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from wsabie.storage.column_files import ColumnTable


class ShardStatistics:
    """Statistics of all rows for training, updated shard by shard."""

    def __init__(self, width: int, n_labels: int, dense: bool) -> None:
        self.dense, self.rows, self.nonzeros, self.least = dense, 0, 0, 0.0
        self.of_label = np.zeros(n_labels, np.int64)
        self.above_0 = np.zeros(width, np.int64)
        self.mean, self.squares = np.zeros(width), np.zeros(width)
        self.pairs = self.denied = 0

    def add(self, columns: ColumnTable) -> None:
        """Count the rows of a shard."""
        y = columns.lists["y"]
        signs = y.parts.get("signs", np.ones(len(y.parts["labels"]), np.int8))
        true = y.parts["labels"][signs > 0]
        self.of_label += np.bincount(true, minlength=len(self.of_label))
        self.pairs, self.denied = self.pairs + len(true), self.denied + len(signs) - len(true)
        values: Any
        if self.dense:
            values = columns.numbers["features"].astype(np.float32)
            if len(values):  # a shard of few rows may have none
                self._update_moments(values)
        else:
            indices, values = (columns.lists["x"].parts[key] for key in ("indices", "values"))
            positive_columns = indices if (values > 0).all() else indices[values > 0]
            self.above_0 += np.bincount(positive_columns, minlength=len(self.above_0))
        self.rows, self.nonzeros = self.rows + len(columns), self.nonzeros + values.size
        self.least = min(self.least, float(values.min(initial=0)))

    def _update_moments(self, values: Any) -> None:
        """Update mean and squared gaps from those of a part (Chan, Golub and LeVeque 1983)."""
        n, mean = len(values), values.mean(0, dtype=np.float64)
        gap, n_total = mean - self.mean, max(self.rows + n, 1)
        self.squares += np.square(values - mean).sum(0) + gap * gap * self.rows * n / n_total
        self.mean += gap * n / n_total

    def facts(self) -> dict[str, Any]:
        """Return the numbers that stand in the manifest."""
        return {
            "rows": self.rows,
            "features": len(self.above_0),
            "labels": len(self.of_label),
            "nonzeros": self.nonzeros,
            "pairs": self.pairs,
            "denied": self.denied,
            "dense": self.dense,
            "least": self.least,
        }

    def arrays(self) -> dict[str, Mapping[str, Any]]:
        """Return the arrays of `ShardFolder.statistics`."""
        if self.dense:
            features = {"mean": self.mean, "deviation": np.sqrt(self.squares / max(self.rows, 1))}
        else:
            features = {"rows_above_0": self.above_0}
        return {"features": features, "labels": {"rows_of_label": self.of_label}}
