"""Schemas of the routes of labels."""

from typing import Annotated

from pydantic import BaseModel, Field

from wsabie.server.schemas.collection_schemas import Id, LabelSummary, Name
from wsabie.server.schemas.model_schemas import StrictModel

Language = Annotated[str, Field(max_length=35, description='As BCP 47 has it; "": not told.')]


class ItemThumbnail(BaseModel):
    """Item, as far as its thumbnail needs it."""

    id: int
    hash: str | None


class LabelReference(BaseModel):
    """Reference to a label."""

    id: int
    name: str
    language: str
    items: int


class IllustratedLabel(LabelReference):
    """Label with a few of its pictures."""

    pictures: list[ItemThumbnail] = []


class LabelSynonym(BaseModel):
    """Other name of a label."""

    name: str
    language: str


class LabelThreshold(BaseModel):
    """Lowest probability whose suggestions reach a precision; null if there is none."""

    precision: float
    probability: float | None
    own: bool = Field(description="Found for this label alone, which has held-out suggestions enough.")


class LabelEvaluation(BaseModel):
    """Evaluation of the model in use on held-out items."""

    model: int
    known: bool = Field(description="Whether it has learnt the label.")
    suggested: int
    right: int
    limits: list[LabelThreshold]


class LabelDetails(LabelSummary):
    """Label with its names, relations and evaluation."""

    names: list[LabelSynonym]
    above: list[LabelReference] = Field(description="Nearest first.")
    below: list[LabelReference] = Field(description="Right below it, the most frequent first; 500 at most.")
    apart: list[LabelReference] = Field(description="Not to be merged with it.")
    waiting: int = Field(description="Suggestions that nobody has decided.")
    held_out: LabelEvaluation | None


class LabelNeighbour(IllustratedLabel):
    """Label near to another."""

    cosine: float


class LabelNeighbours(BaseModel):
    """Labels nearest to a label in the space of the model in use; none if it does not know the label."""

    neighbours: list[LabelNeighbour]


class SynonymRequest(StrictModel):
    """Name to add to a label."""

    name: Name
    language: Language = ""


class LabelEditRequest(StrictModel):
    """Changes of a label; missing and null fields stay as they are."""

    name: Name | None = None
    language: Language | None = None
    wordnet: Annotated[str, Field(max_length=20)] | None = Field(None, description='"": none.')
    parent: Annotated[str, Field(max_length=500)] | None = Field(None, description='By name; "": none.')
    add: list[SynonymRequest] = Field([], max_length=100)
    remove: list[Name] = Field([], max_length=100, description="Other names to remove.")


class ChangeResult(BaseModel):
    """Result of a change."""

    entry: int | None = Field(description="Of the journal, to undo it; null: all was so already.")


class MergeRequest(StrictModel):
    """Labels to merge into another."""

    labels: list[Id] = Field(min_length=1, max_length=100)
    into: Id


class MergeResult(ChangeResult):
    """Result of a merge."""

    moved: int = Field(description="Tags that moved.")
    together: int = Field(description="Those that were there already.")


class DeletionResult(ChangeResult):
    """Result of deleting labels."""

    tags: int = Field(description="Decisions on items that went too.")
    children: int = Field(description="Labels that were right below it, and are below the one above it now.")


class ExclusionRequest(StrictModel):
    """Labels to exclude from being merged with each other."""

    labels: list[Id] = Field(min_length=2, max_length=30)


class ExclusionResult(ChangeResult):
    """Result of an exclusion: the number of excluded pairs."""

    pairs: int


class MergeEvidence(BaseModel):
    """Evidence for merging two labels, or against it if the weight is below 0."""

    kind: str
    weight: float
    told: str


class MergeReason(BaseModel):
    """Evidence about two labels of a proposal, by their names at that time."""

    one: str
    other: str
    score: float
    evidence: list[MergeEvidence]


class MergeProposal(BaseModel):
    """Labels that may be the same."""

    into: IllustratedLabel = Field(description="The one to keep.")
    labels: list[IllustratedLabel]
    score: float
    why: list[MergeReason]


class ProposalPage(BaseModel):
    """Merge proposals, best score first."""

    made: str | None = Field(description="When somebody looked last; null: nobody has. A job of kind `tidy` looks.")
    since: int = Field(description="Entries of the journal since then.")
    other_model: bool = Field(description="Whether another model is in use since then.")
    not_asked: dict[str, str] = Field(description="What was not asked, and why.")
    total: int
    proposals: list[MergeProposal]
