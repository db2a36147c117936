"""Proposals to merge labels: what speaks for them and against, what is remembered, on SQLite and PostgreSQL."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert, update

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, format_current_time, read_history, undo_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_edits, label_list, label_merge, label_store
from wsabie.collection.labels.label_enrichment import EnrichmentCounts, enrich_labels
from wsabie.collection.merge_proposals import proposals
from wsabie.collection.merge_proposals.proposals import MergeProposal, ProposalList, apply_proposals, find_proposals
from wsabie.core.errors import UnknownLabelError
from wsabie.samples import get_sample_path
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph

Tags = Mapping[str, Iterable[int]]


def tag_items_with_labels(
    collection: Collection, tags: Tags, languages: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Items that have these labels; the labels' numbers."""
    all_items = sorted({item for items in tags.values() for item in items})
    common = {"root_id": 1, "folder": "", "state": "present", "added_at": format_current_time()}
    label_ids = {label: i for i, label in enumerate(tags, 1)}
    rows = [{"id": i, "path": f"{i}.jpg", **common} for i in all_items]
    annotation = {"region": "", "state": "accepted", "origin": "person", "by": "eve", "at": format_current_time()}
    annotation_rows = [
        {"item_id": i, "label_id": label_ids[label], **annotation} for label, items in tags.items() for i in items
    ]
    label_rows = [
        {"id": n, "name": label, "language": (languages or {}).get(label, "")} for label, n in label_ids.items()
    ]
    with begin_write(collection.engine) as connection:
        for table, values in ((tables.items, rows), (tables.labels, label_rows), (tables.annotations, annotation_rows)):
            if values:
                connection.execute(insert(table), values)
    return label_ids


def merge_names(collection: Collection, names: list[str], into: str) -> label_merge.MergeResult:
    *sources, target = label_list.find_label_ids(collection, [*names, into])
    return label_merge.merge_labels(collection, sources, target, "eve")


def exclude_labels(collection: Collection, names: list[str]) -> label_merge.ExclusionResult:
    return label_merge.exclude_merge(collection, label_list.find_label_ids(collection, names), "eve")


def read_state(collection: Collection) -> list[object]:
    with begin_read(collection.engine) as connection:
        return [sorted(map(tuple, connection.execute(table.select()))) for table in _JOURNALED]


_JOURNALED = (tables.synonyms, tables.merge_exclusions, tables.annotations)


def list_merge_names(proposal_list: ProposalList) -> list[tuple[str, list[str]]]:
    return [(p.target.name, [label.name for label in p.labels]) for p in proposal_list.proposals]


def list_evidence_kinds(proposal: MergeProposal) -> list[str]:
    return [signal.kind for signal in proposal.reasons[0].evidence]


def make_wordnet() -> KnowledgeGraph:
    graph = KnowledgeGraph()
    graph.add("n1", ["animal"], "", "en")
    graph.add("n2", ["dog", "domestic dog"], "", "en")
    graph.add("n2", ["Hund"], "", "de")
    graph.add("n3", ["poodle", "poodle dog"], "", "en")
    graph.add("n4", ["house"], "", "en")
    graph.add("n5", ["horse"], "", "en")
    graph.add("n6", ["glass"], "", "en")
    graph.add("n7", ["glasses", "spectacles"], "", "en")
    for low, high in (("n3", "n2"), ("n2", "n1"), ("n5", "n1")):
        graph.relate("is-a", low, high)
    return graph


def test_empty_collection_has_no_proposals(collection: Collection) -> None:
    proposal_list = find_proposals(collection)
    assert (proposal_list.proposals, proposal_list.labels) == ([], 0)
    assert proposal_list.unused_sources == {"model": "none was in use", "knowledge": "none was given"}
    tag_items_with_labels(collection, {"sea": [1]})
    assert find_proposals(collection, knowledge=make_wordnet()).proposals == []
    tagged_again = label_list.list_labels(collection)
    assert [(label.name, label.items, label.accuracy) for label in tagged_again.labels] == [("sea", 1, None)]


