"""Commands on a cluster write what they write without one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from emoji_files import write_emoji
from interrupts import heed_ctrl_c
from wsabie.cli.main import run
from wsabie.features.base.codebook import learn_codebook
from wsabie.features.kernel_pca import KernelPca

ray = pytest.importorskip("ray", reason="ray is needed for work on many machines (extra wsabie[ray])")
Cli = Callable[..., str]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """cli("train", data, ...) -> what was printed."""

    def call(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["wsabie", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            run()
        captured = capfd.readouterr()
        assert not stop.value.code, captured.err
        return captured.out

    return call


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 emoji as files with metadata.csv, one of them broken."""
    folder = tmp_path_factory.mktemp("pictures")
    write_emoji(folder, 90, 8)
    (folder / "007.webp").write_bytes(b"no picture")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def test_the_same_files_are_written(cli, nodes, pictures, tmp_path, monkeypatch):
    on = {"here": ("--threads", "1"), "there": ("--ray", nodes.address)}
    for where, words in on.items():
        rejects = ("--rejects", tmp_path / f"{where}.jsonl")
        cli("features", "images", pictures, "--out", tmp_path / f"{where}.parquet", "--n-words", "60", *rejects, *words)
    local, remote = (contents(tmp_path / f"{where}.parquet")[f"{where}.parquet"] for where in on)
    assert local == remote
    assert contents(tmp_path / "here.parquet.extractor") == contents(tmp_path / "there.parquet.extractor")
    assert "007.webp" in (tmp_path / "there.jsonl").read_text()
    assert (tmp_path / "here.jsonl").read_text() == (tmp_path / "there.jsonl").read_text()

    data = tmp_path / "here.parquet"
    for where, words in (("one", ()), ("two", on["there"])):
        cli("shards", data, "--out", tmp_path / where, "--rows", "20", *words)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert len(list((tmp_path / "two").glob("rows-*"))) == 5

    model, sources = tmp_path / "m-here", (data, pictures, tmp_path / "one")
    for where, words in on.items():
        cli("train", pictures, "--model", tmp_path / f"m-{where}", "--n-words", "60", "--epochs", "3", *words)
        cli("annotate", model, *sources, "--out", tmp_path / f"{where}.tsv", *words)
    assert contents(model).keys() == contents(tmp_path / "m-there").keys()  # tensors go by their content
    assert (tmp_path / "here.tsv").read_bytes() == (tmp_path / "there.tsv").read_bytes()
    assert len((tmp_path / "there.tsv").read_text().splitlines()) == 1 + 3 * 89 * 10

    few = tmp_path / "few.txt"
    few.write_text("\n".join(sorted(pq.read_table(data)["labels"][5].as_py()[:4])))
    monkeypatch.setattr("wsabie.models.base.feature_matrix.BLOCK_BYTES", 30_000)  # some blocks of rows
    for words in ("evaluate", model, pictures, "--allow-overlap"), ("annotate", model, pictures):
        for more in (), ("--candidates", few):
            local, remote = (cli(*words, *more, "--json", *place) for place in on.values())
            assert json.loads(local) == json.loads(remote)


def test_paths_may_be_relative(cli, nodes, pictures, tmp_path, monkeypatch):
    """Workers stay in the folder in which the nodes were started."""
    monkeypatch.chdir(pictures.parent)
    out = Path(os.path.relpath(tmp_path, pictures.parent))
    for where, words in {"here": (), "there": ("--ray", nodes.address)}.items():
        rejects = ("--rejects", out / f"{where}.jsonl")
        cli("features", "images", pictures.name, "--out", out / where, "--features", "colour", *rejects, *words)
        cli("shards", out / "here", "--out", out / f"{where}-shards", "--rows", "40", *words)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    assert contents(tmp_path / "here-shards") == contents(tmp_path / "there-shards")


