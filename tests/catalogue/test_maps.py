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
from pictured import KINDS, add_item, sample, tag, with_pictures
from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.catalogue import book, editing, map_fit, map_labels, maps, plane, tables
from wsabie.catalogue.collection import Collection, create, open_collection
from wsabie.catalogue.database import writing
from wsabie.catalogue.deciding import Decision, decide
from wsabie.catalogue.few import Few
from wsabie.catalogue.items import Filter, page
from wsabie.catalogue.journal import entry, undo
from wsabie.catalogue.learning import train
from wsabie.catalogue.points import load_points, opened_model, save_points
from wsabie.catalogue.suggesting import apply
from wsabie.faces.cli.main import app


@pytest.fixture(scope="module")
def original(database_of_module: str | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 drawings of four kinds, two thirds of them tagged, and a model of them."""
    with create(tmp_path_factory.mktemp("original") / "photos", database_of_module) as collection:
        there = with_pictures(collection, sample(KINDS, each=20))
        tag(collection, {item: [row["kind"], *row["labels"][:2]] for item, row in there.items() if item % 3})
        train(collection, by="eve", describe="colour,hog", dim=16, threads=1)
        return collection.folder


@pytest.fixture
def learnt(original: Path, tmp_path: Path) -> Iterator[Collection]:
    """A copy of it for one test."""
    with copied(original, tmp_path / "photos") as folder, open_collection(folder) as collection:
        yield collection


@pytest.fixture
def by_umap(monkeypatch: pytest.MonkeyPatch) -> None:
    """UMAP's place is taken by what is quick: where it begins."""
    monkeypatch.setattr(maps, "umap_places", lambda points, start: 2 * start)


def test_principal_components_are_those_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    points = (rng.normal(size=(20_000, 30)) * np.linspace(3, 1, 30) + rng.normal(size=30)).astype(np.float32)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    theirs = PCA(n_components=2, svd_solver="full").fit(unit.astype(np.float64))
    ours = plane.principal(points)
    np.testing.assert_allclose(ours.directions.T, theirs.components_, atol=2e-4)  # signs and all
    np.testing.assert_allclose(ours.places(points), theirs.transform(unit), atol=2e-4)
    assert ours.share == pytest.approx(theirs.explained_variance_ratio_.sum(), rel=1e-4)


def test_the_same_points_give_the_same_bits_whatever_the_length() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    once, again = plane.principal(points), plane.principal(points.copy())
    assert (once.places(points) == again.places(points)).all()
    longer = plane.principal(points * 8)  # only directions count
    assert (once.directions == longer.directions).all()
    for few in (points[:0], points[:1], points[:5, :1]):
        assert np.isfinite(plane.principal(few).places(few)).all()


def test_items_of_a_kind_lie_together_and_labels_among_theirs(learnt: Collection) -> None:
    drawn = maps.whole(learnt)
    assert (drawn.method, len(drawn.items), drawn.placed) == ("pca", 80, 0)
    assert 0.1 < drawn.share < 1  # type: ignore[operator]
    assert maps.whole(learnt) is drawn
    at = map_labels.labels_at(learnt, drawn)
    assert {one.name for one in at} >= set(KINDS)
    assert [one.accepted for one in at] == sorted((one.accepted for one in at), reverse=True)
    figure = map_fit.fit_of(learnt, drawn)
    assert figure.labels >= 4
    assert figure.share > 1.5 * figure.chance
    assert len(map_labels.labels_at(learnt, drawn, 3)) == 3


def test_only_items_that_are_present_are_on_the_map(learnt: Collection) -> None:
    before = maps.whole(learnt)
    with writing(learnt.engine) as connection:
        connection.execute(update(tables.items).where(tables.items.c.id == 7).values(state="missing"))
    after = maps.whole(learnt)
    assert 7 in before.items
    assert after.version != before.version
    assert after.items.tolist() == [n for n in before.items.tolist() if n != 7]
    assert {(one.x, one.y) for one in map_labels.labels_at(learnt, after)} <= {tuple(p) for p in after.places.tolist()}


def test_other_items_missing_are_another_map_where_their_numbers_sum_up_alike(learnt: Collection) -> None:
    versions, c = [], tables.items.c
    for gone in ((), (1, 4), (2, 3), (1, 5, 6), (2, 3, 7)):  # of the last two the squares sum up alike, too
        with writing(learnt.engine) as connection:
            connection.execute(update(tables.items).values(state="present"))
            connection.execute(update(tables.items).where(c.id.in_(gone)).values(state="missing"))
        drawn = maps.whole(learnt)
        assert set(range(1, 81)) - set(drawn.items.tolist()) == set(gone)
        versions.append(drawn.version)
    assert len(set(versions)) == 5


def test_points_that_are_saved_while_a_map_is_drawn(learnt: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = opened_model(learnt)
    points, read = load_points(opened.path, opened.model.dim), maps.searched
    fewer = points._replace(items=points.items[:40], marks=points.marks[:40], points=points.points[40:])

    def then_saved(model: Path) -> Any:
        found = read(model)
        monkeypatch.setattr(maps, "searched", read)
        save_points(model, fewer)
        return found

    monkeypatch.setattr(maps, "searched", then_saved)
    drawn = maps.whole(learnt)
    assert len(drawn.items) == len(drawn.places) == 40
    assert (drawn.places == plane.principal(fewer.points).places(fewer.points)).all()
    assert maps.whole(learnt) is drawn


def test_labels_follow_merges_and_are_those_of_the_model_that_was_drawn(learnt: Collection) -> None:
    def at() -> dict[str, tuple[float, float]]:
        return {one.name: (one.x, one.y) for one in map_labels.labels_at(learnt, drawn)}

    drawn = maps.whole(learnt)
    before = at()
    number = {one.name: one.id for one in map_labels.labels_at(learnt, drawn)}
    editing.merge(learnt, [number["food"]], number["animals"], by="eve")
    merged = at()
    assert "food" not in merged
    maps_of_now = map_labels._bests
    map_labels._bests = type(maps_of_now)(2)  # what a service that has just begun says
    try:
        assert merged == at()
    finally:
        map_labels._bests = maps_of_now
    undo(learnt.engine, by="eve")
    assert at() == before
    train(learnt, by="eve", describe="colour", dim=8, full=True, threads=1)
    map_labels._bests = type(maps_of_now)(2)
    assert maps.whole(learnt).model == 2
    assert at() == before  # another model is in use by now


def test_an_item_counts_once_whatever_its_regions(learnt: Collection) -> None:
    drawn = maps.whole(learnt)
    before = {one.name: one.accepted for one in map_labels.labels_at(learnt, drawn)}
    with entry(learnt.engine, "eve", "tag", "tagged") as change:
        food = book.ensure(change, ["food"])["food"]
        decide(change, [Decision(1, food, "accepted", region) for region in ("0,0,9,9", "9,9,9,9")])
    after = {one.name: one.accepted for one in map_labels.labels_at(learnt, drawn)}
    assert after == before


def test_many_who_ask_at_once_are_given_what_is_theirs() -> None:
    few, asked = Few[str](2), [str(n % 5) for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda key: few.get(key, lambda: f"of {key}"), asked)) == [f"of {key}" for key in asked]


def test_a_umap_is_kept_and_new_items_go_beside_their_like(learnt: Collection, by_umap: None) -> None:
    with pytest.raises(InputError, match="no UMAP of the model in use yet; run: wsabie collection map"):
        maps.whole(learnt, "umap")
    assert maps.projections(learnt)[1].state in ("none", "not installed")
    made = maps.project(learnt)
    assert (made.state, made.placed) == ("ready", 0)
    drawn = maps.whole(learnt, "umap")
    np.testing.assert_allclose(drawn.places, 2 * maps.whole(learnt).places, atol=1e-5)
    copy = learnt.folder / "copy.webp"
    shutil.copyfile(learnt.folder / "0005.webp", copy)
    new = add_item(learnt, copy)
    apply(learnt, by="eve", threads=1)
    state = maps.projections(learnt)[1]
    assert (state.state, state.placed) == ("stale", 1)
    later = maps.whole(learnt, "umap")
    assert (len(later.items), later.placed) == (81, 1)
    assert (later.places[:80] == drawn.places).all()  # what was there stays
    opened = opened_model(learnt)
    own = load_points(opened.path, opened.model.dim)
    unit = own.points / np.linalg.norm(own.points, axis=1, keepdims=True)
    nearest = np.argsort(-(unit[:80] @ unit[80]), kind="stable")[:3]
    assert new == 81
    np.testing.assert_allclose(later.places[80], np.median(later.places[nearest], axis=0), atol=1e-5)
    assert maps.project(learnt).state == "ready"


def test_a_umap_of_another_model_or_a_damaged_one_does_not_count(learnt: Collection, by_umap: None) -> None:
    maps.project(learnt)
    kept = opened_model(learnt).path / "map"
    for file in (kept / "tensors").iterdir():
        file.write_bytes(b"x")
    assert maps.projections(learnt)[1].state != "ready"
    with pytest.raises(InputError, match="no UMAP"):
        maps.whole(learnt, "umap")
    maps.project(learnt)
    assert maps.projections(learnt)[1].state == "ready"
    train(learnt, by="eve", describe="colour", dim=8, full=True, threads=1)
    assert maps.projections(learnt)[1].state != "ready"
    assert maps.whole(learnt).model == 2


def test_umap_itself_on_drawings(learnt: Collection) -> None:
    pytest.importorskip("umap", reason="umap-learn is not installed: pip install 'wsabie[map]'")
    assert maps.project(learnt).state == "ready"
    drawn = maps.whole(learnt, "umap")
    assert np.isfinite(drawn.places).all()
    figure = map_fit.fit_of(learnt, drawn)
    assert figure.share > 1.5 * figure.chance
    maps.project(learnt)
    assert (maps.whole(learnt, "umap").places == drawn.places).all()


def test_without_umap_one_sentence_says_what_to_install(learnt: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "has_umap", lambda: False)
    monkeypatch.setattr(maps, "has_umap", lambda: False)
    assert maps.projections(learnt)[1].state == "not installed"
    with pytest.raises(InputError, match=r"pip install 'wsabie\[map\]'"):
        maps.project(learnt)
    monkeypatch.setattr(plane, "has_umap", lambda: True)
    with pytest.raises(InputError, match="UMAP needs 10 items and there are 3"):
        plane.umap_places(np.ones((3, 2), np.float32), np.zeros((3, 2), np.float32))


def test_colours_tell_what_is_decided_and_what_is_suggested(learnt: Collection) -> None:
    tag(learnt, {3: ["food"]}, "rejected")
    found = map_labels.coloured(learnt, "food")
    assert (np.diff(found.items) > 0).all()
    codes = dict(zip(found.items.tolist(), found.codes.tolist(), strict=True))
    accepted = {one.id for one in page(learnt, Filter(label="food")).items}
    assert {n for n, code in codes.items() if code == map_labels.ACCEPTED} == accepted
    assert codes[3] == map_labels.REJECTED
    suggested = page(learnt, Filter(label="food", label_state="suggested")).items
    assert suggested
    for one in suggested:
        assert (codes[one.id] - 3) / 252 == pytest.approx(one.probability, abs=0.003)
    with pytest.raises(UnknownLabelError):
        map_labels.coloured(learnt, "no such label")


def test_nothing_to_draw(collection: Collection) -> None:
    with pytest.raises(InputError, match="has no model yet"):
        maps.whole(collection)


def test_a_model_that_has_seen_nothing(learnt: Collection) -> None:
    opened = opened_model(learnt)
    points = load_points(opened.path, opened.model.dim)
    with pytest.raises(InputError, match="no projection 'tsne'; choose one of pca, umap"):
        maps.whole(learnt, "tsne")
    save_points(opened.path, points._replace(items=points.items[:0], marks=points.marks[:0], points=points.points[:0]))
    drawn = maps.whole(learnt)
    assert len(drawn.items) == 0
    assert map_labels.labels_at(learnt, drawn) == []
    shutil.rmtree(opened.path / "points")
    with pytest.raises(InputError, match="has seen no items yet"):
        maps.whole(learnt)


def test_items_by_their_numbers(learnt: Collection) -> None:
    found = page(learnt, Filter(numbers=(5, 3, 9999, 3)))
    assert [one.id for one in found.items] == [3, 5]
    assert found.total == 2
    assert [one.id for one in page(learnt, Filter(numbers=(3, 4, 5), label="food")).items] == [4, 5]
    for wrong in ((0,), (2**63,), tuple(range(1, 1002))):
        with pytest.raises(InputError, match="up to 1,000 numbers"):
            page(learnt, Filter(numbers=wrong))


def test_the_command(tmp_path: Path, database: str | None, by_umap: None) -> None:
    with create(tmp_path / "drawings", database) as collection:
        there = with_pictures(collection, sample(KINDS, each=20))
        tag(collection, {item: [row["kind"]] for item, row in there.items() if item % 3})
    run = CliRunner()
    folder = str(tmp_path / "drawings")
    none = run.invoke(app, ["collection", "map", folder])
    assert (none.exit_code, "has no model yet" in str(none.exception)) == (1, True)
    assert run.invoke(app, ["collection", "train", folder, "--describe", "colour", "--dim", "8"]).exit_code == 0
    told = run.invoke(app, ["collection", "map", folder])
    assert told.exit_code == 0, told.stderr
    assert "80 items and 4 labels" in told.stdout
    out = tmp_path / "places.csv"
    told = run.invoke(app, ["collection", "map", folder, "--umap", "--out", str(out), "--json"])
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)
    assert (found["method"], found["items"], found["labels"]) == ("umap", 80, 4)
    assert found["projections"][1]["state"] == "ready"
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert [row["kind"] for row in rows] == ["item"] * 80 + ["label"] * 4
    assert rows[0]["name"] == "0000.webp"
    assert {row["name"] for row in rows[80:]} == set(KINDS)
    assert all(np.isfinite([float(row["x"]), float(row["y"])]).all() for row in rows)
    (tmp_path / "mine.csv").write_text("a,b")
    refused = run.invoke(app, ["collection", "map", folder, "--out", str(tmp_path / "mine.csv")])
    assert (refused.exit_code, "would be lost" in str(refused.exception)) == (1, True)
