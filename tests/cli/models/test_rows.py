"""Training, comparison, evaluation and annotation on rows of features."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsabie.cli.models.evaluate import _show_evaluation
from wsabie.evaluation.metrics import compute_propensities
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.workflows.compare.entrants import NAMES

Cli = Callable[..., Any]


def test_ties_at_the_cut_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.1]])
    for right, has_message in (([0, 1], True), ([0], False)):
        _show_evaluation(evaluate_scores([(0, scores[: len(right)])], np.array(right), ks=(1,)), {})
        captured = capsys.readouterr()
        assert (
            "1 row with tied labels at the cut after 1; ties count as in a random order" in captured.err
        ) is has_message
        assert "coverage@1" in captured.out


def test_compare_prints_one_table(cli: Cli, rows: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    result = cli("compare", rows, "--threads", 1, "--report", report, "--json")
    assert result.code == 0, result.err
    models = {model["name"]: model["metrics"] for model in result.json["models"]}
    assert set(models) == {"wsabie", "nearest", "one-vs-rest", "popularity"}
    assert models["wsabie"]["p@1"] == 1.0
    assert models["popularity"]["p@1"] < 0.7
    assert "<html" in report.read_text(encoding="utf-8")


def test_compare_takes_every_model_name(cli: Cli, rows: Path) -> None:
    result = cli("compare", rows, "--threads", 1, "--models", ",".join(NAMES), "--json")
    assert result.code == 0, result.err
    assert tuple(model["name"] for model in result.json["models"]) == NAMES
    assert not result.json["skipped"]
    weak = [model["name"] for model in result.json["models"] if model["metrics"]["p@1"] < 0.9]
    assert weak == ["popularity"]


def test_baselines_rank_as_expected_on_corel5k(cli: Cli, data_dir: Path) -> None:
    """Real data, the way a user runs it: what each baseline reaches."""
    train, test = (data_dir / "corel5k_mulan" / f"Corel5k-{side}-sparse.arff" for side in ("train", "test"))
    names = "popularity,nearest,approximate-nearest,one-vs-rest-hinge"
    result = cli("compare", train, "--test", test, "--models", names, "--json")
    assert result.code == 0, result.err
    reached = {model["name"]: model["metrics"]["MAP"] for model in result.json["models"]}
    assert reached["popularity"] + 0.03 < reached["approximate-nearest"] < reached["nearest"] - 0.03
    assert reached["one-vs-rest-hinge"] > reached["popularity"] + 0.05


def test_corel5k_model_beats_popularity(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    """Real data, the way a user runs it: arrays of 1,024 dimensions would not make this pass by chance."""
    folder = data_dir / "corel5k_mulan"
    trained = cli("train", folder / "Corel5k-train-sparse.arff", "--model", tmp_path / "m", "--epochs", 8, "--json")
    assert trained.code == 0, trained.err
    result = cli("evaluate", tmp_path / "m", folder / "Corel5k-test-sparse.arff", "--json")
    assert result.json["metrics"]["MAP"] > 0.28  # popularity has .216, eight epochs reach .32


def test_same_seed_gives_the_same_model(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Two runs, one and two threads: the same tensors, byte for byte."""
    for name, threads in (("a", 1), ("b", 2)):
        assert cli("train", rows, "--model", tmp_path / name, "--epochs", 3, "--threads", threads).code == 0
    names = [sorted(file.name for file in (tmp_path / name / "tensors").iterdir()) for name in ("a", "b")]
    assert names[0] == names[1]


