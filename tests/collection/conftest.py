"""A collection in each of the databases, and a program with newer tables."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wsabie.collection.db import database as database_module
from wsabie.collection.folder import collection as collection_module
from wsabie.collection.folder.collection import Collection, create_collection


@pytest.fixture
def collection(tmp_path: Path, database: str | None) -> Iterator[Collection]:
    with create_collection(tmp_path / "photos", database) as created:
        yield created


SECOND_VERSION = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.add_column("items", sa.Column("note", sa.Text()))
    op.execute("UPDATE items SET note = path")
"""


@pytest.fixture
def switch_to_second_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Turn the program into one whose tables have a made-up second version."""

    def switch() -> None:
        migrations = tmp_path / "migrations of the second version"
        shutil.copytree(database_module.MIGRATIONS, migrations)
        (migrations / "versions" / "0002_notes.py").write_text(SECOND_VERSION)
        monkeypatch.setattr(database_module, "MIGRATIONS", migrations)
        for module in (database_module, collection_module):
            monkeypatch.setattr(module, "HEAD", "0002")

    return switch
