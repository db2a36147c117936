"""A service on a loopback port, as `wsabie serve` starts it, and one within the process."""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import pyarrow.parquet as pq
import pytest
from PIL import Image
from starlette.testclient import TestClient

from databases import KINDS, copied, new_database
from wsabie.collection.folder.collection import create_collection, open_collection
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.data_sources import open_source
from wsabie.models.annotators import Annotator
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.samples import get_sample_path
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder, FolderModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Token

Client = Callable[..., TestClient]


def read_emoji(n: int) -> list[bytes]:
    """Pictures of the sample collection."""
    images: list[bytes] = pq.read_table(get_sample_path("emoji"), columns=["image"]).slice(400, n)["image"].to_pylist()
    return images


def make_model(folder: Path, n: int = 60, seed: int = 0) -> Path:
    """A small model of pictures, with probabilities."""
    table = pq.read_table(get_sample_path("emoji")).slice(400, n)
    small = folder.with_suffix(".parquet")
    pq.write_table(table, small)
    source = open_source(small)
    extractor = VisualWords(n_words=100, seed=seed).fit(source)
    rows = extractor.transform(source)
    model = Wsabie(dim=16, epochs=10, threads=1, seed=seed)
    model.fit(rows.X, rows.Y, label_names=rows.label_names, validation=(rows.X, rows.Y))
    Annotator(model, extractor).save(folder)
    return folder


@pytest.fixture(scope="session")
def served_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("served") / "model")


@pytest.fixture
def client(served_model: Path) -> Iterator[Client]:
    opened: list[TestClient] = []

    def make(
        limits: ServiceLimits | None = None, tokens: list[Token] | None = None, hosts: tuple[str, ...] = ()
    ) -> TestClient:
        context = ServiceContext(limits or ServiceLimits(), tokens, FolderModelHolder(served_model))
        opened.append(TestClient(make_app(context, hosts), raise_server_exceptions=False).__enter__())
        return opened[-1]

    yield make
    for test_client in opened:
        test_client.__exit__(None, None, None)


_KINDS = ("red", "green", "blue")
_COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def draw_picture(kind: str, number: int) -> bytes:
    """A picture of a colour, each its own."""
    picture = Image.new("RGB", (64, 48), _COLOURS[kind])
    picture.paste((200, 200, number * 5), (number % 20, 5, number % 20 + 20, 25))
    out = BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def make_trained_collection(folder: Path, database: str | None = None) -> Path:
    """45 pictures of three kinds, two thirds of them labelled by their folders' list, and a model of them."""
    lines = ["file_name,labels"]
    for number in range(45):
        kind = _KINDS[number % 3]
        (folder / f"part {number % 2}").mkdir(parents=True, exist_ok=True)
        name = f"part {number % 2}/{number:02d}.png"
        (folder / name).write_bytes(draw_picture(kind, number))
        if number < 30:
            lines.append(f"{name},{kind};colour")
    (folder / "metadata.csv").write_text("\n".join(lines))
    with create_collection(folder, database) as collection:
        scan_collection(collection, by="eve")
        train_collection_model(collection, by="eve", features="colour", dim=8, epochs=30, threads=1)
    return folder


@pytest.fixture(scope="session")
def trained_collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In SQLite."""
    return make_trained_collection(tmp_path_factory.mktemp("collection") / "photos")


@pytest.fixture(scope="session")
def trained_on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with new_database("postgresql") as database:
        yield make_trained_collection(tmp_path_factory.mktemp("collection") / "photos", database)


@pytest.fixture(params=["trained_collection", "trained_on_postgres"], ids=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A copy of the collection for one test, in each of the databases."""
    with copied(request.getfixturevalue(request.param), tmp_path / "photos") as photos:
        yield photos


@pytest.fixture
def api(folder: Path) -> Iterator[TestClient]:
    with open_collection(folder) as collection:
        context = ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection)
        with TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost") as client:
            yield client


@contextmanager
def run_service(*words: object) -> Iterator[httpx.Client]:
    """`wsabie serve` as a process; it is asked to end, and must."""
    with start_service(*words) as (service, _):
        yield service


@contextmanager
def start_service(*words: object, handles: int | None = None) -> Iterator[tuple[httpx.Client, "subprocess.Popen[str]"]]:
    """The same, and the process, which may have so many files open."""
    command = [sys.executable, "-m", "wsabie", "serve", *map(str, words), "--port", "0"]
    limited = handles and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (handles, handles)))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=limited) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            address = line.split(" on ")[1].split()[0]
            with httpx.Client(base_url=address, timeout=30, transport=httpx.HTTPTransport(retries=5)) as service:
                yield service, process
        finally:
            process.terminate()
            messages = process.stderr.read()
            assert process.wait(60) in (0, -15), messages
            assert "Traceback" not in messages, messages
