"""What this machine is."""

import os

from wsabie.base.machine import available_cores, versions


def test_cores_respect_the_affinity() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert available_cores() == len(before)


def test_versions_name_what_results_depend_on() -> None:
    found = versions()
    assert {"python", "machine", "wsabie", "numpy", "numba"} <= set(found)
    assert all(isinstance(v, str) and v for v in found.values())