def test_spelling_alone_is_enough_for_small_differences(collection: Collection) -> None:
    tag_items_with_labels(
        collection, {"Sea gull": [1], "sea-gull": [2, 3], "café": [4, 5], "cafe": [], "cat": [6], "cut": [7]}
    )
    proposal_list = find_proposals(collection)
    assert sorted(list_merge_names(proposal_list)) == [("café", ["cafe"]), ("sea-gull", ["Sea gull"])]
    assert proposal_list.total == 2
    assert proposal_list.proposals[0].reasons[0].evidence[0].message.startswith("differ only in")
    assert all(0.7 <= proposal.score <= 1 for proposal in proposal_list.proposals)


def test_reported_score_decides(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    tag_items_with_labels(collection, {"café": [4, 5], "cafe": []})
    monkeypatch.setattr(proposals, "compute_score", lambda evidence: 0.69996)
    assert [proposal.score for proposal in find_proposals(collection, min_score=0.7).proposals] == [0.7]
    assert not find_proposals(collection, min_score=0.701).proposals


def test_dictionary_words_are_no_misspellings(collection: Collection) -> None:
    tag_items_with_labels(
        collection, {"house": range(1, 21), "horse": [30], "hoose": [31], "glass": range(40, 50), "glasses": [50]}
    )
    proposal_list = find_proposals(collection, knowledge=make_wordnet(), min_score=0.3)
    assert list_merge_names(proposal_list) == [("house", ["hoose"])]  # nor through it
    assert ("glass", ["glasses"]) in list_merge_names(find_proposals(collection))  # without knowledge: a plural


def test_synonyms_and_translations_are_proposed(collection: Collection) -> None:
    tag_items_with_labels(
        collection, {"dog": [1, 2, 3], "Hund": [4], "domestic dog": [5], "poodle": [6], "animal": [7]}
    )
    proposal_list = find_proposals(collection, knowledge=make_wordnet())
    assert list_merge_names(proposal_list) == [("dog", ["Hund", "domestic dog"])]
    messages = " ".join(signal.message for reason in proposal_list.proposals[0].reasons for signal in reason.evidence)
    assert "en and de for n2 'dog'" in messages
    merge_names(collection, ["Hund"], "dog")
    [proposal] = find_proposals(collection, knowledge=make_wordnet()).proposals
    assert proposal.reasons[0].evidence[0].message == "the same meaning: n2 'dog'"


def test_requested_language_is_kept(collection: Collection) -> None:
    tag_items_with_labels(collection, {"Hund": [1, 2, 3], "dog": [4]}, {"Hund": "de", "dog": "en"})
    assert list_merge_names(find_proposals(collection, knowledge=make_wordnet())) == [("Hund", ["dog"])]
    assert list_merge_names(find_proposals(collection, knowledge=make_wordnet(), language="en")) == [("dog", ["Hund"])]
    assert list_merge_names(find_proposals(collection, knowledge=make_wordnet(), language="fr")) == [("Hund", ["dog"])]


def make_scenes(**more: Iterable[int]) -> dict[str, Iterable[int]]:
    """Beach, street and forest: a hundred items each, with labels that go together."""
    tags: dict[str, list[int]] = {}
    for place, (scene, companions) in enumerate(
        {"beach": "sand wave shell tide palm", "street": "car lamp shop bus sign", "forest": "oak moss fern bark owl"}
        .items()
    ):  # fmt: skip
        for i in range(100):
            item = 1 + place * 100 + i
            tags.setdefault(scene, []).append(item)
            for j, companion in enumerate(companions.split()):
                if (i * (j + 3)) % 7 < 3:
                    tags.setdefault(companion, []).append(item)
    return {**tags, **more}


def test_translations_on_the_same_items_are_proposed(collection: Collection) -> None:
    languages = {"Möwe": "de", "seagull": "en", "tern": "en"}
    twice = [*range(1, 41, 2), *range(101, 105)]
    tag_items_with_labels(collection, make_scenes(Möwe=twice, seagull=twice, tern=range(50, 60)), languages)
    proposal_list = find_proposals(collection)
    assert list_merge_names(proposal_list) == [("Möwe", ["seagull"])]
    assert list_evidence_kinds(proposal_list.proposals[0]) == ["cooccurrence", "always"]
    always = proposal_list.proposals[0].reasons[0].evidence[1]
    assert "nearly always together, in two languages: 24 of 24 and 24" in always.message
    with begin_write(collection.engine) as connection:  # in one language these are two things that go together
        connection.execute(update(tables.labels).values(language="en"))
    assert list_merge_names(find_proposals(collection)) == []


def test_names_that_exclude_each_other_are_proposed(collection: Collection) -> None:
    tag_items_with_labels(collection, make_scenes(seaside=range(1, 100, 2), strand=range(2, 101, 2)))
    proposal_list = find_proposals(collection, min_score=0.4)
    joint_proposals = [
        p
        for p in proposal_list.proposals
        if {"seaside", "strand"} <= {p.target.name, *(label.name for label in p.labels)}
    ]
    assert [list_evidence_kinds(p) for p in joint_proposals] == [["cooccurrence", "never"]]
    assert "never on the same item: 50 and 50" in joint_proposals[0].reasons[0].evidence[1].message


def test_cooccurrence_confirms_a_misspelling(collection: Collection) -> None:
    nearby_items, elsewhere = [3, 17, 40, 61, 88], [203, 217, 240, 261, 288]
    tag_items_with_labels(collection, make_scenes(tidepools=range(1, 101), tidepolls=nearby_items, tidepoles=elsewhere))
    flat = {name: into for into, names in list_merge_names(find_proposals(collection)) for name in names}
    assert flat.get("tidepolls") == "tidepools"
    assert "tidepoles" not in flat


def test_chained_names_form_one_proposal(collection: Collection) -> None:
    tag_items_with_labels(
        collection, {"Fotografie": [1, 2, 3], "fotografie": [4, 5], "Fotografié": [6], "foto-grafie": []}
    )
    proposal_list = find_proposals(collection)
    assert list_merge_names(proposal_list) == [("Fotografie", ["fotografie", "Fotografié", "foto-grafie"])]
    assert len(proposal_list.proposals[0].reasons) == 3
    assert proposal_list.proposals[0].score == min(reason.score for reason in proposal_list.proposals[0].reasons)


def test_excluded_pair_is_not_proposed_until_undo(collection: Collection) -> None:
    tag_items_with_labels(collection, {"Polish": [1, 2, 3], "polish": [4], "POLISH": [5]})
    assert list_merge_names(find_proposals(collection)) == [("Polish", ["polish", "POLISH"])]
    assert exclude_labels(collection, ["polish", "Polish"]).pairs == 1
    assert exclude_labels(collection, ["Polish", "polish"]) == label_merge.ExclusionResult(0, None)
    assert len(read_history(collection.engine)) == 1
    assert list_merge_names(find_proposals(collection)) == [("Polish", ["POLISH"])]  # and no chain leads around it
    merge_names(collection, ["POLISH"], "polish")
    exclude_labels(collection, ["Polish", "polish"])
    assert list_merge_names(find_proposals(collection)) == []
    undo_entry(collection.engine, by="eve")  # the merging; what was kept apart meant both
    undo_entry(collection.engine, by="eve")
    assert list_merge_names(find_proposals(collection)) == [("Polish", ["polish", "POLISH"])]


def test_exclusion_follows_a_merged_label(collection: Collection) -> None:
    tag_items_with_labels(collection, {"lens": [1, 2], "Lens": [3], "LENS": [4]})
    exclude_labels(collection, ["lens", "LENS"])
    merge_names(collection, ["LENS"], "Lens")
    assert list_merge_names(find_proposals(collection)) == []


def test_label_is_not_merged_into_its_ancestor(collection: Collection) -> None:
    tag_items_with_labels(collection, {"tulip": [1, 2], "tulips": [3]})
    label_edits.edit_label(collection, "tulip", "eve", parent="tulips")
    assert list_merge_names(find_proposals(collection)) == []


def test_all_proposals_are_merged_and_undone_at_once(collection: Collection) -> None:
    tag_items_with_labels(collection, {"Sea": [1, 2], "sea": [2, 3], "SEA": [4], "café": [1], "cafe": [5], "tree": [6]})
    state_before, merge_proposals = read_state(collection), find_proposals(collection).proposals
    label_edits.edit_label(collection, "cafe", "adam", name="coffee house")  # since they were shown
    result = apply_proposals(collection, merge_proposals, "eve")
    assert (result.targets, result.merged_labels, result.moved_tags) == (1, 2, 2)
    with begin_read(collection.engine) as connection:
        assert sorted(label_store.read_label_names(connection).values()) == ["Sea", "café", "coffee house", "tree"]
    assert label_list.list_labels(collection, containing="sea").labels[0].items == 4
    undo_entry(collection.engine, by="eve")
    undo_entry(collection.engine, by="adam")
    assert read_state(collection) == state_before


@pytest.mark.parametrize("name", ["'; DROP TABLE labels; --", "%_", "\u202esdrawkcab", "a\u200cb", "😀", "x" * 500])
def test_hostile_names_are_kept_as_synonyms(collection: Collection, name: str) -> None:
    clean_name = label_store.normalise_name(name)
    tag_items_with_labels(collection, {clean_name: [1, 2], "sea": [3]})
    assert find_proposals(collection, knowledge=make_wordnet()).proposals == []
    label_edits.edit_label(collection, name, "eve", add={"another": "en"})
    merge_names(collection, [name], "sea")
    assert label_list.list_labels(collection).labels[0].synonyms == sorted(["another", clean_name])
    with pytest.raises(UnknownLabelError, match="there is no label"):
        merge_names(collection, ["nothing"], "sea")


def test_missing_model_is_reported_beside_other_proposals(collection: Collection) -> None:
    tag_items_with_labels(collection, {"Sea": [1], "sea": [2]})
    row = {
        "folder": "gone",
        "created_at": format_current_time(),
        "method": "full",
        "last_entry_id": 0,
        "in_use": True,
        "facts": {},
        "figures": {},
    }
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.models).values(row))
    proposal_list = find_proposals(collection)
    assert list_merge_names(proposal_list) == [("Sea", ["sea"])]
    assert "gone" in proposal_list.unused_sources["model"]


