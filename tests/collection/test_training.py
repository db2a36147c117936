"""Learning from decisions: what is learnt, corrected, judged and told; what a kill, an undo or a lost folder leave."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select, update

from databases import copied
from picture_collections import add_item, sample, suggested, tag, with_pictures
from wsabie.collection.annotations.decisions import Decision, find_model_in_use, write_decisions
from wsabie.collection.annotations.training_examples import HELD_OUT, read_examples
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, read_history, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection, lock_models, open_collection
from wsabie.collection.labels import label_store
from wsabie.collection.learning import feature_store, training
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import TrainingResult, train_model
from wsabie.collection.registry import model_registry
from wsabie.collection.registry.item_index import index_items, load_item_index, load_search_index
from wsabie.collection.registry.model_registry import load_model_in_use
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError
from wsabie.io.records import Item
from wsabie.search.approximate_index import ApproximateIndex
from wsabie.storage.atomic_files import DiskFullError

OPTIONS: dict[str, Any] = {"by": "eve", "features": "colour", "threads": 1, "epochs": 8, "dim": 20}


@pytest.fixture
def tagged(collection: Collection) -> tuple[Collection, dict[int, dict[str, Any]]]:
    """80 drawings, half of them tagged with their kind."""
    return _tagged(collection)


def _tagged(collection: Collection) -> tuple[Collection, dict[int, dict[str, Any]]]:
    rows_by_item = with_pictures(collection, sample(each=20))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items() if item % 2})
    return collection, rows_by_item


def in_use(collection: Collection) -> int | None:
    with begin_read(collection.engine) as connection:
        return find_model_in_use(connection)


def count(collection: Collection, table: Any, *where: Any) -> int:
    with begin_read(collection.engine) as connection:
        return connection.execute(select(func.count()).select_from(table).where(*where)).scalar() or 0


def test_a_first_model_then_corrections_then_undo(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    first = train_model(collection, **OPTIONS)
    assert (first.method, first.figures["before"], in_use(collection)) == ("full", None, first.model)
    assert first.inference is not None
    assert first.inference.items == 80
    assert first.figures["now"]["MAP"] > 0.4  # four kinds
    assert set(suggested(collection)) == set(rows_by_item)
    assert train_model(collection, **OPTIONS).method == "nothing"
    reviewed_items = [item for item in rows_by_item if item % 2 == 0][:8]
    tag(collection, {item: [rows_by_item[item]["kind"], "seen"] for item in reviewed_items})
    second = train_model(collection, **OPTIONS)
    assert (second.method, second.facts["labels"]) == ("corrections", 5)  # a label that the first one lacks
    assert second.figures["before"] is not None
    assert [shelved.parent for shelved in model_registry.list_models(collection)] == [first.model, None]
    assert read_history(collection.engine)[0].summary == f"model {second.model} in use, learnt from corrections"
    suggestions_before = suggested(collection)
    undo_entry(collection.engine, by="eve")
    assert in_use(collection) == first.model
    assert suggested(collection) != suggestions_before
    assert train_model(collection, full=True, **OPTIONS).method == "full"


def test_figures_of_both_models_are_of_the_same_items(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    first = train_model(collection, **OPTIONS)
    again = train_model(collection, full=True, **OPTIONS)  # the same data, seed and settings: the same model
    assert again.figures["before"] == again.figures["now"] == first.figures["now"]
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
    low = np.array([int(name[:8], 16) / 2**32 for name in examples.hashes])
    assert (examples.held_out == (low <= max(HELD_OUT, np.sort(low)[4]))).all()  # chosen by content alone


def test_a_seed_gives_the_same_model(tmp_path: Path, tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    """In whichever database."""
    collection, _ = tagged
    train_model(collection, seed=3, **OPTIONS)
    with create_collection(tmp_path / "other") as second_collection:
        _tagged(second_collection)
        train_model(second_collection, seed=3, **OPTIONS)
        assert suggested(second_collection) == suggested(collection)


def test_rejected_and_accepted_pairs_are_never_suggested(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    train_model(collection, **OPTIONS)
    untagged_items = [item for item in rows_by_item if item % 2 == 0][:10]
    best = {item: [next(iter(suggested(collection)[item]))] for item in untagged_items}
    tag(collection, best, "rejected")
    tag(collection, {item: ["accepted"] for item in untagged_items})
    for options in ({}, {"full": True}):
        result = train_model(collection, **OPTIONS | options)
        assert result.facts["rejected"] == 10
        suggestions = suggested(collection)
        assert all(
            best[item][0] not in suggestions[item] and "accepted" not in suggestions[item] for item in untagged_items
        )
    apply_model(collection, by="eve", again=True, threads=1)
    assert all(best[item][0] not in suggested(collection)[item] for item in untagged_items)


def test_a_rejected_label_falls_below_the_tags_of_its_item(
    tagged: tuple[Collection, dict[int, dict[str, Any]]],
) -> None:
    collection, rows_by_item = tagged
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    train_model(collection, full=True, **OPTIONS)
    at = dict(zip(rows_by_item, _scores(collection, rows_by_item), strict=True))
    kinds = sorted({row["kind"] for row in rows_by_item.values()})
    close = {
        item: max((kind for kind in kinds if kind != row["kind"]), key=lambda kind, item=item: at[item][kind])
        for item, row in rows_by_item.items()
        if item % 3
    }
    margins_before = [at[item][rows_by_item[item]["kind"]] - at[item][label] for item, label in close.items()]
    tag(collection, {item: [label] for item, label in close.items()}, "rejected")
    train_model(collection, full=True, **OPTIONS)
    at = dict(zip(rows_by_item, _scores(collection, rows_by_item), strict=True))
    margins_after = [at[item][rows_by_item[item]["kind"]] - at[item][label] for item, label in close.items()]
    assert np.mean(margins_after) > np.mean(margins_before) + 0.02
    assert np.mean(np.array(margins_after) > margins_before) > 0.5


def _scores(collection: Collection, rows_by_item: dict[int, dict[str, Any]]) -> list[dict[str, float]]:
    """Scores of each item by the model in use, by label."""
    opened = model_registry.load_model(collection)
    with begin_read(collection.engine) as connection:
        query = select(tables.items.c.path).where(tables.items.c.id.in_(list(rows_by_item))).order_by(tables.items.c.id)
        paths = connection.execute(query).scalars().all()
    items = [Item(path, collection.folder / path, ()) for path in paths]
    scores = opened.model.scores(opened.annotator.rows_of_items(items))
    return [dict(zip(opened.model.vocabulary_, row, strict=True)) for row in scores.tolist()]


def test_labels_merged_and_renamed_after_training_are_suggested_as_they_are_now(
    tagged: tuple[Collection, dict[int, dict[str, Any]]],
) -> None:
    collection, rows_by_item = tagged
    train_model(collection, **OPTIONS)
    with begin_entry(collection.engine, "eve", "merge") as change:
        numbers = {name: label_store.find_label(change.connection, name) for name in ("food", "people", "animals")}
        label_store.merge_label(change, numbers["people"], numbers["food"])
        label_store.rename_label(change, numbers["animals"], "beasts")
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    names = {name for label_probabilities in suggested(collection).values() for name in label_probabilities}
    assert names == {"food", "beasts", "computer"}
    tag(collection, {item: ["beasts"] for item in rows_by_item if rows_by_item[item]["kind"] == "animals"})
    result = train_model(collection, **OPTIONS)
    assert result.facts["labels"] == 3 if result.method == "full" else result.facts["labels"] == 4
    assert {name for label_probabilities in suggested(collection).values() for name in label_probabilities} <= {
        "food",
        "beasts",
        "computer",
    }


def test_a_label_whose_making_was_undone_is_not_suggested(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, rows_by_item = tagged
    tag(collection, {item: ["wrong"] for item in rows_by_item if item % 2})
    train_model(collection, **OPTIONS)
    tagging = read_history(collection.engine)[1]
    undo_entry(collection.engine, tagging.id, by="eve")
    apply_model(collection, by="eve", again=True, floor=0, threads=1)
    assert "wrong" not in {
        name for label_probabilities in suggested(collection).values() for name in label_probabilities
    }
    train_model(collection, **OPTIONS)
    assert in_use(collection) == 2


def test_a_model_folder_deleted_by_hand(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    first = train_model(collection, **OPTIONS)
    shutil.rmtree(collection.models / model_registry.list_models(collection)[0].folder)
    assert not model_registry.list_models(collection)[0].is_available
    with pytest.raises(InputError, match=r"model 1 cannot be used .*train again, or use another"):
        apply_model(collection, by="eve")
    second = train_model(collection, **OPTIONS)
    assert (second.method, second.reason.startswith("model 1 cannot be used")) == ("full", True)
    with pytest.raises(InputError, match="model 1 cannot be used"):
        model_registry.use_model(collection, first.model, by="eve")
    shutil.rmtree(collection.features)
    assert train_model(collection, full=True, **OPTIONS).model == 3


def test_the_shelf_switches_back_and_puts_away(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    for _ in range(3):
        train_model(collection, full=True, **OPTIONS)
    used = model_registry.use_model(collection, 1, by="eve")
    assert (used.previous_model, used.unseen_items, in_use(collection)) == (3, 0, 1)
    assert len(suggested(collection)) == 80
    assert model_registry.remove_old_models(collection, 1, by="eve") == [2]
    assert [shelved.id for shelved in model_registry.list_models(collection)] == [3, 1]
    assert {path.name for path in collection.models.iterdir()} == {
        m.folder for m in model_registry.list_models(collection)
    }
    assert count(collection, tables.suggestions, tables.suggestions.c.model_id == 2) == 0
    with pytest.raises(InputError, match="model 2 cannot be used"):
        model_registry.use_model(collection, 2, by="eve")
    with pytest.raises(InputError, match="there is no model 9"):
        model_registry.use_model(collection, 9, by="eve")


def test_a_new_model_has_an_index_if_the_one_before_had(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    monkeypatch.setattr("wsabie.search.label_index.FEWEST", 10)
    collection, _ = tagged
    train_model(collection, **OPTIONS)
    assert not list(collection.models.glob("*/points/index-*"))
    index_items(collection)
    train_model(collection, full=True, **OPTIONS)
    points, *exact = load_search_index(load_model_in_use(collection).path)
    indices = [load_item_index(load_model_in_use(collection).path, points, index) for index in exact]
    assert [type(index) for index in indices] == [ApproximateIndex] * 2


def test_too_little_is_told(collection: Collection) -> None:
    with pytest.raises(InputError, match="has 0 items with tags, of 0 labels; learning needs at least 20"):
        train_model(collection, **OPTIONS)
    rows_by_item = with_pictures(collection, sample(each=5))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items() if item < 10})
    with pytest.raises(InputError, match="has 9 items with tags, of 2 labels; learning needs at least 20"):
        train_model(collection, **OPTIONS)
    with pytest.raises(InputError, match="has no model yet"):
        apply_model(collection, by="eve")
    assert not collection.models.exists()


def test_files_that_changed_are_told_where_too_few_are_left(
    tagged: tuple[Collection, dict[int, dict[str, Any]]],
) -> None:
    collection, _ = tagged
    train_model(collection, **OPTIONS)
    for rows_of in collection.features.glob("*/*.parquet"):
        rows_of.unlink()
    first, *later_files = sorted(collection.folder.glob("*.webp"))
    for path in later_files:
        os.utime(path, (1, 1))
    first.unlink()
    with pytest.raises(InputError) as refused:
        train_model(collection, full=True, **OPTIONS)
    assert "40 files changed since the last scan, or went away, which leaves 0 items with tags" in str(refused.value)
    assert f"; run: wsabie collection scan {collection.folder}" in str(refused.value)
    assert "press Scan" in refused.value.served
    assert str(collection.folder) not in refused.value.served
    scan_collection(collection, by="eve")
    assert train_model(collection, full=True, **OPTIONS).changed == 0


def test_files_that_all_went_away_are_told(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    for path in collection.folder.glob("*.webp"):
        path.rename(path.with_name(f"other-{path.name}"))
    with pytest.raises(InputError, match="all files changed since the last scan, or went away; run: wsabie collection"):
        train_model(collection, **OPTIONS | {"features": "terms"})


def test_tagged_items_whose_files_are_missing_are_told(collection: Collection) -> None:
    rows_by_item = with_pictures(collection, sample(each=12))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items()})
    for path in sorted(collection.folder.glob("*.webp"))[:-3]:
        path.unlink()
    scan_collection(collection, by="eve")
    with pytest.raises(
        InputError, match=f"has 3 items with tags, .*besides {len(rows_by_item) - 3} whose files are missing"
    ):
        train_model(collection, **OPTIONS)


def test_items_that_carry_all_labels_teach_no_probability(collection: Collection) -> None:
    tag(collection, dict.fromkeys(with_pictures(collection, sample(each=15)), ("a", "b")))
    with pytest.raises(InputError, match="carry all labels"):
        train_model(collection, **OPTIONS)
    assert in_use(collection) is None


def test_models_of_a_collection_see_pictures_alone(collection: Collection) -> None:
    for number in range(25):
        folder = collection.folder / ("sea" if number % 2 else "land")
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(f"a text of {number}")
    scan_collection(collection, by="eve")
    with pytest.raises(InputError, match="pictures, and this one holds documents; train a model on its files instead"):
        train_model(collection, **OPTIONS)
    assert not collection.models.exists()


def test_unreadable_and_changed_files_are_counted(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _rows = tagged
    bad = collection.folder / "bad.webp"
    bad.write_bytes(b"no picture")
    number = add_item(collection, bad)
    tag(collection, {number: ["food"]})
    (collection.folder / "0002.webp").write_bytes(b"other than what was scanned")
    (collection.folder / "0004.webp").unlink()
    result = train_model(collection, **OPTIONS)
    assert (result.unreadable, result.changed) == (1, 2)
    with begin_read(collection.engine) as connection:
        state = select(tables.items.c.state).where(tables.items.c.id == number)
        assert connection.execute(state).scalar() == "unreadable"
    assert result.inference is not None
    assert result.inference.items == 78


def test_items_of_one_content_share_a_row_and_decisions(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    shutil.copy(collection.folder / "0000.webp", collection.folder / "twin.webp")
    twin = add_item(collection, collection.folder / "twin.webp")
    tag(collection, {twin: ["twin"]}, origin="import", by="list")
    tag(collection, {1: ["twin"]}, "rejected")  # a person's word counts before an import's
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
    assert len(examples.hashes) == 40
    assert set(examples.Y[:, examples.names.index("twin")].data) == {-1}
    result = train_model(collection, **OPTIONS)
    assert result.inference is not None
    assert result.inference.items == 81
    (folder,) = (path for path in collection.features.iterdir() if path.is_dir())
    store = feature_store.open_feature_store(collection, feature_store.load_extractor(folder / "extractor"))
    assert len(store.places) == 80


def test_only_what_is_missing_is_described(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, _ = tagged
    monkeypatch.setattr(feature_store, "SHARD", 16)
    train_model(collection, **OPTIONS)
    (folder,) = (path for path in collection.features.iterdir() if path.is_dir())
    shards = sorted(folder.glob("*.parquet"))
    assert len(shards) > 3
    shards[1].write_bytes(shards[1].read_bytes()[:-20])  # damaged: its rows are made again, and no others
    row_counts: list[int] = []
    write = feature_store._write
    monkeypatch.setattr(
        feature_store, "_write", lambda store, rows: (row_counts.append(len(rows)), write(store, rows))[1]
    )
    train_model(collection, full=True, **OPTIONS)
    assert sum(row_counts) == 16


def test_a_persons_tag_weighs_more_and_regions_are_left_out(
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
    assert not (examples.unjudged & ~examples.held_out).any()
    with pytest.raises(InputError, match="weight of 0 cannot be"):
        train_model(collection, **OPTIONS, person_weight=0)


def test_one_trains_at_a_time(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    with lock_models(collection):
        for busy in (train_model, apply_model):
            with pytest.raises(InputError, match="is being trained or applied by somebody else"):
                busy(collection, by="eve")


def test_a_full_disk_leaves_the_model_in_use(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, _ = tagged
    train_model(collection, **OPTIONS)

    def full(*_: Any, **__: Any) -> None:
        raise DiskFullError("cannot write it: the disk is full")

    for module, place in (
        (training, "save_holdout_suggestions"),
        (model_registry, "make_folder_name"),
        (training, "infer_suggestions"),
        (model_registry, "register_model"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, place, full)
            with pytest.raises(DiskFullError):
                train_model(collection, full=True, **OPTIONS)
        assert in_use(collection) == 1
        assert len(model_registry.list_models(collection)) == 1
    assert train_model(collection, full=True, **OPTIONS).figures["before"] is not None
    assert_swept(collection)


def assert_swept(collection: Collection) -> None:
    folder_by_model = {shelved.id: shelved.folder for shelved in model_registry.list_models(collection)}
    assert {path.name for path in collection.models.iterdir()} == set(folder_by_model.values())
    for table in (tables.suggestions, tables.item_scores):
        with begin_read(collection.engine) as connection:
            assert set(connection.execute(select(table.c.model_id).distinct()).scalars()) <= set(folder_by_model)
    assert count(collection, tables.models) == len(folder_by_model)


KILLED = """if True:
    import os, signal, sys
    from pathlib import Path
    from wsabie.collection.learning import feature_store, suggestions, training
    from wsabie.collection.folder.collection import open_collection
    from wsabie.collection.registry import item_index, model_registry
    places = {"feature_store": feature_store, "suggestions": suggestions}
    places |= {"item_index": item_index, "model_registry": model_registry, "_Training": training._Training}
    feature_store.SHARD, suggestions._BLOCK = 16, 16
    def train(folder, module, name, when, nth):
        module = places[module]
        whole, calls = getattr(module, name), []
        def dying(*a, **k):
            calls.append(1)
            mine = len(calls) == int(nth)
            if when == "before" and mine: os.kill(os.getpid(), signal.SIGKILL)
            result = whole(*a, **k)
            if mine: os.kill(os.getpid(), signal.SIGKILL)
            return result
        setattr(module, name, dying)
        with open_collection(Path(folder)) as found:
            training.train_model(found, by="eve", features="colour", full=True, threads=1, epochs=8, dim=20)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            train(*line.rstrip(chr(10)).split(chr(9)))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[..., int]]:
    """Trains a collection in a new process that dies at a point; how it ended. What is imported is so only once."""
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reader, writer = process.stdout, process.stdin

        def die(folder: Path, *point: str) -> int:
            writer.write("\t".join([str(folder), *point]) + "\n")
            writer.flush()
            return int(reader.readline())

        yield die
        writer.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, database_of_module: str | None) -> Iterator[tuple[Path, Path]]:
    """A collection without a model, and one with a model in use, to be copied."""
    place = tmp_path_factory.mktemp("kept")
    with create_collection(place / "new", database_of_module) as collection:
        _tagged(collection)
    with copied(place / "new", place / "trained") as trained:
        with open_collection(trained) as collection:
            train_model(collection, **OPTIONS)
        yield place / "new", trained