def test_the_dictionary_is_the_same_however_the_blocks_are_shared_out(nodes):
    blocks = np.random.default_rng(0).random((40_000, 39), dtype=np.float32)
    local, remote = (learn_codebook(blocks, 3000, passes=2, executor=run) for run in (None, nodes))
    np.testing.assert_array_equal(local.centres, remote.centres)


def test_a_cluster_of_this_machine_is_quiet_and_ends(pictures, tmp_path):
    words = ["features", "images", pictures, "--out", tmp_path / "a.parquet", "--features", "colour", "--ray", "local"]
    out, err = started(tmp_path, *words, "--json").communicate(timeout=120)
    assert json.loads(out)["rows"] == 89, err
    assert "ray" not in err.lower()
    assert not find_processes(tmp_path)


def test_ctrl_c_ends_a_cluster_of_this_machine(pictures, tmp_path):
    words = ["features", "images", pictures, "--out", tmp_path / "a.parquet", "--features", "hog", "--augment", "60"]
    running = started(tmp_path, *words, "--ray", "local")
    while len(find_processes(tmp_path)) < 4:  # the command, and some of Ray's
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    stderr = running.communicate(timeout=60)[1]
    assert running.returncode == 130, stderr
    assert "the same command again goes on from it" in stderr
    assert not find_processes(tmp_path)


def started(mark: Path, *words: object) -> "subprocess.Popen[str]":
    """A command in a process of its own, which all processes below it can be known by."""
    command = [sys.executable, "-m", "wsabie", *map(str, words)]
    marked = {**os.environ, "WSABIE_MARK": str(mark)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, env=marked, preexec_fn=heed_ctrl_c)


def find_processes(mark: Path) -> list[str]:
    """The processes that are there of a started command; those that have ended are given a moment to be gone."""
    time.sleep(0.5)
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"WSABIE_MARK={mark}".encode() in folder.joinpath("environ").read_bytes().split(b"\0"):
                pids.append(folder.name)
        except OSError:
            continue  # it has just ended
    return pids


def test_rows_are_mapped_by_the_cluster(cli, nodes, tmp_path, monkeypatch):
    monkeypatch.setattr("wsabie.io.formats.parquet_rows._BATCH", 50)
    (tmp_path / "rows.txt").write_text("".join(f"{i % 3} {i % 7}:{i % 5 + 1} {i % 4 + 7}:2\n" for i in range(300)))
    local_file, remote_file = tmp_path / "here.parquet", tmp_path / "there.parquet"
    cli("features", "kpca", tmp_path / "rows.txt", "--out", local_file, "--dim", "8", "--ray", nodes.address)
    cli("features", "kpca", tmp_path / "rows.txt", "--out", remote_file, "--dim", "8", "--threads", "2")
    assert local_file.read_bytes() == remote_file.read_bytes()
    monkeypatch.setattr(KernelPca, "transform_rows", None)  # of this process
    cli(
        "features",
        "kpca",
        tmp_path / "rows.txt",
        "--out",
        remote_file,
        "--map",
        f"{local_file}.map",
        "--ray",
        nodes.address,
    )
    assert local_file.read_bytes() == remote_file.read_bytes()


def test_trials_run_on_the_cluster(cli, nodes, pictures, tmp_path):
    pytest.importorskip("optuna", reason="optuna is needed for tuning (extra wsabie[tune])")
    trials = {}
    for where, words in {"here": ("--threads", "1"), "there": ("--ray", nodes.address)}.items():
        out = tmp_path / where
        small = ("--n-words", "40", "--set", "dim=8", "--set", "epochs=3", "--trials", "4", "--batch-size", "2")
        output = cli("tune", pictures, "--out", out, *small, "--rejects", tmp_path / "rejects.jsonl", "--json", *words)
        trials[where] = [{**trial, "seconds": None} for trial in json.loads(output)["trials"]]
    assert len(trials["here"]) == 4
    assert trials["here"] == trials["there"]
