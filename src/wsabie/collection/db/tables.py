"""The tables of a collection's database.

Times are UTC in ISO 8601 with microseconds, so that they sort as texts and are the same in both databases. Both compare
texts by code points.
"""

from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import SchemaItem

Condition: TypeAlias = sa.ColumnElement[bool]
Expression: TypeAlias = sa.ColumnElement[Any]
Change: TypeAlias = sa.Update | sa.Delete
Query: TypeAlias = sa.Select[*tuple[Any, ...]]

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_text = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # only INTEGER is auto-incremented there
_document = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_BY_DIGEST = "uq_annotations_item_id_label_id_md5"  # PostgreSQL cannot index long texts


def _make_table(name: str, *parts: SchemaItem, sqlite_autoincrement: bool = False) -> sa.Table:
    """Make a table with an integer as its key."""
    key = sa.Column("id", _key, primary_key=True)
    return sa.Table(name, metadata, key, *parts, sqlite_autoincrement=sqlite_autoincrement)


def _make_score_table(name: str, *parts: SchemaItem) -> sa.Table:
    """Make a table with a model and an item as the first columns of its key."""
    model = sa.Column("model_id", _key, sa.ForeignKey("models.id"), primary_key=True)
    item = sa.Column("item_id", _key, sa.ForeignKey("items.id"), primary_key=True)
    return sa.Table(name, metadata, model, item, *parts, sqlite_with_rowid=False)


identity = _make_table("identity", sa.Column("database_id", sa.String(32), nullable=False))
"""Identity of the database in one row, random hex digits, which copies and backups share."""

roots = _make_table(
    "roots",
    sa.Column("path", _text, nullable=False, unique=True),  # "." = the collection's own folder; others are absolute
    sa.Column("options", _document),  # scan options: "modality", "metadata"; null: not scanned yet
)
"""Scanned folders. Paths of the root "web" are URLs, which are never fetched."""

tag_sources = _make_table(
    "tag_sources",
    sa.Column("root_id", _key, sa.ForeignKey("roots.id"), nullable=False, unique=True),
    sa.Column("source", sa.String(10), nullable=False),  # one of `roots.TAGS`, never "auto"
)
"""Source of the tags of a root."""

items = _make_table(
    "items",
    sa.Column("root_id", _key, sa.ForeignKey("roots.id"), nullable=False),
    sa.Column("path", _text, nullable=False),  # within the root, with /
    sa.Column("folder", _text, nullable=False),  # parent of the path; "" at the top
    sa.Column("hash", sa.String(32)),  # BLAKE2b of the content, 16 bytes, in hex
    sa.Column("size", sa.BigInteger),
    sa.Column("mtime_ns", sa.BigInteger),  # nanoseconds, from the file system
    sa.Column("taken_at", _text),  # time of the camera's clock, without a zone
    sa.Column("width", sa.Integer),  # after rotation by EXIF
    sa.Column("height", sa.Integer),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("added_at", _text, nullable=False),
    sa.Column("sidecar", _text),  # stamp of the sidecar with its tags: name, size and time of change; null: none
    sa.UniqueConstraint("root_id", "path"),
    sa.CheckConstraint("state IN ('present', 'missing', 'unreadable')", name="state"),
    sa.Index(None, "hash"),
    sa.Index(None, "state", "id"),
    sa.Index(None, "state", "taken_at", "id"),
    sa.Index(None, "state", "path", "id"),
    sa.Index(None, "folder", "id"),
)
"""Pictures, sounds or documents."""

bursts = sa.Table(
    "bursts",
    metadata,
    sa.Column("hash", sa.String(32), primary_key=True),  # of a content
    sa.Column("leader", sa.String(32), nullable=False),  # hash of the first picture of its burst, maybe itself
    sa.Index(None, "leader"),
)
"""Bursts of contents, once their features are known (`learning.bursts`)."""

labels = _make_table(
    "labels",
    sa.Column("name", _text, nullable=False, unique=True),  # as `label_store.normalise_name` writes it
    sa.Column("language", sa.String(35), nullable=False, server_default=""),  # BCP 47; "" = unknown
    sa.Column("parent_id", _key, sa.ForeignKey("labels.id")),
    sa.Column("wordnet", sa.String(20), nullable=False, server_default=""),  # a synset such as n02084071
    sa.Column("merged_into", _key, sa.ForeignKey("labels.id")),  # only the name of this label is left
    sa.Index(None, "parent_id"),
    sa.Index(None, "merged_into"),
)

synonyms = _make_table(
    "synonyms",
    sa.Column("name", _text, nullable=False, unique=True),
    sa.Column("label_id", _key, sa.ForeignKey("labels.id"), nullable=False),
    sa.Column("language", sa.String(35), nullable=False, server_default=""),
    sa.Index(None, "label_id"),
)
"""Synonyms of labels. A name belongs to a label or to a synonym, never to both."""