def test_neighbours_in_the_model_are_evidence(collection: Collection) -> None:
    import numpy as np

    from wsabie.models.annotators import Annotator
    from wsabie.models.joint_embedding.estimator import Wsabie

    names = list(make_scenes(seaside=[], strand=[]))
    label_ids = tag_items_with_labels(collection, make_scenes(seaside=range(1, 100, 2), strand=range(2, 101, 2)))
    draw = np.random.default_rng(0)
    X = draw.random((600, 12)).astype(np.float32)
    X[np.arange(600), np.arange(600) % 3] += 4
    labels = [[["seaside", "strand"][i % 2], "beach"] if i % 3 == 0 else [names[7 + i % 8]] for i in range(600)]
    model = Wsabie(dim=8, epochs=10, seed=0, threads=1).fit(X, labels)
    vocabulary = list(model.vocabulary_)
    Annotator(model, facts={"label_ids": [label_ids[name] for name in vocabulary]}).save(collection.models / "m1")
    row = {
        "folder": "m1",
        "created_at": format_current_time(),
        "method": "full",
        "last_entry_id": 0,
        "in_use": True,
        "facts": {},
        "figures": {},
    }
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.models).values(row))
    label_edits.edit_label(collection, "strand", "eve", name="shore")  # a name that another label has from now on
    label_edits.edit_label(collection, label_ids["strand"], "eve", remove=["strand"])
    label_edits.edit_label(collection, names[8], "eve", name="strand")
    with_model, signals = find_proposals(collection, min_score=0.4), []
    for proposal in with_model.proposals:
        signals += [
            signal
            for reason in proposal.reasons
            for signal in reason.evidence
            if {reason.first, reason.second} == {"seaside", "shore"}
        ]
    assert [signal.kind for signal in signals] == ["model", "cooccurrence", "never"]
    assert "nearest of each other" in signals[0].message
    assert "model" not in with_model.unused_sources


