"""A Ray cluster of two nodes with a core each, on this machine."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wsabie.distributed import ray_cluster as module
from wsabie.distributed.ray_cluster import RayExecutor

for name, value in (module.QUIET_VARIABLES | module.LOOPBACK_VARIABLES).items():  # read when ray is imported
    os.environ.setdefault(name, value)

NOTICED = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""A lost node is noticed in seconds; by itself Ray takes half a minute."""


_clusters: list[Any] = []  # the one that runs


@pytest.fixture
def cluster() -> Any:
    """A head and a second node, for all tests of the folder; `cluster.add_node(num_cpus=1)` brings another."""
    if not _clusters:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's own
            from ray.cluster_utils import Cluster

            head = {"num_cpus": 1, "include_dashboard": False, "_system_config": NOTICED}
            _clusters.append(Cluster(initialize_head=True, head_node_args=head))
            _clusters[0].add_node(num_cpus=1)
    return _clusters[0]


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The cluster ends with the tests of this folder: its processes work all the time."""
    if _clusters and (nextitem is None or nextitem.path.parent != Path(__file__).parent):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.disconnect()
            _clusters.pop().shutdown()


@pytest.fixture
def nodes(cluster: Any) -> Iterator[RayExecutor]:
    """An executor on both nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield RayExecutor(cluster.address)
