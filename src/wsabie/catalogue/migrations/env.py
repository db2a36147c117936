"""How Alembic reaches the database: through the connection of `wsabie.catalogue.database.upgrade`."""

from alembic import context

from wsabie.catalogue.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
