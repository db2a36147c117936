"""Search by words: labels, other names, what files know of words; each on both databases."""

import pytest
from PIL import Image

from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.labels.label_edits import edit_label
from wsabie.collection.labels.label_enrichment import enrich_labels
from wsabie.collection.scan.scanner import scan_collection
from wsabie.collection.search.query_parsing import LabelKnowledge
from wsabie.collection.search.text_search import SearchResult, search_items
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

TAGS = {"a": "car;red", "b": "bicycle", "c": "wheel;red", "d": "ship", "e": "car;ship", "f": "light wheel"}


@pytest.fixture
def tagged(collection: Collection) -> Collection:
    """Six pictures with tags of vehicles."""
    lines = ["file_name,labels"]
    for number, (name, tags) in enumerate(TAGS.items()):
        Image.new("RGB", (8, 8), (40 * number, 0, 0)).save(collection.folder / f"{name}.png")
        lines.append(f"{name}.png,{tags}")
    (collection.folder / "metadata.csv").write_text("\n".join(lines))
    scan_collection(collection, by="eve")
    return collection


@pytest.fixture
def meanings() -> LabelKnowledge:
    graph = KnowledgeGraph()
    for kind in ("car", "bicycle"):
        graph.relate("is-a", kind, "wheeled vehicle")
    graph.add("car", ["car", "motorcar"])
    graph.relate("part-of", "wheel", "car")
    return LabelKnowledge(graph, "kinds")


def summarise_groups(answer: SearchResult) -> list[tuple[str, str]]:
    """Files of each group with its reason."""
    letters = dict(enumerate(sorted(TAGS), 1))
    return [(group.reason, "".join(sorted(letters[hit.item] for hit in group.hits))) for group in answer.groups]


def test_search_needs_all_words_and_any_label_of_each(tagged: Collection, meanings: LabelKnowledge) -> None:
    assert summarise_groups(search_items(tagged, "car"))[0] == ("tagged 'car'", "ae")
    assert summarise_groups(search_items(tagged, "car red"))[0] == ("tagged 'car' and 'red'", "a")
    assert summarise_groups(search_items(tagged, "car -ship"))[0] == ("tagged 'car'", "a")
    results = search_items(tagged, "Wheeled Vehicle", knowledge=meanings)
    assert results.query.notes == ["'Wheeled Vehicle' is not a label, but there are 2 below it: car, bicycle"]
    assert summarise_groups(results) == [("tagged 'Wheeled Vehicle'", "abe"), ("kinds: part of car", "c")]
    assert {hit.item: hit.label for hit in results.groups[0].hits} == {1: "car", 2: "bicycle", 5: "car"}


def test_broader_concept_can_be_excluded(tagged: Collection, meanings: LabelKnowledge) -> None:
    results = search_items(tagged, 'ship -"wheeled vehicle"', knowledge=meanings)
    assert summarise_groups(results)[0] == ("tagged 'ship'", "d")
    assert sorted(results.query.excluded.values()) == ["bicycle", "car"]


@pytest.mark.parametrize(
    ("criteria", "letters", "related"),
    [
        (ItemFilter(), "ae", "bc"),
        (ItemFilter(label="red"), "a", "c"),
        (ItemFilter(words="e.png"), "e", ""),
        (ItemFilter(ids=(1, 2)), "a", "b"),
        (ItemFilter(taken_from="2026"), "", ""),  # of no picture is known when it was taken
        (ItemFilter(unlabelled=True), "", ""),
    ],
)
def test_all_groups_pass_a_filter(
    tagged: Collection, meanings: LabelKnowledge, criteria: ItemFilter, letters: str, related: str
) -> None:
    groups = dict(summarise_groups(search_items(tagged, "car", 9, meanings, criteria)))
    assert groups.pop("tagged 'car'", "") == letters
    assert "".join(sorted("".join(groups.values()))) == related


def test_words_that_are_not_labels_are_noted_beside_labels(tagged: Collection) -> None:
    results = search_items(tagged, "ship plane")
    assert summarise_groups(results)[0] == ("tagged 'ship'", "de")
    assert results.query.notes == ["'ship plane' is not a label"]
    with pytest.raises(UnknownLabelError, match="no label 'plane'"):
        search_items(tagged, "ship -plane")


def test_longer_phrases_are_tried_first(tagged: Collection, meanings: LabelKnowledge) -> None:
    assert summarise_groups(search_items(tagged, "light wheel", knowledge=meanings))[0] == ("tagged 'light wheel'", "f")
    graph = meanings.knowledge
    graph.relate("is-a", "ship", "red car")  # known as two words, of which each is a label
    assert search_items(tagged, "red car", knowledge=LabelKnowledge(graph, "k")).query.labels.popitem()[1] == "ship"
    assert summarise_groups(search_items(tagged, '"red" car', knowledge=LabelKnowledge(graph, "k")))[0][1] == "a"


def test_labels_that_differ_in_case_are_distinct(tagged: Collection) -> None:
    tag_items(tagged, [6], accept=["Car"], by="eve")
    assert summarise_groups(search_items(tagged, "Car"))[0] == ("tagged 'Car'", "f")
    assert summarise_groups(search_items(tagged, "car"))[0] == ("tagged 'car'", "ae")
    results = search_items(tagged, "CAR")
    assert (summarise_groups(results)[0], results.query.notes) == (("tagged 'CAR'", "aef"), ["'CAR' is 'car' or 'Car'"])


def test_rejected_items_are_in_no_group(tagged: Collection) -> None:
    edit_label(tagged, "light wheel", "eve", name="limousine")
    edit_label(tagged, "limousine", "eve", parent="car")
    assert summarise_groups(search_items(tagged, "car"))[1] == ("'limousine' is a kind of 'car'", "f")
    tag_items(tagged, [6], reject=["car"], by="eve")
    assert len(summarise_groups(search_items(tagged, "car"))) == 1


def test_knowledge_adds_parts_and_synonyms(tagged: Collection, meanings: LabelKnowledge) -> None:
    results = search_items(tagged, "motorcar", knowledge=meanings)
    assert results.query.notes == ["'motorcar' is another name of 'car'"]
    assert summarise_groups(results)[:2] == [("tagged 'car'", "ae"), ("kinds: part of car", "c")]


def test_synset_of_a_label_defines_its_meaning(tagged: Collection, meanings: LabelKnowledge) -> None:
    graph = meanings.knowledge
    graph.add("n7", ["barrow"], "a cart")
    with pytest.raises(UnknownLabelError, match="no label 'barrow'"):
        search_items(tagged, "barrow", knowledge=meanings)
    enrich_labels(tagged, graph, "eve", table={"ship": "n7"})
    assert summarise_groups(search_items(tagged, "barrow", knowledge=meanings))[0][1] == "de"


@pytest.mark.parametrize(
    ("text", "error"), [("plane", UnknownLabelError), ("", InputError), ("-car", InputError), ("x" * 1001, InputError)]
)
def test_queries_without_a_meaning_are_refused(
    tagged: Collection, meanings: LabelKnowledge, text: str, error: type
) -> None:
    with pytest.raises(error):
        search_items(tagged, text, knowledge=meanings)
