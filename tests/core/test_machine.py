"""Description of this machine: cores, versions, BLAS threads."""

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from wsabie.core import machine
from wsabie.core.machine import collect_versions, count_available_cores, limit_blas_threads


def test_cores_respect_the_affinity() -> None:
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert count_available_cores() == 1
    finally:
        os.sched_setaffinity(0, cores)
    assert count_available_cores() == len(cores)


def test_cores_respect_the_quota_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_cores, file = len(os.sched_getaffinity(0)), tmp_path / "cpu.max"
    monkeypatch.setattr(machine, "CPU_QUOTA", file)
    for quota, cores in (("100000 100000", 1), ("50000 100000", 1), ("max 100000", n_cores), ("9999999 100", n_cores)):
        file.write_text(quota + "\n")
        assert count_available_cores() == cores
    file.write_text("words")
    assert count_available_cores() == n_cores


def test_versions_name_what_results_depend_on() -> None:
    versions = collect_versions()
    assert {"python", "machine", "wsabie", "numpy", "numba"} <= set(versions)
    assert all(isinstance(v, str) and v for v in versions.values())


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_last_to_leave_gives_blas_its_threads_back() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    n_threads = blas_threads()
    first, second = limit_blas_threads(), limit_blas_threads()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == n_threads


def test_an_error_gives_blas_its_threads_back() -> None:
    n_threads = blas_threads()
    with pytest.raises(ValueError, match="no"), limit_blas_threads():
        raise ValueError("no")
    assert blas_threads() == n_threads
