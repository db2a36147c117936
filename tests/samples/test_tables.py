"""The tables of what labels mean: every label is of the sample, every synset of WordNet, and a user can read them."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from wsabie.core.errors import InputError
from wsabie.io.formats.pair_list import read_id_pairs
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph, read_label_table
from wsabie.samples import PARTS, TABLES, get_sample_path, get_table_path
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_matching import LabelConcepts, match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

SYNSETS = ("label_concepts", "car_part_concepts")


def rows(name: str) -> list[list[str]]:
    lines = get_table_path(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("# ")]


@pytest.fixture(scope="module")
def pictures() -> dict[str, set[str]]:
    """The pictures of every English label of the emoji and every tag of the drawings."""
    ids_by_label: dict[str, set[str]] = {}
    for name in PARTS:
        table = pq.read_table(get_sample_path(name)).drop_columns(["image"]).to_pylist()
        for row in table:
            languages = row.get("languages") or [["en"]] * len(row["labels"])
            for label, used in zip(row["labels"], languages, strict=True):
                if "en" in used:
                    ids_by_label.setdefault(label, set()).add(row["id"])
    return ids_by_label


@pytest.fixture(scope="module")
def wordnet(data_dir: Path) -> KnowledgeGraph:
    return read_knowledge_graph(data_dir / "imagenet_synsets" / "words.txt", data_dir / "wordnet_partof")


@pytest.fixture(scope="module")
def label_concepts(wordnet: KnowledgeGraph, pictures: dict[str, set[str]]) -> LabelConcepts:
    return match_labels(wordnet, pictures, read_label_table(get_table_path("label_concepts")))


def test_an_unknown_table_names_those_there_are() -> None:
    with pytest.raises(
        InputError, match="no table called 'sense'; choose one of label_concepts, part_exclusions, car_part_concepts"
    ):
        get_table_path("sense")


@pytest.mark.parametrize("name", SYNSETS)
def test_no_label_comes_twice(name: str) -> None:
    counts = Counter(label for label, *_ in rows(name))
    assert [label for label, count in counts.items() if count > 1] == []
    assert sorted(counts) == list(counts)


@pytest.mark.parametrize("name", SYNSETS)
def test_every_synset_is_one_of_wordnet_by_its_name(name: str, wordnet: KnowledgeGraph) -> None:
    table_names = [(synset, first) for _, synset, *names in rows(name) for first in names]
    assert table_names == [(synset, wordnet.name(synset)) for synset, _ in table_names]
    assert all(row[1] == "-" or len(row) == 3 for row in rows(name))


def test_every_label_is_of_the_sample(pictures: dict[str, set[str]]) -> None:
    assert [label for label, *_ in rows("label_concepts") if label not in pictures] == []


def test_nothing_that_wordnet_knows_is_left_to_its_first_sense(label_concepts: LabelConcepts) -> None:
    assert set(label_concepts.methods) == {"table", ""}
    assert len(set(label_concepts.concepts)) > 1_100


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("bat", "club"), ("seal", "mammal"), ("mouse", "rodent"), ("palm tree", "plant"), ("glasses", "instrument"),
        ("nail", "body part"), ("kite", "plaything"), ("pepper", "food"), ("cricket", "insect"), ("watch", "timepiece"),
    ],
)  # fmt: skip
def test_a_label_means_what_its_pictures_show(label: str, kind: str, wordnet: KnowledgeGraph) -> None:
    synset = read_label_table(get_table_path("label_concepts"))[label]
    hypernyms = wordnet.reach([synset], ["is-a"])
    assert any(sense in hypernyms for sense in wordnet.find_senses(kind))


def test_labels_that_show_nothing_mean_nothing() -> None:
    table = read_label_table(get_table_path("label_concepts"))
    assert {table[label] for label in ("love", "cold", "spring", "france", "work", "computer")} == {""}


def test_enough_parts_and_wholes_have_pictures(label_concepts: LabelConcepts, pictures: dict[str, set[str]]) -> None:
    pictures_by_synset: dict[str, set[str]] = {}
    for label, synset in zip(label_concepts.labels, label_concepts.concepts, strict=True):
        pictures_by_synset.setdefault(synset or "", set()).update(pictures[label])

    def related(*, inherit: bool) -> set[tuple[str, str]]:
        pairs = label_concepts.pairs("part-of", inherit=inherit)
        return {(label_concepts.concepts[part] or "", label_concepts.concepts[whole] or "") for part, whole in pairs}

    def usable(pairs: set[tuple[str, str]]) -> int:
        """Two pictures of either that are not the same."""
        return sum(
            min(len(pictures_by_synset[a]), len(pictures_by_synset[b])) > 1
            and len(pictures_by_synset[a] | pictures_by_synset[b]) > 3
            for a, b in pairs
        )

    direct, inherited = related(inherit=False), related(inherit=True)
    excluded = {(part, whole) for part, whole, *_ in rows("part_exclusions")}
    assert excluded <= inherited
    assert (len(direct), len(inherited), len(inherited - excluded)) == (51, 437, 198)
    assert (usable(direct), usable(direct - excluded), usable(inherited - excluded)) == (27, 26, 75)


def test_the_classes_of_car_parts_are_parts_of_a_car_or_of_its_systems(wordnet: KnowledgeGraph, data_dir: Path) -> None:
    for split in ("trainingset", "testset"):
        annotations = json.loads((data_dir / "car_parts" / split / "annotations.json").read_text())
        assert {category["name"] for category in annotations["categories"]} - {"_background_"} == {
            row[0] for row in rows("car_part_concepts")
        }
    (car,) = (sense for sense in wordnet.find_senses("car") if "auto" in wordnet.concept(sense).names)
    hypernyms = wordnet.reach([car], ["is-a"])
    inside = wordnet.reach(hypernyms, ["has-part"])
    assert {row[2] for row in rows("car_part_concepts") if row[1] not in inside} == {
        "tailgate"
    }  # of beach wagon and truck


def test_couples_have_pictures_of_their_own(pictures: dict[str, set[str]]) -> None:
    couples = list(read_id_pairs(get_table_path("emoji_couples"), rejects=Rejects()))
    names = [name for couple in couples for name in couple]
    assert len(couples) == len(rows("emoji_couples")) == 10
    assert len(set(names)) == len(names)
    for first, second in couples:
        assert min(len(pictures[first] - pictures[second]), len(pictures[second] - pictures[first])) > 1


def test_tables_are_small_and_plain() -> None:
    for name in TABLES:
        text = get_table_path(name).read_bytes()
        assert len(text) < 120_000
        assert text.decode("utf-8").endswith("\n")
        assert b"\r" not in text
