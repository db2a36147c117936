"""Training on a real Ray cluster of two nodes with a core each, on this machine, as the command line does it."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shard_files import in_shards
from wsabie import load

pytest.importorskip("ray", reason="ray is needed for training on many machines (extra wsabie[ray])")

EPOCHS = 100
"""So many that a run still goes on when a lost node is noticed."""


@pytest.fixture(scope="module")
def shards(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corel5k."""
    folder = tmp_path_factory.mktemp("rows") / "shards"
    in_shards(data_dir / "corel5k_mulan" / "Corel5k-train-sparse.arff", folder)
    return folder


def training(shards: Path, model: Path, *options: object) -> "subprocess.Popen[str]":
    """`wsabie train`, begun beside the shards, where no node was started."""
    words = [sys.executable, "-m", "wsabie", "train", shards.name, "--model", model, "--epochs", EPOCHS, "--dim", 32]
    words += ["--log", f"{model}.jsonl", "--json", *options]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": shards.parent}
    return subprocess.Popen([str(word) for word in words], **pipes)


def read_report(process: "subprocess.Popen[str]") -> Any:
    """JSON report of a training that went well."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)


def wait_for_epoch(process: "subprocess.Popen[str]", model: Path, epoch: int) -> None:
    log, until = Path(f"{model}.jsonl"), time.monotonic() + 180
    while not log.exists() or len(log.read_text().splitlines()) < epoch:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def list_training_workers() -> set[int]:
    """Process ids of this test's Ray workers that train at this moment; Ray names a process by its method."""
    parents, workers = {}, set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            pid = int(folder.name)
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (folder / "cmdline").read_bytes().startswith(b"ray::AveragingWorker.handle_request"):
                workers.add(pid)
    return {pid for pid in workers if os.getpid() in (parents[pid], parents.get(parents[pid]))}


def wait_for_workers(process: "subprocess.Popen[str]", n: int) -> None:
    """Wait until so many workers have trained."""
    workers: set[int] = set()
    until = time.monotonic() + 180
    while len(workers) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        workers |= list_training_workers()


@pytest.fixture(scope="module")
def single_node(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Trained on one node, without Ray."""
    report: dict[str, Any] = read_report(training(shards, tmp_path_factory.mktemp("alone") / "model", "--threads", 1))
    return report


def check(report: Any, single_node: Any) -> None:
    """The same epochs of the same pairs, and the MAP within what chance makes of another run on 500 rows."""
    epochs = single_node["history"][: len(report["history"])]
    for name in ("pairs", "unlabelled"):
        assert [epoch[name] for epoch in report["history"]] == [epoch[name] for epoch in epochs]
    assert report["validation_map"] == pytest.approx(max(epoch["validation"] for epoch in epochs), abs=0.015)


def test_two_nodes_lose_one_and_get_another(
    cluster: Any, shards: Path, single_node: dict[str, Any], tmp_path: Path
) -> None:
    """A node is killed in the middle, and one that joins takes its place."""
    process = training(shards, tmp_path / "model", "--ray", cluster.address)
    wait_for_workers(process, 2)  # on a busy machine the second one comes late
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    cluster.add_node(num_cpus=1)
    report = read_report(process)
    check(report, single_node)
    assert report["nodes"]["lost"] == 1
    assert report["nodes"]["joined"] in (2, 3)  # a busy machine may start the other one when all is done


def test_a_killed_driver_goes_on_with_resume(
    cluster: Any, shards: Path, single_node: dict[str, Any], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    options = ("--ray", cluster.address, "--epochs", 40)
    process = training(shards, model, *options)
    wait_for_epoch(process, model, 16)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    report = read_report(training(shards, model, *options, "--nodes", 2, "--resume"))
    check(report, single_node)
    assert report["nodes"]["joined"] == 2
    lines = Path(f"{model}.jsonl").read_text().splitlines()
    assert 0 <= len(lines) - 40 < 16  # it did not start over


def test_local_training_is_reported(cluster: Any, shards: Path, tmp_path: Path) -> None:
    """Shards, but of a model that is not trained by blocks."""
    out, err = training(
        shards, tmp_path / "model", "--ray", cluster.address, "--ensemble", 2, "--epochs", 1
    ).communicate(timeout=120)
    assert json.loads(out)["models"] == 2
    assert "ensembles, are trained on this machine" in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--ray", "127.0.0.1:1"], "no Ray cluster"),
        (["--nodes", "2"], "--nodes says how many nodes of a cluster train"),
        (["--ray", "local", "--nodes", "9999"], "--ray local gives each of 9999 nodes a core of this machine"),
    ],
)
def test_impossible_options_are_refused(shards: Path, tmp_path: Path, options: list[str], sentence: str) -> None:
    words = [sys.executable, "-m", "wsabie", "train", shards, "--model", tmp_path / "model", *options]
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 1
    assert sentence in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr


def test_a_model_to_begin_with_and_rows_to_keep(
    cluster: Any, shards: Path, single_node: dict[str, Any], tmp_path: Path
) -> None:
    """Nodes begin with its space, and what `wsabie update` needs is kept."""
    still = ("--epochs", 1, "--learning-rate", 1e-9)
    began = ("--ray", cluster.address, "--init-model", single_node["model"], "--replay", 300, *still)
    report = read_report(training(shards, tmp_path / "model", *began))
    assert report["validation_map"] == pytest.approx(single_node["validation_map"], abs=0.002)
    memory = load(tmp_path / "model").model.replay_buffer_
    assert (len(memory), memory.n_seen) == (300, report["rows"])