def test_wordnet_enrichment_is_applied_and_undone(collection: Collection) -> None:
    tag_items_with_labels(collection, {"poodle": [1], "animal": [2], "Hund": [3], "sea": [4], "domestic dog": [5]})
    label_edits.edit_label(collection, "sea", "eve", parent="animal")
    state_before = read_state(collection)
    assert enrich_labels(collection, make_wordnet(), "eve") == EnrichmentCounts(
        5, meanings=4, languages=4, parents=3, synonyms=2, unknown=1
    )
    rows = {label.name: label for label in label_list.list_labels(collection).labels}
    assert (rows["poodle"].wordnet, rows["poodle"].parent, rows["poodle"].synonyms) == ("n3", "Hund", ["poodle dog"])
    assert (rows["Hund"].language, rows["Hund"].parent, rows["Hund"].synonyms) == ("de", "animal", ["dog"])
    assert (rows["sea"].wordnet, rows["sea"].parent) == ("", "animal")
    assert enrich_labels(collection, make_wordnet(), "eve") == EnrichmentCounts(
        5, meanings=0, languages=0, parents=0, synonyms=0, unknown=1
    )
    undo_entry(collection.engine, by="eve")
    assert read_state(collection) == state_before


def test_enrichment_closes_no_parent_cycle(collection: Collection) -> None:
    tag_items_with_labels(collection, {"dog": [1], "animal": [2]})
    label_edits.edit_label(collection, "animal", "eve", parent="dog")
    assert enrich_labels(collection, make_wordnet(), "eve").parents == 0


