"""The option `--hierarchy` and the command `wsabie hierarchy`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsabie.models.annotators import Annotator

Cli = Callable[..., Any]
KINDS = "child\tparent\ntoad\tamphibian\nfrog\tamphibian\noak\ttree\n"


@pytest.fixture
def model_and_test(tmp_path: Path, cli: Cli) -> tuple[Path, Path]:
    """A model of toads, frogs and oaks in words, and rows like those that it learned from."""
    words = {"toad": "wet brown hops", "frog": "wet green hops", "oak": "dry tall leaves"}
    lines = [f"__label__{name} {text} {text.split()[i % 3]}" for i in range(30) for name, text in words.items()]
    data, test, model = tmp_path / "train.txt", tmp_path / "test.txt", tmp_path / "model"
    data.write_text("\n".join(lines) + "\n")
    test.write_text("__label__toad wet hops\n__label__oak dry leaves leaves\n__label__frog wet green\n")
    result = cli("train", data, "--model", model, "--dim", 8, "--epochs", 10, "--threads", 1)
    assert result.code == 0, result.err
    return model, test


def test_mined_hierarchy_measures_sibling_precision(
    model_and_test: tuple[Path, Path], tmp_path: Path, cli: Cli
) -> None:
    model, test = model_and_test
    text, kinds = tmp_path / "book.txt", tmp_path / "kinds.tsv"
    text.write_text("The toad is a small amphibian. A frog\nis an amphibian; the oak is a tree. A stone is a thingy.\n")
    mined = cli("hierarchy", "from-text", text, "--out", kinds, "--labels", model, "--json").json
    assert {name: mined[name] for name in ("pairs", "children", "parents")} == {"pairs": 3, "children": 3, "parents": 2}

    evaluation = cli("evaluate", model, test, "--hierarchy", kinds, "--json").json
    assert evaluation["siblings"] == {"median": 1.0, "median_of_known": 1.0, "known_labels": 3, "labels": 3}
    assert evaluation["metrics"]["psib@1"] >= evaluation["metrics"]["p@1"]
    assert evaluation["ceilings"]["psib@1"] == 1
    assert evaluation["metrics"]["hp@1"] == evaluation["metrics"]["p@1"]
    low, high = evaluation["intervals"]["psib@1"]
    assert low <= evaluation["metrics"]["psib@1"] <= high
    table = cli("evaluate", model, test, "--hierarchy", kinds)
    assert "psib@1" in table.out
    assert "median number of siblings: 1; the hierarchy knows 3 of 3 labels" in table.err

    results = cli("annotate", model, test, "--hierarchy", kinds, "--json").json["results"]
    of_toad = dict(zip([name for name, _ in results[0]["labels"]], results[0]["marks"], strict=True))
    assert of_toad == {"toad": "true", "frog": "sibling", "oak": "other"}
    result = cli("annotate", model, test, "--hierarchy", kinds)
    assert "*toad" in result.out
    assert "~frog" in result.out
    assert "* a true label, ~ a sibling of one" in result.err

    near = cli("neighbours", model, "toad", "--hierarchy", kinds, "--json").json
    assert dict(zip([n for n, _ in near["neighbours"]], near["marks"], strict=True)) == {
        "frog": "sibling",
        "oak": "other",
    }
    assert "sibling" in cli("neighbours", model, "toad", "--hierarchy", kinds).out
    assert "marks" not in cli("neighbours", model, "toad", "--json").json


def test_bad_hierarchies_give_one_sentence(model_and_test: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    model, test = model_and_test
    kinds = tmp_path / "kinds.tsv"
    for text, sentence in [
        ("toad\tamphibian\nfrog\n", "kinds.tsv:2 is not a pair"),
        ("ship\tboat\n", "names none of the 3 labels of the model"),
    ]:
        kinds.write_text(text)
        result = cli("evaluate", model, test, "--hierarchy", kinds)
        assert (result.code, result.err.count("\n")) == (1, 1)
        assert sentence in result.err
    assert "add --hierarchy FILE" in cli("neighbours", model, "toad", "--parent-first").err
    nothing = cli("hierarchy", "from-text", test, "--out", tmp_path / "out.tsv")
    assert nothing.code == 1
    assert "never says that something is a kind" in nothing.err
    assert not (tmp_path / "out.tsv").exists()
    assert "would be lost" in cli("hierarchy", "from-text", test, "--out", test).err


def test_from_text_counts_pairs_and_reports_rare_ones(tmp_path: Path, cli: Cli) -> None:
    text, kinds = tmp_path / "book.txt", tmp_path / "kinds.tsv"
    text.write_text("A toad is an amphibian.\n")
    assert ": 1 pair of 1 child, 1 parent\n" in cli("hierarchy", "from-text", text, "--out", kinds).out
    rare = cli("hierarchy", "from-text", text, "--out", kinds, "--min-count", 50)
    assert (rare.code, "kind of something 50 times; give more English text, or a lower --min-count" in rare.err) == (
        1,
        True,
    )
    text.write_text("A toad is an amphibian. A frog is an amphibian.\n")
    assert ": 2 pairs of 2 children, 1 parent\n" in cli("hierarchy", "from-text", text, "--out", kinds).out


def test_file_header_overrides_parent_first(model_and_test: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text(KINDS)
    result = cli("neighbours", model_and_test[0], "toad", "--hierarchy", kinds, "--parent-first")
    assert result.err.count("kinds.tsv: its header says that the child comes first") == 1
    assert result.out == cli("neighbours", model_and_test[0], "toad", "--hierarchy", kinds).out
    kinds.write_text("amphibian\ttoad\namphibian\tfrog\n")
    assert "header" not in cli("neighbours", model_and_test[0], "toad", "--hierarchy", kinds, "--parent-first").err


def test_hierarchy_used_in_training_is_reported(model_and_test: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    from wsabie.io.vocabulary.hierarchy_files import read_hierarchy

    model, test = model_and_test
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text(KINDS)
    assert "used in training" not in cli("evaluate", model, test, "--hierarchy", kinds).err
    annotator = Annotator.load(model)
    annotator.facts["hierarchies"] = [read_hierarchy(kinds).fingerprint()]
    annotator.save(model)
    assert "was used in training" in cli("evaluate", model, test, "--hierarchy", kinds).err


def test_comparisons_and_tables_measure_siblings(rows: Path, tmp_path: Path, cli: Cli, papers_cli: Cli) -> None:
    kinds, strange = tmp_path / "kinds.tsv", tmp_path / "strange.tsv"
    kinds.write_text("child\tparent\n0\teven\n2\teven\n1\todd\n")
    strange.write_text("child\tparent\nhaddock\tfish\n")
    command = ("compare", rows, "--models", "popularity", "--hierarchy", kinds)
    comparison = cli(*command, "--json").json
    assert comparison["siblings"]["known_labels"] == 3
    metrics = comparison["models"][0]["metrics"]
    assert metrics["psib@1"] >= metrics["p@1"]
    printed = cli(*command)
    assert "the hierarchy knows 3 of 3 labels" in printed.err
    refused = cli("compare", rows, "--models", "popularity", "--hierarchy", strange)
    assert (refused.code, "names none of the 3 labels of" in refused.err) == (1, True)

    table = papers_cli("wsabie-table-1", "--data", rows, "--hierarchy", kinds, "--out", tmp_path / "t", "--json")
    assert table.code == 0, table.err
    counts = {row["row"]: row["figures"]["count"] for row in table.json["here"]}
    assert counts["Median Num Siblings per Label"] == 1
    assert "add --hierarchy" in papers_cli("wsabie-table-1", "--data", rows, "--parent-first").err
