"""How often the surest suggestion of an item is right; null: it was looked at before this was written down."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column and its index."""
    op.add_column("views", sa.Column("surest", sa.Float()))
    op.create_index("ix_views_model_id_surest_item_id", "views", ["model_id", "surest", "item_id"])