def test_epochs_are_logged_as_lines_and_shown_as_a_table(cli: Cli, rows: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    result = cli(
        "train",
        rows,
        "--model",
        tmp_path / "m",
        "--epochs",
        3,
        "--hold-out",
        0,
        "--threads",
        1,
        "--log",
        log,
        "--set",
        "init=random",
    )
    assert result.code == 0, result.err
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert all(line["pairs"] == 90 and line["violation_rate"] <= 1 for line in lines)
    assert all(line["validation_metrics"] == {} for line in lines)
    table = cli("info", tmp_path / "m", "--epochs").out
    assert f"{lines[2]['loss']:.4f}" in table
    assert "estimated ranks, % of the epoch's steps" in table
    assert cli("info", tmp_path / "m", "--epochs", "--json").json["history"] == lines


def test_both_validation_figures_are_printed(cli: Cli, rows: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1, "--log", log).code == 0
    for line in map(json.loads, log.read_text().splitlines()):
        assert line["validation_metrics"] == {"MAP": line["validation"], "p@3": pytest.approx(1 / 3)}
    assert "p@3" in cli("info", tmp_path / "m", "--epochs").out


def test_valid_and_hold_out_exclude_each_other(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("0 1:1\n1 2:1\n")
    result = cli("train", file, "--valid", file, "--hold-out", 0.2, "--model", tmp_path / "m")
    assert result.code == 1
    assert "leave one of them out" in result.err
    assert not (tmp_path / "m").exists()


def test_too_few_rows_to_hold_out_are_refused(cli: Cli, tmp_path: Path) -> None:
    tiny = tmp_path / "tiny.txt"
    for content, message in (("0 0:1\n1 1:1\n", "2 rows are too few"), ("0 0:1\n", "1 row is too few")):
        tiny.write_text(content)
        result = cli("train", tiny, "--model", tmp_path / "m")
        assert result.code == 1
        assert f"{message} to set 10% aside; give more rows, or --hold-out 0" in result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "{tmp}/missing", "--model", "{tmp}/m"), "missing"),
        (("train", "{rows}", "--model", "{rows}"), "is a file"),
        (("train", "{tmp}/empty", "--model", "{tmp}/m"), "empty"),
        (("evaluate", "{tmp}/nothing", "{rows}"), "there is no model"),
        (("annotate", "{rows}", "{rows}"), "not a model folder"),
        (("compare", "{rows}", "--models", "wsabi"), "wsabie"),
        (("split", "{rows}", "--out", "{tmp}/s", "--by", "time"), "time"),
        (("compare", "{rows}", "--models", ","), "no model to compare is named"),
        (("annotate", "{rows}", "{rows}", "--label", "x"), "add --explain FOLDER"),
        (("train", "{rows}", "--model", "{tmp}/m", "--min-rows", "99"), "lower --min-rows"),
        (("train", "{rows}", "--model", "{tmp}/m", "--log", "{tmp}/empty"), "it is a folder"),
        (("compare", "{rows}", "--report", "{rows}/r.html"), "cannot write"),
        (("features", "images", "{rows}", "--out", "{tmp}/f", "--extractor", "{tmp}/d"), "no feature extractor at"),
        (
            ("train", "{rows}", "--model", "{tmp}/m", "--n-words", "9"),
            "rows.txt holds rows of features; leave --n-words",
        ),
        (("train", "{rows}", "--model", "{tmp}/m", "--size", "99"), "leave --size out"),
        (("train", "{rows}", "--model", "{tmp}/m", "--augment", "1"), "leave --augment out"),
        (("compare", "{rows}", "--n-words", "9"), "leave --n-words out"),
        (("compare", "{rows}", "--size", "99"), "leave --size out"),
    ],
)
def test_bad_arguments_give_one_sentence(
    cli: Cli, rows: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = cli(*(word.format(tmp=tmp_path, rows=rows) for word in words))
    assert result.code == 1, result
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("wsabie: ")
    assert message in last
    assert "Traceback" not in result.err


def test_unwritable_output_is_refused_before_reading(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsabie.io.data_sources.open_source", lambda *args, **options: pytest.fail("work began"))
    for words in (
        ("train", rows, "--model", rows / "m"),
        ("train", rows, "--model", tmp_path / "m", "--rejects", tmp_path),
        ("compare", rows, "--report", tmp_path),
        ("features", "images", rows, "--out", rows / "f.parquet"),
        ("annotate", tmp_path, rows, "--rejects", tmp_path),
        ("evaluate", tmp_path, rows, "--rejects", tmp_path),
    ):
        result = cli(*words)
        assert result.code == 1
        assert "cannot write" in result.err


def test_rare_labels_are_dropped_and_a_replaced_model_is_reported(cli: Cli, rows: Path, tmp_path: Path) -> None:
    lines = rows.read_text().splitlines()
    lines[0] = "92 9 4"
    rows.write_text("\n".join([*lines, "3,0 0:1", "3 1:1"]) + "\n")
    command = ("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--hold-out", 0)
    first = cli(*command, "--min-rows", 3)
    assert "3 labels (1 with fewer than 3 rows left out) from 92 rows (1 without a label), 2 epochs, " in first.out
    assert "replaced" not in first.err
    assert cli("info", tmp_path / "m", "--json").json["labels_dropped"] == 1
    second = cli(*command, "--min-rows", 2)
    assert "4 labels from 92 rows" in second.out
    assert "holds a model; it is replaced when training is done" in second.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train",), "DATA"),
        (("train", "x", "--model", "y", "--epochs", "0"), "--epochs"),
        (("train", "x", "--model", "y", "--loss", "hinge"), "'warp'"),
        (("train", "x", "--model", "y", "--similarity", "l1"), "'euclidean'"),
        (("train", "x", "--model", "y", "--learning-rate", "0"), "0 is not a number above 0"),
        (("train", "x", "--model", "y", "--max-norm", "-1"), "-1 is not a number above 0"),
        (("train", "x", "--model", "y", "--max-norm", "nan"), "nan is not a number above 0"),
        (("train", "x", "--model", "y", "--learning-rate", "fast"), "fast is not a number above 0"),
        (("train", "x", "--model", "y", "--seed", "-1"), "--seed"),
        (("train", "x", "--model", "y", "--seed", str(2**63)), "--seed"),
        (("train", "x", "--model", "y", "--threads", "1025"), "--threads"),
        (("features", "images", "x", "--out", "y", "--seed", "-1"), "--seed"),
        (("features", "images", "x", "--out", "y", "--weighting", "idf"), "'tfidf'"),
        (("features", "words", "x", "--out", "y"), "'images'"),
        (("split", "x", "--out", "y", "--seed", str(2**63)), "--seed"),
        (("compare", "x", "--by", "colour"), "'time'"),
        (("compare", "x", "--seed", "-1"), "--seed"),
        (("demo", "--part", "paintings"), "'drawings'"),
        (("demo", "--seed", "-1"), "--seed"),
    ],
)
def test_usage_errors_exit_with_code_two(cli: Cli, words: tuple[str, ...], message: str) -> None:
    result = cli(*words)
    assert result.code == 2
    assert message in result.err
    assert "Value error" not in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("annotate", "{rows}", "{rows}"),
        ("annotate", "{tmp}/m", "{rows}"),
        ("evaluate", "{tmp}/m", "{rows}"),
        ("train", "{rows}", "--model", "{rows}"),
        ("train", "{rows}", "--model", "{tmp}/m", "--config", "{rows}"),
        ("compare", "{rows}", "--report", "{rows}"),
        ("features", "images", "{rows}", "--out", "{rows}"),
    ],
)
def test_unreadable_files_are_no_usage_errors(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "access", lambda *args, **options: False)
    result = cli(*(word.format(tmp=tmp_path, rows=rows) for word in words))
    assert result.code == 1
    assert result.err.startswith("wsabie: ")


