"""Where tags of a folder come from has a table of its own, so that the journal can put it back."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Make it, and take over what was chosen."""
    choices = op.create_table(
        "choices",
        sa.Column("id", KEY, nullable=False),
        sa.Column("root_id", KEY, nullable=False),
        sa.Column("tags", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["root_id"], ["roots.id"], name=op.f("fk_choices_root_id_roots")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_choices")),
        sa.UniqueConstraint("root_id", name=op.f("uq_choices_root_id")),
    )
    roots = sa.table("roots", sa.column("id", KEY), sa.column("options", DOCUMENT))
    connection = op.get_bind()
    for number, options in connection.execute(sa.select(roots.c.id, roots.c.options)).all():
        if options and (tags := options.pop("tags", None)):
            connection.execute(sa.insert(choices).values(root_id=number, tags=tags))
            connection.execute(sa.update(roots).where(roots.c.id == number).values(options=options))
