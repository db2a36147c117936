"""Schemas of the routes of a model."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MIN_PRECISION_HELP = "Only labels that are right this often as far as the held-out items of the collection tell."
Number = Annotated[float, Field(allow_inf_nan=False)]


class StrictModel(BaseModel):
    """Base of requests, which refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class FeatureRow(StrictModel):
    """Features of one item: all values, or columns and values of the non-zero features."""

    dense: list[Number] | None = Field(None, max_length=1_000_000)
    columns: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = Field(None, max_length=1_000_000)
    values: list[Number] | None = Field(None, max_length=1_000_000)


class AnnotateRequest(StrictModel):
    """Rows to annotate."""

    rows: list[FeatureRow] = Field(min_length=1, max_length=1000)
    k: int = Field(10, ge=1, description="Labels for each row.")
    candidates: list[str] | None = Field(None, min_length=1, max_length=100_000, description="Only these labels.")
    min_precision: float | None = Field(None, gt=0, le=1, description=MIN_PRECISION_HELP)


class LabelScore(BaseModel):
    """Label with its score, and its probability if the model is calibrated."""

    label: str
    score: float
    probability: float | None = None


class LabelRanking(BaseModel):
    """Best labels of a row, best first."""

    labels: list[LabelScore]
    no_tag_fits: bool | None = Field(None, description="Whether no label is sure enough for `min_precision`.")


class AnnotateResponse(BaseModel):
    """Rankings of all rows, pictures or texts of a request."""

    schema_: Annotated[Literal[1], Field(serialization_alias="schema")] = 1
    model: str = Field(description="Changes when another model answers.")
    results: list[LabelRanking]


class Neighbour(BaseModel):
    """Label and its cosine with another."""

    label: str
    cosine: float


class Neighbours(BaseModel):
    """Labels nearest to a label."""

    label: str
    neighbours: list[Neighbour]


class LabelNames(BaseModel):
    """Names of labels."""

    total: int
    labels: list[str]


class ModelInfo(BaseModel):
    """Facts of the served model."""

    schema_: Annotated[Literal[1], Field(serialization_alias="schema")] = 1
    model: str
    kind: str
    facts: dict[str, object]
    trouble: str | None = Field(None, description="Why a model that was saved since is not used.")
