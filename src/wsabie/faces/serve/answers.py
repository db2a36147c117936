"""What the routes of a model take and give."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SURE = "Only labels that are right this often as far as the held-out items of the collection tell."
Number = Annotated[float, Field(allow_inf_nan=False)]


class Strict(BaseModel):
    """Refuses fields that nobody knows."""

    model_config = ConfigDict(extra="forbid")


class Row(Strict):
    """Features of one thing: all of them, or columns and values of those that are not zero."""

    dense: list[Number] | None = Field(None, max_length=1_000_000)
    columns: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = Field(None, max_length=1_000_000)
    values: list[Number] | None = Field(None, max_length=1_000_000)


class AnnotateRows(Strict):
    """Rows to annotate."""

    rows: list[Row] = Field(min_length=1, max_length=1000)
    k: int = Field(10, ge=1, description="Labels for each.")
    candidates: list[str] | None = Field(None, min_length=1, max_length=100_000, description="Only these labels.")
    min_precision: float | None = Field(None, gt=0, le=1, description=SURE)


class Label(BaseModel):
    """A label with its score, and the probability that it is right where the model tells one."""

    label: str
    score: float
    probability: float | None = None


class Ranked(BaseModel):
    """The best labels, best first."""

    labels: list[Label]
    no_tag_fits: bool | None = Field(None, description="Whether no label is sure enough for `min_precision`.")


class Annotations(BaseModel):
    """Of every row, picture or text that was asked about."""

    schema_: Annotated[Literal[1], Field(serialization_alias="schema")] = 1
    model: str = Field(description="Changes when another model answers.")
    results: list[Ranked]


class Near(BaseModel):
    """A label and its cosine with another."""

    label: str
    cosine: float


class Neighbours(BaseModel):
    """The labels nearest to a label."""

    label: str
    neighbours: list[Near]


class Labels(BaseModel):
    """Labels by name."""

    total: int
    labels: list[str]


class Info(BaseModel):
    """What is served."""

    schema_: Annotated[Literal[1], Field(serialization_alias="schema")] = 1
    model: str
    kind: str
    facts: dict[str, object]
    trouble: str | None = Field(None, description="Why a model that was saved since is not used.")
