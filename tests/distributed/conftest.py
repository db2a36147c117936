"""A Ray cluster of two nodes with a core each, on this machine."""

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from wsabie.distributed import ray_cluster as module
from wsabie.distributed.ray_executor import RayExecutor

for name, value in (module.QUIET | module.LOOPBACK).items():  # read when ray is imported
    os.environ.setdefault(name, value)

NOTICED = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""A lost node is noticed in seconds; by itself Ray takes half a minute."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head and a second node; `cluster.add_node(num_cpus=1)` brings another."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": NOTICED}
        found = Cluster(initialize_head=True, head_node_args=head)
        found.add_node(num_cpus=1)
        yield found
        module.disconnect()
        found.shutdown()


@pytest.fixture
def nodes(cluster: Any) -> Iterator[RayExecutor]:
    """An executor on both nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield RayExecutor(cluster.address)
