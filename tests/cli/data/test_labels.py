"""Commands on label knowledge, pairs of it and word vectors, on a real cut of WordNet."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsabie.io.vocabulary.word_vector_files import read_word_vectors
from wsabie.samples import get_documents_path, get_table_path

Cli = Callable[..., Any]
CUT = Path(__file__).parents[2] / "io" / "wordnet_cut"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    file = tmp_path / "labels.txt"
    file.write_text("taxi\nambulance\ncar wheel\nairbrake\nmountain bike\ndolphin\ntoaster\n")
    return file


def test_about_prints_senses_and_relations(cli: Cli) -> None:
    result = cli("labels", "about", "dolphin", "--knowledge", CUT)
    assert result.code == 0
    first, second = (line for line in result.out.splitlines() if line.startswith("n"))
    assert first.startswith("n02581957  dolphinfish, dolphin, mahimahi: large slender food and game fish widely")
    assert second.startswith("n02068974  dolphin: any of various small toothed whales with a beaklike snout")
    report = cli("labels", "about", "n02068974", "--knowledge", CUT, "--json").json
    assert report["senses"][0]["names"] == [["dolphin", "en"]]
    assert (report["related"]["is-a"], report["related"]["has-kind"][0]) == (["n02066707"], "n02069412")
    lost = cli("labels", "about", "dolfin", "--knowledge", CUT)
    assert (lost.code, lost.err.count("\n")) == (1, 1)
    assert "did you mean 'dolphin'" in lost.err


def test_match_lists_unmatched_labels_and_reads_a_corrected_table(labels: Path, tmp_path: Path, cli: Cli) -> None:
    table = tmp_path / "table.tsv"
    result = cli("labels", "match", "--knowledge", CUT, "--labels", labels, "--out", table, "--json")
    assert result.json["counts"] == {"name": 6, "missing": 1}
    assert result.json["missing"] == ["toaster"]
    assert "nothing is known of 1 of 7 labels, such as 'toaster'" in result.err
    lines = table.read_text().splitlines()
    assert lines[0] == "label\tid\tmethod\tname\tgloss"
    assert lines[6].startswith("dolphin\tn02581957\tname\tdolphinfish\tlarge slender")
    table.write_text(table.read_text().replace("n02581957", "n02068974").replace("toaster\t", "toaster\t-"))
    result = cli("labels", "match", "--knowledge", CUT, "--labels", labels, "--table", table, "--json")
    assert (result.json["concepts"]["dolphin"], result.json["counts"], result.err) == ("n02068974", {"table": 7}, "")
    table.write_text("dolphin\tn02\n")
    assert (
        "'n02', which is not a known concept"
        in cli("labels", "match", "--knowledge", CUT, "--labels", labels, "--table", table).err
    )


def test_pairs_lists_labels_joined_by_a_relation(labels: Path, tmp_path: Path, cli: Cli) -> None:
    knowledge = "--knowledge", CUT, "--labels", labels
    result = cli("labels", "pairs", "has-part", *knowledge, "--inherit")
    pairs = [tuple(line.split("\t")) for line in result.out.splitlines()]
    assert ("taxi", "car wheel") in pairs
    assert f"{len(pairs)} pairs of labels by has-part" in result.err
    out, wrong = tmp_path / "pairs.tsv", tmp_path / "wrong.tsv"
    wrong.write_text("# a taxi has none\nn02974003\tn02930766\tcar wheel\tcab\n")
    without = ("--inherit", "--exclude-pairs", wrong)
    less = cli("labels", "pairs", "has-part", *knowledge, *without, "--out", out, "--json").json
    assert sorted(map(tuple, less["pairs"])) == sorted(set(pairs) - {("taxi", "car wheel")})
    assert less["left_out"] == 1
    assert len(out.read_text().splitlines()) == len(pairs)  # a header, and one less
    assert (
        cli("labels", "pairs", "has-part", *knowledge, "--inherit", "--out", out).code == 0
    )  # its own may be written over
    every = tmp_path / "every.tsv"
    concepts = cli("labels", "match", *knowledge, "--json").json["concepts"]
    ids = [object_name for object_name in concepts.values() if object_name]
    every.write_text("".join(f"{object_name}\t{part_name}\n" for object_name in ids for part_name in ids))
    for arguments, message in (
        (("has-part", *knowledge), "joins no two labels"),
        (("married-to", *knowledge), "nothing is known of a relation 'married-to'"),
        ((*knowledge,), "which relation?"),
        (("has-part", *knowledge, "--exclude-pairs", labels), "has no two columns"),
        (("has-part", *knowledge, "--inherit", "--exclude-pairs", every), "leaves out all pairs of labels by has-part"),
        (("has-part", *knowledge, "--max-depth", "2"), "--max-depth"),
    ):
        lost = cli("labels", "pairs", *arguments)
        assert (lost.code, lost.out) == (1, "")
        assert message in lost.err.splitlines()[-1]


def test_match_reads_the_table_of_the_sample(tmp_path: Path, cli: Cli, data_dir: Path) -> None:
    labels, out = tmp_path / "labels.txt", tmp_path / "meant.tsv"
    labels.write_text("mouse\nlove\nseal\nlovebird\n")
    knowledge = ("--knowledge", data_dir / "wordnet_partof", "--knowledge", data_dir / "imagenet_synsets" / "words.txt")
    words = ("labels", "match", *knowledge, "--labels", labels, "--table", get_table_path("label_concepts"))
    result = cli(*words, "--out", out, "--json")
    assert (result.code, result.json["counts"]) == (0, {"table": 3, "name": 1})
    with out.open(newline="") as file:
        names_by_label = {row["label"]: row["name"] for row in csv.DictReader(file, delimiter="\t")}
    assert names_by_label == {"mouse": "mouse", "love": "", "seal": "seal", "lovebird": "lovebird"}
    assert result.json["concepts"]["mouse"] == "n02330245"


def test_under_lists_kinds_and_parts(labels: Path, cli: Cli) -> None:
    words = "labels", "under", "motor vehicle", "--knowledge", CUT, "--labels", labels
    report = cli(*words, "--json").json
    assert [(entry["label"], entry["steps"]) for entry in report["kinds"]] == [("ambulance", 2), ("taxi", 2)]
    parts = [(entry["label"], entry["of"]) for entry in report["parts"]]
    assert parts == [("airbrake", "n03791235"), ("car wheel", "n03791235")]
    assert "part of motor vehicle" in cli(*words).out
    assert cli(*words, "--max-depth", 1, "--json").json["kinds"] == []
    assert "no label" in cli("labels", "under", "city", "--knowledge", CUT, "--labels", labels).err


def test_within_gives_the_label_sets_of_devise(tmp_path: Path, cli: Cli) -> None:
    """By hand: a taxi is a car; its sibling is two hops away, what is above both too; the ship is far."""
    kinds, seeds, out = (tmp_path / name for name in ("kinds.tsv", "seeds.txt", "two.tsv"))
    kinds.write_text("Taxi\tcar\nhearse\tcar\ncar\tvehicle\nship\tvehicle\n")
    seeds.write_text("Taxi\n")
    words = "--knowledge", kinds, "--labels", seeds
    for hops, expected in (("0", {"taxi"}), ("1", {"taxi", "car"}), ("2", {"taxi", "car", "hearse", "vehicle"})):
        assert set(cli("labels", "within", hops, *words, "--json").json["concepts"]) == expected
    result = cli("labels", "within", "2", *words)
    assert ("taxi\ttaxi" in result.out.splitlines(), result.err) == (True, "4 concepts at most 2 hops from 1 label\n")
    assert cli("labels", "within", "2", *words, "--out", out).code == 0
    again = cli("labels", "match", "--knowledge", kinds, "--labels", out, "--json").json
    assert sorted(again["concepts"]) == ["car", "hearse", "taxi", "vehicle"]
    parts = tmp_path / "parts.tsv"
    parts.write_text("wheel\tTaxi\n")
    for arguments, message in (
        (("two", *words), "'two' is not a number of hops"),
        (("1000", *words), "from 0 to 99"),
        (words, "which number of hops?"),
        (("2", "--labels", seeds, "--pairs", f"part-of={parts}"), "no is-a pair is known"),
        (("2", *words, "--max-depth", "2"), "--max-depth"),
    ):
        lost = cli("labels", "within", *arguments)
        assert (lost.code, lost.out) == (1, ""), lost.err
        assert message in lost.err.splitlines()[-1]


def test_pair_lists_state_relations(labels: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "parts.tsv").write_text("toaster\ttaxi\n")
    (tmp_path / "kinds.tsv").write_text("taxi\tthing\n")
    words = "labels", "under", "thing", "--labels", labels, "--knowledge", tmp_path / "kinds.tsv"
    report = cli(*words, "--pairs", f"part-of={tmp_path / 'parts.tsv'}", "--json").json
    assert [entry["label"] for entry in report["kinds"] + report["parts"]] == ["taxi", "toaster"]
    (tmp_path / "wholes.tsv").write_text("taxi\ttoaster\n")
    assert cli(*words, "--pairs", f"has-part={tmp_path / 'wholes.tsv'}", "--json").json["parts"] == report["parts"]
    assert cli(*words).out.splitlines()[0] == "thing (thing)"  # a list has no gloss
    report = cli("labels", "about", "taxi", "--knowledge", tmp_path / "kinds.tsv").out
    assert report.splitlines() == ["taxi", "  is-a: thing"]
    for wrong in ("part-of", "=x", "part-of=" + str(tmp_path / "none")):
        result = cli(*words, "--pairs", wrong)
        assert (result.code, result.err.count("\n")) == (1, 1), result.err


def test_pairs_of_a_relation_train_a_space(labels: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "parts.tsv"
    result = cli("pairs", "from-wordnet", CUT, "--out", out)
    assert (result.code, result.out) == (0, f"{out}: 8 pairs of 15 synsets, part-of\n")
    assert "n02974003\tn03791235\n" in out.read_text()
    assert out.read_text().startswith("id\tname\n")
    among = "--labels", labels, "--inherit", "--relation", "has-part"
    result = cli("pairs", "from-wordnet", CUT, "--out", out, *among, "--json")
    assert result.json["pairs"] == 4
    assert result.json["missing"] == ["toaster"]
    assert sorted(out.read_text().splitlines()[1:]) == [
        "ambulance\tairbrake", "ambulance\tcar wheel", "taxi\tairbrake", "taxi\tcar wheel",
    ]  # fmt: skip
    (tmp_path / "space.toml").write_text(
        f'[relations.parts]\nquery = "whole"\ntarget = "part"\npairs = "{out.name}"\n\n[space]\ndim = 4\nepochs = 2\n'
    )
    result = cli("train", tmp_path / "space.toml", "--model", tmp_path / "m", "--hold-out", 0, "--threads", 1)
    assert result.code == 0, result.err
    (row,) = cli("annotate", tmp_path / "m", "taxi", "--relation", "parts", "--json").json["results"]
    assert sorted(name for name, _ in row["part"]) == ["airbrake", "car wheel"]


def test_bad_vectors_give_one_sentence(labels: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out.tsv"
    labels.write_text("taxi\ndolphin\n")
    (empty := tmp_path / "empty").mkdir()
    for words, sentence in [
        (("labels", "about", "car"), "add --knowledge FILE"),
        (("labels", "about", "--knowledge", CUT), "which name?"),
        (("labels", "under", "car", "--knowledge", CUT), "--labels names a file"),
        (("labels", "match", "car", "--knowledge", CUT, "--labels", labels), "leave 'car' out"),
        (("labels", "about", "car", "--knowledge", CUT, "--max-depth", 2), "--max-depth cannot be used here"),
        (("labels", "match", "--knowledge", CUT, "--labels", labels, "--out", labels), "would be lost"),
        (("pairs", "from-wordnet", CUT, "--out", out, "--min-listeners", 3), "--min-listeners cannot be used here"),
        (("pairs", "from-wordnet", CUT, "--out", out, "--inherit"), "--inherit cannot be used here"),
        (("pairs", "from-listeners", labels, "--out", out, "--relation", "is-a"), "--relation cannot be used here"),
        (("pairs", "from-wordnet", CUT, "--out", out, "--labels", labels, "--relation", "member-of"), "states no pair"),
        (("pairs", "from-wordnet", empty, "--out", out), "holds no data.noun"),
        (("vectors", "near", labels, "a"), "not a file of word vectors"),
        (("vectors", "near", labels), "near to which word"),
        (("vectors", "info", labels, "a"), "leave 'a' out"),
        (("vectors", "info", labels, "--dim", 3), "--dim cannot be used here"),
        (("vectors", "train", labels), "give both"),
        (("vectors", "train", labels, "--out", out, "--limit", 3), "--limit cannot be used here"),
        (("vectors", "train", labels, "--out", labels), "would be lost"),
    ]:
        result = cli(*words)
        assert (result.code, result.err.count("\n")) == (1, 1), result.err
        assert sentence in result.err
    assert not out.exists()


def test_vectors_info_and_near_read_a_file(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "few.vec"
    file.write_text("4 2\ndog 1 0\ncat 1 .5\noak 0 1\nbroken 1\n")
    report = cli("vectors", "info", file, "--json", "--rejects", tmp_path / "bad.jsonl")
    assert report.json == {
        "schema": 1, "vectors": str(file), "words": 3, "dimensions": 2, "first": ["dog", "cat", "oak"],
        "skipped": {"line with another number of values": 1},
    }  # fmt: skip
    assert json.loads((tmp_path / "bad.jsonl").read_text())["where"] == f"{file}:5"
    near = cli("vectors", "near", file, "Dog", "-k", 1, "--json").json
    assert (near["words"], near["neighbours"]) == (["dog"], [["cat", 0.894427]])
    assert "cat" in cli("vectors", "near", file, "dog oak").out
    assert "did you mean 'oak'" in cli("vectors", "near", file, "oaks").err
    assert (tmp_path / "few.vec.npy").exists()
    assert cli("vectors", "info", file, "--strict").code == 1


def test_missing_gensim_error_names_the_install_command(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    result = cli("vectors", "train", get_documents_path(), "--out", tmp_path / "own.vec")
    assert result.code == 1
    assert "pip install 'wsabie[text]'" in result.err
    assert not (tmp_path / "own.vec").exists()


def test_vectors_are_trained_from_text(tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("gensim")
    out = tmp_path / "own.vec"
    words = "vectors", "train", get_documents_path(), "--out", out, "--dim", 16, "--epochs", 2, "--json"
    result = cli(*words)
    assert result.code == 0, result.err
    assert result.json["words"] > 1000
    assert result.json["phrases"] > 50
    first = out.read_bytes()
    vectors = read_word_vectors(out)
    assert (len(vectors), vectors.dim) == (result.json["words"], 16)
    assert "label_names" in vectors.words
    assert "label names" in vectors
    assert np.isfinite(vectors.table).all()
    assert cli(*words).code == 0  # a file of its kind is replaced
    assert out.read_bytes() == first  # and one thread gives the same again
    assert cli("vectors", "near", out, "picture", "-k", 3).code == 0
    nothing = tmp_path / "few.txt"
    nothing.write_text("Only once. Each word.\n")
    errors = cli("vectors", "train", nothing, "--out", out).err
    assert "no word is found 5 times" in errors
    assert "a lower --min-count" in errors
    nothing.write_text("sea salt\n" * 50)
    assert cli("vectors", "train", nothing, "--out", out, "--phrases", 0, "--dim", 2, "--json").json["words"] == 2
