"""A tagged collection that the tests of learning share."""

from typing import Any

import pytest
from sqlalchemy import func, select

from picture_collections import sample, tag, with_pictures
from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection

OPTIONS: dict[str, Any] = {"by": "eve", "features": "colour", "threads": 1, "epochs": 8, "dim": 20}


@pytest.fixture
def tagged(collection: Collection) -> tuple[Collection, dict[int, dict[str, Any]]]:
    """80 drawings, half of them tagged with their kind."""
    return tag_odd_items(collection)


def tag_odd_items(collection: Collection) -> tuple[Collection, dict[int, dict[str, Any]]]:
    rows_by_item = with_pictures(collection, sample(each=20))
    tag(collection, {item: [row["kind"]] for item, row in rows_by_item.items() if item % 2})
    return collection, rows_by_item


def in_use(collection: Collection) -> int | None:
    with begin_read(collection.engine) as connection:
        return find_model_in_use(connection)


def count_rows(collection: Collection, table: Any, *where: Any) -> int:
    with begin_read(collection.engine) as connection:
        return connection.execute(select(func.count()).select_from(table).where(*where)).scalar() or 0
