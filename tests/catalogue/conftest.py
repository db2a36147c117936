"""A catalogue in each of the databases. `WSABIE_TEST_POSTGRES` names a server where databases may be made."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsabie.catalogue.collection import Collection, create


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The address for `create`: None for SQLite, or a new database of the server."""
    if request.param == "sqlite":
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
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield url.set(database=name).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def collection(tmp_path: Path, database: str | None) -> Iterator[Collection]:
    with create(tmp_path / "photos", database) as found:
        yield found
