"""Input of a report; all but the title and the comparison are optional, and so are their sections."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsabie.training.epoch_stats import EpochStats
from wsabie.workflows.compare.comparison import Comparison
from wsabie.workflows.report.html_pages import EncodedImage


class Suggestion(NamedTuple):
    """A label that the model suggests: a true one (`right`), a sibling of a true one, or another."""

    label: str
    score: float
    right: bool
    sibling: bool = False


class HeatMap(NamedTuple):
    """Heat map of a label, drawn over the image."""

    label: str
    picture: EncodedImage
    score: float | None = None


@dataclass(frozen=True)
class ReportExample:
    """A test image with the model's suggestions.

    Attributes
    ----------
    picture : EncodedImage
    title : str
        Text alternative of the image; never shown to the model.
    true_labels : sequence of str
    suggestions : sequence of Suggestion
        Best first.
    heat_maps : sequence of HeatMap
    """

    picture: EncodedImage
    title: str
    true_labels: Sequence[str]
    suggestions: Sequence[Suggestion]
    heat_maps: Sequence[HeatMap] = ()


class Neighbourhood(NamedTuple):
    """A label and its nearest labels with their cosines; `siblings` are known siblings among them."""

    label: str
    near: Sequence[tuple[str, float]]
    siblings: Collection[str] = ()


@dataclass(frozen=True)
class ReportInput:
    """Contents of a report.

    Attributes
    ----------
    title : str
    comparison : Comparison
    modality : str
        Name of the rows, in the plural, such as "pictures".
    description : str
        The data in one or two sentences.
    data : mapping of str to str
        Further facts of the data, such as "Source", "Licence" and "Split".
    history : sequence of EpochStats
        Epochs of the main model.
    examples : sequence of ReportExample
    examples_note : str
        A sentence about their choice.
    neighbours : sequence of Neighbourhood
    neighbours_note : str
        A sentence about their choice.
    siblings_note : str
        The is-a list that makes labels siblings: half a sentence, such as "share a category of the data". Empty
        without known siblings.
    label_notes : mapping of str to str
        Short words beside labels, such as the languages that use them.
    parameters : mapping
        Parameters of the main model, as resolved.
    command : str
        Command that makes this report again.
    created : str
        Date as shown.
    """

    title: str
    comparison: Comparison
    modality: str = "rows"
    description: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[EpochStats] = ()
    examples: Sequence[ReportExample] = ()
    examples_note: str = ""
    neighbours: Sequence[Neighbourhood] = ()
    neighbours_note: str = ""
    siblings_note: str = ""
    label_notes: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    created: str = ""
