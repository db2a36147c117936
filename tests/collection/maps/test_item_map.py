"""The map of a collection: projections, labels among their items, what becomes stale, colours, the command."""

import csv
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from databases import copied
from picture_collections import KINDS, add_item, sample, tag, with_pictures
from wsabie.cli.main import app
from wsabie.collection.annotations.decisions import Decision, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import begin_entry, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.items.item_pages import read_item_page
from wsabie.collection.labels import label_merge, label_store
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.maps import item_map
from wsabie.collection.registry.item_index import load_item_embeddings, save_item_embeddings
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.core.errors import InputError, UnknownLabelError


@pytest.fixture(scope="module")
def original(database_of_module: str | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 drawings of four kinds, two thirds of them tagged, and a model of them."""
    with create_collection(tmp_path_factory.mktemp("original") / "photos", database_of_module) as collection:
        rows_by_item = with_pictures(collection, sample(KINDS, each=20))
        tag(collection, {item: [row["kind"], *row["labels"][:2]] for item, row in rows_by_item.items() if item % 3})
        train_collection_model(collection, by="eve", features="colour,hog", dim=16, threads=1)
        return collection.folder


@pytest.fixture
def trained_collection(original: Path, tmp_path: Path) -> Iterator[Collection]:
    """A copy of it for one test."""
    with copied(original, tmp_path / "photos") as folder, open_collection(folder) as collection:
        yield collection


@pytest.fixture
def by_umap(monkeypatch: pytest.MonkeyPatch) -> None:
    """UMAP's place is taken by what is quick: where it begins."""
    monkeypatch.setattr(item_map, "compute_umap", lambda points, start: 2 * start)


def test_principal_components_equal_those_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    points = (rng.normal(size=(20_000, 30)) * np.linspace(3, 1, 30) + rng.normal(size=30)).astype(np.float32)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    theirs = PCA(n_components=2, svd_solver="full").fit(unit.astype(np.float64))
    ours = item_map.compute_principal_components(points)
    np.testing.assert_allclose(ours.directions.T, theirs.components_, atol=2e-4)  # signs and all
    np.testing.assert_allclose(ours.project(points), theirs.transform(unit), atol=2e-4)
    assert ours.share == pytest.approx(theirs.explained_variance_ratio_.sum(), rel=1e-4)


def test_projection_of_equal_points_is_bitwise_equal() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    once, again = (item_map.compute_principal_components(points), item_map.compute_principal_components(points.copy()))
    assert (once.project(points) == again.project(points)).all()
    longer = item_map.compute_principal_components(points * 8)  # only directions count
    assert (once.directions == longer.directions).all()
    for few in (points[:0], points[:1], points[:5, :1]):
        assert np.isfinite(item_map.compute_principal_components(few).project(few)).all()


def test_items_of_a_label_lie_together_on_the_map(trained_collection: Collection) -> None:
    built_map = item_map.build_map(trained_collection)
    assert (built_map.method, len(built_map.items)) == ("pca", 80)
    assert 0.1 < built_map.share < 1  # type: ignore[operator]
    assert item_map.build_map(trained_collection) is built_map
    at = item_map.place_labels(trained_collection, built_map)
    assert {label.name for label in at} >= set(KINDS)
    assert [label.accepted for label in at] == sorted((label.accepted for label in at), reverse=True)
    figure = item_map.measure_map_quality(trained_collection, built_map)
    assert figure.labels >= 4
    assert figure.share > 1.5 * figure.chance
    assert len(item_map.place_labels(trained_collection, built_map, 3)) == 3


def test_map_holds_only_present_items(trained_collection: Collection) -> None:
    map_before = item_map.build_map(trained_collection)
    with begin_write(trained_collection.engine) as connection:
        connection.execute(update(tables.items).where(tables.items.c.id == 7).values(state="missing"))
    map_after = item_map.build_map(trained_collection)
    assert 7 in map_before.items
    assert map_after.version != map_before.version
    assert map_after.items.tolist() == [n for n in map_before.items.tolist() if n != 7]
    assert {(label.x, label.y) for label in item_map.place_labels(trained_collection, map_after)} <= {
        tuple(p) for p in map_after.coordinates.tolist()
    }


def test_map_version_depends_on_the_missing_items(trained_collection: Collection) -> None:
    versions, c = [], tables.items.c
    for missing in ((), (1, 4), (2, 3), (1, 5, 6), (2, 3, 7)):  # of the last two the squares sum up alike, too
        with begin_write(trained_collection.engine) as connection:
            connection.execute(update(tables.items).values(state="present"))
            connection.execute(update(tables.items).where(c.id.in_(missing)).values(state="missing"))
        built_map = item_map.build_map(trained_collection)
        assert set(range(1, 81)) - set(built_map.items.tolist()) == set(missing)
        versions.append(built_map.version)
    assert len(set(versions)) == 5


def test_embeddings_saved_during_a_map_build_are_ignored(
    trained_collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = load_model_in_use(trained_collection)
    points, load_index = load_item_embeddings(opened.path, opened.model.dim), item_map.load_search_index
    fewer = points._replace(items=points.items[:40], hashes=points.hashes[:40], vectors=points.vectors[40:])

    def then_saved(model: Path) -> Any:
        index = load_index(model)
        monkeypatch.setattr(item_map, "load_search_index", load_index)
        save_item_embeddings(model, fewer)
        return index

    monkeypatch.setattr(item_map, "load_search_index", then_saved)
    built_map = item_map.build_map(trained_collection)
    assert len(built_map.items) == len(built_map.coordinates) == 40
    assert (built_map.coordinates == item_map.compute_principal_components(fewer.vectors).project(fewer.vectors)).all()
    assert item_map.build_map(trained_collection) is built_map


def test_map_labels_follow_merges_and_their_model(trained_collection: Collection) -> None:
    def at() -> dict[str, tuple[float, float]]:
        return {label.name: (label.x, label.y) for label in item_map.place_labels(trained_collection, built_map)}

    built_map = item_map.build_map(trained_collection)
    places_before = at()
    label_ids = {label.name: label.id for label in item_map.place_labels(trained_collection, built_map)}
    label_merge.merge_labels(trained_collection, [label_ids["food"]], label_ids["animals"], by="eve")
    merged = at()
    assert "food" not in merged
    maps_of_now = item_map._bests
    item_map._bests = type(maps_of_now)(2)  # what a service that has just begun says
    try:
        assert merged == at()
    finally:
        item_map._bests = maps_of_now
    undo_entry(trained_collection.engine, by="eve")
    assert at() == places_before
    train_collection_model(trained_collection, by="eve", features="colour", dim=8, even_if_worse=True, threads=1)
    item_map._bests = type(maps_of_now)(2)
    assert item_map.build_map(trained_collection).loaded_model.id == 2
    assert at() == places_before  # another model is in use by now


def test_item_counts_once_for_all_its_regions(trained_collection: Collection) -> None:
    built_map = item_map.build_map(trained_collection)
    counts_before = {label.name: label.accepted for label in item_map.place_labels(trained_collection, built_map)}
    with begin_entry(trained_collection.engine, "eve", "tag", "tagged") as change:
        food = label_store.ensure_labels(change, ["food"])["food"]
        write_decisions(change, [Decision(1, food, "accepted", region) for region in ("0,0,9,9", "9,9,9,9")])
    counts_after = {label.name: label.accepted for label in item_map.place_labels(trained_collection, built_map)}
    assert counts_after == counts_before


def test_concurrent_cache_readers_get_their_own_value() -> None:
    few, keys = FileCache[str](2), [str(n % 5) for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda key: few.get(key, lambda: f"of {key}"), keys)) == [f"of {key}" for key in keys]


def test_umap_is_saved_and_places_new_items(trained_collection: Collection, by_umap: None) -> None:
    with pytest.raises(InputError, match="no UMAP of the model in use yet; compute it first"):
        item_map.build_map(trained_collection, "umap")
    assert item_map.list_projections(trained_collection)[1].state in ("none", "not installed")
    projection = item_map.compute_projection(trained_collection)
    assert (projection.state, projection.new_items) == ("ready", 0)
    built_map = item_map.build_map(trained_collection, "umap")
    np.testing.assert_allclose(built_map.coordinates, 2 * item_map.build_map(trained_collection).coordinates, atol=1e-5)
    copy = trained_collection.folder / "copy.webp"
    shutil.copyfile(trained_collection.folder / "0005.webp", copy)
    new = add_item(trained_collection, copy)
    apply_model(trained_collection, by="eve", threads=1)
    state = item_map.list_projections(trained_collection)[1]
    assert (state.state, state.new_items) == ("stale", 1)
    later = item_map.build_map(trained_collection, "umap")
    assert len(later.items) == 81
    assert (later.coordinates[:80] == built_map.coordinates).all()  # what was there stays
    opened = load_model_in_use(trained_collection)
    embeddings = load_item_embeddings(opened.path, opened.model.dim)
    unit = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
    nearest = np.argsort(-(unit[:80] @ unit[80]), kind="stable")[:3]
    assert new == 81
    np.testing.assert_allclose(later.coordinates[80], np.median(later.coordinates[nearest], axis=0), atol=1e-5)
    assert item_map.compute_projection(trained_collection).state == "ready"


def test_umap_of_another_model_or_damaged_is_ignored(trained_collection: Collection, by_umap: None) -> None:
    item_map.compute_projection(trained_collection)
    map_folder = load_model_in_use(trained_collection).path / "map"
    for file in (map_folder / "tensors").iterdir():
        file.write_bytes(b"x")
    assert item_map.list_projections(trained_collection)[1].state != "ready"
    with pytest.raises(InputError, match="no UMAP"):
        item_map.build_map(trained_collection, "umap")
    item_map.compute_projection(trained_collection)
    assert item_map.list_projections(trained_collection)[1].state == "ready"
    train_collection_model(trained_collection, by="eve", features="colour", dim=8, even_if_worse=True, threads=1)
    assert item_map.list_projections(trained_collection)[1].state != "ready"
    assert item_map.build_map(trained_collection).loaded_model.id == 2


def test_umap_projects_drawings(trained_collection: Collection) -> None:
    pytest.importorskip("umap", reason="umap-learn is not installed: pip install 'wsabie[map]'")
    assert item_map.compute_projection(trained_collection).state == "ready"
    built_map = item_map.build_map(trained_collection, "umap")
    assert np.isfinite(built_map.coordinates).all()
    figure = item_map.measure_map_quality(trained_collection, built_map)
    assert figure.share > 1.5 * figure.chance
    item_map.compute_projection(trained_collection)
    assert (item_map.build_map(trained_collection, "umap").coordinates == built_map.coordinates).all()


def test_missing_umap_error_names_the_install_command(
    trained_collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_map, "has_umap", lambda: False)
    monkeypatch.setattr(item_map, "has_umap", lambda: False)
    assert item_map.list_projections(trained_collection)[1].state == "not installed"
    with pytest.raises(InputError, match=r"pip install 'wsabie\[map\]'"):
        item_map.compute_projection(trained_collection)
    monkeypatch.setattr(item_map, "has_umap", lambda: True)
    with pytest.raises(InputError, match="UMAP needs 10 items and there are 3"):
        item_map.compute_umap(np.ones((3, 2), np.float32), np.zeros((3, 2), np.float32))


def test_map_colours_show_decisions_and_suggestions(trained_collection: Collection) -> None:
    tag(trained_collection, {3: ["food"]}, "rejected")
    item_ids, states = item_map.colour_items(trained_collection, "food")
    assert (np.diff(item_ids) > 0).all()
    codes = dict(zip(item_ids.tolist(), states.tolist(), strict=True))
    accepted = {item.id for item in read_item_page(trained_collection, ItemFilter(label="food")).items}
    assert {n for n, code in codes.items() if code == item_map.ACCEPTED} == accepted
    assert codes[3] == item_map.REJECTED
    suggested = read_item_page(trained_collection, ItemFilter(label="food", label_state="suggested")).items
    assert suggested
    for item in suggested:
        assert (codes[item.id] - 3) / 252 == pytest.approx(item.probability, abs=0.003)
    with pytest.raises(UnknownLabelError):
        item_map.colour_items(trained_collection, "no such label")


def test_map_without_a_model_is_refused(collection: Collection) -> None:
    with pytest.raises(InputError, match="has no model yet"):
        item_map.build_map(collection)


def test_model_without_embeddings_has_no_map(trained_collection: Collection) -> None:
    opened = load_model_in_use(trained_collection)
    points = load_item_embeddings(opened.path, opened.model.dim)
    save_item_embeddings(
        opened.path, points._replace(items=points.items[:0], hashes=points.hashes[:0], vectors=points.vectors[:0])
    )
    built_map = item_map.build_map(trained_collection)
    assert len(built_map.items) == 0
    assert item_map.place_labels(trained_collection, built_map) == []
    shutil.rmtree(opened.path / "item_embeddings")
    with pytest.raises(InputError, match="has seen no items yet"):
        item_map.build_map(trained_collection)


def test_items_are_listed_by_id(trained_collection: Collection) -> None:
    page = read_item_page(trained_collection, ItemFilter(ids=(5, 3, 9999, 3)))
    assert [item.id for item in page.items] == [3, 5]
    assert page.total == 2
    food_page = read_item_page(trained_collection, ItemFilter(ids=(3, 4, 5), label="food"))
    assert [item.id for item in food_page.items] == [4, 5]
    for wrong in ((0,), (2**63,), tuple(range(1, 1002))):
        with pytest.raises(InputError, match="up to 1,000 item ids"):
            read_item_page(trained_collection, ItemFilter(ids=wrong))


def test_map_command_writes_a_table_of_coordinates(tmp_path: Path, database: str | None, by_umap: None) -> None:
    with create_collection(tmp_path / "drawings", database) as collection:
        rows_by_item = with_pictures(collection, sample(KINDS, each=20))
        tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items() if item % 3})
    run = CliRunner()
    folder = str(tmp_path / "drawings")
    none = run.invoke(app, ["collection", "map", folder])
    assert (none.exit_code, "has no model yet" in str(none.exception)) == (1, True)
    assert run.invoke(app, ["collection", "train", folder, "--features", "colour", "--dim", "8"]).exit_code == 0
    result = run.invoke(app, ["collection", "map", folder])
    assert result.exit_code == 0, result.stderr
    assert "80 items and 4 labels" in result.stdout
    out = tmp_path / "places.csv"
    result = run.invoke(app, ["collection", "map", folder, "--umap", "--out", str(out), "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["method"], report["items"], report["labels"]) == ("umap", 80, 4)
    assert report["projections"][1]["state"] == "ready"
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert [row["kind"] for row in rows] == ["item"] * 80 + ["label"] * 4
    assert rows[0]["name"] == "0000.webp"
    assert {row["name"] for row in rows[80:]} == set(KINDS)
    assert all(np.isfinite([float(row["x"]), float(row["y"])]).all() for row in rows)
    (tmp_path / "mine.csv").write_text("a,b")
    refused = run.invoke(app, ["collection", "map", folder, "--out", str(tmp_path / "mine.csv")])
    assert (refused.exit_code, "would be lost" in str(refused.exception)) == (1, True)
