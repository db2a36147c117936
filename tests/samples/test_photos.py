"""The bundled photos: each has labels, an author and an open licence."""

import csv

import pytest
from PIL import Image

from wsabie.io.data_sources import open_source
from wsabie.samples import get_photo_folder

OPEN_LICENCES = {"public domain", "CC0-1.0", "CC-BY-2.0", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-4.0"}


@pytest.fixture
def metadata() -> list[dict[str, str]]:
    with (get_photo_folder() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_photo_has_labels_an_author_and_an_open_licence(metadata: list[dict[str, str]]) -> None:
    folder = get_photo_folder()
    paths = {path.relative_to(folder).as_posix() for path in folder.rglob("*.jpg")}
    assert paths == {row["file_name"] for row in metadata}
    assert len(paths) == 262
    assert {row["licence"] for row in metadata} == OPEN_LICENCES
    assert all(row["author"] and row["source"] and row["labels"] for row in metadata)
    for path in paths:
        with Image.open(folder / path) as photo:
            assert max(photo.size) <= 320


def test_the_folder_is_read_as_a_users_own(metadata: list[dict[str, str]]) -> None:
    labels = {item.id: set(item.labels) for item in open_source(get_photo_folder())}  # type: ignore[union-attr]
    assert labels == {row["file_name"]: set(row["labels"].split(";")) for row in metadata}