merge_exclusions = _make_table(
    "merge_exclusions",
    sa.Column("label_a", _key, sa.ForeignKey("labels.id"), nullable=False),  # the smaller id
    sa.Column("label_b", _key, sa.ForeignKey("labels.id"), nullable=False),
    sa.UniqueConstraint("label_a", "label_b"),
)
"""Pairs of labels that must not be merged. A label merged since stands for its target."""

models = _make_table(
    "models",
    sa.Column("folder", _text, nullable=False, unique=True),  # within the collection's folder of models
    sa.Column("created_at", _text, nullable=False),
    sa.Column("method", sa.String(12), nullable=False),  # "full", or "corrections" of an earlier one
    sa.Column("parent_id", _key, sa.ForeignKey("models.id")),
    sa.Column("last_entry_id", _key, nullable=False),  # last journal entry in its training data
    sa.Column("in_use", sa.Boolean, nullable=False, server_default="0"),  # true for at most one
    sa.Column("facts", _document, nullable=False),  # counts, settings, seconds
    sa.Column("figures", _document, nullable=False),  # metrics on the held-out items
    sa.Column("is_removed", sa.Boolean, nullable=False, server_default="0"),  # its folder is gone
)

annotations = _make_table(
    "annotations",
    sa.Column("item_id", _key, sa.ForeignKey("items.id"), nullable=False),
    sa.Column("label_id", _key, sa.ForeignKey("labels.id"), nullable=False),
    sa.Column("region", _text, nullable=False, server_default=""),  # as `io.regions` writes it; "" = the whole item
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("origin", sa.String(10), nullable=False),
    sa.Column("by", _text, nullable=False),  # person or source of the import
    sa.Column("model_id", _key, sa.ForeignKey("models.id")),  # model that suggested it
    sa.Column("score", sa.Float),
    sa.Column("probability", sa.Float),
    sa.Column("at", _text, nullable=False),
    sa.UniqueConstraint("item_id", "label_id", "region").ddl_if(dialect="sqlite"),
    sa.Index(_BY_DIGEST, "item_id", "label_id", sa.text("md5(region)"), unique=True).ddl_if(dialect="postgresql"),
    sa.CheckConstraint("state IN ('accepted', 'rejected')", name="state"),
    sa.CheckConstraint("origin IN ('person', 'import', 'model')", name="origin"),
    sa.Index(None, "label_id", "state", "item_id"),
)
"""Decisions: a label fits an item, or does not."""

suggestions = _make_score_table(
    "suggestions",
    sa.Column("label_id", _key, sa.ForeignKey("labels.id"), primary_key=True),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("probability", sa.Float, nullable=False),
    sa.Index(None, "model_id", "label_id", "probability", "item_id"),
)
"""Predictions of models. Undecided ones of the model in use are shown."""

item_scores = _make_score_table(
    "item_scores",
    sa.Column("best_probability", sa.Float, nullable=False),  # the highest probability
    sa.Column("uncertainty", sa.Float, nullable=False),  # highest min(p, 1 - p): 0.5 = undecidable for the model
    sa.Column("scored_at", _text, nullable=False),  # time of prediction
    sa.Column("best_precision", sa.Float, nullable=False),  # held-out precision of its best suggestion; 0: unknown
    sa.Index(None, "model_id", "best_probability", "item_id"),
    sa.Index(None, "model_id", "uncertainty", "item_id"),
    sa.Index(None, "model_id", "best_precision", "item_id"),
)
"""Scores of whole items by model. An item without a row has no predictions."""

journal = _make_table(
    "journal",
    sa.Column("at", _text, nullable=False),
    sa.Column("by", _text, nullable=False),
    sa.Column("action", sa.String(20), nullable=False),
    sa.Column("summary", _text, nullable=False),  # summary for people, in one line
    sa.Column("undoes", _key, sa.ForeignKey("journal.id")),
    sa.Column("undone_by", _key, sa.ForeignKey("journal.id")),
    sqlite_autoincrement=True,
)

changes = _make_table(
    "changes",
    sa.Column("entry_id", _key, sa.ForeignKey("journal.id"), nullable=False),
    sa.Column("table", sa.String(20), nullable=False),
    sa.Column("row", _key, nullable=False),
    sa.Column("old_row", _document),  # null: the row was added
    sa.Column("new_row", _document),  # null: the row was removed
    sa.Index(None, "entry_id"),
    sa.Index(None, "table", "row"),
)
"""Changes of journal entries: rows before and after."""

jobs = _make_table(
    "jobs",
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("by", _text, nullable=False),
    sa.Column("options", _document, nullable=False),
    sa.Column("progress", _document, nullable=False),
    sa.Column("result", _document),
    sa.Column("error", _text),
    sa.Column("requested_at", _text, nullable=False),
    sa.Column("started_at", _text),
    sa.Column("ended_at", _text),
    sa.CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'stopped')", name="state"),
    sa.Index(None, "state", "id"),
)
"""Long tasks that people started."""