@pytest.mark.parametrize(
    "point",
    [
        ("feature_store", "_write", "after", "2"),
        ("model_registry", "make_folder_name", "after", "1"),
        ("model_registry", "register_model", "before", "1"),
        ("model_registry", "register_model", "after", "1"),
        ("suggestions", "_store_results", "after", "3"),
        ("item_index", "save_item_embeddings", "before", "1"),
        ("_Training", "publish", "before", "1"),
        ("_Training", "publish", "after", "1"),
    ],
)
def test_a_kill_leaves_a_whole_model_in_use(
    tmp_path: Path, point: tuple[str, ...], folders: tuple[Path, Path], killed: Callable[..., int]
) -> None:
    new, trained = folders
    with copied(new if point[0] == "feature_store" else trained, tmp_path / "killed") as folder:
        with open_collection(folder) as collection:
            model_before, suggestions_before = in_use(collection), suggested(collection)
        assert killed(folder, *point) == -signal.SIGKILL
        with open_collection(folder) as collection:
            assert_whole(collection, point, model_before, suggestions_before)


def assert_whole(
    collection: Collection,
    point: tuple[str, ...],
    model_before: int | None,
    suggestions_before: dict[int, dict[str, float]],
) -> None:
    """The model in use before a kill still is in use, and the next training ends well."""
    if point == ("_Training", "publish", "after", "1"):
        assert in_use(collection) == 2
    else:
        assert (in_use(collection), suggested(collection)) == (model_before, suggestions_before)
    assert len(model_registry.list_models(collection)) == (in_use(collection) or 0)
    if point[0] == "feature_store":
        assert len(list(collection.features.glob("*/*.parquet"))) == 2  # what was described stays
    result: TrainingResult = train_model(collection, **OPTIONS | {"full": True})
    assert in_use(collection) == result.model
    assert_swept(collection)


def test_a_killed_look_goes_on(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    train_model(collection, **OPTIONS)
    with begin_write(collection.engine) as connection:  # as after a kill: some items were not looked at
        connection.execute(tables.item_scores.delete().where(tables.item_scores.c.item_id > 60))
    suggestions_before = suggested(collection)
    assert apply_model(collection, by="eve", threads=1).inference.items == 20
    assert suggested(collection) == suggestions_before
    assert apply_model(collection, by="eve", threads=1).inference.items == 0


def test_a_file_with_another_content_is_looked_at_again(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    train_model(collection, **OPTIONS)
    with begin_read(collection.engine) as connection:
        other_hash = connection.execute(select(tables.items.c.hash).where(tables.items.c.id == 50)).scalar()
    with begin_write(collection.engine) as connection:
        connection.execute(update(tables.items).where(tables.items.c.id == 2).values(hash=other_hash))
    assert apply_model(collection, by="eve", threads=1).inference.items == 1
