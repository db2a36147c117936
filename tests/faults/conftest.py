"""Collections of real pictures for services that are killed, in each of the databases."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from tests.databases import KINDS, copied, new_database

from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.samples import get_sample_path
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext

collect_ignore = ["clock"]  # is loaded by other processes
MakeCollection = Callable[..., Path]
PICTURES = 120


def emoji(start: int, n: int) -> list[dict[str, object]]:
    """Rows of the sample: image, labels."""
    rows: list[dict[str, object]] = (
        pq.read_table(get_sample_path("emoji"), columns=["image", "labels"]).slice(start, n).to_pylist()
    )
    return rows


def write_pictures(folder: Path, n: int = PICTURES) -> None:
    """Pictures of the sample with the first of their tags."""
    folder.mkdir(parents=True)
    lines = []
    for number, row in enumerate(emoji(400, n)):
        (folder / f"{number:03d}.webp").write_bytes(row["image"])  # type: ignore[arg-type]
        lines.append(json.dumps({"file_name": f"{number:03d}.webp", "labels": row["labels"][1:4]}))  # type: ignore[index]
    (folder / "metadata.jsonl").write_text("\n".join(lines))


def make_trained(folder: Path, database: str | None = None) -> Path:
    """A collection of the pictures with a model in use."""
    write_pictures(folder)
    with create_collection(folder, database) as collection:
        scan_collection(collection, by="maker")
        train_collection_model(collection, by="maker", features="colour", dim=8, epochs=3, threads=1)
    return folder


@pytest.fixture(scope="session")
def trained_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_trained(tmp_path_factory.mktemp("trained") / "photos")


@pytest.fixture(scope="session")
def trained_on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with new_database("postgresql") as database:
        yield make_trained(tmp_path_factory.mktemp("trained") / "photos", database)


@pytest.fixture(params=["trained_on_sqlite", "trained_on_postgres"], ids=KINDS)
def make_collection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeCollection]:
    """Copies the trained collection to a place of its own, in each of the databases."""
    original: Path = request.getfixturevalue(request.param)
    with ExitStack() as copies:
        yield lambda folder=None: copies.enter_context(copied(original, folder or tmp_path / "photos"))


@contextmanager
def asking(collection: Collection) -> Iterator[TestClient]:
    """A service in this process."""
    context = ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection)
    with TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost") as client:
        yield client


def decision(item: int, label: str, state: str | None = "accepted") -> dict[str, object]:
    """Request body of a decision about one item."""
    return {"decisions": [{"item": item, "label": label, "state": state}]}


def assert_problem(answer: Any, status: int, sentence: str) -> None:
    """An error is a document of one sentence."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert sentence in answer.json()["detail"]
    assert (answer.headers.get("retry-after") is not None) == (status == 503)