def test_merge_into_a_descendant_closes_no_cycle(collection: Collection) -> None:
    label_ids = tag_items_with_labels(collection, {"a": [1], "b": [2], "c": [3]})
    label_edits.edit_label(collection, "b", "eve", parent="a")
    label_edits.edit_label(collection, "c", "eve", parent="b")
    merge_names(collection, ["a"], "c")
    parents = {label.name: label.parent for label in label_list.list_labels(collection).labels}
    assert parents == {"b": "c", "c": None}
    with begin_entry(collection.engine, "eve", "parent") as change:
        label_store.set_parent(change, label_ids["c"], None)


def test_emoji_labels_in_25_languages_are_proposed(collection: Collection) -> None:
    """The pictures of animals among the emoji: names in two languages come together."""
    rows = pq.read_table(get_sample_path("emoji"), columns=["labels", "languages", "category"]).to_pylist()
    tags: dict[str, list[int]] = {}
    languages: dict[str, str] = {}
    for item, row in enumerate([r for r in rows if "animal" in r["category"]], 1):
        for label, spoken in zip(row["labels"], row["languages"], strict=True):
            tags.setdefault(label := label_store.normalise_name(label), []).append(item)
            languages[label] = spoken[0] if len(spoken) == 1 else ""
    tag_items_with_labels(collection, {label: dict.fromkeys(items) for label, items in tags.items()}, languages)
    proposal_list = find_proposals(collection)
    assert proposal_list.labels > 4_000
    assert proposal_list.total > 50
    first = [list_evidence_kinds(proposal)[0] for proposal in proposal_list.proposals[:30]]
    assert set(first) <= {"case", "accents", "blanks", "plural", "letters", "cooccurrence"}


def test_misspelled_mirflickr_tags_are_proposed(collection: Collection, data_dir: Path) -> None:
    """MIRFlickr: misspellings that anybody can see are proposed, words of their own are not."""
    import ast
    import csv

    tags: dict[str, list[int]] = {}
    with (data_dir / "mirflickr25k_tags/kv_dataset2.csv").open(encoding="utf-8") as file:
        for item, row in zip(range(1, 6_001), csv.reader(file), strict=False):
            for name in dict.fromkeys(ast.literal_eval(row[3])):
                if name.isprintable():
                    tags.setdefault(label_store.normalise_name(name), []).append(item)
    tag_items_with_labels(collection, {name: dict.fromkeys(items) for name, items in tags.items()})
    flat = {frozenset((into, name)) for into, names in list_merge_names(find_proposals(collection)) for name in names}
    assert {frozenset(pair) for pair in (("bird", "birds"), ("tree", "trees"), ("flower", "flowers"))} <= flat
    assert not {frozenset(pair) for pair in (("night", "light"), ("canon", "canyon"), ("red", "rojo"))} & flat
