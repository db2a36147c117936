"""Fixtures for all tests; helpers in `tests` (`strategies.py`) can be imported by name."""

import gc
import os
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The first example compiles a kernel, so there is no deadline. The same examples every time: a run can be repeated.
settings.register_profile("wsabie", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("wsabie")
gc.set_threshold(100_000)  # a look for cycles goes through all that the compilers have left
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # threads without work sleep: other tests need the core
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["WSABIE_FEATURES"] = "visual-words"  # what is not about features is quick, with the network or without
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the processes of tests compile a module once, and not each anew
sys.dont_write_bytecode = False
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "tests")]

from databases import KINDS, new_database  # noqa: E402 - lies beside this file
from wsabie.core.machine import count_available_cores  # noqa: E402

WAITING = ("web", "faults", "distributed")
"""Folders whose tests wait for browsers, killed services and nodes most of the time, for minutes; the longest first."""
DATABASE = re.compile(rf"\b({'|'.join(KINDS)})\b")
ABOVE_CATALOGUE = {"cli", "faults", "learning", "maps", "server"}
"""Folders of which a test runs in one database; `make databases` runs it in each, as all others always do."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are cores: while a test waits for a browser or a cluster, another uses its core."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else count_available_cores() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files, each in one process; those that work on a cluster all in the same, so that there is one cluster."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FileScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "tests/distributed" if file.startswith("tests/distributed/") else file

    return FileScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files come first: what is begun last keeps all others waiting (`--no-loadscope-reorder`)."""
    order = {folder: place for place, folder in enumerate(WAITING)}
    items.sort(key=lambda item: order.get(item.path.parent.name, len(WAITING)))
    if "WSABIE_TEST_EACH_DATABASE" not in os.environ:
        twins = find_twins(items)
        config.hook.pytest_deselected(items=twins)
        items[:] = [item for item in items if item not in twins]


def find_twins(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests above the catalogue that run in the other database, which a checksum of the name draws."""
    pairs = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if ABOVE_CATALOGUE.intersection(item.path.parts) and DATABASE.search(item.nodeid):
            pairs[DATABASE.sub("", item.nodeid)].append(item)
    twins = [item for pair in pairs.values() if len(pair) == len(KINDS) for item in pair]
    return {item for item in twins if ("sqlite" in DATABASE.findall(item.nodeid)) != is_for_sqlite(item)}


def is_for_sqlite(item: pytest.Item) -> bool:
    """Return whether SQLite runs a test of both; a file whose tests share a database is drawn as a whole."""
    separator = "::" if "database_of_module" in item.fixturenames else "["  # type: ignore[attr-defined]
    name = item.nodeid.partition(separator)[0]
    return "WSABIE_TEST_POSTGRES" not in os.environ or zlib.crc32(name.encode()) % 2 == 0


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of shared test data."""
    folder = os.environ.get("WSABIE_TEST_DATA")
    if not folder:
        pytest.skip("WSABIE_TEST_DATA does not name the folder of shared test data")
    return Path(folder)


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The address for `create`, in each of the databases: None for SQLite."""
    with new_database(request.param) as address:
        yield address


@pytest.fixture(scope="module", params=KINDS)
def database_of_module(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The same, once for all tests of a file that share what is costly to make."""
    with new_database(request.param) as address:
        yield address


@pytest.fixture
def every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save after every epoch, whatever a save takes."""
    from wsabie.training import checkpoints

    init = checkpoints.CheckpointFolder.__init__
    monkeypatch.setattr(checkpoints.CheckpointFolder, "__init__", lambda *a, **k: init(*a, **{**k, "every": 0.0}))
