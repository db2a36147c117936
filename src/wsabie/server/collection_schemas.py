"""Schemas of the status, labels, models, jobs and maps of a collection.

`ModelSummary` and `MergeProposal` differ from the records that they are read from: the facts of a model are typed and
its folder is left out, and the labels of a proposal have pictures.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AliasPath, ConfigDict, Field

from wsabie.collection.jobs.queue import Job, JobKind
from wsabie.collection.labels.label_store import ExampleItem, LabelCount
from wsabie.collection.learning.model_fitting import TrainingPoint
from wsabie.collection.learning.retrain_plan import RetrainForecast, TrainingMode
from wsabie.collection.maps.item_map import LabelPosition, Method, ProjectionStatus
from wsabie.collection.merge_proposals.proposals import MergeReason
from wsabie.collection.overview import LabelCompletion, PrecisionThreshold
from wsabie.collection.registry.item_index import IndexStatus
from wsabie.collection.registry.model_registry import Rollback
from wsabie.server.schemas import Id, Name, Number, RequestModel, ResponseModel, SchemaVersion

Language = Annotated[str, Field(max_length=35, description='As BCP 47 has it; "": unknown.')]


# Labels


class Completions(ResponseModel):
    """Labels that match the beginning of a name."""

    labels: list[LabelCompletion]


@dataclass(frozen=True)
class IllustratedLabel(LabelCount):
    """Label with a few of its pictures."""

    pictures: list[ExampleItem]


@dataclass(frozen=True)
class LabelNeighbour(IllustratedLabel):
    """Label near to another."""

    cosine: float


class LabelNeighbours(ResponseModel):
    """Labels nearest to a label in the space of the model in use; none if it does not know the label."""

    neighbours: list[LabelNeighbour]


class SynonymRequest(RequestModel):
    """Name to add to a label."""

    name: Name
    language: Language = ""


class LabelEditRequest(RequestModel):
    """Changes of a label; missing and null fields stay as they are."""

    name: Name | None = None
    language: Language | None = None
    wordnet: Annotated[str, Field(max_length=20)] | None = Field(None, description='"": none.')
    parent: Annotated[str, Field(max_length=500)] | None = Field(None, description='By name; "": none.')
    add: list[SynonymRequest] = Field([], max_length=100)
    remove: list[Name] = Field([], max_length=100, description="Other names to remove.")


class ChangeResult(ResponseModel):
    """Result of a change."""

    entry: int | None = Field(description="Entry of the journal, to undo it; null: nothing changed.")


class MergeRequest(RequestModel):
    """Labels to merge into another."""

    labels: list[Id] = Field(min_length=1, max_length=100)
    target: Id


class ExclusionRequest(RequestModel):
    """Labels to exclude from being merged with each other."""

    labels: list[Id] = Field(min_length=2, max_length=30)


class MergeProposal(ResponseModel):
    """Labels that may be the same."""

    target: IllustratedLabel = Field(description="The one to keep.")
    labels: list[IllustratedLabel]
    score: float
    reasons: list[MergeReason]


class ProposalPage(ResponseModel):
    """Merge proposals, best score first."""

    created: str | None = Field(description="Time of the last comparison, a job of kind `tidy`; null: there was none.")
    changes: int = Field(description="Entries of the journal since then.")
    is_other_model: bool = Field(description="Another model is in use since then.")
    unused_sources: dict[str, str] = Field(description="Sources of evidence that were not used, and the reason.")
    total: int
    proposals: list[MergeProposal]


# Models and jobs


class ModelFacts(ResponseModel):
    """Training data and settings of a model; other facts stand beside these."""

    model_config = ConfigDict(extra="allow")

    items: int = 0
    labels: int = 0
    features: str = ""
    seconds: float = 0
    best_epoch: int | None = None
    rejection_reason: str = Field("", description="Why it was not put into use.")
    curve: list[TrainingPoint] = Field([], exclude=True)


class ModelFigures(ResponseModel):
    """Metrics on the held-out items; other figures stand beside these."""

    model_config = ConfigDict(extra="allow")

    items: int = 0
    metrics: dict[str, float] | None = None
    previous_metrics: dict[str, float] | None = Field(None, description="The model before, on the same items.")


class ModelSummary(ResponseModel):
    """Model of a collection."""

    id: int
    created_at: str
    method: TrainingMode | Literal["zero-shot"]
    parent: int | None
    in_use: bool
    is_available: bool
    facts: ModelFacts
    figures: ModelFigures


class ModelDetails(ModelSummary):
    """Model and its training curve."""

    curve: list[TrainingPoint] = Field([], validation_alias=AliasPath("facts", "curve"))


class ModelList(ResponseModel):
    """Models, newest first."""

    models: list[ModelSummary]
    removed: list[int] = Field(description="Ids of removed items.")
    rollback: Rollback | None
    forecast: RetrainForecast
    encoders: list[str] = Field(description="Names of the image encoders on this machine.")


class ItemCounts(ResponseModel):
    """Numbers of items by state."""

    present: int
    missing: int
    unreadable: int


class CollectionStatus(ResponseModel):
    """Status of a collection."""

    schema_: SchemaVersion = 1
    folder: str
    role: Literal["read", "write"]
    items: ItemCounts
    labels: int
    accepted: int
    rejected: int
    suggestions: int
    model: ModelSummary | None
    thresholds: list[PrecisionThreshold] = Field(description="By the held-out items of the model in use.")
    index: IndexStatus | None


class JobRequest(RequestModel):
    """Request for a job."""

    kind: JobKind
    options: dict[str, bool | int | Number | Name | Annotated[list[Id], Field(max_length=100)]] = Field(
        {}, max_length=20
    )


class JobList(ResponseModel):
    """Jobs, newest first; the progress of each has only what its current stage reports."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    jobs: list[Job]


# Maps


class Box(ResponseModel):
    """Square that holds all points: its lowest x and y, and the length of its sides."""

    x: float
    y: float
    side: float


class MapStatus(ResponseModel):
    """Map of the items of a collection."""

    schema_: SchemaVersion = 1
    model: int
    method: Method
    version: str = Field(description="Changes when a point does.")
    points: int
    box: Box
    share: float | None = Field(description="Share of the variance that the plane holds; null: unknown.")
    projections: list[ProjectionStatus]


class LabelPositions(ResponseModel):
    """Positions of labels in the plane; labels with most items first."""

    version: str
    labels: list[LabelPosition]
