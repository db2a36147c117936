"""Learning from decisions: models, corrections and suggestions."""

import shutil
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from tests.collection.learning.conftest import OPTIONS, count_rows, in_use, tag_odd_items

from picture_collections import suggested, tag
from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.annotations.training_examples import HELD_OUT, TrainingExamples, read_examples
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, read_history, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.labels import label_merge, label_store
from wsabie.collection.learning import training
from wsabie.collection.learning.evaluation import evaluate_model
from wsabie.collection.learning.feature_store import open_feature_store
from wsabie.collection.learning.model_fitting import FitResult, TrainingPoint, fit_model
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.item_index import index_items, load_item_index, load_search_index
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.core.errors import InputError
from wsabie.io.records import Item
from wsabie.search.approximate_index import ApproximateIndex


def test_first_model_is_corrected_and_undone(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    first = train_collection_model(collection, **OPTIONS)
    assert (first.method, first.figures["previous_metrics"], in_use(collection)) == ("full", None, first.model)
    assert first.inference is not None
    assert first.inference.items == 80
    assert first.figures["metrics"]["MAP"] > 0.4  # four kinds
    assert set(suggested(collection)) == set(rows_by_item)
    assert train_collection_model(collection, **OPTIONS).method == "nothing"
    reviewed_items = [item for item in rows_by_item if item % 2 == 0][:8]
    tag(collection, {item: [rows_by_item[item]["kind"], "seen"] for item in reviewed_items})
    second = train_collection_model(collection, **OPTIONS)
    assert (second.method, second.facts["labels"]) == ("corrections", 5)  # a label that the first one lacks
    assert second.figures["previous_metrics"] is not None
    assert [shelved.parent for shelved in model_registry.list_models(collection)] == [first.model, None]
    assert read_history(collection.engine)[0].summary == f"model {second.model} in use, learned from corrections"
    suggestions_before = suggested(collection)
    undo_entry(collection.engine, by="eve")
    assert in_use(collection) == first.model
    assert suggested(collection) != suggestions_before
    assert train_collection_model(collection, full=True, **OPTIONS).method == "full"


def test_the_choice_of_the_epoch_does_not_flatter_the_figures(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each half of the held-out items is judged by a fit of the same items whose epoch the other half chose."""
    monkeypatch.setattr(training, "MIN_HALF", 2)
    _, rows_by_item = tag_odd_items(collection)
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    fits: list[tuple[TrainingExamples, FitResult]] = []

    def fit(examples: TrainingExamples, *rest: Any) -> FitResult:
        fits.append((examples, fit_model(examples, *rest)))
        return fits[-1][1]

    monkeypatch.setattr(training, "fit_model", fit)
    points: list[TrainingPoint] = []
    result = train_collection_model(collection, **OPTIONS, watch=points.append)
    assert len(points) == OPTIONS["epochs"]  # of the first fit alone
    (examples, _), *halves = fits
    train, holdout = (set(compress(examples.hashes, is_of)) for is_of in (~examples.is_holdout, examples.is_holdout))
    assert len(halves) == 2
    figures, seen = [], set[str]()
    store = open_feature_store(collection, load_model_in_use(collection).extractor)
    for half, fitted in halves:
        chosen_by = set(compress(half.hashes, half.is_holdout))
        assert set(compress(half.hashes, ~half.is_holdout)) == train
        judged = examples.take([i for i, name in enumerate(examples.hashes) if name in holdout - chosen_by])
        X, _ = store.matrix(judged.hashes)
        means = evaluate_model(fitted.model, fitted.labels, X, judged).means
        figures.append((means["p@1"], len(judged.hashes)))
        seen |= chosen_by
    assert seen == holdout
    means, sizes = zip(*figures, strict=True)
    assert result.figures["metrics"]["p@1"] == pytest.approx(np.average(means, weights=sizes), abs=1e-5)


def test_both_models_are_evaluated_on_the_same_items(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    first = train_collection_model(collection, **OPTIONS)
    again = train_collection_model(collection, full=True, **OPTIONS)  # the same data, seed and settings: the same model
    assert again.figures["previous_metrics"] == again.figures["metrics"] == first.figures["metrics"]
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
    low = np.array([int(name[:8], 16) / 2**32 for name in examples.hashes])
    assert (examples.is_holdout == (low <= max(HELD_OUT, np.sort(low)[4]))).all()  # chosen by content alone


def test_equal_seeds_give_equal_models(tmp_path: Path, tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """In whichever database."""
    collection, _ = tagged
    train_collection_model(collection, seed=3, **OPTIONS)
    with create_collection(tmp_path / "other") as second_collection:
        tag_odd_items(second_collection)
        train_collection_model(second_collection, seed=3, **OPTIONS)
        assert suggested(second_collection) == suggested(collection)


def test_decided_pairs_are_never_suggested(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    train_collection_model(collection, **OPTIONS)
    untagged_items = [item for item in rows_by_item if item % 2 == 0][:10]
    best = {item: [next(iter(suggested(collection)[item]))] for item in untagged_items}
    tag(collection, best, "rejected")
    tag(collection, {item: ["accepted"] for item in untagged_items})
    for options in ({}, {"full": True}):
        result = train_collection_model(collection, **OPTIONS | options)
        assert result.facts["rejected"] == 10
        suggestions = suggested(collection)
        assert all(
            best[item][0] not in suggestions[item] and "accepted" not in suggestions[item] for item in untagged_items
        )
    apply_model(collection, by="eve", again=True, threads=1)
    assert all(best[item][0] not in suggested(collection)[item] for item in untagged_items)


def test_rejected_label_falls_below_the_tags_of_its_item(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    train_collection_model(collection, full=True, **OPTIONS)
    at = dict(zip(rows_by_item, _compute_scores(collection, rows_by_item), strict=True))
    kinds = sorted({row["kind"] for row in rows_by_item.values()})
    close = {
        item: max((kind for kind in kinds if kind != row["kind"]), key=lambda kind, item=item: at[item][kind])
        for item, row in rows_by_item.items()
        if item % 3
    }
    margins_before = [at[item][rows_by_item[item]["kind"]] - at[item][label] for item, label in close.items()]
    tag(collection, {item: [label] for item, label in close.items()}, "rejected")
    train_collection_model(collection, full=True, **OPTIONS)
    at = dict(zip(rows_by_item, _compute_scores(collection, rows_by_item), strict=True))
    margins_after = [at[item][rows_by_item[item]["kind"]] - at[item][label] for item, label in close.items()]
    assert np.mean(margins_after) > np.mean(margins_before) + 0.02
    assert np.mean(np.array(margins_after) > margins_before) > 0.5


def _compute_scores(collection: Collection, rows_by_item: dict[int, dict[str, Any]]) -> list[dict[str, float]]:
    """Scores of each item by the model in use, by label."""
    opened = model_registry.load_model(collection)
    with begin_read(collection.engine) as connection:
        query = select(tables.items.c.path).where(tables.items.c.id.in_(list(rows_by_item))).order_by(tables.items.c.id)
        paths = connection.execute(query).scalars().all()
    items = [Item(path, collection.folder / path, ()) for path in paths]
    scores = opened.model.scores(opened.annotator.rows_of_items(items))
    return [dict(zip(opened.model.vocabulary_, row, strict=True)) for row in scores.tolist()]


def test_merged_and_renamed_labels_are_suggested_by_current_name(
    tagged: tuple[Collection, dict[int, dict[str, Any]]],
) -> None:
    collection, rows_by_item = tagged
    train_collection_model(collection, **OPTIONS)
    with begin_entry(collection.engine, "eve", "merge") as change:
        label_ids = {name: label_store.find_label(change.connection, name) for name in ("food", "people", "animals")}
        label_merge.merge_label(change, label_ids["people"], label_ids["food"])
        label_store.rename_label(change, label_ids["animals"], "beasts")
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    names = {name for label_probabilities in suggested(collection).values() for name in label_probabilities}
    assert names == {"food", "beasts", "computer"}
    tag(collection, {item: ["beasts"] for item in rows_by_item if rows_by_item[item]["kind"] == "animals"})
    result = train_collection_model(collection, **OPTIONS)
    assert result.facts["labels"] == 3 if result.method == "full" else result.facts["labels"] == 4
    assert {name for label_probabilities in suggested(collection).values() for name in label_probabilities} <= {
        "food",
        "beasts",
        "computer",
    }


def test_label_removed_by_undo_is_not_suggested(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    tag(collection, {item: ["wrong"] for item in rows_by_item if item % 2})
    train_collection_model(collection, **OPTIONS)
    tagging = read_history(collection.engine)[1]
    undo_entry(collection.engine, tagging.id, by="eve")
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    assert "wrong" not in {
        name for label_probabilities in suggested(collection).values() for name in label_probabilities
    }
    train_collection_model(collection, **OPTIONS)
    assert in_use(collection) == 2


def test_deleted_model_folder_is_reported(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    first = train_collection_model(collection, **OPTIONS)
    shutil.rmtree(collection.models / model_registry.list_models(collection)[0].folder)
    assert not model_registry.list_models(collection)[0].is_available
    with pytest.raises(InputError, match=r"model 1 cannot be used .*train again, or use another"):
        apply_model(collection, by="eve")
    second = train_collection_model(collection, **OPTIONS)
    assert (second.method, second.reason.startswith("model 1 cannot be used")) == ("full", True)
    with pytest.raises(InputError, match="model 1 cannot be used"):
        model_registry.use_model(collection, first.model, by="eve")
    shutil.rmtree(collection.features)
    assert train_collection_model(collection, full=True, **OPTIONS).model == 3


def test_models_are_switched_and_removed(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    for _ in range(3):
        train_collection_model(collection, full=True, **OPTIONS)
    used = model_registry.use_model(collection, 1, by="eve")
    assert (used.previous_model, used.unseen_items, in_use(collection)) == (3, 0, 1)
    assert len(suggested(collection)) == 80
    assert model_registry.remove_old_models(collection, 1, by="eve") == [2]
    assert [shelved.id for shelved in model_registry.list_models(collection)] == [3, 1]
    assert {path.name for path in collection.models.iterdir()} == {
        m.folder for m in model_registry.list_models(collection)
    }
    assert count_rows(collection, tables.suggestions, tables.suggestions.c.model_id == 2) == 0
    with pytest.raises(InputError, match="model 2 cannot be used"):
        model_registry.use_model(collection, 2, by="eve")
    with pytest.raises(InputError, match="there is no model 9"):
        model_registry.use_model(collection, 9, by="eve")


def test_new_model_keeps_the_index_setting(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    monkeypatch.setattr("wsabie.search.label_index.MIN_VECTORS", 10)
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)
    assert not list(collection.models.glob("*/item_embeddings/index-*"))
    index_items(collection)
    train_collection_model(collection, full=True, **OPTIONS)
    points, *exact = load_search_index(load_model_in_use(collection).path)
    indices = [load_item_index(load_model_in_use(collection).path, points, index) for index in exact]
    assert [type(index) for index in indices] == [ApproximateIndex] * 2


def test_tags_of_people_weigh_more_and_regions_are_excluded(
    tagged: tuple[Collection, dict[int, dict[str, Any]]],
) -> None:
    collection, _ = tagged
    tag(collection, {2: ["food"], 4: ["food"]}, origin="import", by="list")
    tag(collection, {6: ["food"]}, origin="model", by="model 1")
    with begin_entry(collection.engine, "eve", "tag") as change:
        write_decisions(change, [Decision(8, 1, "accepted", "0,0,10,10")])
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection, 3.0)
        names = {row[0]: row[1] for row in connection.execute(select(tables.items.c.id, tables.items.c.hash))}
    weight = dict(zip(examples.hashes, examples.weights.tolist(), strict=True))
    assert [weight.get(names[item]) for item in (1, 2, 4, 6, 8)] == [3, 1, 1, 1, None]
    assert examples.regions == 1
    assert not (examples.unjudged & ~examples.is_holdout).any()
    with pytest.raises(InputError, match="weight of 0 cannot be"):
        train_collection_model(collection, **OPTIONS, person_weight=0)
