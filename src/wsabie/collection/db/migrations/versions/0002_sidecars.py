"""Which sidecar the tags of an item were read with; null: none, or it is to be read at the next scan."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column."""
    op.add_column("items", sa.Column("sidecar", sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")))
