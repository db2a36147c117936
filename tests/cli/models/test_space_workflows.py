"""`wsabie compare`, `split` and `tune` on declarations of several entity kinds."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from entity_declarations import MUSIC, PAIRS

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def all_takes(music: Path) -> Path:
    """All takes in one declaration."""
    file = music / "all.toml"
    file.write_text(MUSIC.replace('split = "SIDE"\n', ""))
    return file


def test_methods_are_compared_for_every_relation(cli: Cli, all_takes: Path, tmp_path: Path) -> None:
    """Held-out recordings: chance is 1/4 for the digit, 1/3 for the speaker; classifiers take part where they can."""
    result = cli(
        "compare", all_takes, "--hold-out", 0.4, "--out", tmp_path / "r", "--json", "--models", "one-vs-rest,popularity"
    )
    assert result.code == 0, result.err
    assert result.json["entities"] == {"recording": {"train": 64, "valid": 22, "test": 22}}
    methods = {name: {m["name"]: m for m in entry["methods"]} for name, entry in result.json["relations"].items()}
    assert list(methods["digits"]) == ["all", "alone", "popularity", "one-vs-rest"]
    assert list(methods["recordings"]) == ["all", "alone", "popularity"]
    assert list(methods["voices"]) == ["all", "alone", "popularity", "cosine"]
    for name in ("digits", "speakers", "voices"):
        assert methods[name]["all"]["metrics"]["p@1"] > 0.75
        assert methods[name]["popularity"]["metrics"]["p@1"] < 0.6
    low, high = methods["digits"]["all"]["intervals"]["MAP"]
    assert low <= methods["digits"]["all"]["metrics"]["MAP"] <= high
    assert not methods["digits"]["all"]["differences"]
    gap = methods["digits"]["popularity"]["differences"]["MAP"]
    assert gap["mean"] == pytest.approx(
        methods["digits"]["popularity"]["metrics"]["MAP"] - methods["digits"]["all"]["metrics"]["MAP"], abs=1e-6
    )
    assert gap["high"] < 0
    assert result.json["relations"]["voices"]["candidates"] == 86, "held-out voices are looked for among the others"
    with (tmp_path / "r" / "table.csv").open() as file:
        lines = list(csv.DictReader(file))
    (line,) = [
        entry for entry in lines if (entry["relation"], entry["method"], entry["metric"]) == ("voices", "cosine", "MAP")
    ]
    assert float(line["value"]) == pytest.approx(methods["voices"]["cosine"]["metrics"]["MAP"], abs=1e-6)
    page = (tmp_path / "r" / "about.md").read_text()
    assert "## voices (recording to recording): 22 queries, 86 candidates" in page
    assert page.rstrip().endswith("Made by `wsabie compare`.")
    assert (tmp_path / "r" / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_published_test_data_are_used_by_all_methods(cli: Cli, music: Path) -> None:
    """Takes 0 to 4 are the test of all methods; those of training are refused."""
    result = cli("compare", music / "train.toml", "--test", music / "test.toml", "--hold-out", 0.2, "--json")
    assert result.code == 0, result.err
    assert result.json["entities"] == {"recording": {"train": 38, "valid": 10, "test": 60}}
    voices = result.json["relations"]["voices"]
    assert (voices["queries"], voices["candidates"]) == (60, 60), "among themselves, as `evaluate` does"
    for name in ("digits", "speakers"):
        methods = {m["name"]: m["metrics"]["p@1"] for m in result.json["relations"][name]["methods"]}
        assert methods["all"] > 0.7
        assert methods["one-vs-rest"] > 0.7
        assert methods["popularity"] < 0.5
    result = cli("compare", music / "train.toml", "--test", music / "train.toml")
    assert result.code == 1
    assert "is what the space was trained on; give other data, or add --allow-overlap" in result.err
    result = cli("compare", music / "train.toml", "--test", music / "digits")
    assert result.code == 1
    assert "digits is not a declaration; give a file such as" in result.err


def test_entities_without_data_are_compared(cli: Cli, lists: Path) -> None:
    result = cli("compare", lists / "lists.toml", "--hold-out", 0.4)
    assert result.code == 0, result.err
    assert "near (artist to artist)" in result.out
    assert "each alone" in result.out
    again = [cli("compare", lists / "lists.toml", "--hold-out", 0.4, "--json").json for _ in range(2)]
    figures = [
        {
            name: [(m["name"], m["metrics"], m["intervals"]) for m in relation["methods"]]
            for name, relation in run["relations"].items()
        }
        for run in again
    ]
    assert figures[0] == figures[1]


def test_single_relation_is_compared_without_its_own_space(cli: Cli, lists: Path) -> None:
    (lists / "lists.toml").write_text(PAIRS.partition("[relations.genres]")[0] + "[space]\ndim = 8\nepochs = 5\n")
    result = cli("compare", lists / "lists.toml", "--hold-out", 0.4, "--json")
    assert [m["name"] for m in result.json["relations"]["near"]["methods"]] == ["all", "popularity"]


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (PAIRS, ["--features", "mfcc"], "--features cannot be used here: a space has its settings in the tables"),
        (
            PAIRS,
            ["--report", "r.html"],
            "--report cannot be used here: a space has its settings in the tables of its TOML",
        ),
        (PAIRS, ["--by", "row"], "--by cannot be used here: a space has its settings in the tables of its TOML file"),
        (PAIRS, ["--models", "wsaby"], "there is no model called 'wsaby' to compare"),
        (PAIRS.replace("dim = 8", "dims = 8"), [], "[space] says ['dims']"),
        (PAIRS.replace("near.tsv", "far.tsv"), [], "there is no file or folder"),
        (PAIRS, ["--out", "near.tsv"], "near.tsv"),
    ],
)
def test_bad_comparisons_give_one_sentence(
    cli: Cli, lists: Path, monkeypatch: Any, text: str, words: list[str], sentence: str
) -> None:
    (lists / "lists.toml").write_text(text)
    monkeypatch.chdir(lists)
    result = cli("compare", "lists.toml", *words)
    assert result.code == 1
    assert sentence in result.err
    assert "Traceback" not in result.err


def test_declaration_options_are_refused_for_rows(cli: Cli, rows: Path, tmp_path: Path) -> None:
    result = cli("compare", rows, "--out", tmp_path / "r")
    assert result.code == 1
    assert "--out cannot be used here: it is for spaces, which a TOML file declares" in result.err


def test_foreign_results_are_not_replaced(cli: Cli, lists: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "about.md").write_text("mine")
    result = cli("compare", lists / "lists.toml", "--out", tmp_path / "r")
    assert result.code == 1
    assert "was not written by an earlier run" in result.err
    assert (tmp_path / "r" / "about.md").read_text() == "mine"


def test_split_sides_are_trained_and_evaluated(cli: Cli, all_takes: Path, tmp_path: Path) -> None:
    """Every recording is on one side; the sides are declarations that train and evaluate take as they are."""
    out = tmp_path / "sides"
    result = cli("split", all_takes, "--out", out, "--valid", 0.1, "--test", 0.2, "--json")
    assert result.code == 0, result.err
    assert result.json["entities"]["recording"] == {"train": 75, "valid": 11, "test": 22}
    assert result.json["pairs"]["digits"] == {"train": 75, "valid": 11, "test": 22}
    ids = {side: (out / f"{side}.recording.txt").read_text().split() for side in ("train", "valid", "test")}
    assert {side: len(names) for side, names in ids.items()} == result.json["entities"]["recording"]
    assert len(set().union(*ids.values())) == 108
    assert cli("train", out / "train.toml", "--model", tmp_path / "m", "--hold-out", 0).code == 0
    evaluation = cli("evaluate", tmp_path / "m", out / "test.toml", "--json")
    assert evaluation.code == 0, evaluation.err
    assert {name: relation["rows"] for name, relation in evaluation.json["relations"].items()} == {
        "digits": 22, "speakers": 22, "recordings": 3, "voices": 22,
    }  # fmt: skip
    assert evaluation.json["relations"]["digits"]["metrics"]["p@1"] > 0.6
    assert "is what the space was trained on" in cli("evaluate", tmp_path / "m", out / "train.toml").err
    assert cli("evaluate", tmp_path / "m", out / "valid.toml").code == 0


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Notes of three topics, those of a topic being alike, and a declaration with names that no file has."""
    words = ["sea shore wave tide", "snow ice frost cold", "rock ore mine coal"]
    lines = [{"id": f"note {i}", "text": " ".join([*words[i % 3].split()[i % 4 :], f"w{i}"])} for i in range(60)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    alike = [f"note {i}\tnote {j}" for i in range(60) for j in range(i + 3, 60, 3)]
    (tmp_path / "alike.tsv").write_text("\n".join(alike))
    (tmp_path / "notes.toml").write_text("""
[kinds."note/1"]
data = "notes.jsonl"
min_count = 1
scaling = "tfidf"

[relations."like \\"that\\""]
query = "note/1"
target = "note/1"
pairs = "alike.tsv"
weight = 1.5

[space]
dim = 8
epochs = 20
learning_rate = 0.05
max_norm = "none"
""")
    return tmp_path


def test_held_out_entities_query_those_of_training(cli: Cli, texts: Path, tmp_path: Path) -> None:
    """In a list within one kind, most pairs of a held-out entity are with entities of training."""
    out = tmp_path / "sides"
    assert cli("split", texts / "notes.toml", "--out", out, "--valid", 0, "--test", 0.2).code == 0
    assert sorted(file.name for file in out.iterdir()) == [
        "test.like_that_.tsv", "test.note_1.txt", "test.toml", "train.like_that_.tsv", "train.note_1.txt", "train.toml",
    ]  # fmt: skip
    pairs = [line.split("\t") for line in (out / "test.like_that_.tsv").read_text().splitlines()[1:]]
    sides = {side: set((out / f"{side}.note_1.txt").read_text().splitlines()) for side in ("train", "test")}
    assert {a for a, _ in pairs} == sides["test"]
    assert {b for _, b in pairs} <= sides["train"]
    assert cli("train", out / "train.toml", "--model", tmp_path / "m", "--hold-out", 0).code == 0
    result = cli("evaluate", tmp_path / "m", out / "test.toml", "--json")
    assert result.code == 0, result.err
    ((name, relation),) = result.json["relations"].items()
    assert (name, relation["rows"], relation["labels"]) == ('like "that"', 12, 48)
    assert relation["metrics"]["p@1"] > 0.6, "chance is a third"
    result = cli("compare", out / "train.toml", "--test", out / "test.toml", "--json")
    assert result.code == 0, result.err
    (relation,) = result.json["relations"].values()
    assert (relation["queries"], relation["candidates"]) == (12, 43), (
        "48 entities but for the five that choose the epoch"
    )
    assert [m["name"] for m in relation["methods"]] == ["all", "popularity", "cosine"]
    result = cli("train", out / "test.toml", "--model", tmp_path / "n")
    assert result.code == 1
    assert 'says candidates = "fitted", which is for evaluation' in result.err
    again = cli("split", out / "train.toml", "--out", tmp_path / "again", "--json")
    assert again.code == 0, again.err
    assert sum(again.json["entities"]["note/1"].values()) == 48
    parameters = cli("info", tmp_path / "m", "--json").json["parameters"]
    assert parameters["max_norm"] is None
    assert parameters["learning_rate"] == 0.05


def test_files_of_an_earlier_split_are_removed(cli: Cli, lists: Path, tmp_path: Path) -> None:
    out = tmp_path / "sides"
    assert cli("split", lists / "lists.toml", "--out", out, "--valid", 0.3, "--test", 0.3).code == 0
    assert (out / "valid.near.tsv").exists()
    assert cli("split", lists / "lists.toml", "--out", out, "--valid", 0, "--test", 0.3).code == 0
    assert not (out / "valid.near.tsv").exists()
    (tmp_path / "mine").mkdir()
    for name in ("train.toml", "test.notes.txt"):
        file = tmp_path / "mine" / name
        file.write_text("mine")
        result = cli("split", lists / "lists.toml", "--out", tmp_path / "mine")
        assert result.code == 1
        assert f"cannot write {file}: no split has written it" in result.err
        assert file.read_text() == "mine"
        file.unlink()


def test_bad_splits_give_one_sentence(cli: Cli, texts: Path, tmp_path: Path) -> None:
    declared = (texts / "notes.toml").read_text()
    for words, sentence in (
        (["--by", "row"], "--by cannot be used here: it is for rows"),
        (["--drop-near", 0.9], "--drop-near cannot be used here: it is for rows"),
        (["--test", 0.999], "is below 1"),
    ):
        result = cli("split", texts / "notes.toml", "--out", tmp_path / "s", *words)
        assert result.code == 1, words
        assert sentence in result.err, result.err
    lines = (texts / "notes.jsonl").read_text().replace('"note 7"', '"note\\t7"')
    (texts / "notes.jsonl").write_text(lines)
    result = cli("split", texts / "notes.toml", "--out", tmp_path / "s")
    assert "the id 'note\\t7' has blanks at an end, a tab, the end of a line" in result.err
    assert not list((tmp_path / "s").iterdir())
    for ids, sentence in (
        ("\xff\n", "no ids are left"),
        ("nobody\n", "the data have none of the ids"),
        (None, "there is no file"),
    ):
        (texts / "notes.toml").write_text(declared.replace("min_count = 1", 'min_count = 1\nids = "few.txt"'))
        (texts / "few.txt").unlink(missing_ok=True)
        if ids is not None:
            (texts / "few.txt").write_bytes(ids.encode("latin-1"))
        result = cli("train", texts / "notes.toml", "--model", tmp_path / "m")
        assert result.code == 1
        assert sentence in result.err, result.err
    (texts / "notes.toml").write_text(declared.replace("weight = 1.5", 'candidates = "all"'))
    result = cli("train", texts / "notes.toml", "--model", tmp_path / "m")
    assert "candidates is 'all'; say candidates = \"fitted\" beside pairs" in result.err


def test_tuned_space_is_saved_and_the_search_resumes(cli: Cli, all_takes: Path, tmp_path: Path) -> None:
    """Features are extracted once; what is fixed stays; the space that is saved has the best trial's figure."""
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    words = (
        "tune",
        all_takes,
        "--out",
        out,
        "--hold-out",
        0.3,
        "--set",
        "epochs=5",
        "--set",
        "dim=[8, 16]",
        "--threads",
        1,
    )
    result = cli(*words, "--trials", 2)
    assert result.code == 0, result.err
    assert "of 2 trials, by MAP on the held-out pairs" in result.out
    assert "extracting features" in result.err
    names = {"model", "model.training", "trials.jsonl", "trials.csv", "tuning.html", "parallel.svg"}
    assert {path.name for path in out.iterdir()} == names
    again = cli(*words, "--trials", 4, "--no-pruning", "--json")
    assert "holds trials with another halving" in again.err
    again = cli(*words, "--trials", 4, "--json")
    assert again.code == 0, again.err
    assert "extracting features" not in again.err, "the extracted features are used again"
    trials = again.json["trials"]
    assert [trial["number"] for trial in trials] == [0, 1, 2, 3]
    assert {trial["parameters"]["epochs"] for trial in trials} == {5}
    assert {trial["parameters"]["dim"] for trial in trials[1:]} <= {8, 16}
    best = next(trial for trial in trials if trial["number"] == again.json["best"])
    info = cli("info", out / "model", "--json").json
    assert info["validation"]["mean"] == pytest.approx(best["figure"])
    assert info["tuning"]["trial"] == best["number"]
    assert info["kinds"]["recording"] == 108, "what judged is placed in the space"
    assert "tuning" in cli("info", out / "model").out
    (row,) = cli("annotate", out / "model", "george", "--relation", "recordings", "-k", 1, "--json").json["results"]
    assert "george" in row["recording"][0][0]


def test_stop_on_names_the_relation_that_scores_trials(cli: Cli, lists: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    words = ("tune", lists / "lists.toml", "--out", out, "--hold-out", 0.3, "--trials", 2)
    result = cli(*words, "--stop-on", "genres", "--json")
    assert result.code == 0, result.err
    assert result.json["metric"] == "MAP of genres"
    assert not {"negatives", "init"} & result.json["search"]["space"].keys(), "no entity has features"
    assert result.json["search"]["fixed"] == {"dim": 8, "epochs": 40}
    assert next(iter(cli("info", out / "model", "--json").json["validation"])) == "genres"
    assert "holds trials with another metric" in cli(*words).err
    (lists / "near.tsv").write_text((lists / "near.tsv").read_text() + "Ann\tLeo\n")
    assert "holds trials with other data" in cli(*words, "--stop-on", "genres").err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--test", "lists.toml"], "--test cannot be used here: it is for models of labels"),
        (["--features", "mfcc"], "--features cannot be used here: it is for models of labels"),
        (["--metric", "p@1"], "--metric cannot be used here: it is for models of labels"),
        (["--all-rows"], "--all-rows cannot be used here: it is for models of labels"),
        (["--set", "dims=8"], "there is no parameter dims to tune; did you mean dim?"),
        (["--set", "positives=mean"], "there is no parameter positives to tune"),
        (["--stop-on", "fame"], "no epoch can be chosen by 'fame'"),
    ],
)
def test_bad_tuning_options_give_one_sentence(
    cli: Cli, lists: Path, monkeypatch: Any, words: list[str], sentence: str
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.chdir(lists)
    result = cli("tune", "lists.toml", "--out", "out", "--trials", 1, "--hold-out", 0.3, *words)
    assert result.code == 1
    assert sentence in result.err
    assert "Traceback" not in result.err
