"""The tables of a catalogue.

Times are UTC in ISO 8601 with microseconds, so that they sort as texts and are the same in both databases. Both compare
texts by code points.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import JSON

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_text = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_key = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER is auto-incremented there
_document = JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_BY_DIGEST = "uq_annotations_item_id_label_id_md5"  # PostgreSQL cannot index long texts


def _number() -> "Column[int]":
    return Column("id", _key, primary_key=True)


identity = Table(
    "identity",
    metadata,
    _number(),
    Column("catalogue", String(32), nullable=False),  # random, in hex
)
"""Identity of the catalogue in one row, which copies and backups share."""

roots = Table(
    "roots",
    metadata,
    _number(),
    Column("path", _text, nullable=False, unique=True),  # "." = the collection's own folder; others are absolute
    Column("options", _document),  # scan options: "modality", "metadata"; null: not scanned yet
)
"""Scanned folders. Paths of the root "web" are URLs, which are never fetched."""

tag_sources = Table(
    "tag_sources",
    metadata,
    _number(),
    Column("root_id", _key, ForeignKey("roots.id"), nullable=False, unique=True),
    Column("source", String(10), nullable=False),  # one of `roots.TAGS`, never "auto"
)
"""Source of the tags of a root."""

items = Table(
    "items",
    metadata,
    _number(),
    Column("root_id", _key, ForeignKey("roots.id"), nullable=False),
    Column("path", _text, nullable=False),  # within the root, with /
    Column("folder", _text, nullable=False),  # parent of the path; "" at the top
    Column("hash", String(32)),  # BLAKE2b of the content, 16 bytes, in hex
    Column("size", BigInteger),
    Column("mtime_ns", BigInteger),  # nanoseconds, from the file system
    Column("taken_at", _text),  # time of the camera's clock, without a zone
    Column("width", Integer),  # after rotation by EXIF
    Column("height", Integer),
    Column("state", String(10), nullable=False),
    Column("added_at", _text, nullable=False),
    Column("sidecar", _text),  # stamp of the sidecar with its tags: name, size and time of change; null: none
    UniqueConstraint("root_id", "path"),
    CheckConstraint("state IN ('present', 'missing', 'unreadable')", name="state"),
    Index(None, "hash"),
    Index(None, "state", "id"),
    Index(None, "state", "taken_at", "id"),
    Index(None, "state", "path", "id"),
    Index(None, "folder", "id"),
)
"""Pictures, sounds or documents."""

labels = Table(
    "labels",
    metadata,
    _number(),
    Column("name", _text, nullable=False, unique=True),  # as `label_store.normalise_name` writes it
    Column("language", String(35), nullable=False, server_default=""),  # BCP 47; "" = unknown
    Column("parent_id", _key, ForeignKey("labels.id")),
    Column("wordnet", String(20), nullable=False, server_default=""),  # a synset such as n02084071
    Column("merged_into", _key, ForeignKey("labels.id")),  # only the name of this label is left
    Index(None, "parent_id"),
    Index(None, "merged_into"),
)

synonyms = Table(
    "synonyms",
    metadata,
    _number(),
    Column("name", _text, nullable=False, unique=True),
    Column("label_id", _key, ForeignKey("labels.id"), nullable=False),
    Column("language", String(35), nullable=False, server_default=""),
    Index(None, "label_id"),
)
"""Synonyms of labels. A name belongs to a label or to a synonym, never to both."""

merge_exclusions = Table(
    "merge_exclusions",
    metadata,
    _number(),
    Column("label_a", _key, ForeignKey("labels.id"), nullable=False),  # the smaller number
    Column("label_b", _key, ForeignKey("labels.id"), nullable=False),
    UniqueConstraint("label_a", "label_b"),
)
"""Pairs of labels that must not be merged. A label merged since stands for its target."""

models = Table(
    "models",
    metadata,
    _number(),
    Column("folder", _text, nullable=False, unique=True),  # within the collection's folder of models
    Column("created_at", _text, nullable=False),
    Column("method", String(12), nullable=False),  # "full", or "corrections" of an earlier one
    Column("parent_id", _key, ForeignKey("models.id")),
    Column("last_entry_id", _key, nullable=False),  # last journal entry in its training data
    Column("in_use", Boolean, nullable=False, server_default="0"),  # true for at most one
    Column("facts", _document, nullable=False),  # counts, settings, seconds
    Column("figures", _document, nullable=False),  # metrics on the held-out items
    Column("is_removed", Boolean, nullable=False, server_default="0"),  # its folder is gone
)

annotations = Table(
    "annotations",
    metadata,
    _number(),
    Column("item_id", _key, ForeignKey("items.id"), nullable=False),
    Column("label_id", _key, ForeignKey("labels.id"), nullable=False),
    Column("region", _text, nullable=False, server_default=""),  # as `io.regions` writes it; "" = the whole item
    Column("state", String(10), nullable=False),
    Column("origin", String(10), nullable=False),
    Column("by", _text, nullable=False),  # person or source of the import
    Column("model_id", _key, ForeignKey("models.id")),  # model that suggested it
    Column("score", Float),
    Column("probability", Float),
    Column("at", _text, nullable=False),
    UniqueConstraint("item_id", "label_id", "region").ddl_if(dialect="sqlite"),
    Index(_BY_DIGEST, "item_id", "label_id", text("md5(region)"), unique=True).ddl_if(dialect="postgresql"),
    CheckConstraint("state IN ('accepted', 'rejected')", name="state"),
    CheckConstraint("origin IN ('person', 'import', 'model')", name="origin"),
    Index(None, "label_id", "state", "item_id"),
)
"""Decisions: a label fits an item, or does not."""

suggestions = Table(
    "suggestions",
    metadata,
    Column("model_id", _key, ForeignKey("models.id"), primary_key=True),
    Column("item_id", _key, ForeignKey("items.id"), primary_key=True),
    Column("label_id", _key, ForeignKey("labels.id"), primary_key=True),
    Column("score", Float, nullable=False),
    Column("probability", Float, nullable=False),
    Index(None, "model_id", "label_id", "probability", "item_id"),
    sqlite_with_rowid=False,
)
"""Predictions of models. Undecided ones of the model in use are shown."""

item_scores = Table(
    "item_scores",
    metadata,
    Column("model_id", _key, ForeignKey("models.id"), primary_key=True),
    Column("item_id", _key, ForeignKey("items.id"), primary_key=True),
    Column("best_probability", Float, nullable=False),  # the highest probability
    Column("uncertainty", Float, nullable=False),  # highest min(p, 1 - p): 0.5 = undecidable for the model
    Column("scored_at", _text),  # time of prediction
    Column("best_precision", Float),  # held-out precision of its best suggestion
    Index(None, "model_id", "best_probability", "item_id"),
    Index(None, "model_id", "uncertainty", "item_id"),
    Index(None, "model_id", "best_precision", "item_id"),
    sqlite_with_rowid=False,
)
"""Scores of whole items by model. An item without a row has no predictions."""

journal = Table(
    "journal",
    metadata,
    _number(),
    Column("at", _text, nullable=False),
    Column("by", _text, nullable=False),
    Column("action", String(20), nullable=False),
    Column("summary", _text, nullable=False),  # summary for people, in one line
    Column("undoes", _key, ForeignKey("journal.id")),
    Column("undone_by", _key, ForeignKey("journal.id")),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    _number(),
    Column("entry_id", _key, ForeignKey("journal.id"), nullable=False),
    Column("table", String(20), nullable=False),
    Column("row", _key, nullable=False),
    Column("before", _document),  # null: the row was added
    Column("after", _document),  # null: the row was removed
    Index(None, "entry_id"),
    Index(None, "table", "row"),
)
"""Changes of journal entries: rows before and after."""

jobs = Table(
    "jobs",
    metadata,
    _number(),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("by", _text, nullable=False),
    Column("options", _document, nullable=False),
    Column("progress", _document, nullable=False),
    Column("result", _document),
    Column("error", _text),
    Column("requested_at", _text, nullable=False),
    Column("started_at", _text),
    Column("ended_at", _text),
    CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'stopped')", name="state"),
    Index(None, "state", "id"),
)
"""Long tasks that people started."""
