"""The first version, whose tables `database.upgrade_schema` creates."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: no older version has tables."""
