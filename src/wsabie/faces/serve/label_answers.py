"""What the routes of labels take and give."""

from typing import Annotated

from pydantic import BaseModel, Field

from wsabie.faces.serve.answers import Strict
from wsabie.faces.serve.collection_answers import Id, LabelWhole, Name

Language = Annotated[str, Field(max_length=35, description='As BCP 47 has it; "": not told.')]


class Picture(BaseModel):
    """An item, as far as its thumbnail needs it."""

    id: int
    hash: str | None


class Other(BaseModel):
    """Another label."""

    id: int
    name: str
    language: str
    items: int


class Pictured(Other):
    """Another label with a few of its pictures."""

    pictures: list[Picture] = []


class Synonym(BaseModel):
    """Another name."""

    name: str
    language: str


class Limit(BaseModel):
    """From which probability on suggestions are right so often; null: from none."""

    precision: float
    probability: float | None
    own: bool = Field(description="Found for this label alone, which has held-out suggestions enough.")


class HeldOut(BaseModel):
    """How the model in use did on held-out items."""

    model: int
    known: bool = Field(description="Whether it has learnt the label.")
    suggested: int
    right: int
    limits: list[Limit]


class LabelOpen(LabelWhole):
    """A label with all that is known of it."""

    names: list[Synonym]
    above: list[Other] = Field(description="Nearest first.")
    below: list[Other] = Field(description="Right below it, the most frequent first; 500 at most.")
    apart: list[Other] = Field(description="Not to be merged with it.")
    waiting: int = Field(description="Suggestions that nobody has decided.")
    held_out: HeldOut | None


class Near(Pictured):
    """A label near to another."""

    cosine: float


class Neighbours(BaseModel):
    """The labels nearest to a label in the space of the model in use; none where it does not know it."""

    neighbours: list[Near]


class SynonymAsked(Strict):
    """Another name to be added."""

    name: Name
    language: Language = ""


class LabelEdited(Strict):
    """What is to change; what is left out or null stays as it is."""

    name: Name | None = None
    language: Language | None = None
    wordnet: Annotated[str, Field(max_length=20)] | None = Field(None, description='"": none.')
    parent: Annotated[str, Field(max_length=500)] | None = Field(None, description='By name; "": none.')
    add: list[SynonymAsked] = Field([], max_length=100)
    remove: list[Name] = Field([], max_length=100, description="Other names that it has no more.")


class Changed(BaseModel):
    """A change."""

    entry: int | None = Field(description="Of the journal, to undo it; null: all was so already.")


class MergeAsked(Strict):
    """Labels that go into another."""

    labels: list[Id] = Field(min_length=1, max_length=100)
    into: Id


class Merged(Changed):
    """What merging did."""

    moved: int = Field(description="Tags that moved.")
    together: int = Field(description="Those that were there already.")


class LabelDeleted(Changed):
    """What deleting did."""

    tags: int = Field(description="Decisions on items that went too.")
    children: int = Field(description="Labels that were right below it, and are below the one above it now.")


class ApartAsked(Strict):
    """Labels that are not to be merged with one another."""

    labels: list[Id] = Field(min_length=2, max_length=30)


class KeptApart(Changed):
    """How many pairs are kept apart from now on."""

    pairs: int


class Evidence(BaseModel):
    """What speaks for two labels being one; against it where the weight is below 0."""

    kind: str
    weight: float
    told: str


class Reason(BaseModel):
    """Why two of the labels, by their names when somebody looked, could be one."""

    one: str
    other: str
    score: float
    evidence: list[Evidence]


class ProposalSeen(BaseModel):
    """Labels that could be one."""

    into: Pictured = Field(description="The one to keep.")
    labels: list[Pictured]
    score: float
    why: list[Reason]


class ProposalsSeen(BaseModel):
    """Proposals, the surest first."""

    made: str | None = Field(description="When somebody looked last; null: nobody has. A job of kind `tidy` looks.")
    since: int = Field(description="Entries of the journal since then.")
    other_model: bool = Field(description="Whether another model is in use since then.")
    not_asked: dict[str, str] = Field(description="What was not asked, and why.")
    total: int
    proposals: list[ProposalSeen]
