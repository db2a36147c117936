"""Regions of many corners: an index of PostgreSQL takes no long texts, so it keeps their digests."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the index anew; SQLite takes texts of any length."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("uq_annotations_item_id_label_id_region", "annotations")
        name, digest = "uq_annotations_item_id_label_id_md5", sa.text("md5(region)")
        op.create_index(name, "annotations", ["item_id", "label_id", digest], unique=True)
