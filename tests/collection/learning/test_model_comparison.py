"""Models side by side on items that none of them has learned from, models that do worse, and the way back."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event, select

from picture_collections import KINDS, sample, tag, with_pictures
from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.annotations.training_examples import compute_hash_positions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry, read_history, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection, lock_models
from wsabie.collection.labels import label_merge, label_store
from wsabie.collection.learning import evaluation, training
from wsabie.collection.learning.evaluation import compare_models
from wsabie.collection.learning.model_fitting import LearningCurve, TrainingPoint
from wsabie.collection.learning.retrain_plan import RetrainForecast, forecast_training
from wsabie.collection.learning.training import TrainingResult, train_collection_model
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.model_registry import Rollback
from wsabie.core.errors import BusyError, InputError
from wsabie.core.json_conversion import convert_records

OPTIONS: dict[str, Any] = {"by": "eve", "features": "colour", "threads": 1, "epochs": 8, "dim": 20}
OPTIMISM_NOTE = "the figures are slightly too high, because these items also chose the epochs of the models"
Rows = dict[int, dict[str, Any]]


def add_tagged_items(collection: Collection) -> tuple[Collection, Rows]:
    """300 drawings of four kinds, tagged by a list."""
    rows_by_item = with_pictures(collection, sample(each=75))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()}, origin="import", by="list")
    return collection, rows_by_item


@pytest.fixture
def tagged(collection: Collection) -> tuple[Collection, Rows]:
    return add_tagged_items(collection)


@pytest.fixture(scope="module")
def two_models(database_of_module: str | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """The files of the second are gone."""
    with create_collection(tmp_path_factory.mktemp("two") / "photos", database_of_module) as collection:
        add_tagged_items(collection)
        for _ in range(2):
            train_collection_model(collection, full=True, **OPTIONS | {"epochs": 1})
        shutil.rmtree(collection.models / model_registry.list_models(collection)[0].folder)
        yield collection


def in_use(collection: Collection) -> int | None:
    with begin_read(collection.engine) as connection:
        return find_model_in_use(connection)


def read_holdout_positions(collection: Collection) -> dict[int, float]:
    """Place of each item's content between 0 and 1, which decides whether it is held out."""
    with begin_read(collection.engine) as connection:
        rows = connection.execute(select(tables.items.c.id, tables.items.c.hash)).all()
    return dict(zip([row[0] for row in rows], compute_hash_positions([row[1] for row in rows]), strict=True))


def train_on_wrong_tags(collection: Collection, rows_by_item: Rows, **options: Any) -> TrainingResult:
    """Tag items wrongly that are learned from, heavily, and learn it."""
    learned = sorted(item for item, place in read_holdout_positions(collection).items() if place > 0.3)
    lies = learned[::8][:26]
    wrong = {item: [KINDS[(KINDS.index(rows_by_item[item]["kind"]) + 1) % 4]] for item in lies}
    tag(collection, {item: [rows_by_item[item]["kind"]] for item in lies}, "rejected")
    tag(collection, wrong)
    return train_collection_model(collection, **OPTIONS | {"epochs": 3}, person_weight=1000, **options)


def test_worse_model_is_kept_but_not_used(tagged: tuple[Collection, Rows]) -> None:
    collection, rows_by_item = tagged
    first = train_collection_model(collection, **OPTIONS)
    assert (first.is_in_use, first.facts["rejection_reason"]) == (True, "")
    second = train_on_wrong_tags(collection, rows_by_item)
    assert (second.method, second.is_in_use, in_use(collection)) == ("corrections", False, first.model)
    assert second.figures["difference"]["MAP"]["high"] < 0
    assert second.facts["rejection_reason"].startswith("it does worse than model 1 on ")
    history_entry = read_history(collection.engine)[0]
    assert (history_entry.action, history_entry.changes) == ("train", 0)
    assert history_entry.summary.startswith(
        "model 2 not put into use, learned from corrections: it does worse than model 1"
    )
    assert [listed_model.rejection_reason != "" for listed_model in model_registry.list_models(collection)] == [
        True,
        False,
    ]
    assert model_registry.find_rollback(collection) is None
    again = train_collection_model(collection, **OPTIONS)  # it would be the same one
    assert (again.method, again.model) == ("nothing", 1)
    assert "since model 2, which is not in use: it does worse than model 1" in again.reason
    assert forecast_training(collection).method == "nothing"
    assert forecast_training(collection).decisions == 52
    assert [listed_model.id for listed_model in model_registry.list_models(collection)] == [
        2,
        1,
    ]  # no training sweeps it away
    used = model_registry.use_model(collection, 2, by="eve")
    assert (used.previous_model, used.unseen_items) == (1, 0)  # what it suggests is there at once
    back = model_registry.find_rollback(collection)
    assert back is not None
    assert back.model == 1
    undo_entry(collection.engine, back.entry, by="eve")
    assert in_use(collection) == 1
    tag(collection, {1: ["more"]})
    assert forecast_training(collection).method == "corrections"


