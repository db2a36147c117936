"""Suggestions: probabilities that mean what they say, thresholds, items that no tag fits, near items, the commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select
from typer.testing import CliRunner

from picture_collections import add_item, sample, suggested, tag, with_pictures
from wsabie.cli.main import app
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import read_history, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.items import item_pages
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.labels import label_list
from wsabie.collection.learning.suggestions import LabelRanker, accept_suggestions, apply_model
from wsabie.collection.learning.training import train_model
from wsabie.collection.registry import item_index, model_registry
from wsabie.collection.registry.item_index import compute_mark
from wsabie.collection.registry.model_registry import load_model
from wsabie.collection.registry.thresholds import (
    FEWEST_OF_LABEL,
    HoldoutSuggestions,
    PrecisionCurve,
    compute_threshold,
    find_lowest_probability,
    load_holdout_suggestions,
)
from wsabie.collection.search.text_search import find_items_of_labels
from wsabie.core.errors import InputError
from wsabie.evaluation.calibration import compute_reliability
from wsabie.io.records import Item
from wsabie.samples import get_sample_path

KINDS = ("computer", "animals", "people")


@pytest.fixture(scope="module")
def learnt(
    tmp_path_factory: pytest.TempPathFactory, database_of_module: str | None
) -> Iterator[tuple[Collection, dict[int, dict[str, Any]]]]:
    """300 drawings of three kinds, two thirds of them tagged, and a model of them."""
    with create_collection(tmp_path_factory.mktemp("learnt") / "drawings", database_of_module) as collection:
        there = with_pictures(collection, sample(KINDS, each=100))
        tag(collection, {item: [row["kind"]] for item, row in there.items() if item % 3})
        train_model(collection, by="eve", features="colour,hog", threads=1)
        yield collection, there


def test_probabilities_are_calibrated(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """On items that were neither learnt from nor calibrated on: within .15 on average over 300 pairs."""
    collection, there = learnt
    opened = load_model(collection)
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    found = suggested(collection)
    pairs = [
        (p, there[item]["kind"] == name) for item, own in found.items() if item % 3 == 0 for name, p in own.items()
    ]
    assert len(pairs) == 300
    _, error = compute_reliability(*zip(*pairs, strict=True), bins=5)
    assert error < 0.15
    best = [max(own, key=own.__getitem__) == there[item]["kind"] for item, own in found.items() if item % 3 == 0]
    assert np.mean(best) > 0.55  # a third by chance
    assert set(load_holdout_suggestions(opened.path).right.tolist()) == {0, 1}


def test_a_threshold_keeps_what_it_promises(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, there = learnt
    opened = load_model(collection)
    sure = opened.threshold(0.75)
    assert opened.threshold(0.75) is sure
    for percent in range(1, 151):
        opened.threshold(percent / 151)
    assert opened.threshold.cache_info().currsize <= 100  # type: ignore[attr-defined]
    assert sure.common is not None
    chosen = [
        there[item]["kind"] == name
        for item, own in suggested(collection).items()
        if item % 3 == 0
        for name, p in own.items()
        if p >= sure.common
    ]
    assert len(chosen) > 10
    assert np.mean(chosen) > 0.65
    assert opened.threshold(0.5).common <= sure.common  # type: ignore[operator]
    with pytest.raises(InputError, match="a precision of 2 cannot be"):
        opened.threshold(2)
    assert find_lowest_probability(np.array([0.9, 0.8]), np.array([1, 1]), 0.9) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=200), st.integers(1, 20))
def test_how_sure_a_suggestion_is_is_the_threshold_the_other_way_round(
    judged: list[tuple[int, int, bool]], twentieth: int
) -> None:
    """Of few probabilities, so that there are ties; some labels have enough for a threshold of their own."""
    labels, tenths, right = (np.array([row[i] for row in judged], np.int64) for i in range(3))
    given_so, precision = HoldoutSuggestions(labels, tenths / 10, right), twentieth / 20
    limits = compute_threshold(given_so, precision)
    asked, p = (each.ravel() for each in np.meshgrid(np.arange(4), np.arange(-0.05, 1.1, 0.05).round(3)))
    reached = PrecisionCurve(given_so).of(asked, p) >= precision
    assert reached.tolist() == [q >= limits.of(label) for label, q in zip(asked.tolist(), p.tolist(), strict=True)]


def test_no_tag_fits_most_items_of_another_domain(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """Flat colours are no computers, animals or people; drawings of these are. Of noise a model thinks anything."""
    import io

    from PIL import Image

    collection, _ = learnt
    rng = np.random.default_rng(0)
    foreign = []
    for number in range(40):
        pixels = np.full((96, 96, 3), rng.integers(0, 256, 3))
        content = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(content, "png")
        path = collection.folder / f"foreign{number}.png"
        path.write_bytes(content.getvalue())
        foreign.append(add_item(collection, path))
    applied = apply_model(collection, by="eve", min_precision=0.8, threads=1)
    assert applied.inference.items == 40
    assert applied.coverage is not None
    none = set(applied.coverage.uncovered_items)
    shown = item_pages.read_item_page(collection, ItemFilter(no_tag_fits=0.8), sort="added_at", limit=1000)
    assert [item.id for item in shown.items] == applied.coverage.uncovered_items
    assert shown.total == applied.coverage.uncovered
    untagged = [item for item in range(1, 301) if item % 3 == 0]
    assert len(none & set(foreign)) > 0.8 * len(foreign)
    assert len(none & set(foreign)) / len(foreign) > len(none & set(untagged)) / len(untagged)


def test_accepted_suggestions_are_one_entry(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _there = learnt
    opened = load_model(collection)
    likely = {(item, name) for item, own in suggested(collection).items() for name, p in own.items() if p >= 0.8}
    decided = accept_suggestions(collection, opened.number, 0.8, by="eve").decided
    a, labels = tables.annotations.c, tables.labels
    query = select(a.item_id, labels.c.name, a.probability).join(labels, labels.c.id == a.label_id)
    with begin_read(collection.engine) as connection:
        rows = connection.execute(query.where(a.origin == "model", a.state == "accepted")).all()
    assert {(row[0], row[1]) for row in rows} <= likely
    assert decided.added == len(rows) > 0
    assert all(row[2] >= 0.8 for row in rows)
    assert read_history(collection.engine)[0].action == "accept"
    undo_entry(collection.engine, by="eve")
    with begin_read(collection.engine) as connection:
        assert not connection.execute(query.where(a.origin == "model")).all()
    with pytest.raises(InputError, match=r"accept_above is 1\.5"):
        apply_model(collection, by="eve", accept_above=1.5)


def test_a_look_is_told_in_the_journal(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = learnt
    apply_model(collection, by="eve", threads=1)
    before = len(read_history(collection.engine, 500))
    apply_model(collection, by="eve", threads=1)
    assert len(read_history(collection.engine, 500)) == before  # nothing was new
    done = apply_model(collection, by="eve", again=True, threads=1)
    line = read_history(collection.engine, 500)[0]
    assert (line.by, line.action, line.changes) == ("eve", "apply", 0)
    seen = f"{done.inference.items:,} items and suggests {done.inference.suggestions:,} labels"
    assert line.summary == f"model {done.model} looked at {seen}"


def test_near_items(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, there = learnt
    kept = item_index.load_item_embeddings(load_model(collection).path, 100)
    assert kept.items.tolist()[:300] == list(there)
    at = kept.points / np.linalg.norm(kept.points, axis=1, keepdims=True)
    near = item_index.find_similar_items(collection, 5, 7)
    assert 5 not in [one.item for one in near]
    wanted = np.sort(at @ at[4])[::-1][1:8]
    assert np.allclose([one.score for one in near], wanted, atol=1e-5)
    label = {name: number for number, name in _labels(collection).items()}["people"]
    people = find_items_of_labels(collection, [[label]], 20)[0]
    assert np.mean([there[one.item]["kind"] == "people" for one in people if one.item in there]) > 0.8
    annotator = load_model(collection).annotator
    row = annotator.rows_of_items([Item("one", collection.folder / "0004.webp", ())])
    assert item_index.find_nearest_items(collection, annotator.model.transform(row), 1)[0][0].item == 5
    with pytest.raises(InputError, match="has not seen item 9999"):
        item_index.find_similar_items(collection, 9999)
    but = [one.item for one in people[:5]]
    assert find_items_of_labels(collection, [[label], [77]], 15, exclude=but) == [people[5:], []]


def test_items_that_are_gone_are_not_near(learnt: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = learnt
    first = item_index.find_similar_items(collection, 8, 30)
    with begin_write(collection.engine) as connection:
        gone = [one.item for one in first[:25]]
        connection.execute(tables.items.update().where(tables.items.c.id.in_(gone)).values(state="missing"))
    found = item_index.find_similar_items(collection, 8, 30)
    assert len(found) == 30
    assert not set(gone) & {one.item for one in found}
    with begin_write(collection.engine) as connection:
        connection.execute(tables.items.update().where(tables.items.c.id.in_(gone)).values(state="present"))


def test_points_are_kept_by_item_and_content() -> None:
    one = item_index.ItemEmbeddings(np.array([1, 3]), np.array([7, 8], np.uint64), np.eye(2, dtype=np.float32))
    both = one.merge(
        item_index.ItemEmbeddings(np.array([2, 3]), np.array([5, 6], np.uint64), np.ones((2, 2), np.float32))
    )
    assert both.items.tolist() == [1, 2, 3]
    assert both.points.tolist() == [[1, 0], [1, 1], [1, 1]]
    assert both.contains(np.array([1, 3, 4]), np.array([7, 8, 9], np.uint64)).tolist() == [True, False, False]
    assert compute_mark("f" * 32) == 2**64 - 1


def _labels(collection: Collection) -> dict[int, str]:
    from wsabie.collection.labels.label_store import read_label_names

    with begin_read(collection.engine) as connection:
        return read_label_names(connection)


def said(*words: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [str(word) for word in ("collection", *words, "--json")])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def _times(folder: Path) -> tuple[str, str, int]:
    """When the model in use was made, when it looked at an item according to an export, and the item."""
    said("export", folder, folder / "suggested.jsonl", "--state", "suggested", "--overwrite")
    tags = [json.loads(line) for line in (folder / "suggested.jsonl").read_text().splitlines()]
    times: set[tuple[str, str]] = {(tag["model_made"], tag["at"]) for tag in tags}
    with open_collection(folder) as collection:
        shown = item_pages.read_item_page(collection, ItemFilter(label_state="suggested"), limit=1).items[0]
        at = {one.at for one in item_pages.read_item_details(collection, shown.id).suggestions}
    assert len(times) == 1  # all were looked at together
    (made, looked), *_ = times
    assert at <= {looked, None}
    return made, looked, shown.id


def test_the_commands(tmp_path: Path, database: str | None) -> None:
    """Emoji as files, tagged with what they are called in English and German."""
    import pyarrow.parquet as pq

    rows = pq.read_table(get_sample_path("emoji"), columns=["image", "labels", "category"]).slice(1000, 60).to_pylist()
    with create_collection(tmp_path / "emoji", database) as collection:
        there = with_pictures(collection, rows)
        tag(collection, {item: row["labels"][:5] for item, row in there.items() if item % 2})
    folder = tmp_path / "emoji"
    options = ("--features", "colour", "--threads", 1, "--by", "eve")
    first = said("train", folder, *options)
    assert (first["method"], first["model"], first["figures"]["before"]) == ("full", 1, None)
    shown = CliRunner().invoke(app, ["collection", "train", str(folder), "--from-scratch", "--threads", "1"])
    assert (shown.exit_code, "from scratch (as asked)" in shown.stdout) == (0, True)
    assert "before" in shown.stdout
    assert said("apply", folder, "--threads", 1, "--min-precision", 0.9)["coverage"]["precision"] == 0.9
    accepted = said("apply", folder, "--threads", 1, "--accept-above", 0.3)["accepted"]["added"]
    assert said("history", folder)["entries"][0]["changes"] == accepted
    made, looked, _ = _times(folder)
    assert made < looked
    said("apply", folder, "--threads", 1, "--all-items")
    assert looked < _times(folder)[1]
    assert [m["in_use"] for m in said("models", folder)["models"]] == [True, False]
    assert said("models", folder, "--use", 1)["used"] == {"number": 1, "before": 2, "unseen": 0}
    assert said("models", folder, "--use", 2)["used"]["before"] == 1
    shown = CliRunner().invoke(app, ["collection", "models", str(folder), "--compare", "1", "2"]).stdout
    assert "held out from all of them" in shown
    assert "model 2 " in shown
    compared = said("models", folder, "--compare", 1, 2)
    assert [one["model"] for one in compared["models"]] == [1, 2]
    assert compared["models"][1]["difference"]["MAP"]["low"] <= compared["models"][1]["difference"]["MAP"]["high"]
    assert said("models", folder, 2)["models"][0]["facts"]["curve"][0]["epoch"] == 1
    shown = CliRunner().invoke(app, ["collection", "models", str(folder), "1", "2"]).stdout
    assert shown.count("epochs, with the MAP on held-out items") == 2
    assert shown.count("kept") == 2
    back = said("models", folder)["back"]
    assert back["model"] == 1
    assert said("undo", folder, back["entry"])["undone"]["id"] == back["entry"]
    assert said("models", folder, "--use", 2)["used"]["before"] == 1
    assert said("models", folder, "--keep", 1)["removed"] == [1]
    table = CliRunner().invoke(app, ["collection", "models", str(folder)]).stdout
    assert "in use" in table
    assert "1 model, judged on" in table
    for words in (
        ["--use", "1", "--keep", "1"],
        ["1", "--use", "1"],
        ["--compare", "1"],
        ["--compare", "1", "1"],
        ["9"],
    ):
        wrong = CliRunner().invoke(app, ["collection", "models", str(folder), *words])
        assert wrong.exit_code == 1, words


def test_thresholds_are_made_once(
    learnt: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    monkeypatch.setattr(
        model_registry, "load_holdout_suggestions", lambda path: loaded.append(path) or load_holdout_suggestions(path)
    )
    opened = load_model(learnt[0])
    assert opened.threshold(0.8) is opened.threshold(0.8)
    assert opened.threshold(0.9).precision == 0.9
    assert loaded == [opened.path]


def test_a_label_of_many_suggestions_has_a_threshold_of_its_own() -> None:
    draw = np.random.default_rng(0)
    labels, p = draw.integers(0, 40, 1500), np.round(draw.random(1500), 2)
    judged = HoldoutSuggestions(labels, p, (draw.random(1500) < p).astype(np.int64))
    found = compute_threshold(judged, 0.7).by_label
    assert found == {
        label: find_lowest_probability(p[labels == label], judged.right[labels == label], 0.7)
        for label in range(40)
        if (labels == label).sum() >= FEWEST_OF_LABEL
    }
    assert 0 < len(found) < 40


def test_many_rows_of_suggestions_are_replaced(collection: Collection) -> None:
    """`--all-items` leaves nothing of the look before, in either database."""
    there = with_pictures(collection, sample(KINDS, each=10))
    tag(collection, {item: [row["kind"]] for item, row in there.items()})
    tag(collection, {key: ["seen"] for key in there}, "rejected")
    train_model(collection, by="eve", features="colour", threads=1, epochs=5, dim=10)
    s = tables.suggestions
    with begin_write(collection.engine) as connection:
        number = connection.execute(select(tables.labels.c.id).where(tables.labels.c.name == "seen")).scalar()
        stale = {"model_id": 1, "item_id": 1, "label_id": number, "score": 0.0, "probability": 0.9}
        connection.execute(insert(s), [stale])
    apply_model(collection, by="eve", again=True, threads=1)
    assert "seen" not in suggested(collection)[1]
    assert load_model(collection).threshold(0.2).precision == 0.2


def test_a_label_that_is_deleted_while_a_model_looks_is_left_out(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = with_pictures(collection, sample(KINDS, each=10))
    tag(collection, {item: [row["kind"]] for item, row in there.items()})
    train_model(collection, by="eve", features="colour", threads=1, epochs=5, dim=10)
    numbers, rank = label_list.find_label_numbers(collection, ["people"]), LabelRanker.top

    def top(*given: Any) -> Any:
        found = rank(*given)
        label_list.delete_labels(collection, numbers, "eve", with_tags=True)
        return found

    def names() -> set[str]:
        return {name for own in suggested(collection).values() for name in own}

    with monkeypatch.context() as while_it_looks:
        while_it_looks.setattr(LabelRanker, "top", top)
        apply_model(collection, by="eve", again=True, floor=0, threads=1)
    assert names() == {"computer", "animals"}
    undo_entry(collection.engine, by="eve")
    assert apply_model(collection, by="eve", floor=0, threads=1).inference.items == 0
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    assert names() == set(KINDS)
