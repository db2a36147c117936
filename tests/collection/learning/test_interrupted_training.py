"""Training that is killed, finds a full disk or runs twice; items that changed since."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.collection.learning.conftest import OPTIONS, count_rows, in_use, tag_odd_items

from databases import copied
from picture_collections import suggested
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.folder.collection import Collection, create_collection, lock_models, open_collection
from wsabie.collection.learning import training
from wsabie.collection.learning.suggestions import apply_model
from wsabie.collection.learning.training import TrainingResult, train_collection_model
from wsabie.collection.registry import model_registry
from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import DiskFullError


def test_concurrent_training_is_refused(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    with lock_models(collection):
        for busy in (train_collection_model, apply_model):
            with pytest.raises(InputError, match="is being trained or applied by somebody else"):
                busy(collection, by="eve")


def test_full_disk_keeps_the_model_in_use(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)

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
                train_collection_model(collection, full=True, **OPTIONS)
        assert in_use(collection) == 1
        assert len(model_registry.list_models(collection)) == 1
    assert train_collection_model(collection, full=True, **OPTIONS).figures["previous_metrics"] is not None
    assert_swept(collection)


def assert_swept(collection: Collection) -> None:
    folder_by_model = {shelved.id: shelved.folder for shelved in model_registry.list_models(collection)}
    assert {path.name for path in collection.models.iterdir()} == set(folder_by_model.values())
    for table in (tables.suggestions, tables.item_scores):
        with begin_read(collection.engine) as connection:
            assert set(connection.execute(select(table.c.model_id).distinct()).scalars()) <= set(folder_by_model)
    assert count_rows(collection, tables.models) == len(folder_by_model)


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
            training.train_collection_model(found, by="eve", features="colour", full=True, threads=1, epochs=8, dim=20)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            train(*line.rstrip(chr(10)).split(chr(9)))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_killed_training() -> Iterator[Callable[..., int]]:
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
        tag_odd_items(collection)
    with copied(place / "new", place / "trained") as trained:
        with open_collection(trained) as collection:
            train_collection_model(collection, **OPTIONS)
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
def test_killed_training_leaves_a_complete_model_in_use(
    tmp_path: Path, point: tuple[str, ...], folders: tuple[Path, Path], run_killed_training: Callable[..., int]
) -> None:
    new, trained = folders
    with copied(new if point[0] == "feature_store" else trained, tmp_path / "killed") as folder:
        with open_collection(folder) as collection:
            model_before, suggestions_before = in_use(collection), suggested(collection)
        assert run_killed_training(folder, *point) == -signal.SIGKILL
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
        assert len(list(collection.features.glob("*/*.parquet"))) == 2  # extracted features stay
    result: TrainingResult = train_collection_model(collection, **OPTIONS | {"full": True})
    assert in_use(collection) == result.model
    assert_swept(collection)


def test_killed_inference_is_resumed(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)
    with begin_write(collection.engine) as connection:  # as after a kill: some items were not looked at
        connection.execute(tables.item_scores.delete().where(tables.item_scores.c.item_id > 60))
    suggestions_before = suggested(collection)
    assert apply_model(collection, by="eve", threads=1).inference.items == 20
    assert suggested(collection) == suggestions_before
    assert apply_model(collection, by="eve", threads=1).inference.items == 0


def test_changed_file_gets_new_suggestions(tagged: tuple[Collection, dict[int, dict[str, Any]]]) -> None:
    collection, _ = tagged
    train_collection_model(collection, **OPTIONS)
    with begin_read(collection.engine) as connection:
        other_hash = connection.execute(select(tables.items.c.hash).where(tables.items.c.id == 50)).scalar()
    with begin_write(collection.engine) as connection:
        connection.execute(update(tables.items).where(tables.items.c.id == 2).values(hash=other_hash))
    assert apply_model(collection, by="eve", threads=1).inference.items == 1
