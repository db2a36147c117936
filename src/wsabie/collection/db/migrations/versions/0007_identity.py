"""A catalogue can be told from others: see `collection_file`."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table and its one row."""
    identity = op.create_table(
        "identity",
        sa.Column("id", KEY, nullable=False),
        sa.Column("catalogue", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity")),
    )
    op.bulk_insert(identity, [{"id": 1, "catalogue": secrets.token_hex(16)}])
