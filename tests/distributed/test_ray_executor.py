"""Maps on a cluster of two nodes give what this process gives, in order, a few items at a time, whatever is lost."""

import operator
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.core.execution import SerialExecutor, WorkerError
from wsabie.distributed import ray_cluster
from wsabie.distributed.ray_cluster import RayExecutor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.data_sources import open_source
from wsabie.io.records import Item, ItemList
from wsabie.samples import get_sample_path

ray = pytest.importorskip("ray", reason="ray is needed for work on many machines (extra wsabie[ray])")


class Functions:
    """Functions of the workers; classes travel by value, functions of a test's module would not be found there."""

    @staticmethod
    def slow(shared: float, item: int) -> tuple[int, str]:
        time.sleep(shared)
        return item, ray.get_runtime_context().get_node_id()

    @staticmethod
    def refuse(item: int) -> int:
        raise InputError(f"item {item} is bad; leave it out", web_message="leave it out")

    @staticmethod
    def text(shared: Path, item: object) -> str:
        return shared.read_text()

    @staticmethod
    def end(item: int) -> int:
        os._exit(9)

    @staticmethod
    def add(shared: np.ndarray, item: int) -> np.ndarray:
        shared += item  # as a function may that thinks it has its own
        shared -= item
        return shared + item

    @staticmethod
    def unpacked(shared: list[int], item: int) -> int:
        return id(shared)


ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def pictures() -> ItemList:
    """160 emoji."""
    source = open_source(get_sample_path("emoji"))
    return ItemList(source.path, [item for item, _ in zip(source, range(160), strict=False)])


def test_results_keep_the_order_of_the_items(nodes):
    assert list(nodes.map(abs, range(-99, 0))) == list(range(99, 0, -1))
    assert list(nodes.map_with(operator.add, [7], ([i] for i in range(9)))) == [[7, i] for i in range(9)]
    assert list(nodes.map(abs, [])) == []


def test_both_nodes_work(nodes):
    node_ids = set()
    results = nodes.map_with(Functions.slow, 0.1, range(200))
    while len(node_ids) < 2:  # or the results come to their end
        node_ids.add(next(results)[1])
    results.close()
    assert len(node_ids) == 2


def test_only_a_few_items_are_taken_ahead(nodes):
    submitted = []
    results = nodes.map(abs, (submitted.append(i) or i for i in range(100)))
    assert next(results) == 0
    assert len(submitted) <= 4
    results.close()
    assert len(submitted) <= 4


def test_errors_come_out_as_they_were_raised(nodes):
    with pytest.raises(InputError) as error:
        list(nodes.map(Functions.refuse, [3]))
    assert type(error.value) is InputError
    assert (str(error.value), error.value.web_message) == ("item 3 is bad; leave it out", "leave it out")
    with pytest.raises(ZeroDivisionError):
        list(nodes.map_with(divmod, 1, [1, 0]))


def test_what_is_shared_is_unpacked_once_and_can_be_written(nodes):
    shared = np.zeros(100_000)  # an array of this size would be read only
    arrays = list(nodes.map_with(Functions.add, shared, range(4)))
    assert [array[0] for array in arrays] == [0, 1, 2, 3]
    arrays[0][0] = 7.0
    assert len(set(nodes.map_with(Functions.unpacked, [1], range(40)))) <= 2


def make_job_ref(name: str) -> Any:
    """A job that was put."""
    return SimpleNamespace(name=name, hex=lambda: name)


def test_jobs_in_turns_are_unpacked_once(monkeypatch):
    job_names: list[str] = []
    ray_cluster._unpack_job.cache.clear()
    monkeypatch.setattr(ray_cluster, "disable_blas_threads", lambda: None)
    monkeypatch.setattr(ray, "get", lambda job: job_names.append(job.name) or [job.name])
    for name in ("describe 1", "rank", "describe 2", "rank", "describe 3", "rank", "describe 3", "describe 1"):
        assert ray_cluster._unpack_job(make_job_ref(name), None) == [name]
    assert job_names == ["describe 1", "rank", "describe 2", "describe 3", "describe 1"]
    assert len(ray_cluster._unpack_job.cache) == 2


