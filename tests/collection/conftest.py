"""A catalogue in each of the databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wsabie.collection.folder.collection import Collection, create_collection


@pytest.fixture
def collection(tmp_path: Path, database: str | None) -> Iterator[Collection]:
    with create_collection(tmp_path / "photos", database) as found:
        yield found
