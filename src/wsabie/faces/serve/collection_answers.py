"""What the routes of a collection take and give."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from wsabie.faces.serve.answers import Label, Number, Strict

Name = Annotated[str, Field(min_length=1, max_length=500)]
Id = Annotated[int, Field(ge=1, lt=2**63)]
State = Literal["accepted", "rejected"]


class ItemSeen(BaseModel):
    """An item of a list."""

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


class Items(BaseModel):
    """A page of items."""

    items: list[ItemSeen]
    next: str | None = Field(description="Cursor of the page after.")
    total: int | None = Field(description="How many pass the filter, where they were counted.")


class AnnotationSeen(BaseModel):
    """What is decided, by whom."""

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


class SuggestionSeen(BaseModel):
    """What the model in use thinks, undecided."""

    label_id: int
    label: str
    score: float
    probability: float
    at: str | None = Field(description="When it looked at the item; null: before that was written down.")


class ItemWhole(ItemSeen):
    """An item with all that is known of it."""

    size: int | None
    added: str
    annotations: list[AnnotationSeen]
    suggestions: list[SuggestionSeen]


class ScoredItem(ItemSeen):
    """An item that was found."""

    label: str | None = None
    score: float | None = Field(None, description="null: it is tagged so.")


class Found(BaseModel):
    """Items that were found, best first."""

    items: list[ScoredItem]


class FoundByPicture(Found):
    """Labels of a picture, and items like it."""

    labels: list[Label]


class GroupSeen(BaseModel):
    """Items that were found for one reason."""

    labels: list[str]
    why: str
    score: float | None
    items: list[ScoredItem]


class SearchAnswer(BaseModel):
    """What a text was understood as, and what was found."""

    wanted: list[str]
    unwanted: list[str]
    said: list[str]
    groups: list[GroupSeen]


class DecisionAsked(Strict):
    """A label fits an item, or does not; null: as if nothing had been decided."""

    item: Id
    label: Name
    state: State | None
    region: Annotated[str, Field(max_length=10_000)] = ""


class DecisionsAsked(Strict):
    """Decisions that are one entry of the journal."""

    decisions: list[DecisionAsked] = Field(min_length=1, max_length=10_000)


class AboveAsked(Strict):
    """Accept suggestions from a probability on."""

    label: Name | None = None
    probability: Annotated[Number, Field(gt=0, le=1)]


class DecidedSeen(BaseModel):
    """What decisions did."""

    entry: int | None = Field(None, description="Of the journal, to undo it.")
    added: int = 0
    changed: int = 0
    removed: int = 0


class Count(BaseModel):
    """How many."""

    count: int


class EntrySeen(BaseModel):
    """A line of the journal."""

    id: int
    at: str
    by: str
    action: str
    told: str
    undoes: int | None
    undone_by: int | None
    changes: int


class Journal(BaseModel):
    """Lines of the journal, last first."""

    entries: list[EntrySeen]


class UndoAsked(Strict):
    """Which entry; null: the last of yours."""

    entry: Id | None = None


class Undone(BaseModel):
    """What was undone."""

    undone: EntrySeen


class Completion(BaseModel):
    """A label, and the other name by which it was found."""

    id: int
    name: str
    other: str | None
    language: str = Field(description="Of the name by which it was found.")
    items: int


class Completions(BaseModel):
    """Labels that begin so."""

    labels: list[Completion]


class LabelWhole(BaseModel):
    """A label."""

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


class LabelsSeen(BaseModel):
    """Labels with their figures."""

    total: int
    labels: list[LabelWhole]


class FolderCount(BaseModel):
    """A folder and the items in it."""

    root: int
    folder: str
    items: int


class LabelCount(BaseModel):
    """A label and its counts."""

    id: int
    label: str
    accepted: int
    rejected: int
    suggested: int


class FacetsSeen(BaseModel):
    """Folders and labels with counts."""

    folders: list[FolderCount]
    labels: list[LabelCount]


class Threshold(BaseModel):
    """From which probability on suggestions are right so often; null: no probability is high enough."""

    precision: float
    probability: float | None


class IndexSeen(BaseModel):
    """The approximate index of the items of the model in use: how often it finds the nearest, and how soon."""

    state: Literal["ready", "none", "few", "not installed"]
    recall: float | None
    milliseconds: float | None
    exact_milliseconds: float | None


class CollectionSeen(BaseModel):
    """How the collection stands."""

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
    index: IndexSeen | None


class JobAsked(Strict):
    """Long work."""

    kind: Literal["scan", "train", "apply", "tidy", "compare", "map", "index"]
    options: dict[str, bool | int | Number | Annotated[list[Id], Field(max_length=100)]] = Field({}, max_length=20)


class JobSeen(BaseModel):
    """Long work and how it goes."""

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


class JobsSeen(BaseModel):
    """Jobs, last first."""

    jobs: list[JobSeen]


class ModelSeen(BaseModel):
    """A model of the collection."""

    id: int
    made: str
    how: str
    parent: int | None
    in_use: bool
    there: bool
    facts: dict[str, Any]
    figures: dict[str, Any]


class ModelWhole(ModelSeen):
    """A model, and how its training went."""

    curve: list[dict[str, float]] = Field(description="Of epochs: loss, and MAP on the held-out items.")


class WayBack(BaseModel):
    """The entry of the journal that put the model into use, and the model that is in use again when it is undone."""

    entry: int
    model: int


class Outlook(BaseModel):
    """How the next training would learn."""

    decisions: int = Field(description="Those that the model in use does not know.")
    how: Literal["full", "corrections", "nothing"]
    why: str


class ModelsSeen(BaseModel):
    """Models, last first."""

    models: list[ModelSeen]
    removed: list[int] = Field(description="Numbers of those that are no more.")
    back: WayBack | None
    outlook: Outlook
