"""The tables of what labels mean: every label is of the sample, every synset of WordNet, and a user can read them."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from wsabie.base.errors import InputError
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.matching import Matched, match_labels
from wsabie.samples import PARTS, TABLES, bundled_parts, not_parts, sample_path, table_path
from wsabie.sources.knowledge import read_knowledge, read_label_table
from wsabie.sources.pairs import read_couples

SYNSETS = ("meanings", "car_parts")


def rows(name: str) -> list[list[str]]:
    lines = table_path(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("# ")]


@pytest.fixture(scope="module")
def pictures() -> dict[str, set[str]]:
    """The pictures of every English label of the emoji and every tag of the drawings."""
    if bundled_parts() != PARTS:
        pytest.skip("drawings.parquet is not bundled in this install")
    found: dict[str, set[str]] = {}
    for name in PARTS:
        table = pq.read_table(sample_path(name)).drop_columns(["image"]).to_pylist()
        for row in table:
            languages = row.get("languages") or [["en"]] * len(row["labels"])
            for label, used in zip(row["labels"], languages, strict=True):
                if "en" in used:
                    found.setdefault(label, set()).add(row["id"])
    return found


@pytest.fixture(scope="module")
def wordnet(data_dir: Path) -> Knowledge:
    return read_knowledge(data_dir / "imagenet_synsets" / "words.txt", data_dir / "wordnet_partof")


@pytest.fixture(scope="module")
def meant(wordnet: Knowledge, pictures: dict[str, set[str]]) -> Matched:
    return match_labels(wordnet, pictures, read_label_table(table_path("meanings")))


def test_an_unknown_table_names_those_there_are() -> None:
    with pytest.raises(InputError, match="no table called 'sense'; choose one of meanings, not_parts, car_parts"):
        table_path("sense")


@pytest.mark.parametrize("name", SYNSETS)
def test_no_label_comes_twice(name: str) -> None:
    counts = Counter(label for label, *_ in rows(name))
    assert [label for label, count in counts.items() if count > 1] == []
    assert sorted(counts) == list(counts)


@pytest.mark.parametrize("name", SYNSETS)
def test_every_synset_is_one_of_wordnet_by_its_name(name: str, wordnet: Knowledge) -> None:
    told = [(synset, first) for _, synset, *names in rows(name) for first in names]
    assert told == [(synset, wordnet.name(synset)) for synset, _ in told]
    assert all(row[1] == "-" or len(row) == 3 for row in rows(name))


def test_every_label_is_of_the_sample(pictures: dict[str, set[str]]) -> None:
    assert [label for label, *_ in rows("meanings") if label not in pictures] == []


def test_nothing_that_wordnet_knows_is_left_to_its_first_sense(meant: Matched) -> None:
    assert set(meant.how) == {"table", ""}
    assert len(set(meant.concepts)) > 1_100


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("bat", "club"), ("seal", "mammal"), ("mouse", "rodent"), ("palm tree", "plant"), ("glasses", "instrument"),
        ("nail", "body part"), ("kite", "plaything"), ("pepper", "food"), ("cricket", "insect"), ("watch", "timepiece"),
    ],
)  # fmt: skip
def test_a_label_means_what_its_pictures_show(label: str, kind: str, wordnet: Knowledge) -> None:
    synset = read_label_table(table_path("meanings"))[label]
    above = wordnet.reach([synset], ["is-a"])
    assert any(sense in above for sense in wordnet.senses(kind))


def test_labels_that_show_nothing_mean_nothing() -> None:
    table = read_label_table(table_path("meanings"))
    assert {table[label] for label in ("love", "cold", "spring", "france", "work", "computer")} == {""}


def test_enough_parts_and_wholes_have_pictures(meant: Matched, pictures: dict[str, set[str]]) -> None:
    shown: dict[str, set[str]] = {}
    for label, synset in zip(meant.labels, meant.concepts, strict=True):
        shown.setdefault(synset or "", set()).update(pictures[label])

    def related(*, inherit: bool) -> set[tuple[str, str]]:
        pairs = meant.pairs("part-of", inherit=inherit)
        return {(meant.concepts[part] or "", meant.concepts[whole] or "") for part, whole in pairs}

    def usable(pairs: set[tuple[str, str]]) -> int:
        """Two pictures of either that are not the same."""
        return sum(min(len(shown[a]), len(shown[b])) > 1 and len(shown[a] | shown[b]) > 3 for a, b in pairs)

    direct, inherited = related(inherit=False), related(inherit=True)
    assert not_parts() <= inherited
    assert (len(direct), len(inherited), len(inherited - not_parts())) == (51, 437, 198)
    assert (usable(direct), usable(direct - not_parts()), usable(inherited - not_parts())) == (27, 26, 75)


def test_the_classes_of_car_parts_are_parts_of_a_car_or_of_its_systems(wordnet: Knowledge, data_dir: Path) -> None:
    for split in ("trainingset", "testset"):
        told = json.loads((data_dir / "car_parts" / split / "annotations.json").read_text())
        assert {one["name"] for one in told["categories"]} - {"_background_"} == {row[0] for row in rows("car_parts")}
    (car,) = (sense for sense in wordnet.senses("car") if "auto" in wordnet.concept(sense).names)
    above = wordnet.reach([car], ["is-a"])
    inside = wordnet.reach(above, ["has-part"])
    assert {row[2] for row in rows("car_parts") if row[1] not in inside} == {"tailgate"}  # of beach wagon and truck


def test_couples_have_pictures_of_their_own(pictures: dict[str, set[str]]) -> None:
    couples = list(read_couples(table_path("married")))
    names = [name for couple in couples for name in couple]
    assert len(couples) == len(rows("married")) == 10
    assert len(set(names)) == len(names)
    for one, other in couples:
        assert min(len(pictures[one] - pictures[other]), len(pictures[other] - pictures[one])) > 1


def test_tables_are_small_and_plain() -> None:
    for name in TABLES:
        text = table_path(name).read_bytes()
        assert len(text) < 120_000
        assert text.decode("utf-8").endswith("\n")
        assert b"\r" not in text
