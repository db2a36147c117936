"""The databases that a catalogue can be in; tests of catalogues run in each (the fixture `database`)."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KINDS = ["sqlite", "postgresql"]


@contextmanager
def new_database(kind: str, like: str = "template1") -> Iterator[str | None]:
    """The address for `create`: None for SQLite, or of a new database, which is as that named `like`.

    `WSABIE_TEST_POSTGRES` names a server where databases may be made; without it the test is skipped.
    """
    if kind == "sqlite":
        yield None
        return
    server = os.environ.get("WSABIE_TEST_POSTGRES")
    if not server:
        pytest.skip("WSABIE_TEST_POSTGRES names no server of PostgreSQL")
    from sqlalchemy import create_engine, make_url, text

    url = make_url(server).set(drivername="postgresql+psycopg")
    name = f"wsabie_{secrets.token_hex(6)}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {like}"))
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()


@contextmanager
def copied(original: Path, folder: Path) -> Iterator[Path]:
    """A copy of a collection that nobody has open, with a database of its own."""
    from sqlalchemy import make_url

    shutil.copytree(original, folder)
    config = folder / ".wsabie" / "collection.json"
    settings = json.loads(config.read_text())
    if settings["database"] is None:
        yield folder
        return
    with new_database("postgresql", make_url(settings["database"]).database) as database:
        config.write_text(json.dumps(settings | {"database": database}))
        yield folder
