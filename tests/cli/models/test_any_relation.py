"""Relations other than part-of through the commands, from WordNet's files or a list."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wsabie.samples import get_sample_path

Cli = Callable[..., Any]
CUT = Path(__file__).parents[2] / "io" / "wordnet_cut"
CATEGORIES = ("transport-ground", "place-building", "place-religious")
RELATION_PHRASES = {"is-a": "has the kind", "instance-of": "has the instance", "own": "own of"}
OWN_PAIRS = "# where they go\nambulance\thospital\nhospital\tbuilding\nkaaba\tmosque\nnowhere\thospital\n"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Emoji of vehicles and buildings as files, with their English labels."""
    folder = tmp_path_factory.mktemp("places")
    table = [row for row in pq.read_table(get_sample_path("emoji")).to_pylist() if row["category"].endswith(CATEGORIES)]
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["file_name", "labels"])
        for row in table:
            english = [name for name, spoken in zip(row["labels"], row["languages"], strict=True) if "en" in spoken]
            (folder / f"{row['id']}.webp").write_bytes(row["image"])
            lines.writerow([f"{row['id']}.webp", ";".join(english)])
    return folder


def find_knowledge(relation: str, request: pytest.FixtureRequest) -> list[Path]:
    if relation == "is-a":
        return [CUT]
    data = request.getfixturevalue("data_dir")
    return [data / "wordnet_partof" / "wn_ins.pl", data / "imagenet_synsets" / "words.txt"]


@pytest.mark.parametrize(
    ("relation", "label", "related_label", "picture", "more_pairs"),
    [
        ("is-a", "ambulance", "car", "emoji-1f691.webp", {("taxi", "car"), ("ambulance", "automobile")}),
        ("instance-of", "kaaba", "shrine", "emoji-1f54b.webp", {("statue of liberty", "statue")}),
        ("own", "ambulance", "hospital", "emoji-1f691.webp", {("kaaba", "mosque"), ("hospital", "building")}),
    ],
)
def test_trained_relation_answers_queries(
    cli: Cli, places: Path, tmp_path: Path, request: pytest.FixtureRequest, relation: str, label: str,
    related_label: str, picture: str, more_pairs: set[tuple[str, str]],
) -> None:  # fmt: skip
    related, model = tmp_path / "related.tsv", tmp_path / "model"
    if relation == "own":
        related.write_text(OWN_PAIRS)
    else:
        labels = tmp_path / "labels.txt"
        with (places / "metadata.csv").open(newline="") as file:
            labels.write_text("\n".join({name for row in csv.DictReader(file) for name in row["labels"].split(";")}))
        knowledge = [word for path in find_knowledge(relation, request) for word in ("--knowledge", path)]
        result = cli("labels", "pairs", relation, *knowledge, "--labels", labels, "--out", related)
        assert result.code == 0, result.err
    pairs = {tuple(line.split("\t")) for line in related.read_text().splitlines()}
    assert {(label, related_label)} | more_pairs <= pairs
    quick = "--n-words", 60, "--size", 64, "--dim", 16, "--threads", 1, "--epochs", 60, "--hold-out", 0
    relation_option = f"{relation}={related}"
    trained = cli("train", places, "--kind", "parts", "--relations", relation_option, "--model", model, *quick)
    assert trained.code == 0, trained.err
    assert f"next: wsabie parts {model} PICTURE" in trained.err
    assert ("1 relation left out, such as nowhere" in trained.err) == (relation == "own")

    matches = cli("parts", model, places / picture, "--object", label, "-k", 1, "--json").json["results"]
    assert [(pairs["object"], pairs["part"]) for pairs in matches] in (
        [(label, related_label)],
        [(label, "automobile")],
    )
    among, asked_pairs = tmp_path / "among.tsv", {(label, related_label)} | more_pairs
    among.write_text("".join(f"{a}\t{b}\n" for a, b in asked_pairs))
    ranked = cli("parts", model, places / picture, "--part", places / picture, "--candidate-pairs", among, "--json")
    assert {(each["object"], each["part"]) for each in ranked.json["results"]} == asked_pairs

    groups = cli("search", model, label, "--in", places, "-k", 2, "--max-related", 2, "--json").json["groups"]
    assert groups[0]["labels"] == [label]
    assert groups[0]["matches"][0]["labelled"]
    assert [related_label] in [group["labels"] for group in groups[1:]], groups
    why = f"{RELATION_PHRASES[relation]} {label} (trained, "
    assert all(group["reason"].removeprefix("perhaps ").startswith(why) for group in groups[1:])
    first_line = cli("search", model, label, "--in", places, "-k", 1).out.splitlines()[1]
    assert Path(first_line.partition("\t")[0]).is_file()  # as it is printed, it can be opened


def test_pairs_of_unknown_labels_are_refused_before_feature_extraction(cli: Cli, places: Path, tmp_path: Path) -> None:
    related = tmp_path / "related.tsv"
    related.write_text("ambulanze\thospital\n")
    for more, message in (
        (("--kind", "parts", "--relations", related), "there is no label 'ambulanze'; did you mean 'ambulance'"),
        (("--min-rows", 1000), "no label has 1000 training rows"),
    ):
        result = cli("train", places, "--model", tmp_path / "model", *more)
        assert result.code == 1
        assert message in result.err
        assert "extracting features" not in result.err
        assert "learning" not in result.err
