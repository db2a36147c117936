"""A small world whose right answers are known: tracks with features, their artists, and tracks that are alike."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space

N, GROUPS = 48, 6


def features(n: int = N, seed: int = 0) -> Any:
    """Rows with three of the five features of their group, (n, 30); no two rows are the same."""
    rng, X = np.random.default_rng(seed), np.zeros((n, 5 * GROUPS), np.float32)
    for i in range(n):
        X[i, 5 * (i % GROUPS) + rng.choice(5, 3, replace=False)] = rng.uniform(0.5, 1.5, 3)
    return sp.csr_matrix(X)


def tracks(n: int = N, seed: int = 0, prefix: str = "t", **options: Any) -> EntityKind:
    return EntityKind("track", features(n, seed), [f"{prefix}{i}" for i in range(n)], **options)


def by(n: int = N, prefix: str = "t") -> list[tuple[str, str]]:
    """Two artists for a group."""
    return [(f"{prefix}{i}", f"artist {2 * (i % GROUPS) + artist}") for i in range(n) for artist in (0, 1)]


def like(n: int = N, prefix: str = "t", step: int = GROUPS) -> list[tuple[str, str]]:
    """Tracks of a group."""
    return [(f"{prefix}{i}", f"{prefix}{i + step}") for i in range(n - step)]


def world(**options: Any) -> list[Relation]:
    """Artists of a track, and tracks like a track."""
    track_entities = tracks(**options)
    return [Relation(track_entities, "artist", by()), Relation(track_entities, track_entities, like())]


def make(**changes: Any) -> Space:
    return Space(**{"dim": 20, "epochs": 12, "threads": 1, "learning_rate": 0.1, "negatives": 32, **changes})


def same(a: Space, b: Space) -> bool:
    """Tables, points and figures agree to the last bit."""
    kinds = zip(a.kinds_.values(), b.kinds_.values(), strict=True)
    return (
        a.space_.tables.keys() == b.space_.tables.keys()
        and all(np.array_equal(table, b.space_.tables[name]) for name, table in a.space_.tables.items())
        and all(
            np.array_equal(a.compute_points(kind.name), b.compute_points(other_kind.name)) for kind, other_kind in kinds
        )
        and [(s.loss, s.validation) for s in a.history_] == [(s.loss, s.validation) for s in b.history_]
    )


def stopping(last_epoch: int) -> Callable[[Any], None]:
    """Return a callback that interrupts training after an epoch."""

    def stop(stats: Any) -> None:
        if stats.epoch == last_epoch:
            raise KeyboardInterrupt

    return stop
