"""A small comparison with awkward label names, made once."""

import sys
from functools import partial
from pathlib import Path

import pytest

from wsabie.models.baselines import Popularity
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.workflows.compare.comparison import compare_models
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.compare.entrants import Entrant

sys.path[:0] = [str(Path(__file__).parent)]
from awkward_rows import toy_rows  # noqa: E402  (a helper beside this file)


@pytest.fixture(scope="session")
def comparison() -> Comparison:
    """Three models on 60 training, 24 validation and 24 test rows."""
    models = [
        Entrant("popularity", "most frequent labels", Popularity),
        Entrant("wsabie", "WARP embedding", partial(Wsabie, dim=20, epochs=4, threads=1), baseline=False, trained=True),
        Entrant("nearest", "k nearest neighbours", NearestNeighbours, ({"k": 1}, {"k": 5})),
    ]
    task = build_comparison_task(toy_rows(60, "a", 0), toy_rows(24, "b", 1), toy_rows(24, "c", 2))
    return compare_models(task, models, resamples=50)