def test_worse_model_is_used_on_request(tagged: tuple[Collection, Rows]) -> None:
    collection, rows_by_item = tagged
    train_collection_model(collection, **OPTIONS)
    second = train_on_wrong_tags(collection, rows_by_item, even_if_worse=True)
    assert (second.is_in_use, in_use(collection)) == (True, 2)
    assert second.figures["difference"]["MAP"]["high"] < 0
    compared = compare_models(collection, [1, 2])
    assert compared.models[1].verdict == "worse"
    assert compare_models(collection, [2, 1]).models[1].verdict == "better"


def test_too_few_items_call_no_model_worse(tagged: tuple[Collection, Rows], monkeypatch: pytest.MonkeyPatch) -> None:
    collection, rows_by_item = tagged
    first = train_collection_model(collection, **OPTIONS)
    monkeypatch.setattr(evaluation, "MIN_JUDGED_ITEMS", first.figures["items"] + 1)
    second = train_on_wrong_tags(collection, rows_by_item)
    assert second.figures["difference"]["MAP"]["high"] < 0
    assert (second.is_in_use, second.facts["rejection_reason"]) == (True, "")


@pytest.mark.parametrize("is_cross_fitted", [False, True])
def test_comparison_repeats_the_metrics_of_training(
    tagged: tuple[Collection, Rows], monkeypatch: pytest.MonkeyPatch, is_cross_fitted: bool
) -> None:
    collection, rows_by_item = tagged
    if is_cross_fitted:
        monkeypatch.setattr(training, "MIN_HALF", 2)
    first = train_collection_model(collection, **OPTIONS)
    tag(collection, {item: ["seen", rows_by_item[item]["kind"]] for item in list(rows_by_item)[:15]})
    second = train_collection_model(collection, **OPTIONS)
    comparison = compare_models(collection, [1, 2])
    older, newer = comparison.models
    assert (comparison.items, comparison.labels) == (second.figures["items"], second.figures["labels"])
    assert (older.figures, newer.figures) == (second.figures["previous_metrics"], second.figures["metrics"])
    assert bool(second.figures["optimism"]) == is_cross_fitted
    assert newer.difference is not None
    assert vars(newer.difference["MAP"]) == second.figures["difference"]["MAP"]
    assert (older.labels, newer.labels) == (first.facts["labels"], second.facts["labels"])
    assert (older.difference, older.gained) == (None, ())
    assert comparison.notes == (() if is_cross_fitted else (OPTIMISM_NOTE,))
    moved = {label.label: label for label in (*newer.gained, *newer.lost)}
    if "seen" in moved:  # the first does not know it, so that it comes last there
        assert moved["seen"].reference <= 1 / 4
    assert all(label.candidate > label.reference for label in newer.gained)
    assert all(label.candidate < label.reference for label in newer.lost)
    back = compare_models(collection, [2, 1]).models[1]
    assert back.figures == older.figures  # whichever comes first
    assert {m.label: (m.candidate, m.reference) for m in back.lost} == {
        m.label: (m.reference, m.candidate) for m in newer.gained
    }
    assert convert_records(comparison)["models"][1]["difference"]["MAP"]["mean"] == newer.difference["MAP"].mean


