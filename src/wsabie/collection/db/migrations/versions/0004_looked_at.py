"""When a model looked at an item; null: before this was written down."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column."""
    op.add_column("views", sa.Column("at", sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")))
