"""`wsabie train --kind`: every kind of model from training to annotation, and refused options."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.core import machine
from wsabie.embedding import linear_space
from wsabie.models.estimator_specs import SYSTEMS
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker

Cli = Callable[..., Any]
TRAINED = [name for name, system in SYSTEMS.items() if system.trained and not system.needs]
BASELINES = [name for name, system in SYSTEMS.items() if not system.trained and not system.needs]
VECTORS = {*TRAINED, "one-vs-rest", "one-vs-rest-pa", "one-vs-rest-hinge", "svm"}


@pytest.mark.parametrize("kind", TRAINED)
def test_every_trained_kind_annotates_corel5k(cli: Cli, data_dir: Path, tmp_path: Path, kind: str) -> None:
    train, test = (data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    model = tmp_path / "m"
    result = cli("train", train, "--model", model, "--kind", kind, "--epochs", 2, "--threads", 1)
    assert result.code == 0, result.err
    assert "validation MAP" in result.out
    assert " GB" not in result.err  # the weights are .7 MB
    about = cli("info", model, "--json").json
    assert about["system"] == kind
    assert about["epochs"] == (4 if kind == "full-rank" else 2)
    if kind == "full-rank":
        assert "2 epochs for each of 2 terms, blend" in result.out
        assert "2 epochs for each of 2 terms" in cli("info", model).out
    assert about["parameters"]
    assert cli("info", model, "--epochs").code == 0
    evaluation = cli("evaluate", model, test, "--json")
    assert evaluation.json["metrics"]["AUC"] > 0.6, evaluation.err
    assert len(cli("annotate", model, test, "-k", 3, "--json").json["results"][0]["labels"]) == 3
    near = cli("neighbours", model, "water", "-k", 3, "--json").json["neighbours"]
    assert len(near) == 3
    assert all(-1 <= cosine <= 1.001 for _, cosine in near)


@pytest.mark.parametrize("kind", ["wsabie", "full-rank"])
def test_every_loss_trains_by_name(cli: Cli, rows: Path, tmp_path: Path, kind: str) -> None:
    words = ("train", rows, "--model", tmp_path / "m", "--kind", kind, "--epochs", 1, "--threads", 1)
    for loss in ("warp", "auc", "owpc", "k-os"):
        result = cli(*words, "--loss", loss)
        assert result.code == 0, result.err
        parameters = cli("info", tmp_path / "m", "--json").json["parameters"]
        assert kind == "full-rank" or parameters["loss"] == loss
        assert result.err.count("loss k-os ranks one of several positives: order_statistic = [5, 10] (the k-th") == (
            loss == "k-os"
        )
    config = tmp_path / "own.toml"
    config.write_text("order_statistic = [2, 3]\n")
    assert "positives: order_statistic = [2, 3]\n" in cli(*words, "--loss", "k-os", "--config", config).err


@pytest.mark.parametrize("kind", BASELINES)
def test_every_baseline_trains_and_resumes(cli: Cli, rows: Path, tmp_path: Path, kind: str) -> None:
    model = tmp_path / "m"
    result = cli("train", rows, "--model", model, "--kind", kind, "--seed", 3, "--threads", 1)
    assert result.code == 0, result.err
    assert "epoch" not in result.out
    assert cli("info", model, "--json").json["rows"] == 90
    evaluation = cli("evaluate", model, rows, "--allow-overlap", "--json")
    assert evaluation.json["metrics"]["p@1"] == pytest.approx(1 / 3 if kind == "popularity" else 1.0)
    assert cli("annotate", model, rows, "-k", 1).code == 0
    if kind not in ("fusion", "auto"):  # the members that are kept decide
        near = cli("neighbours", model, "1")
        assert near.code == (0 if kind in VECTORS else 1)
        assert kind in VECTORS or f"a model of kind {kind} has no vector per label" in near.err
    resumed = cli("train", rows, "--model", model.with_name("again"), "--kind", kind, "--resume", "--threads", 1)
    assert resumed.code == 0, resumed.err


def test_kind_auto_reports_the_compared_kinds(cli: Cli, rows: Path, tmp_path: Path) -> None:
    command = ("train", rows, "--model", tmp_path / "m", "--kind", "auto", "--threads", 1)
    result = cli(*command)
    assert result.code == 0, result.err
    first = next(line for line in result.err.splitlines() if "auto tries" in line)
    assert first.endswith("and their fusion, for about 2.0 s on one core")
    header, *lines = [line for line in result.out.splitlines() if line.strip()][1:]
    assert header.split() == ["model", "nDCG@10", "95", "%", "interval", "MB", "seconds"]
    titles = ["WARP embedding", "linear WARP", "nearest mean", "ridge regression", "k nearest neighbours"]
    titles += ["one-versus-rest", "fusion"]
    assert sorted(line.strip().partition("  ")[0] for line in lines[1:8]) == sorted(titles)
    summary = cli(*command, "--json").json
    assert {"wsabie", "linear-warp", "nearest-mean", "ridge", "fusion"} <= {
        trial["kind"] for trial in summary["trials"]
    }
    assert summary["kind"] in {trial["kind"] for trial in summary["trials"]}
    assert f"kept: {SYSTEMS[summary['kind']].title}" in result.out


@pytest.mark.parametrize("kind", ["wsabie", "linear-warp", "full-rank"])
def test_stated_learning_rate_starts_at_random_with_a_note(cli: Cli, rows: Path, tmp_path: Path, kind: str) -> None:
    command = ("train", rows, "--model", tmp_path / "m", "--kind", kind, "--epochs", 1, "--threads", 1)
    note = "with a stated learning rate training begins at random; --set init=ridge takes the usual start"
    for words, n in (((), 0), (("--learning-rate", 0.05), 1), (("--learning-rate", 0.001, "--set", "init=ridge"), 0)):
        result = cli(*command, *words)
        assert result.code == 0, result.err
        assert result.err.count(note) == n, result.err


@pytest.mark.parametrize("kind", ["auto", "fusion"])
def test_comparing_kinds_use_the_holdout_share(cli: Cli, rows: Path, tmp_path: Path, kind: str) -> None:
    command = ("train", rows, "--model", tmp_path / "m", "--kind", kind, "--threads", 1, "--hold-out")
    result = cli(*command, 0.2)
    assert result.code == 0, result.err
    assert "six times" not in result.err
    assert cli("info", tmp_path / "m", "--json").json["rows"] == 90  # the model learns from all
    assert "hold_out is 0.0; choose None or a number above 0" in cli(*command, 0, "--restart").err


def test_labels_with_one_row_each_get_the_default_kind(cli: Cli, tmp_path: Path) -> None:
    data = tmp_path / "rows.txt"
    data.write_text("".join(f"{label} {label}:1 9:1\n" for label in range(5)))
    result = cli("train", data, "--model", tmp_path / "m", "--kind", "auto", "--threads", 1)
    assert result.code == 0, result.err
    assert "no row can be held out; auto takes kind wsabie untried" in result.err
    assert cli("info", tmp_path / "m", "--json").json["labels"] == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--kind", "auto", "--metric", "p@1"),
            "auto chooses by the nDCG of rows of the data that it holds out; leave",
        ),
        (("--kind", "linear-wrap"), "no kind of model called 'linear-wrap'; did you mean linear-warp?"),
        (("--kind", "zzz"), "choose from wsabie, wsabie-auc, owpc-sgd, linear-warp"),
        (
            ("--kind", "linear-warp", "--dim", 5),
            "linear-warp has no parameter dim; its parameters are deterministic, ep",
        ),
        (("--kind", "popularity", "--epochs", 5), "popularity has no parameter epochs; it takes no parameters"),
        (("--kind", "nearest", "--log", "l.jsonl"), "--log is about epochs, and nearest has none; leave --log out"),
        (("--kind", "svm", "--hold-out", 0.2), "--hold-out is about epochs, and svm has none"),
        (("--kind", "pamir", "--ensemble", 2), "give a Wsabie (--kind wsabie, w"),
        (("--kind", "full-rank", "--hold-out", 0), "blend is chosen on validation rows"),
    ],
)
def test_options_that_a_kind_lacks_are_refused(cli: Cli, rows: Path, tmp_path: Path, words: Any, message: str) -> None:
    result = cli("train", rows, "--model", tmp_path / "m", *words)
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err


def test_config_file_sets_parameters_of_the_kind(cli: Cli, rows: Path, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    config.write_text("dim = 4\nepochs = 2\nlinear__l2 = 0.5\nblend = 3.0\n")
    words = ("train", rows, "--model", tmp_path / "m", "--threads", 1, "--config", config)
    result = cli(*words, "--kind", "full-rank", "--json")
    assert result.code == 0, result.err
    about = cli("info", tmp_path / "m", "--json").json
    assert (about["dimensions"], about["blend"], about["epochs"]) == (4, 3.0, 4)
    assert about["settings"]["linear"]["l2_weights"] == 0.5
    refused = cli(*words, "--kind", "vse-ens")
    assert refused.code == 1
    assert f"{config}: vse-ens has no parameter linear__l2" in refused.err
    config.write_text("rank_scale = 0.5\nepochs = 2\ndim = 4\n")
    assert cli(*words, "--kind", "vse-ens").code == 0
    assert cli("info", tmp_path / "m", "--json").json["parameters"]["sampler"]["rank_scale"] == 0.5


def test_weights_beyond_memory_are_refused_before_training(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_space, "get_available_memory", lambda: 100)
    for kind in ("linear-warp", "full-rank"):
        result = cli("train", rows, "--model", tmp_path / "m", "--kind", kind, "--threads", 1)
        assert result.code == 1
        assert "needs 0.0 GB, and there are 0.0 GB of memory; use fewer of either, or an embedding" in result.err
        assert "training" not in result.err


def test_available_memory_respects_the_container_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, least in (("max\n", 1 << 27), ("1000000\n", 1_000_000)):
        (tmp_path / "memory.max").write_text(text)
        monkeypatch.setattr(machine, "MEMORY_LIMIT", tmp_path / "memory.max")
        assert machine.get_available_memory() >= least
    assert machine.get_available_memory() == 1_000_000


FULL = ("--kind", "full-rank", "--epochs", 8, "--dim", 8, "--threads", 1)


@pytest.mark.parametrize("term", [LinearRanker, Wsabie])
def test_stopped_full_rank_training_resumes_with_its_term(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: type
) -> None:
    full_run = cli("train", rows, "--model", tmp_path / "a", *FULL, "--json").json
    fit = term.fit  # type: ignore[attr-defined]

    def stop(self: Any, *args: Any, **options: Any) -> Any:
        def on_epoch(stats: Any) -> None:
            if stats.epoch == 4:
                raise KeyboardInterrupt

        return fit(self, *args, **{**options, "on_epoch": on_epoch})

    with monkeypatch.context() as patch:
        patch.setattr(term, "fit", stop)
        assert cli("train", rows, "--model", tmp_path / "b", *FULL).code == 130
    work = tmp_path / "b.training" / "checkpoint"
    assert (work / "linear").is_dir()
    assert (work / "embedding").is_dir() == (term is Wsabie)
    changed = cli("train", rows, "--model", tmp_path / "b", *FULL, "--resume", "--learning-rate", 0.5)
    assert (changed.code, "made with other" in changed.err) == ((1, True) if term is Wsabie else (0, False))
    if term is LinearRanker:
        return
    joint = tmp_path / "joint.toml"
    joint.write_text("joint = true\n")
    refused = cli("train", rows, "--model", tmp_path / "b", *FULL, "--resume", "--config", joint)
    assert refused.code == 1
    assert "was made with another joint" in refused.err
    resumed = cli("train", rows, "--model", tmp_path / "b", *FULL, "--resume", "--json")
    assert resumed.code == 0, resumed.err
    assert [s["loss"] for s in resumed.json["history"]] == [s["loss"] for s in full_run["history"]]
    blends = [cli("info", tmp_path / name, "--json").json["blend"] for name in "ab"]
    assert blends[0] == blends[1]


def test_killed_full_rank_training_resumes(cli: Cli, rows: Path, tmp_path: Path) -> None:
    words = ["train", str(rows), "--model", str(tmp_path / "k"), "--kind", "full-rank", "--dim", "8", "--threads", "1"]
    words += ["--epochs", "60"]
    checkpoint = tmp_path / "k.training" / "checkpoint" / "linear" / "config.json"
    process = subprocess.Popen([sys.executable, "-m", "wsabie", *words], stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if checkpoint.exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL) if process.poll() is None else None
    process.wait()
    resumed = cli(*words, "--resume", "--json")
    assert resumed.code == 0, resumed.err
    full_run = cli(*words[:3], tmp_path / "w", *words[4:], "--json")
    assert [s["loss"] for s in resumed.json["history"]] == [s["loss"] for s in full_run.json["history"]]


def test_checkpoint_of_another_kind_is_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    words = ("train", rows, "--model", tmp_path / "m", "--epochs", 3, "--threads", 1)
    log = tmp_path / "m.training" / "checkpoint"
    Wsabie(epochs=3, threads=1).fit([[1.0], [0.0]], ["a", "b"], checkpoint=log)
    for kind, message in (("full-rank", "another kind of model"), ("wsabie-auc", "made with other")):
        refused = cli(*words, "--kind", kind, "--resume")
        assert refused.code == 1
        assert message in refused.err
    assert cli(*words, "--kind", "full-rank", "--restart").code == 0


@pytest.mark.parametrize("kind", ["linear-warp", "full-rank", "nearest"])
def test_every_kind_explains_a_picture(cli: Cli, pictures: Path, tmp_path: Path, kind: str) -> None:
    model, (picture, *_) = tmp_path / "m", sorted(pictures.glob("*.webp"))
    epochs = () if kind == "nearest" else ("--epochs", 2)
    trained = cli("train", pictures, "--model", model, "--kind", kind, "--n-words", 100, "--threads", 1, *epochs)
    assert trained.code == 0, trained.err
    result = cli("annotate", model, picture, "-k", 1, "--explain", tmp_path / "heat", "--threads", 1)
    assert result.code == 0, result.err
    assert len(list((tmp_path / "heat").glob("*.png"))) == 1
    if kind == "nearest":
        return
    from wsabie.models.explanations import compute_contributions
    from wsabie.models.loader import load

    annotator = load(model)
    columns, values = annotator.extractor.transform_one(picture)
    from scipy.sparse import csr_matrix

    X = csr_matrix((values, columns, [0, len(columns)]), shape=(1, annotator.model.n_features_in_))
    (label, score), *_ = annotator.model.annotate(X, 1)[0]
    assert compute_contributions(annotator.model, X, label).sum() == pytest.approx(score, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("kind", ["linear-warp", "pamir", "full-rank", "vse-ens", "opt-auc", "one-vs-rest"])
def test_every_kind_can_be_tuned(cli: Cli, rows: Path, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("optuna")
    short = () if kind == "one-vs-rest" else ("--set", "epochs=2")
    short += ("--set", "dim=[4, 8]") if kind == "full-rank" else ()
    words = ("tune", rows, "--out", tmp_path / "out", "--kind", kind, "--threads", 1, *short)
    result = cli(*words, "--trials", 2, "--json")
    assert result.code == 0, result.err
    assert result.json["search"]["kind"] == kind
    assert [trial["state"] for trial in result.json["trials"]] == ["done", "done"]
    if kind in ("full-rank", "one-vs-rest"):
        assert all(trial["epochs"] == len(trial["figures"]) == 1 for trial in result.json["trials"])
    assert cli("info", tmp_path / "out" / "model", "--json").json["system"] == kind
    every = cli(*words, "--trials", 2, "--all-rows")
    assert every.code == (1 if kind == "full-rank" else 0), every.err
    assert kind != "full-rank" or "leave --all-rows out" in every.err
    again = cli("tune", rows, "--out", tmp_path / "out", "--trials", 3, "--threads", 1)
    assert again.code == 1
    assert f"holds trials with another kind ({kind}, now wsabie)" in again.err


def test_kinds_without_a_search_space_are_not_tuned(cli: Cli, rows: Path, tmp_path: Path) -> None:
    result = cli("tune", rows, "--out", tmp_path / "out", "--kind", "popularity")
    assert result.code == 1
    assert "there is no kind of model called 'popularity' to tune; choose from wsabie, wsabie-auc" in result.err
