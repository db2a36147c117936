"""Tables of the first version."""

import secrets

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Create the tables, and the identity of the catalogue."""
    identity = op.create_table(
        "identity",
        sa.Column("id", KEY, nullable=False),
        sa.Column("catalogue", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity")),
    )
    op.bulk_insert(identity, [{"id": 1, "catalogue": secrets.token_hex(16)}])
    op.create_table(
        "jobs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("options", DOCUMENT, nullable=False),
        sa.Column("progress", DOCUMENT, nullable=False),
        sa.Column("result", DOCUMENT, nullable=True),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("requested_at", TEXT, nullable=False),
        sa.Column("started_at", TEXT, nullable=True),
        sa.Column("ended_at", TEXT, nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'stopped')", name=op.f("ck_jobs_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_state_id"), "jobs", ["state", "id"])
    op.create_table(
        "journal",
        sa.Column("id", KEY, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("action", sa.String(length=20), nullable=False),
        sa.Column("summary", TEXT, nullable=False),
        sa.Column("undoes", KEY, nullable=True),
        sa.Column("undone_by", KEY, nullable=True),
        sa.ForeignKeyConstraint(["undoes"], ["journal.id"], name=op.f("fk_journal_undoes_journal")),
        sa.ForeignKeyConstraint(["undone_by"], ["journal.id"], name=op.f("fk_journal_undone_by_journal")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_journal")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "labels",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("language", sa.String(length=35), server_default="", nullable=False),
        sa.Column("parent_id", KEY, nullable=True),
        sa.Column("wordnet", sa.String(length=20), server_default="", nullable=False),
        sa.Column("merged_into", KEY, nullable=True),
        sa.ForeignKeyConstraint(["merged_into"], ["labels.id"], name=op.f("fk_labels_merged_into_labels")),
        sa.ForeignKeyConstraint(["parent_id"], ["labels.id"], name=op.f("fk_labels_parent_id_labels")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labels")),
        sa.UniqueConstraint("name", name=op.f("uq_labels_name")),
    )
    op.create_index(op.f("ix_labels_merged_into"), "labels", ["merged_into"])
    op.create_index(op.f("ix_labels_parent_id"), "labels", ["parent_id"])
    op.create_table(
        "models",
        sa.Column("id", KEY, nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("method", sa.String(length=12), nullable=False),
        sa.Column("parent_id", KEY, nullable=True),
        sa.Column("last_entry_id", KEY, nullable=False),
        sa.Column("in_use", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("facts", DOCUMENT, nullable=False),
        sa.Column("figures", DOCUMENT, nullable=False),
        sa.Column("is_removed", sa.Boolean(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["parent_id"], ["models.id"], name=op.f("fk_models_parent_id_models")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("folder", name=op.f("uq_models_folder")),
    )
    op.create_table(
        "roots",
        sa.Column("id", KEY, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("options", DOCUMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roots")),
        sa.UniqueConstraint("path", name=op.f("uq_roots_path")),
    )
    op.create_table(
        "tag_sources",
        sa.Column("id", KEY, nullable=False),
        sa.Column("root_id", KEY, nullable=False),
        sa.Column("source", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["root_id"], ["roots.id"], name=op.f("fk_tag_sources_root_id_roots")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tag_sources")),
        sa.UniqueConstraint("root_id", name=op.f("uq_tag_sources_root_id")),
    )
    op.create_table(
        "changes",
        sa.Column("id", KEY, nullable=False),
        sa.Column("entry_id", KEY, nullable=False),
        sa.Column("table", sa.String(length=20), nullable=False),
        sa.Column("row", KEY, nullable=False),
        sa.Column("before", DOCUMENT, nullable=True),
        sa.Column("after", DOCUMENT, nullable=True),
        sa.ForeignKeyConstraint(["entry_id"], ["journal.id"], name=op.f("fk_changes_entry_id_journal")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
    )
    op.create_index(op.f("ix_changes_entry_id"), "changes", ["entry_id"])
    op.create_index(op.f("ix_changes_table_row"), "changes", ["table", "row"])
    op.create_table(
        "items",
        sa.Column("id", KEY, nullable=False),
        sa.Column("root_id", KEY, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("hash", sa.String(length=32), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=True),
        sa.Column("taken_at", TEXT, nullable=True),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("added_at", TEXT, nullable=False),
        sa.Column("sidecar", TEXT, nullable=True),
        sa.CheckConstraint("state IN ('present', 'missing', 'unreadable')", name=op.f("ck_items_state")),
        sa.ForeignKeyConstraint(["root_id"], ["roots.id"], name=op.f("fk_items_root_id_roots")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("root_id", "path", name=op.f("uq_items_root_id_path")),
    )
    op.create_index(op.f("ix_items_folder_id"), "items", ["folder", "id"])
    op.create_index(op.f("ix_items_hash"), "items", ["hash"])
    op.create_index(op.f("ix_items_state_id"), "items", ["state", "id"])
    op.create_index(op.f("ix_items_state_path_id"), "items", ["state", "path", "id"])
    op.create_index(op.f("ix_items_state_taken_at_id"), "items", ["state", "taken_at", "id"])
    op.create_table(
        "synonyms",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("label_id", KEY, nullable=False),
        sa.Column("language", sa.String(length=35), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["label_id"], ["labels.id"], name=op.f("fk_synonyms_label_id_labels")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_synonyms")),
        sa.UniqueConstraint("name", name=op.f("uq_synonyms_name")),
    )
    op.create_index(op.f("ix_synonyms_label_id"), "synonyms", ["label_id"])
    op.create_table(
        "merge_exclusions",
        sa.Column("id", KEY, nullable=False),
        sa.Column("label_a", KEY, nullable=False),
        sa.Column("label_b", KEY, nullable=False),
        sa.ForeignKeyConstraint(["label_a"], ["labels.id"], name=op.f("fk_merge_exclusions_label_a_labels")),
        sa.ForeignKeyConstraint(["label_b"], ["labels.id"], name=op.f("fk_merge_exclusions_label_b_labels")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merge_exclusions")),
        sa.UniqueConstraint("label_a", "label_b", name=op.f("uq_merge_exclusions_label_a_label_b")),
    )
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    key_name = op.f("uq_annotations_item_id_label_id_region")
    unique_keys = [sa.UniqueConstraint("item_id", "label_id", "region", name=key_name)] if is_sqlite else []
    op.create_table(
        "annotations",
        sa.Column("id", KEY, nullable=False),
        sa.Column("item_id", KEY, nullable=False),
        sa.Column("label_id", KEY, nullable=False),
        sa.Column("region", TEXT, server_default="", nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("origin", sa.String(length=10), nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("model_id", KEY, nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("probability", sa.Float(), nullable=True),
        sa.Column("at", TEXT, nullable=False),
        sa.CheckConstraint("origin IN ('person', 'import', 'model')", name=op.f("ck_annotations_origin")),
        sa.CheckConstraint("state IN ('accepted', 'rejected')", name=op.f("ck_annotations_state")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_annotations_item_id_items")),
        sa.ForeignKeyConstraint(["label_id"], ["labels.id"], name=op.f("fk_annotations_label_id_labels")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_annotations_model_id_models")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotations")),
        *unique_keys,
    )
    if not is_sqlite:  # indexes of PostgreSQL take no long texts
        digest = sa.text("md5(region)")
        name = "uq_annotations_item_id_label_id_md5"
        op.create_index(name, "annotations", ["item_id", "label_id", digest], unique=True)
    op.create_index(op.f("ix_annotations_label_id_state_item_id"), "annotations", ["label_id", "state", "item_id"])
    op.create_table(
        "suggestions",
        sa.Column("model_id", KEY, nullable=False),
        sa.Column("item_id", KEY, nullable=False),
        sa.Column("label_id", KEY, nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("probability", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_suggestions_item_id_items")),
        sa.ForeignKeyConstraint(["label_id"], ["labels.id"], name=op.f("fk_suggestions_label_id_labels")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_suggestions_model_id_models")),
        sa.PrimaryKeyConstraint("model_id", "item_id", "label_id", name=op.f("pk_suggestions")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_suggestions_model_id_label_id_probability_item_id"),
        "suggestions",
        ["model_id", "label_id", "probability", "item_id"],
    )
    op.create_table(
        "item_scores",
        sa.Column("model_id", KEY, nullable=False),
        sa.Column("item_id", KEY, nullable=False),
        sa.Column("best_probability", sa.Float(), nullable=False),
        sa.Column("uncertainty", sa.Float(), nullable=False),
        sa.Column("scored_at", TEXT, nullable=True),
        sa.Column("best_precision", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_scores_item_id_items")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_item_scores_model_id_models")),
        sa.PrimaryKeyConstraint("model_id", "item_id", name=op.f("pk_item_scores")),
        sqlite_with_rowid=False,
    )
    for column in ("best_probability", "uncertainty", "best_precision"):
        name = op.f(f"ix_item_scores_model_id_{column}_item_id")
        op.create_index(name, "item_scores", ["model_id", column, "item_id"])