def test_largest_seed_is_accepted(cli: Cli, rows: Path, tmp_path: Path) -> None:
    seed = ("--seed", 2**63 - 1)
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1, *seed).code == 0
    assert cli("compare", rows, "--models", "popularity", *seed).code == 0
    assert cli("split", rows, "--out", tmp_path / "parts", *seed).code == 0


def test_flipped_bit_is_detected(cli: Cli, rows: Path, tmp_path: Path) -> None:
    cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1)
    tensor = max((tmp_path / "m" / "tensors").iterdir(), key=lambda file: file.stat().st_size)
    content = bytearray(tensor.read_bytes())
    content[-1] ^= 1
    tensor.write_bytes(content)
    result = cli("info", tmp_path / "m")
    assert result.code == 1
    assert "damaged" in result.err


def test_data_of_another_width_are_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1)
    wider_rows = tmp_path / "other.txt"
    wider_rows.write_text("1 12 3\n0 11:1\n")
    result = cli("evaluate", tmp_path / "m", wider_rows)
    assert result.code == 1
    assert "12" in result.err
    assert "9" in result.err


def test_rows_without_a_header_take_the_models_width(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """The last features need not occur in every file of a kind."""
    short = tmp_path / "short.txt"
    short.write_text("0 1:2 2:1\n1 3:1 4:2\n")
    train = ("train", rows, "--valid", short, "--model", tmp_path / "m", "--epochs", 2)
    for words in (train, ("compare", rows, "--test", short)):
        result = cli(*words, "--threads", 1, "--json")
        assert result.code == 0, result.err
    for command in ("evaluate", "annotate"):
        result = cli(command, tmp_path / "m", short, "--json")
        assert result.code == 0, result.err


def test_overlap_is_detected_by_rows_and_not_by_line_numbers(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Rows of this format have no names, so that line 1 of both files is not a reason to refuse."""
    lines = rows.read_text().splitlines()[1:]
    for name, part in (("train", lines[:60]), ("test", [line.replace(":1", ":3") for line in lines[60:]])):
        (tmp_path / f"{name}.txt").write_text(f"{len(part)} 9 3\n" + "\n".join(part) + "\n")
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    few = ("--models", "popularity")
    assert cli("compare", train, "--test", test, *few).code == 0
    refused = cli("compare", train, "--test", train, *few)
    assert refused.code == 1
    assert "are training rows too" in refused.err
    assert cli("compare", train, "--test", train, *few, "--allow-overlap").code == 0


def test_labels_may_have_other_numbers(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """The same test rows under other numbers, one of them with a label that no training row has: the same figures."""
    (tmp_path / "labels.txt").write_text("cat\ndog\nelk\n")
    lines = [line.replace(":1", ":3") for line in rows.read_text().splitlines()[1:46]]
    figures = []
    for folder, names, numbers, more in (("same", "cat dog elk", "012", ""), ("other", "elk yak cat dog", "230", ",1")):
        renumbered = [numbers[int(line[0])] + line[1:] for line in lines]
        renumbered[0] = renumbered[0].replace(" ", f"{more} ", 1)
        test = tmp_path / folder / "test.txt"
        test.parent.mkdir()
        test.write_text(f"45 9 {len(names.split())}\n" + "\n".join(renumbered) + "\n")
        test.with_name("labels.txt").write_text(names.replace(" ", "\n") + "\n")
        result = cli("compare", rows, "--test", test, "--models", "popularity,nearest", "--threads", 1, "--json")
        assert result.code == 0, result.err
        figures.append([(model["metrics"], model["intervals"]) for model in result.json["models"]])
        assert result.json["data"]["coverage"] == (45 / 46 if more else 1)  # the label that no training row has counts
    assert figures[1] == figures[0]
    (popularity, _), (nearest, _) = figures[0]
    assert popularity["p@1"] < 0.7 < nearest["p@1"]


def test_evaluate_refuses_training_data(cli: Cli, rows: Path, tmp_path: Path) -> None:
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2).code == 0
    refused = cli("evaluate", tmp_path / "m", rows)
    assert refused.code == 1
    assert "is what the model was trained on" in refused.err
    assert cli("evaluate", tmp_path / "m", rows, "--allow-overlap").code == 0


def test_evaluate_recognises_training_rows_among_others(cli: Cli, tmp_path: Path) -> None:
    """The first lines of a file have the ids that they had in the whole."""
    lines = [f"{i % 3} {i % 3}:1 {3 + i}:1" for i in range(90)]
    for name, part in (("train", lines[:60]), ("most", lines[:20] + lines[70:80]), ("few", lines[:2] + lines[70:])):
        (tmp_path / f"{name}.txt").write_text(f"{len(part)} 93 3\n" + "\n".join(part) + "\n")
    model = tmp_path / "m"
    assert cli("train", tmp_path / "train.txt", "--model", model, "--epochs", 2, "--hold-out", 0).code == 0
    refused = cli("evaluate", model, tmp_path / "most.txt")
    assert refused.code == 1
    assert "20 of 30 rows" in refused.err
    assert cli("evaluate", model, tmp_path / "most.txt", "--allow-overlap").code == 0
    result = cli("evaluate", model, tmp_path / "few.txt")
    assert result.code == 0
    assert "2 of 22 rows" in result.err


def test_evaluate_omits_meaningless_cuts_and_shows_coverage(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Cuts beyond the three labels are left out; the table shows coverage as the JSON does."""
    command = ("evaluate", tmp_path / "m", rows, "--allow-overlap")
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2).code == 0
    table = cli(*command).out
    assert [line.split()[0] for line in table.splitlines()[4:] if line.strip()] == [
        "p@1", "MAP", "MRR", "AUC", "coverage@1",
    ]  # fmt: skip
    evaluation = cli(*command, "--json").json
    assert f"coverage@1 {evaluation['coverage']['@1']:.4f}" in " ".join(table.split())
    assert evaluation["unknown"] == {"labels": 0, "pairs": 0, "names": []}
    assert "p@10" not in cli("compare", rows, "--models", "popularity").out


def test_propensities_come_from_training_labels(cli: Cli, tmp_path: Path) -> None:
    """Names decide, not the order of labels; labels that the model does not know have no part in it."""
    files = {"train": ["a cat"] * 30 + ["b dog"] * 6 + ["c elk"] * 4, "test": ["a cat", "b elk", "c elk"]}
    for name, lines in files.items():
        text = "\n".join("__label__{} {}".format(*line.split()[::-1]) for line in lines)
        (tmp_path / f"{name}.txt").write_text(text + "\n")
    model, train = tmp_path / "m", tmp_path / "train.txt"
    assert cli("train", train, "--model", model, "--epochs", 5, "--hold-out", 0).code == 0
    command = ("evaluate", model, tmp_path / "test.txt", "--allow-overlap", "--propensities")
    evaluation = cli(*command, train, "--json").json
    cat, elk = compute_propensities(np.array([30, 4]), 40)
    assert evaluation["metrics"]["psp@1"] == pytest.approx((1 / cat + 1 / elk) / (1 / cat + 2 / elk))
    assert "psp@1" in evaluation["intervals"]
    assert "psp@1" in cli(*command, train).out
    (tmp_path / "other.txt").write_text("__label__gnu d\n")
    assert "give the data that it was trained on" in cli(*command, tmp_path / "other.txt").err


def test_score_blocks_are_bounded_by_bytes(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1).code == 0
    command = ("evaluate", tmp_path / "m", rows, "--allow-overlap", "--json")
    full_report, scores, sizes = cli(*command).json, Wsabie.scores, []

    def count_rows(self: Any, X: Any) -> Any:
        sizes.append(X.shape[0])
        return scores(self, X)

    monkeypatch.setattr(Wsabie, "scores", count_rows)
    monkeypatch.setattr("wsabie.models.base.feature_matrix.BLOCK_BYTES", 7 * 3 * 4)
    assert cli(*command).json == full_report
    assert sum(sizes) == 90
    assert max(sizes) == 7


def test_data_without_known_labels_are_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 1).code == 0
    foreign_rows = tmp_path / "other.txt"
    foreign_rows.write_text("2 9 9\n7 1:2\n8 2:5\n")
    refused = cli("evaluate", tmp_path / "m", foreign_rows)
    assert refused.code == 1
    assert "m knows none of the 9 labels of" not in refused.err  # the numbers 0, 1, 2 are known, though no row has them
    (tmp_path / "labels.txt").write_text("\n".join(f"word's {i}" for i in range(9)) + "\n")
    refused = cli("evaluate", tmp_path / "m", foreign_rows)
    last = refused.err.splitlines()[-1]
    assert f"{tmp_path / 'm'} knows none of the 9 labels of {foreign_rows}, such as 'word's 0', 'word's 1'" in last
    assert "it knows '0', '1', '2' and the like: give data with labels that it knows" in last
    foreign_rows.write_text("2 9 9\n 1:2\n 2:5\n")
    assert "no row of" in cli("evaluate", tmp_path / "m", foreign_rows).err


