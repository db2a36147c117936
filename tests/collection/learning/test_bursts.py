"""Bursts: pictures of one moment are held out and judged together."""

import io
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from sqlalchemy import select
from tests.collection.learning.conftest import OPTIONS

from picture_collections import sample, tag
from wsabie.collection.annotations.training_examples import read_examples
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.learning.training import train_collection_model
from wsabie.collection.scan.scanner import scan_collection
from wsabie.evaluation.bursts import RESEMBLANCE, SECONDS, find_leaders
from wsabie.features.encoders.encoder_list import HUB_ENCODERS
from wsabie.features.encoders.encoder_store import install_encoder

NEAR_EQUALITY = 0.85
SHOTS = 4
_EXIF, _TIME = 0x8769, 0x9003  # the part of a camera, and the time of the shot in it


def write_shots(collection: Collection, drawings: list[dict[str, Any]], first: datetime) -> None:
    """Write a burst of each drawing, a minute apart: shots of another brightness, a second apart."""
    draw = np.random.default_rng(0)
    for burst, drawing in enumerate(drawings):
        with Image.open(io.BytesIO(drawing["image"])) as image:
            pixels = np.asarray(image.convert("RGB"), np.float32)
        for shot in range(SHOTS):
            copy = Image.fromarray((pixels * draw.uniform(0.97, 1)).astype(np.uint8))
            exif = copy.getexif()
            taken_at = first + timedelta(minutes=burst, seconds=shot)
            exif.get_ifd(_EXIF)[_TIME] = f"{taken_at:%Y:%m:%d %H:%M:%S}"
            copy.save(collection.folder / f"{first.year}-{burst:03}-{shot}.jpg", exif=exif)
    scan_collection(collection, by="eve")


def read_paths(collection: Collection) -> dict[int, str]:
    with begin_read(collection.engine) as connection:
        return {item: path for item, path in connection.execute(select(tables.items.c.id, tables.items.c.path))}  # noqa: C416


def test_tags_by_chance_are_not_recognised_on_other_shots_of_a_burst(collection: Collection) -> None:
    write_shots(collection, sample(each=30), datetime(2024, 5, 1))
    draw = np.random.default_rng(1)
    paths = read_paths(collection)
    chance = {burst: f"side {draw.integers(2)}" for burst in sorted({path[:8] for path in paths.values()})}
    tag(collection, {item: [chance[path[:8]]] for item, path in paths.items()})
    result = train_collection_model(collection, **OPTIONS)
    assert result.facts["repeats"] >= 0.95 * (len(paths) - len(chance))
    assert result.figures["metrics"]["p@1"] < 0.75
    with begin_read(collection.engine) as connection:
        examples = read_examples(connection)
    held_out = dict(zip(examples.hashes, examples.is_holdout.tolist(), strict=True))
    pairs = zip(examples.hashes, examples.leaders, strict=True)
    assert all(held_out[name] == held_out[leader] for name, leader in pairs)


def test_a_picture_keeps_its_burst_when_earlier_shots_arrive(collection: Collection) -> None:
    drawings = sample(each=8)
    write_shots(collection, drawings, datetime(2024, 5, 1))
    tag(collection, {item: [path[7:8]] for item, path in read_paths(collection).items()})
    train_collection_model(collection, **OPTIONS)
    with begin_read(collection.engine) as connection:
        before = set(connection.execute(select(tables.bursts)).all())
    write_shots(collection, drawings, datetime(2023, 5, 1))
    tag(collection, {item: [path[7:8]] for item, path in read_paths(collection).items() if path.startswith("2023")})
    train_collection_model(collection, **OPTIONS)
    with begin_read(collection.engine) as connection:
        now = set(connection.execute(select(tables.bursts)).all())
    assert now > before


@pytest.mark.parametrize(
    ("times", "cosine", "leaders"),
    [
        ([0, SECONDS], 0.8, [0, 0]),
        ([0, SECONDS + 1], 0.8, [0, 1]),
        ([0, SECONDS + 1], 0.9, [0, 0]),
        ([np.nan, 0], 0.8, [0, 1]),
        ([np.nan, np.nan], 0.9, [0, 0]),
        ([0, 1], 0.5, [0, 1]),
    ],
)
def test_time_and_likeness_decide(times: list[float], cosine: float, leaders: list[int]) -> None:
    X = np.array([[1, 0], [cosine, (1 - cosine**2) ** 0.5]], np.float32)
    assert find_leaders(X, np.array(times), NEAR_EQUALITY).tolist() == leaders


def test_a_chain_of_small_changes_is_several_bursts() -> None:
    angles = np.arange(100) * 0.1
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    leaders = find_leaders(X, np.full(100, np.nan), NEAR_EQUALITY)
    assert (np.sum(X * X[leaders], axis=1) > 0.85).all()
    assert len(set(leaders.tolist())) == 10


def test_near_rows_of_an_encoder_of_the_hub_are_no_burst(
    tagged: tuple[Collection, dict[int, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights are random, and rows of different pictures are near each other."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("WSABIE_ENCODERS", str(tmp_path / "encoders"))
    install_encoder(HUB_ENCODERS["clip-base"], Path(__file__).parents[2] / "features/encoders/tiny/clip-base")
    result = train_collection_model(tagged[0], **OPTIONS | {"features": "clip-base"})
    assert (result.facts["features"], result.facts["repeats"]) == ("clip-base", 0)


@pytest.mark.parametrize("width", [6, 400])  # the wider rows are compared by sketches first
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("near_equality", [NEAR_EQUALITY, None])
def test_leaders_are_those_of_all_pairs(width: int, is_sparse: bool, near_equality: float | None) -> None:
    rng = np.random.default_rng(0)
    scenes = rng.standard_normal((20, width))
    rows = (scenes[rng.integers(20, size=200)] + 0.4 * rng.standard_normal((200, width))).astype(np.float32)
    times = np.where(rng.random(200) < 0.3, np.nan, rng.integers(100, size=200).astype(np.float64))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines, is_close = unit @ unit.T, np.abs(times[:, None] - times) <= SECONDS
    limit, expected = near_equality or np.inf, list(range(30))  # these lead already
    for row in range(30, 200):
        is_similar = cosines[row] >= np.where(is_close[row], RESEMBLANCE, limit)
        expected.append(
            next((leader for leader in range(row) if expected[leader] == leader and is_similar[leader]), row)
        )
    leaders = find_leaders(sparse.csr_matrix(rows) if is_sparse else rows, times, near_equality, 30)
    assert leaders.tolist() == expected
    assert len(set(expected)) < 200
