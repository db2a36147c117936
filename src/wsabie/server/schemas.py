"""Schemas of models, items and decisions; `collection_schemas` has labels, models, jobs and maps.

Records that the collection and the service share are dataclasses of the collection, so that a shape is written once.
Other responses are read from records by attribute. `ItemConditions` and `ItemQuery` are apart from the filters of the
collection, since they limit what an address may hold. The types of the pages are generated from all of them
(`make types`).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from wsabie.collection.annotations.decisions import ReviewDecision
from wsabie.collection.db.journal import JournalEntry
from wsabie.collection.items.item_pages import ItemSummary
from wsabie.core.json_conversion import JsonObject

MIN_PRECISION_HELP = "Only labels that are right this often as far as the held-out items of the collection tell."
Id = Annotated[int, Field(ge=1, lt=2**63)]
Name = Annotated[str, Field(min_length=1, max_length=500)]
Number = Annotated[float, Field(allow_inf_nan=False)]
SchemaVersion = Annotated[Literal[1], Field(serialization_alias="schema")]
Probability = Annotated[float | None, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str | None, Field(max_length=1000)]


class RequestModel(BaseModel):
    """Base of requests, which refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    """Base of responses, which are also read from the attributes of records."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


# Models


class FeatureRow(RequestModel):
    """Features of one item: all values, or columns and values of the non-zero features."""

    dense: list[Number] | None = Field(None, max_length=1_000_000)
    columns: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = Field(None, max_length=1_000_000)
    values: list[Number] | None = Field(None, max_length=1_000_000)


class AnnotateRequest(RequestModel):
    """Rows to annotate."""

    rows: list[FeatureRow] = Field(min_length=1, max_length=1000)
    k: int = Field(10, ge=1, description="Labels for each row.")
    candidates: list[str] | None = Field(None, min_length=1, max_length=100_000, description="Only these labels.")
    min_precision: float | None = Field(None, gt=0, le=1, description=MIN_PRECISION_HELP)


class LabelScore(ResponseModel):
    """Label with its score, and its probability if the model is calibrated."""

    label: str
    score: float
    probability: float | None = None


class LabelRanking(ResponseModel):
    """Best labels of a row, best first."""

    labels: list[LabelScore]
    no_tag_fits: bool | None = Field(None, description="No label reaches `min_precision`.")


class AnnotateResponse(ResponseModel):
    """Rankings of all rows, pictures or texts of a request."""

    schema_: SchemaVersion = 1
    model: str = Field(description="Changes when another model answers.")
    results: list[LabelRanking]


class Neighbour(ResponseModel):
    """Label and its cosine with another."""

    label: str
    cosine: float


class Neighbours(ResponseModel):
    """Labels nearest to a label."""

    label: str
    neighbours: list[Neighbour]


class LabelNames(ResponseModel):
    """Names of labels."""

    total: int
    labels: list[str]


class ModelInfo(ResponseModel):
    """Facts of the served model."""

    schema_: SchemaVersion = 1
    model: str
    kind: str
    facts: JsonObject
    trouble: str | None = Field(description="Why a model that was saved since is not used.")


# Items


class ItemConditions(BaseModel):
    """Filter of items that are present."""

    label: Text = None
    label_state: Literal["accepted", "rejected", "suggested"] = "accepted"
    min_probability: Probability = None
    max_probability: Probability = None
    unlabelled: bool = False
    folder: Text = None
    root: Id | None = None
    taken_from: Text = None
    taken_to: Text = None
    words: Text = None
    ids: Annotated[str | None, Field(max_length=20_000, pattern=r"^\d{1,19}(,\d{1,19})*$")] = None
    no_tag_fits: float | None = Field(None, gt=0, le=1, description=MIN_PRECISION_HELP)


class ItemQuery(ItemConditions):
    """Filter and order of a list of items."""

    state: Literal["present", "missing", "unreadable"] = "present"
    sort: Literal["path", "taken_at", "added_at", "best_probability", "uncertainty", "probability"] = "path"
    descending: bool = False
    cursor: Annotated[str | None, Field(max_length=5000)] = None


@dataclass(frozen=True)
class ScoredItem(ItemSummary):
    """Item of a search result, and its score for the label; null: it has this tag."""

    label: str | None
    score: float | None


class ItemHits(ResponseModel):
    """Items of a search result, best first."""

    items: list[ScoredItem]


class PictureSearchResult(ItemHits):
    """Labels of a picture, and items similar to it."""

    labels: list[LabelScore]


class ResultGroup(ItemHits):
    """Items that were found for the same reason."""

    labels: list[str]
    reason: str
    score: float | None


class SearchResult(ResponseModel):
    """Interpretation of a query, and its results."""

    labels: list[str] = Field(description="Labels of the query.")
    excluded: list[str] = Field(description="Labels that the query excludes.")
    notes: list[str] = Field(description="Remarks on how the query was understood.")
    groups: list[ResultGroup]


# Review


class DecisionsRequest(RequestModel):
    """Decisions that form one entry of the journal."""

    decisions: list[ReviewDecision] = Field(min_length=1, max_length=10_000)


class AcceptRequest(RequestModel):
    """Request to accept suggestions from a probability on."""

    label: Name | None = None
    min_probability: Annotated[Number, Field(gt=0, le=1)]


class DecisionResult(ResponseModel):
    """Result of decisions."""

    entry: int | None = Field(description="Entry of the journal, to undo it.")
    added: int = Field(validation_alias=AliasPath("counts", "added"))
    changed: int = Field(validation_alias=AliasPath("counts", "changed"))
    removed: int = Field(validation_alias=AliasPath("counts", "removed"))


class SuggestionCount(ResponseModel):
    """Number of suggestions."""

    count: int


class JournalPage(ResponseModel):
    """Entries of the journal, newest first."""

    entries: list[JournalEntry]


class UndoRequest(RequestModel):
    """Entry to undo; null: your own last entry."""

    entry: Id | None = None


class UndoResult(ResponseModel):
    """Entry that was undone."""

    entry: JournalEntry