def test_explain_refuses_a_file_as_folder(cli: Cli, rows: Path, tmp_path: Path) -> None:
    assert f"cannot draw into {rows}: it is a file; give" in cli("annotate", tmp_path, rows, "--explain", rows).err


def test_foreign_files_in_the_training_folder_are_kept(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Beside the model, training keeps its state in a folder that it empties."""
    notes = tmp_path / "m.training" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("precious")
    refused = cli("train", rows, "--model", tmp_path / "m")
    assert refused.code == 1
    assert "notes.txt" in refused.err
    assert notes.read_text() == "precious"


def test_new_split_refuses_files_of_an_old_one(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Its test rows may be training rows now; whose file it is cannot be known, so that it is not removed either."""
    assert cli("split", rows, "--out", tmp_path / "parts").code == 0
    contents_before = {file.name: file.read_bytes() for file in (tmp_path / "parts").iterdir()}
    refused = cli("split", rows, "--out", tmp_path / "parts", "--valid", 0, "--test", 0)
    assert refused.code == 1
    assert "valid.parquet would stay beside a split without rows for it; move it" in refused.err
    assert {file.name: file.read_bytes() for file in (tmp_path / "parts").iterdir()} == contents_before


def test_model_beyond_memory_is_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSABIE_LIMITS", "empty_columns=1e9")
    lines = ["0 200000000:1", "1 5:1"] * 15
    (tmp_path / "wide.txt").write_text("30 200000001 2\n" + "\n".join(lines) + "\n")
    refused = cli("train", tmp_path / "wide.txt", "--model", tmp_path / "m", "--dim", 4096)
    assert refused.code == 1
    assert "GB" in refused.err
    assert "Traceback" not in refused.err


def test_labels_unknown_to_the_model_are_reported(cli: Cli, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("30 9 5\n" + "4 1:2\n0 2:5\n" * 15)
    result = cli("compare", rows, "--test", tmp_path / "other.txt", "--models", "popularity")
    assert result.code == 0, result.err
    assert "labels of the test data (15 pairs) are unknown to the model, such as '3', '4'" in result.err
    result = cli("train", rows, "--valid", tmp_path / "other.txt", "--model", tmp_path / "m", "--epochs", 1)
    assert result.code == 0, result.err
    assert "(15 pairs) are unknown" in result.err


def test_words_unknown_to_the_model_are_counted(cli: Cli, tmp_path: Path) -> None:
    train, new = tmp_path / "train.txt", tmp_path / "new.txt"
    train.write_text("__label__a red round\n__label__b blue square\n" * 10)
    new.write_text("__label__a red zebra lion\n__label__b blue\n")
    assert cli("train", train, "--model", tmp_path / "m", "--epochs", 2, "--hold-out", 0).code == 0
    result = cli("annotate", tmp_path / "m", new, "--json")
    assert result.json["unknown_features"] == 2
    assert "2 values of the data left out: the model does not know their features" in result.err


def test_candidates_without_a_positive_row_are_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1).code == 0
    (tmp_path / "some.txt").write_text("0 0:3 1:2\n0 1:3 2:1\n")
    (tmp_path / "few.txt").write_text("1\n2\n")
    result = cli("evaluate", tmp_path / "m", tmp_path / "some.txt", "--candidates", tmp_path / "few.txt")
    assert (result.code, f"no row has a label that {tmp_path / 'few.txt'} names" in result.err) == (1, True), result.err
