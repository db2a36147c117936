"""Alembic environment, which uses the connection of `db.database.upgrade_schema`."""

from alembic import context

from wsabie.collection.db.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
