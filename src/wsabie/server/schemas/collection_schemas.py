"""Schemas of the routes of a collection."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from wsabie.server.schemas.model_schemas import LabelScore, Number, StrictModel

Name = Annotated[str, Field(min_length=1, max_length=500)]
Id = Annotated[int, Field(ge=1, lt=2**63)]
State = Literal["accepted", "rejected"]


class ItemSummary(BaseModel):
    """Item of a list."""

    id: int
    path: str
    folder: str
    width: int | None
    height: int | None
    taken: str | None
    state: str
    hash: str | None
    labels: list[str] = Field(default=[], description="Accepted ones.")
    best: float | None = Field(None, description="Highest probability of a suggestion.")
    doubt: float | None = Field(None, description="Highest min(p, 1 - p): 0.5 = the model cannot tell.")
    probability: float | None = Field(None, description="Of the suggested label that was asked for.")


class ItemPage(BaseModel):
    """Page of items."""

    items: list[ItemSummary]
    next: str | None = Field(description="Cursor of the page after.")
    total: int | None = Field(description="How many pass the filter, where they were counted.")


class Annotation(BaseModel):
    """Decision that a label fits an item or not, and its origin."""

    label_id: int
    label: str
    region: str
    state: str
    origin: str
    by: str
    at: str
    model: int | None
    score: float | None
    probability: float | None


class Suggestion(BaseModel):
    """Undecided suggestion of the model in use."""

    label_id: int
    label: str
    score: float
    probability: float
    at: str | None = Field(description="When it looked at the item; null: before that was written down.")


class ItemDetails(ItemSummary):
    """Item with its annotations and suggestions."""

    size: int | None
    added: str
    annotations: list[Annotation]
    suggestions: list[Suggestion]


class ScoredItem(ItemSummary):
    """Item of a search result."""

    label: str | None = None
    score: float | None = Field(None, description="null: it is tagged so.")


class ItemHits(BaseModel):
    """Items of a search result, best first."""

    items: list[ScoredItem]


class PictureSearchResult(ItemHits):
    """Labels of a picture, and items similar to it."""

    labels: list[LabelScore]


class ResultGroup(BaseModel):
    """Items that were found for the same reason."""

    labels: list[str]
    why: str
    score: float | None
    items: list[ScoredItem]


class SearchResult(BaseModel):
    """Interpretation of a query, and its results."""

    wanted: list[str]
    unwanted: list[str]
    said: list[str]
    groups: list[ResultGroup]


class DecisionRequest(StrictModel):
    """Decision about an item and a label; the state null removes the decision."""

    item: Id
    label: Name
    state: State | None
    region: Annotated[str, Field(max_length=10_000)] = ""


class DecisionsRequest(StrictModel):
    """Decisions that form one entry of the journal."""

    decisions: list[DecisionRequest] = Field(min_length=1, max_length=10_000)


class AcceptAboveRequest(StrictModel):
    """Request to accept suggestions from a probability on."""

    label: Name | None = None
    probability: Annotated[Number, Field(gt=0, le=1)]


class DecisionResult(BaseModel):
    """Result of decisions."""

    entry: int | None = Field(None, description="Of the journal, to undo it.")
    added: int = 0
    changed: int = 0
    removed: int = 0


class Count(BaseModel):
    """Number of suggestions."""

    count: int


class JournalEntry(BaseModel):
    """Entry of the journal."""

    id: int
    at: str
    by: str
    action: str
    told: str
    undoes: int | None
    undone_by: int | None
    changes: int


class JournalPage(BaseModel):
    """Entries of the journal, newest first."""

    entries: list[JournalEntry]


class UndoRequest(StrictModel):
    """Entry to undo; null: your own last entry."""

    entry: Id | None = None


class UndoResult(BaseModel):
    """Entry that was undone."""

    undone: JournalEntry


class Completion(BaseModel):
    """Label, and the other name that matches."""

    id: int
    name: str
    other: str | None
    language: str = Field(description="Language of the name that matches.")
    items: int


class Completions(BaseModel):
    """Labels that match the beginning of a name."""

    labels: list[Completion]


class LabelSummary(BaseModel):
    """Label with its counts."""

    id: int
    name: str
    language: str
    wordnet: str
    parent: str | None
    synonyms: list[str]
    items: int
    rejected: int
    suggested: int = Field(description="Suggestions of models that persons decided.")
    right: int = Field(description="Of these, accepted.")
    children: int = Field(description="Labels right below it.")


class LabelPage(BaseModel):
    """Page of labels."""

    total: int
    labels: list[LabelSummary]


class FolderCount(BaseModel):
    """Folder and its number of items."""

    root: int
    folder: str
    items: int


class LabelCount(BaseModel):
    """Label and its numbers of decisions."""

    id: int
    label: str
    accepted: int
    rejected: int
    suggested: int


class Facets(BaseModel):
    """Folders and labels with their counts."""

    folders: list[FolderCount]
    labels: list[LabelCount]


class Threshold(BaseModel):
    """Lowest probability whose suggestions reach a precision; null if there is none."""

    precision: float
    probability: float | None


class IndexStatus(BaseModel):
    """Approximate index of the items of the model in use, with its recall and speed."""

    state: Literal["ready", "none", "few", "not installed"]
    recall: float | None
    milliseconds: float | None
    exact_milliseconds: float | None


class CollectionStatus(BaseModel):
    """Status of a collection."""

    schema_: Annotated[Literal[1], Field(serialization_alias="schema")] = 1
    folder: str
    role: Literal["read", "write"]
    items: dict[str, int]
    labels: int
    accepted: int
    rejected: int
    suggestions: int
    model: dict[str, Any] | None
    thresholds: list[Threshold] = Field(description="By the held-out items of the model in use.")
    index: IndexStatus | None


class JobRequest(StrictModel):
    """Request for a job."""

    kind: Literal["scan", "train", "apply", "tidy", "compare", "map", "index"]
    options: dict[str, bool | int | Number | Annotated[list[Id], Field(max_length=100)]] = Field({}, max_length=20)


class JobStatus(BaseModel):
    """Job and its progress."""

    id: int
    kind: str
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    by: str
    options: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    asked: str
    started: str | None
    ended: str | None


class JobList(BaseModel):
    """Jobs, newest first."""

    jobs: list[JobStatus]


class ModelSummary(BaseModel):
    """Model of a collection."""

    id: int
    made: str
    how: str
    parent: int | None
    in_use: bool
    there: bool
    facts: dict[str, Any]
    figures: dict[str, Any]


class ModelDetails(ModelSummary):
    """Model and its training curve."""

    curve: list[dict[str, float]] = Field(description="Of epochs: loss, and MAP on the held-out items.")


class Rollback(BaseModel):
    """Entry of the journal that put the model into use, and the model that undoing it restores."""

    entry: int
    model: int


class RetrainForecast(BaseModel):
    """Forecast of the next training."""

    decisions: int = Field(description="Those that the model in use does not know.")
    how: Literal["full", "corrections", "nothing"]
    why: str


class ModelList(BaseModel):
    """Models, newest first."""

    models: list[ModelSummary]
    removed: list[int] = Field(description="Numbers of those that are no more.")
    back: Rollback | None
    outlook: RetrainForecast