def test_relative_paths_begin_where_this_process_works(nodes, tmp_path, monkeypatch):
    """Workers stay in the folder of `ray start`."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
        monkeypatch.chdir(tmp_path / name)
        assert set(nodes.map(Path.read_text, [Path("a")] * 20)) == {name}
        assert set(nodes.map_with(Functions.text, Path("a"), range(20))) == {name}


def test_jobs_in_turns_may_be_of_several_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ray_cluster._unpack_job.cache.clear()
    monkeypatch.setattr(ray_cluster, "disable_blas_threads", lambda: None)
    monkeypatch.setattr(ray, "get", lambda job: (Functions.text, Path("a")))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(name)
    turns = ["one", "two", "one"]
    assert [ray_cluster._run_item([make_job_ref(name), tmp_path / name], 0) for name in turns] == turns


@pytest.mark.parametrize("where", ["shared", "item", "within"])
def test_a_relative_path_is_refused_on_a_node_without_its_folder(where, tmp_path, monkeypatch):
    missing_folder, file = tmp_path / "gone", tmp_path / "a"
    file.write_text("here")
    ray_cluster._unpack_job.cache.clear()
    monkeypatch.setattr(ray_cluster, "disable_blas_threads", lambda: None)
    paths = {name: Path("a") if name == where else file for name in ("shared", "item", "within")}
    monkeypatch.setattr(ray, "get", lambda job: (lambda shared, item: shared.read_text(), paths["shared"]))
    item = [{"x": Item("i", paths["within"], ())}, paths["item"], np.zeros(9)]
    with pytest.raises(
        InputError, match=f"^a begins in the folder {missing_folder}, which the node .* or give absolute paths$"
    ):
        ray_cluster._run_item([make_job_ref("job"), missing_folder], item)


def test_absolute_paths_want_no_folder(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("here")
    ray_cluster._unpack_job.cache.clear()
    monkeypatch.setattr(ray_cluster, "disable_blas_threads", lambda: None)
    monkeypatch.setattr(ray, "get", lambda job: (Functions.text, tmp_path / "a"))
    assert [ray_cluster._run_item([make_job_ref("job"), tmp_path / "gone"], tmp_path) for _ in range(2)] == [
        "here",
        "here",
    ]


def test_a_map_that_is_left_when_the_cluster_has_ended_starts_no_other(monkeypatch):
    def cancel(_: object) -> None:
        raise AssertionError("RayExecutor would start a cluster")

    work = SimpleNamespace(remote=lambda job, item: item)
    ended = {"put": id, "remote": lambda **_: lambda _: work, "get": abs, "cancel": cancel}
    ended |= {"cluster_resources": lambda: {"CPU": 1}, "is_initialized": lambda: False}
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(**ended))
    results = object.__new__(RayExecutor).map(abs, range(-9, 0))
    assert next(results) == 9
    results.close()


def test_workers_compute_on_one_thread(nodes):
    assert list(nodes.map(os.getenv, ["OPENBLAS_NUM_THREADS"])) == ["1"]


def test_an_item_that_kills_its_workers_is_told(nodes, monkeypatch):
    monkeypatch.setattr("wsabie.distributed.ray_cluster.RETRIES", 1)
    with pytest.raises(WorkerError, match="lost an item 2 times"):
        list(nodes.map(Functions.end, [0]))
    assert list(nodes.map(abs, [-1])) == [1]


@pytest.mark.parametrize("features", ["visual-words", "colour", "textons,hog"])
def test_descriptions_are_those_of_one_process(nodes, pictures, features):
    settings: dict[str, Any] = {"visual-words": {"n_words": 300}}.get(features, {})
    settings = settings or ({"n_textons": 16} if "textons" in features else {})
    local, remote = (
        create_extractor(features, **settings).fit(pictures, executor=run) for run in (SerialExecutor(), nodes)
    )
    assert local.fingerprint() == remote.fingerprint()
    same(local, pictures, nodes, augment=1)


def same(extractor: FeatureExtractor, pictures: ItemList, run: RayExecutor, augment: int = 0) -> None:
    bad = ItemList(pictures.path, [*pictures, Item("bad", b"no picture", ("x",))])
    local = list(extractor.iterate(bad, augment=augment))
    remote = list(extractor.iterate(bad, executor=run, augment=augment))
    assert [row.id for row in local] == [row.id for row in remote]
    for row, two in zip(local, remote, strict=True):
        np.testing.assert_array_equal(row.indices, two.indices)
        np.testing.assert_array_equal(row.values, two.values)
        assert (row.values.dtype, row.indices.dtype) == (two.values.dtype, two.indices.dtype)


def test_a_lost_node_changes_nothing(cluster, nodes, pictures):
    third = cluster.add_node(num_cpus=1)
    extractor = create_extractor("colour").fit(pictures)
    local = list(extractor.extract_batches((item,) for item in pictures))
    results = extractor.extract_batches(((item,) for item in pictures), executor=nodes)
    remote = [next(results) for _ in range(20)]
    cluster.remove_node(third, allow_graceful=False)
    remote += results
    assert [batch[0][0].id for batch in remote] == [batch[0][0].id for batch in local]
    for (row,), (two,) in zip(local, remote, strict=True):
        np.testing.assert_array_equal(row[0].values, two[0].values)


def test_work_under_way_on_a_lost_node_is_done_elsewhere(cluster, nodes):
    third = cluster.add_node(num_cpus=1)
    lost, results, answers = third.node_id, nodes.map_with(Functions.slow, 0.3, range(60)), []
    for item, node in results:
        answers.append((item, node))
        if node == lost:  # it works; a busy machine takes its time to start a worker there
            break
    assert len(answers) < 50
    cluster.remove_node(third, allow_graceful=False)
    answers += results
    assert [item for item, _ in answers] == list(range(60))
    assert lost not in {node for _, node in answers[-6:]}


def test_a_node_that_joins_takes_part(cluster, nodes, monkeypatch):
    monkeypatch.setattr("wsabie.distributed.ray_cluster._RECOUNT_SECONDS", 0.2)
    results = nodes.map_with(Functions.slow, 0.2, range(60))
    next(results)
    third = cluster.add_node(num_cpus=1)
    assert third.node_id in {node for _, node in results}
    cluster.remove_node(third)


def test_a_path_that_a_node_cannot_read_is_refused(nodes, tmp_path):
    ray_cluster.check_paths_on_nodes([tmp_path, tmp_path / "will" / "be"])
    with tmp_path.joinpath("a").open("w") as file:
        os.dup2(file.fileno(), 901)
        descriptor_path = Path("/proc/self/fd/901")  # is there in this process alone
        with pytest.raises(InputError, match=r"901 cannot be read on the node .*; put it on a file system that all"):
            ray_cluster.check_paths_on_nodes([tmp_path, descriptor_path])
        os.close(901)


def test_other_versions_are_refused(nodes, monkeypatch):
    monkeypatch.setattr("wsabie.core.version.VERSION", "0.0.0")
    with pytest.raises(InputError, match=r"has other software than this process: wsabie .* and here wsabie 0.0.0 on"):
        ray_cluster._check_versions()


def test_a_process_works_with_one_cluster(nodes):
    with pytest.raises(InputError, match="works with the Ray cluster 127"):
        RayExecutor("local")
