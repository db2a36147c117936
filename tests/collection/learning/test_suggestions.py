"""Suggestions: probabilities that mean what they say, thresholds, items that no tag fits, near items, the commands."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sqlalchemy import insert, select
from typer.testing import CliRunner

from picture_collections import add_item, sample, suggested, tag, with_pictures
from wsabie.cli.main import app
from wsabie.collection.annotations.training_examples import TrainingExamples
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import read_history, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.items import item_pages
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.labels import label_edits, label_list
from wsabie.collection.learning.evaluation import score_suggestions
from wsabie.collection.learning.suggestions import LabelRanker, accept_suggestions, apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.registry import item_index, thresholds
from wsabie.collection.registry.item_index import shorten_hash
from wsabie.collection.registry.model_registry import load_model
from wsabie.collection.registry.thresholds import HoldoutSuggestions, PrecisionCurve, load_holdout_suggestions
from wsabie.collection.search.text_search import find_items_of_labels
from wsabie.core.errors import InputError
from wsabie.evaluation.calibration import compute_calibration_error
from wsabie.io.records import Item
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.samples import get_sample_path
from wsabie.storage.model_folder import is_model_folder

KINDS = ("computer", "animals", "people")


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, database_of_module: str | None
) -> Iterator[tuple[Collection, dict[int, dict[str, Any]]]]:
    """300 drawings of three kinds, two thirds of them tagged, and a model of them."""
    with create_collection(tmp_path_factory.mktemp("learned") / "drawings", database_of_module) as collection:
        rows_by_item = with_pictures(collection, sample(KINDS, each=100))
        tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items() if item % 3})
        train_collection_model(collection, by="eve", features="colour,hog", threads=1)
        yield collection, rows_by_item


def test_probabilities_are_calibrated(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """On items that were neither learned from nor calibrated on: within .15 on average over 300 pairs."""
    collection, rows_by_item = trained
    opened = load_model(collection)
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    probabilities = suggested(collection)
    pairs = [
        (p, rows_by_item[item]["kind"] == name)
        for item, label_probabilities in probabilities.items()
        if item % 3 == 0
        for name, p in label_probabilities.items()
    ]
    assert len(pairs) == 300
    error = compute_calibration_error(*zip(*pairs, strict=True), bins=5)
    assert error < 0.15
    best = [
        max(label_probabilities, key=label_probabilities.__getitem__) == rows_by_item[item]["kind"]
        for item, label_probabilities in probabilities.items()
        if item % 3 == 0
    ]
    assert np.mean(best) > 0.55  # a third by chance
    assert set(load_holdout_suggestions(opened.path).right.tolist()) == {0, 1}


def test_threshold_keeps_its_precision(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = trained
    opened = load_model(collection)
    limits = opened.find_threshold(0.4)
    assert opened.find_threshold(0.4) is limits
    for percent in range(1, 151):
        opened.find_threshold(percent / 151)
    assert opened.find_threshold.cache_info().currsize <= 100  # type: ignore[attr-defined]
    assert limits.common is not None
    hits = [
        rows_by_item[item]["kind"] == name
        for item, label_probabilities in suggested(collection).items()
        if item % 3 == 0
        for name, p in label_probabilities.items()
        if p >= limits.common
    ]
    assert len(hits) > 10
    assert np.mean(hits) > 0.4
    assert opened.find_threshold(0.35).common <= limits.common  # type: ignore[operator]
    with pytest.raises(InputError, match="a precision of 2 cannot be"):
        opened.find_threshold(2)
    two = HoldoutSuggestions(np.zeros(2, np.int64), np.array([0.9, 0.8]), np.ones(2, np.int64))
    assert PrecisionCurve(two).find_threshold(0.9).common is None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=200),
    st.integers(1, 20),
    st.integers(1, 20),
)
def test_suggestion_precision_is_the_inverse_of_thresholds(
    holdout_rows: list[tuple[int, int, bool]], twentieth: int, repetitions: int
) -> None:
    """Few distinct probabilities give ties; some labels have enough suggestions for a threshold of their own."""
    labels, tenths, right = (np.array([row[i] for row in holdout_rows] * repetitions, np.int64) for i in range(3))
    suggestions, precision = HoldoutSuggestions(labels, tenths / 10, right), twentieth / 20
    limits = PrecisionCurve(suggestions).find_threshold(precision)
    label_ids, p = (each.ravel() for each in np.meshgrid(np.arange(4), np.arange(-0.05, 1.1, 0.05).round(3)))
    reached = PrecisionCurve(suggestions).read_precision(label_ids, p) >= precision
    assert reached.tolist() == [
        q >= limits.get_probability(label) for label, q in zip(label_ids.tolist(), p.tolist(), strict=True)
    ]


def test_calibration_excludes_the_items_own_tags() -> None:
    """They are fitted to the tags of other items, so that they are no better than those of new items."""
    draw = np.random.default_rng(0)
    kinds = np.arange(120) % 4
    X = (np.eye(4)[kinds] + 0.4 * draw.normal(size=(120, 4))).astype(np.float32)
    Y = csr_matrix(np.eye(4, dtype=np.int8)[kinds])
    model = Wsabie(4, epochs=5, threads=1).fit(X[:80], Y[:80], validation=(X[80:], Y[80:]))
    opened: Any = SimpleNamespace(model=model)
    columns = np.arange(4)

    def judge(truth: Any) -> list[float]:
        hashes, nothing, weights = [f"{item:02}" for item in range(40)], np.zeros(40, bool), np.ones(40, np.float32)
        holdout = TrainingExamples(hashes, hashes, truth, columns, [], weights, ~nothing, 1.0, nothing, 0, 0)
        suggestions = score_suggestions(opened, columns, X[80:], holdout)
        assert suggestions.items is not None
        assert np.bincount(suggestions.items).tolist() == [4] * 40
        of_first: list[float] = suggestions.probabilities[suggestions.items == 0].tolist()
        of_others.append(suggestions.probabilities[suggestions.items != 0].tolist())
        return of_first

    of_others: list[list[float]] = []
    other_truth = csr_matrix(np.eye(4, dtype=np.int8)[np.append(kinds[80] + 1, kinds[81:])])
    assert judge(Y[80:]) == judge(other_truth)
    assert of_others[0] != of_others[1]


def test_tags_of_an_item_compete_with_its_suggestions(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """One kind fits a drawing: a second one is no likelier once the first is a tag, or if only one is listed."""
    opened, points = load_model(trained[0]), np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    assert opened.model.calibration_.competition > 0.1
    points = np.pad(points, ((0, 0), (0, opened.model.dim - 2)))
    ranker = LabelRanker(opened, opened.labels)
    top = ranker.top(points, 3)
    exclude = ranker.exclude_pairs(enumerate(top.labels[:, 0].tolist()), 50)
    others = ranker.top(points, 2, exclude)
    np.testing.assert_array_equal(others.labels, top.labels[:, 1:])
    np.testing.assert_allclose(others.probabilities, top.probabilities[:, 1:])
    np.testing.assert_allclose(ranker.top(points, 1).probabilities, top.probabilities[:, :1])
    assert (np.diff(top.probabilities, axis=1) <= 0).all()


def test_merged_labels_do_not_compete(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """Two columns of one label count once, by the higher score."""
    opened = load_model(trained[0])
    points = np.random.default_rng(0).normal(size=(50, opened.model.dim)).astype(np.float32)
    first, second, third = opened.labels.tolist()
    merged = LabelRanker(opened, np.array([first, first, third])).top(points, 2)
    separate = LabelRanker(opened, np.array([first, second, third])).top(points, 3)
    is_merged_best = separate.labels[:, 0] != third
    rows = np.flatnonzero(is_merged_best & (separate.labels[:, 1] == third))
    assert 0 < len(rows) < 50
    np.testing.assert_allclose(merged.probabilities[rows], separate.probabilities[rows, :2])
    twins = np.flatnonzero(is_merged_best & (separate.labels[:, 1] != third))
    assert (merged.probabilities[twins, 0] > separate.probabilities[twins, 0]).all()


def test_most_items_of_another_domain_fit_no_tag(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """Flat colours are not computers, animals or people; drawings of these are. Of noise a model thinks anything."""
    import io

    from PIL import Image

    collection, _ = trained
    rng = np.random.default_rng(0)
    foreign = []
    for number in range(40):
        pixels = np.full((96, 96, 3), rng.integers(0, 256, 3))
        content = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(content, "png")
        path = collection.folder / f"foreign{number}.png"
        path.write_bytes(content.getvalue())
        foreign.append(add_item(collection, path))
    applied = apply_model(collection, by="eve", min_precision=0.45, threads=1)
    assert applied.inference.items == 40
    assert applied.coverage is not None
    none = set(applied.coverage.uncovered_items)
    page = item_pages.read_item_page(collection, ItemFilter(no_tag_fits=0.45), sort="added_at", limit=1000)
    assert [item.id for item in page.items] == applied.coverage.uncovered_items
    assert page.total == applied.coverage.uncovered
    untagged = [item for item in range(1, 301) if item % 3 == 0]
    assert len(none & set(foreign)) > 0.8 * len(foreign)
    assert len(none & set(foreign)) / len(foreign) > len(none & set(untagged)) / len(untagged)


def test_accepted_suggestions_are_one_entry(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _rows = trained
    opened = load_model(collection)
    likely = {
        (item, name)
        for item, label_probabilities in suggested(collection).items()
        for name, p in label_probabilities.items()
        if p >= 0.8
    }
    decided = accept_suggestions(collection, 0.8, by="eve", model=opened.id).counts
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


def test_inference_is_recorded_in_the_journal(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = trained
    apply_model(collection, by="eve", threads=1)
    n_before = len(read_history(collection.engine, 500))
    apply_model(collection, by="eve", threads=1)
    assert len(read_history(collection.engine, 500)) == n_before  # nothing was new
    result = apply_model(collection, by="eve", again=True, threads=1)
    line = read_history(collection.engine, 500)[0]
    assert (line.by, line.action, line.changes) == ("eve", "apply", 0)
    counts_text = f"{result.inference.items:,} items and suggests {result.inference.suggestions:,} labels"
    assert line.summary == f"model {result.model} looked at {counts_text}"


def test_similar_items_are_found(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = trained
    embeddings = item_index.load_item_embeddings(load_model(collection).path, 100)
    assert embeddings.items.tolist()[:300] == list(rows_by_item)
    at = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
    near = item_index.find_similar_items(collection, 5, 7)
    assert 5 not in [near_item.item for near_item in near]
    expected = np.sort(at @ at[4])[::-1][1:8]
    assert np.allclose([near_item.score for near_item in near], expected, atol=1e-5)
    label = {name: label_id for label_id, name in _read_labels(collection).items()}["people"]
    people = find_items_of_labels(collection, [[label]], 20)[0]
    assert (
        np.mean(
            [rows_by_item[near_item.item]["kind"] == "people" for near_item in people if near_item.item in rows_by_item]
        )
        > 0.8
    )
    annotator = load_model(collection).annotator
    row = annotator.rows_of_items([Item("one", collection.folder / "0004.webp", ())])
    assert item_index.find_nearest_items(collection, annotator.model.transform(row), 1)[0][0].item == 5
    with pytest.raises(InputError, match="has not seen item 9999"):
        item_index.find_similar_items(collection, 9999)
    but = [near_item.item for near_item in people[:5]]
    assert find_items_of_labels(collection, [[label], [77]], 15, exclude=but) == [people[5:], []]


def test_missing_items_are_not_similar(trained: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = trained
    first = item_index.find_similar_items(collection, 8, 30)
    with begin_write(collection.engine) as connection:
        missing_items = [match.item for match in first[:25]]
        connection.execute(tables.items.update().where(tables.items.c.id.in_(missing_items)).values(state="missing"))
    matches = item_index.find_similar_items(collection, 8, 30)
    assert len(matches) == 30
    assert not set(missing_items) & {match.item for match in matches}
    with begin_write(collection.engine) as connection:
        connection.execute(tables.items.update().where(tables.items.c.id.in_(missing_items)).values(state="present"))


def test_item_embeddings_are_merged_by_item_and_content() -> None:
    embeddings = item_index.ItemEmbeddings(np.array([1, 3]), np.array([7, 8], np.uint64), np.eye(2, dtype=np.float32))
    union = embeddings.merge(
        item_index.ItemEmbeddings(np.array([2, 3]), np.array([5, 6], np.uint64), np.ones((2, 2), np.float32))
    )
    assert union.items.tolist() == [1, 2, 3]
    assert union.vectors.tolist() == [[1, 0], [1, 1], [1, 1]]
    assert union.find(np.array([1, 3, 4]), np.array([7, 8, 9], np.uint64)).tolist() == [0, -1, -1]
    assert shorten_hash("f" * 32) == 2**64 - 1


def _read_labels(collection: Collection) -> dict[int, str]:
    from wsabie.collection.labels.label_store import read_label_names

    with begin_read(collection.engine) as connection:
        return read_label_names(connection)


def run_json(*words: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [str(word) for word in ("collection", *words, "--json")])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def _read_times(folder: Path) -> tuple[str, str, int]:
    """When the model in use was made, when it looked at an item according to an export, and the item."""
    run_json("export", folder, folder / "suggested.jsonl", "--state", "suggested", "--overwrite")
    tags = [json.loads(line) for line in (folder / "suggested.jsonl").read_text().splitlines()]
    times: set[tuple[str, str]] = {(tag["model_made"], tag["at"]) for tag in tags}
    with open_collection(folder) as collection:
        item = item_pages.read_item_page(collection, ItemFilter(label_state="suggested"), limit=1).items[0]
        at = {suggestion.at for suggestion in item_pages.read_item_details(collection, item.id).suggestions}
    assert len(times) == 1  # all were looked at together
    (created, scored), *_ = times
    assert at <= {scored, None}
    return created, scored, item.id


def test_learning_commands_train_apply_and_roll_back(tmp_path: Path, database: str | None) -> None:
    """Emoji as files, tagged with what they are called in English and German."""
    import pyarrow.parquet as pq

    rows = pq.read_table(get_sample_path("emoji"), columns=["image", "labels", "category"]).slice(1000, 60).to_pylist()
    with create_collection(tmp_path / "emoji", database) as collection:
        rows_by_item = with_pictures(collection, rows)
        tag(collection, {item: row["labels"][:5] for item, row in rows_by_item.items() if item % 2})
    folder = tmp_path / "emoji"
    options = ("--features", "colour", "--threads", 1, "--by", "eve")
    first = run_json("train", folder, *options)
    assert (first["method"], first["model"], first["figures"]["previous_metrics"]) == ("full", 1, None)
    result = CliRunner().invoke(app, ["collection", "train", str(folder), "--from-scratch", "--threads", "1"])
    assert (result.exit_code, "from scratch (as asked)" in result.stdout) == (0, True)
    assert "previous model" in result.stdout
    assert run_json("apply", folder, "--threads", 1, "--min-precision", 0.9)["coverage"]["precision"] == 0.9
    accepted = run_json("apply", folder, "--threads", 1, "--accept-above", 0.3)["accepted"]["added"]
    assert run_json("history", folder)["entries"][0]["changes"] == accepted
    created, scored, _ = _read_times(folder)
    assert created < scored
    run_json("apply", folder, "--threads", 1, "--all-items")
    assert scored < _read_times(folder)[1]
    assert [m["in_use"] for m in run_json("models", folder)["models"]] == [True, False]
    assert run_json("models", folder, "--use", 1)["switch"] == {"model": 1, "previous_model": 2, "unseen_items": 0}
    assert run_json("models", folder, "--use", 2)["switch"]["previous_model"] == 1
    result = CliRunner().invoke(app, ["collection", "models", str(folder), "--compare", "1", "2"]).stdout
    assert "held out from all of them" in result
    assert "model 2 " in result
    compared = run_json("models", folder, "--compare", 1, 2)
    assert [model["model"] for model in compared["models"]] == [1, 2]
    assert compared["models"][1]["difference"]["MAP"]["low"] <= compared["models"][1]["difference"]["MAP"]["high"]
    assert run_json("models", folder, 2)["models"][0]["facts"]["curve"][0]["epoch"] == 1
    result = CliRunner().invoke(app, ["collection", "models", str(folder), "1", "2"]).stdout
    assert result.count("epochs, with the MAP on held-out items") == 2
    assert result.count("kept") == 2
    paths = re.findall(r"^other files: wsabie annotate (\S+) FILES$", result, re.MULTILINE)
    assert [is_model_folder(Path(path)) for path in paths] == [True, True]
    back = run_json("models", folder)["rollback"]
    assert back["model"] == 1
    assert run_json("undo", folder, back["entry"])["undone"]["id"] == back["entry"]
    assert run_json("models", folder, "--use", 2)["switch"]["previous_model"] == 1
    assert run_json("models", folder, "--keep", 1)["removed"] == [1]
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


def test_thresholds_are_computed_once(
    trained: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    monkeypatch.setattr(
        thresholds, "load_holdout_suggestions", lambda path: loaded.append(path) or load_holdout_suggestions(path)
    )
    opened = load_model(trained[0])
    assert opened.find_threshold(0.8) is opened.find_threshold(0.8)
    assert opened.find_threshold(0.9).precision == 0.9
    assert loaded == [opened.path]


def test_many_suggestions_are_replaced(collection: Collection) -> None:
    """`--all-items` leaves nothing of the look before, in either database."""
    rows_by_item = with_pictures(collection, sample(KINDS, each=10))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    tag(collection, {key: ["seen"] for key in rows_by_item}, "rejected")
    train_collection_model(collection, by="eve", features="colour", threads=1, epochs=5, dim=10)
    s = tables.suggestions
    with begin_write(collection.engine) as connection:
        label_id = connection.execute(select(tables.labels.c.id).where(tables.labels.c.name == "seen")).scalar()
        stale = {"model_id": 1, "item_id": 1, "label_id": label_id, "score": 0.0, "probability": 0.9}
        connection.execute(insert(s), [stale])
    apply_model(collection, by="eve", again=True, threads=1)
    assert "seen" not in suggested(collection)[1]
    assert load_model(collection).find_threshold(0.2).precision == 0.2


def test_label_deleted_during_inference_is_skipped(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_by_item = with_pictures(collection, sample(KINDS, each=10))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    train_collection_model(collection, by="eve", features="colour", threads=1, epochs=5, dim=10)
    label_ids, rank = label_list.find_label_ids(collection, ["people"]), LabelRanker.top

    def top(*arguments: Any) -> Any:
        top_labels = rank(*arguments)
        label_edits.delete_labels(collection, label_ids, "eve", with_tags=True)
        return top_labels

    def names() -> set[str]:
        return {name for label_probabilities in suggested(collection).values() for name in label_probabilities}

    with monkeypatch.context() as while_it_looks:
        while_it_looks.setattr(LabelRanker, "top", top)
        apply_model(collection, by="eve", again=True, floor=0, threads=1)
    assert names() == {"computer", "animals"}
    undo_entry(collection.engine, by="eve")
    assert apply_model(collection, by="eve", floor=0, threads=1).inference.items == 0
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    assert names() == set(KINDS)
