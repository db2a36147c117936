"""A service on a loopback port, as `wsabie serve` starts it, and one within the process."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from wsabie.faces.serve.app import make_app
from wsabie.faces.serve.context import Context
from wsabie.faces.serve.limits import Limits
from wsabie.faces.serve.served import ServedModel
from wsabie.faces.serve.tokens import Token
from wsabie.features.visual_terms import VisualTerms
from wsabie.models.annotator import Annotator
from wsabie.models.wsabie import Wsabie
from wsabie.samples import sample_path
from wsabie.sources.open import open_source

Client = Callable[..., TestClient]


def emoji(n: int) -> list[bytes]:
    """Pictures of the sample collection."""
    images: list[bytes] = pq.read_table(sample_path("emoji"), columns=["image"]).slice(400, n)["image"].to_pylist()
    return images


def make_model(folder: Path, n: int = 60, seed: int = 0) -> Path:
    """A small model of pictures, with probabilities."""
    table = pq.read_table(sample_path("emoji")).slice(400, n)
    small = folder.with_suffix(".parquet")
    pq.write_table(table, small)
    source = open_source(small)
    terms = VisualTerms(n_terms=100, seed=seed).fit(source)
    rows = terms.transform(source)
    model = Wsabie(dim=16, epochs=10, threads=1, seed=seed)
    model.fit(rows.X, rows.Y, label_names=rows.label_names, validation=(rows.X, rows.Y))
    Annotator(model, terms).save(folder)
    return folder


@pytest.fixture(scope="session")
def served_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("served") / "model")


@pytest.fixture
def client(served_model: Path) -> Iterator[Client]:
    opened: list[TestClient] = []

    def make(
        limits: Limits | None = None, tokens: list[Token] | None = None, hosts: tuple[str, ...] = ()
    ) -> TestClient:
        context = Context(limits or Limits(), tokens, ServedModel(served_model))
        opened.append(TestClient(make_app(context, hosts), raise_server_exceptions=False).__enter__())
        return opened[-1]

    yield make
    for one in opened:
        one.__exit__(None, None, None)


@contextmanager
def running(*words: object) -> Iterator[httpx.Client]:
    """`wsabie serve` as a process; it is asked to end, and must."""
    with started(*words) as (found, _):
        yield found


@contextmanager
def started(*words: object) -> Iterator[tuple[httpx.Client, "subprocess.Popen[str]"]]:
    """The same, and the process."""
    command = [sys.executable, "-m", "wsabie", "serve", *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            address = line.split(" on ")[1].split()[0]
            with httpx.Client(base_url=address, timeout=30, transport=httpx.HTTPTransport(retries=5)) as found:
                yield found, process
        finally:
            process.terminate()
            said = process.stderr.read()
            assert process.wait(60) in (0, -15), said
            assert "Traceback" not in said, said