def test_comparison_uses_current_tags(tagged: tuple[Collection, Rows]) -> None:
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)
    train_collection_model(collection, full=True, **OPTIONS)
    figures_before = compare_models(collection, [1, 2]).models[0].figures
    with begin_entry(collection.engine, "eve", "merge") as change:
        label_ids = {name: label_store.find_label(change.connection, name) for name in ("food", "people")}
        label_merge.merge_label(change, label_ids["people"], label_ids["food"])
    merged = compare_models(collection, [1, 2])
    assert merged.labels == 3
    assert merged.models[0].figures["MAP"] > figures_before["MAP"]  # one of two right columns is enough
    assert merged.models[0].figures == merged.models[1].figures


def test_comparison_excludes_items_that_a_model_was_trained_on(tagged: tuple[Collection, Rows]) -> None:
    """More contents are held out after tags are taken away, and the older model knows some of them."""
    collection, rows_by_item = tagged
    train_collection_model(collection, **OPTIONS)
    where = read_holdout_positions(collection)
    low = [item for item, place in where.items() if place <= 0.15]
    tag(collection, {item: [rows_by_item[item]["kind"]] for item in low[2:]}, None)
    second = train_collection_model(collection, full=True, **OPTIONS)
    assert second.facts["holdout_bound"] > 0.15
    comparison = compare_models(collection, [1, 2])
    assert comparison.items == second.figures["items"] == 2  # and not 5, of which the first one knows 3
    assert comparison.notes == (
        "not counted: 3 of the items that are held out now, because one of the models learned from them",
        OPTIMISM_NOTE,
    )
    tag(collection, {item: [rows_by_item[item]["kind"]] for item in low[:2]}, None)
    third = train_collection_model(collection, full=True, **OPTIONS)
    assert third.figures["previous_metrics"] is None or third.figures["items"] < 5
    with pytest.raises(InputError, match="no item with a tag was held out from all of these models"):
        compare_models(collection, [1, 3])


def test_too_few_holdout_tags_force_full_training(tagged: tuple[Collection, Rows]) -> None:
    collection, rows_by_item = tagged
    train_collection_model(collection, **OPTIONS)
    low = [item for item, place in read_holdout_positions(collection).items() if place <= 0.15]
    tag(collection, {item: [rows_by_item[item]["kind"]] for item in low[2:]}, None)
    tag(collection, {item: ["few"] for item in list(rows_by_item)[:3]})
    result = train_collection_model(collection, **OPTIONS)
    assert (result.method, result.reason) == (
        "full",
        "too few tags are left on the items that were held out from model 1",
    )


def test_models_with_other_extractors_or_lost_rows_are_compared(tagged: tuple[Collection, Rows]) -> None:
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)
    second = train_collection_model(collection, **OPTIONS | {"features": "hog", "even_if_worse": True})
    assert second.figures["previous_metrics"] is not None  # each by its own rows
    comparison = compare_models(collection, [1, 2])
    fact = "the models have different feature extractors: model 1 by colour, model 2 by hog"
    assert comparison.notes == (fact, OPTIMISM_NOTE)
    assert [model.features for model in comparison.models] == ["colour", "hog"]
    for rows in collection.features.glob("*/*.parquet"):
        rows.unlink()
    with lock_models(collection), pytest.raises(BusyError):
        compare_models(collection, [1, 2])
    assert compare_models(collection, [1, 2]) == comparison  # features are extracted again
    with lock_models(collection):
        assert compare_models(collection, [1, 2]) == comparison
    missing_item = next(item for item, place in read_holdout_positions(collection).items() if place <= 0.15)
    for rows in collection.features.glob("*/*.parquet"):
        rows.unlink()
    (collection.folder / f"{missing_item - 1:04d}.webp").unlink()
    less = compare_models(collection, [1, 2])
    assert less.items == comparison.items - 1
    assert less.notes[1] == "not counted: 1 of the held-out items, which cannot be read or changed since the scan"
    for rows in collection.features.glob("*/*.parquet"):
        rows.unlink()
    for picture in collection.folder.glob("*.webp"):
        os.utime(picture, (1, 1))
    with pytest.raises(InputError, match=r"held-out items can be read as it was scanned; run: `collection.scan"):
        compare_models(collection, [1, 2])


