"""Load test of the service: `python -m benchmarks.service_load [--seconds 20] [--part rows|mixed]`.

A model of pictures of the bundled collection is served by one process; another process asks. Requests come at a
fixed rate, whether earlier ones were answered or not, as those of many users do: 200 a second with a row of features
each, then 30 a second with a picture of 256 pixels, then 50,000 rows one after the other for the memory of the service.
Then a collection of 1,000 pictures is served, and asked for what people ask in its pages, every kind of question with
words and pictures of its own, one after the other: for the memory again.
"""

import argparse
import asyncio
import io
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.machine import describe_machine
from benchmarks.service_pages import pictures
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.data_sources import open_source
from wsabie.models.annotators import Annotator
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.samples import get_sample_path

MIX = {
    "gallery page": 30,
    "gallery page of a label": 15,
    "thumbnail": 15,
    "search by words": 25,
    "similar items": 5,
    "search by a picture": 5,
    "annotate a picture": 5,
}
"""Of a hundred questions to a collection."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--part", choices=("rows", "mixed"), help="one of the two; both, if not given")
    options = parser.parse_args()
    print(describe_machine(), flush=True)
    with tempfile.TemporaryDirectory() as place:
        if options.part != "mixed":
            with serve(train_model(Path(place))) as (address, process):
                asyncio.run(measured(address, process, options.seconds, options.requests))
        if options.part != "rows":
            with serve(make_collection(Path(place))) as (address, process):
                asyncio.run(mixed(address, process, options.requests))


@contextmanager
def serve(path: Path) -> Iterator[tuple[str, int]]:
    """The address, and the number of the process."""
    command = [sys.executable, "-m", "wsabie", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process.stderr.readline().split(" on ")[1].split()[0], process.pid  # type: ignore[union-attr]
        finally:
            process.terminate()


def make_collection(place: Path) -> Path:
    """1,000 emoji and the suggestions of a model."""
    pictures(place / "emoji")
    for command in ("init", "train"):
        words = [sys.executable, "-m", "wsabie", "collection", command, str(place / "emoji")]
        subprocess.run(words, check=True, capture_output=True)
    return place / "emoji"


def train_model(place: Path) -> Path:
    """A model of 300 emoji by 2,000 visual words."""
    pq.write_table(pq.read_table(get_sample_path("emoji")).slice(0, 300), place / "emoji.parquet")
    source = open_source(place / "emoji.parquet")
    extractor = VisualWords(n_words=2000).fit(source)
    rows = extractor.transform(source)
    model = Wsabie(dim=100, epochs=5).fit(rows.X, rows.Y, label_names=rows.label_names)
    Annotator(model, extractor).save(place / "model")
    return place / "model"


async def measured(address: str, process: int, seconds: float, requests: int) -> None:
    rng = np.random.default_rng(0)
    row = {"columns": np.sort(rng.choice(2000, 200, replace=False)).tolist(), "values": [1.0] * 200}
    body = {"rows": [row], "k": 10}
    picture = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (256, 256, 3), np.uint8)).save(picture, "JPEG", quality=85)
    async with httpx2.AsyncClient(base_url=f"{address}/api/v1", timeout=60) as client:
        await _answers(client)

        async def by_row() -> int:
            return (await client.post("/annotate/rows", json=body)).status_code

        async def by_picture() -> int:
            return (await client.post("/annotate/picture", files={"file": picture.getvalue()})).status_code

        for _ in range(5):  # what is made ready at the first request
            await by_row()
            await by_picture()
        print(await at_rate("rows of 200 features", by_row, 200, seconds))
        print(await at_rate("pictures of 256 pixels", by_picture, 30, seconds))
        memory_before, start, last = _megabytes(process), time.perf_counter(), 0.0
        for number in range(requests):
            await by_row()
            if number == requests // 10:
                last = _megabytes(process)
        rate = requests / (time.perf_counter() - start)
        print(
            f"{requests:,} rows one by one: {rate:,.0f}/s; memory {memory_before:.0f} MB before, "
            f"{last:.0f} MB after a tenth, {_megabytes(process):.0f} MB after all"
        )


async def mixed(address: str, process: int, requests: int) -> None:
    """Questions to a collection, drawn by their shares; the memory of the service after each tenth of them."""
    rng = np.random.default_rng(0)
    async with httpx2.AsyncClient(base_url=f"{address}/api/v1", timeout=60) as client:
        await _answers(client)
        vocabulary = (await client.get("/vocabulary", params={"k": 500})).json()["labels"]
        asker = Asker(client, [label["name"] for label in vocabulary], rng)
        for question in MIX:  # what is made ready at the first request
            await asker.ask(question)
        for item in range(1, 1001):  # small pictures are made when they are first asked for
            await client.get(f"/items/{item}/thumbnail")
        kinds = rng.choice(list(MIX), requests, p=np.array(list(MIX.values())) / sum(MIX.values()))
        memory, start = [_megabytes(process)], time.perf_counter()
        for number, kind in enumerate(kinds, 1):
            await asker.ask(str(kind))
            if number % (requests // 10) == 0:
                memory.append(_megabytes(process))
    seconds = time.perf_counter() - start
    print(f"{requests:,} questions to a collection one by one in {seconds:.0f} s: {dict(Counter(kinds.tolist()))}")
    print(f"MB before, and after each tenth: {', '.join(f'{size:.0f}' for size in memory)}; statuses {asker.statuses}")


class Asker:
    """Asks each kind of question, never with the same words or picture twice, but by chance."""

    def __init__(self, client: httpx2.AsyncClient, labels: list[str], rng: np.random.Generator) -> None:
        self.client, self.labels, self.rng = client, labels, rng
        self.statuses: Counter[int] = Counter()
        self.cursor: str | None = None

    async def ask(self, kind: str) -> None:
        first_label, two, without = (f'"{self.labels[i]}"' for i in self.rng.choice(len(self.labels), 3, replace=False))
        item = int(self.rng.integers(1, 1001))
        if kind == "gallery page":
            cursor_params = {"cursor": self.cursor} if self.cursor else {}
            answer = await self.client.get("/items", params={"k": 48, **cursor_params})
            self.cursor = answer.json()["next_cursor"]
        elif kind == "gallery page of a label":
            answer = await self.client.get("/items", params={"k": 48, "label": first_label.strip('"')})
        elif kind == "thumbnail":
            answer = await self.client.get(f"/items/{item}/thumbnail")
        elif kind == "search by words":
            answer = await self.client.get("/search", params={"text": f"{first_label} {two} -{without}"})
        elif kind == "similar items":
            answer = await self.client.get(f"/items/{item}/similar")
        else:
            path = "/search/picture" if kind == "search by a picture" else "/annotate/picture"
            answer = await self.client.post(path, files={"file": self.picture()})
        self.statuses[answer.status_code] += 1

    def picture(self) -> bytes:
        """256 pixels of noise."""
        out = io.BytesIO()
        Image.fromarray(self.rng.integers(0, 255, (256, 256, 3), np.uint8)).save(out, "JPEG", quality=85)
        return out.getvalue()


async def at_rate(title: str, ask: Callable[[], Awaitable[int]], rate: float, seconds: float) -> str:
    """Ask at a rate; how long answers took, in milliseconds."""
    times: list[float] = []
    statuses: dict[int, int] = {}

    async def send() -> None:
        request_start = time.perf_counter()
        status = await ask()
        times.append(1000 * (time.perf_counter() - request_start))
        statuses[status] = statuses.get(status, 0) + 1

    start, waiting = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
        waiting.append(asyncio.create_task(send()))
    await asyncio.gather(*waiting)
    reached = len(times) / (time.perf_counter() - start)
    p50, p99 = np.percentile(times, [50, 99])
    return f"{title}: {reached:.0f} of {rate:.0f}/s, median {p50:.1f} ms, p99 {p99:.1f} ms, statuses {statuses}"


async def _answers(client: httpx2.AsyncClient) -> None:
    for _ in range(300):
        try:
            await client.get("/health")
            return
        except httpx2.TransportError:
            await asyncio.sleep(0.1)


def _megabytes(process: int) -> float:
    """Resident memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    main()