@pytest.mark.parametrize(
    ("model_ids", "why"),
    [
        ([], "models to compare: none; give two to 8 different ones"),
        ([1], "models to compare: 1; give two"),
        ([1, 1], "models to compare: 1, 1; give two"),
        (list(range(1, 10)), "give two to 8"),
        ([1, 7], "there is no model 7"),
        ([1, -1], "there is no model -1"),
        ([1, 2], "model 2 cannot be used"),
    ],
)
def test_invalid_comparisons_are_refused(two_models: Collection, model_ids: list[int], why: str) -> None:
    with pytest.raises(InputError, match=why):
        compare_models(two_models, model_ids)


def test_rollbacks_form_a_stack(tagged: tuple[Collection, Rows]) -> None:
    collection, _ = tagged
    for _ in range(3):
        train_collection_model(collection, full=True, **OPTIONS | {"epochs": 1})
    model_registry.use_model(collection, 1, by="eve")
    model_ids = []
    while (back := model_registry.find_rollback(collection)) is not None:
        undo_entry(collection.engine, back.entry, by="adam")
        assert in_use(collection) == back.model
        model_ids.append(back.model)
    assert model_ids == [3, 2, 1]
    model_registry.use_model(collection, 3, by="eve")
    assert model_registry.remove_old_models(collection, 1, by="eve") == [2, 1]
    assert model_registry.find_rollback(collection) is None  # nobody goes back to a deleted model
    assert model_registry.list_removed_models(collection) == [2, 1]
    with pytest.raises(InputError, match="there is no model 2"):
        model_registry.read_model(collection, 2)


def test_first_model_has_no_rollback(tagged: tuple[Collection, Rows]) -> None:
    collection, _ = tagged
    assert forecast_training(collection) == RetrainForecast(300, "full", "there is no model in use yet")
    train_collection_model(collection, **OPTIONS)
    assert model_registry.find_rollback(collection) is None
    out, most = collection.engine.pool.checkedout, []  # type: ignore[attr-defined]
    event.listen(collection.engine, "checkout", lambda *_: most.append(out()))
    forecast = forecast_training(collection)
    assert (forecast.decisions, forecast.method) == (0, "nothing")
    assert max(most) == 1  # who holds one connection never waits for another
    tag(collection, {1: ["x"], 2: ["x"]})
    reason = "2 items have new decisions since model 1"
    assert forecast_training(collection) == RetrainForecast(2, "corrections", reason)
    train_collection_model(collection, **OPTIONS)
    assert isinstance(model_registry.find_rollback(collection), Rollback)


def test_learning_curve_holds_every_epoch(tagged: tuple[Collection, Rows]) -> None:
    collection, _ = tagged
    points: list[TrainingPoint] = []
    first = train_collection_model(collection, **OPTIONS, watch=points.append)
    assert first.facts["curve"] == points
    assert [point["epoch"] for point in points] == list(range(1, 9))
    best = max(points, key=lambda point: point["MAP"])
    assert (first.facts["best_epoch"], first.figures["metrics"]["MAP"]) == (
        best["epoch"],
        pytest.approx(best["MAP"], abs=1e-5),
    )
    tag(collection, {item: ["more"] for item in range(1, 10)})
    points.clear()
    second = train_collection_model(collection, **OPTIONS | {"epochs": 3}, watch=points.append)
    assert (second.method, [point["epoch"] for point in points]) == ("corrections", [1, 2, 3])
    assert model_registry.read_model(collection, 2).facts["curve"] == points


def test_long_learning_curve_keeps_its_ends_and_a_bounded_length() -> None:
    curve = LearningCurve()
    assert curve.points == []
    for epoch in range(1, 5001):
        curve.add({"epoch": epoch})
        assert curve.points[0]["epoch"] == 1
        assert curve.points[-1]["epoch"] == epoch
        assert len(curve.points) <= 200
    steps = {b["epoch"] - a["epoch"] for a, b in zip(curve.points[:-2], curve.points[1:-1], strict=True)}
    assert len(steps) == 1  # evenly


@pytest.mark.parametrize("epochs", [0, -1, 10_001])
def test_invalid_epochs_are_refused(collection: Collection, epochs: int) -> None:
    with pytest.raises(InputError, match=f"{epochs} epochs cannot be; give a number from 1 to 10,000"):
        train_collection_model(collection, by="eve", epochs=epochs)
