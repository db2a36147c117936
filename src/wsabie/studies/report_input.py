"""What a report is made from. Everything but the title and the comparison may be left out, and so is its section."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsabie.studies.comparison import Comparison
from wsabie.training.stats import EpochStats


class Image(NamedTuple):
    """An encoded picture.

    Attributes
    ----------
    content : bytes
    mime : str
        "image/webp", "image/png", "image/jpeg" or "image/gif".
    """

    content: bytes
    mime: str = "image/webp"


class Suggestion(NamedTuple):
    """A label that the model gave: one of the true ones (`right`), a sibling of one, or another."""

    label: str
    score: float
    right: bool
    sibling: bool = False


class HeatMap(NamedTuple):
    """Where a label is seen: the heat already drawn over the picture."""

    label: str
    picture: Image
    score: float | None = None


@dataclass(frozen=True)
class Example:
    """One held-out picture with what the model says about it.

    Attributes
    ----------
    picture : Image
    title : str
        Said aloud in place of the picture; never shown to the model.
    true_labels : sequence of str
    suggestions : sequence of Suggestion
        Best first.
    heat_maps : sequence of HeatMap
    """

    picture: Image
    title: str
    true_labels: Sequence[str]
    suggestions: Sequence[Suggestion]
    heat_maps: Sequence[HeatMap] = ()


class Neighbourhood(NamedTuple):
    """A label and the labels nearest to it, with their cosines; some of these are known to be its siblings."""

    label: str
    near: Sequence[tuple[str, float]]
    siblings: Collection[str] = ()


@dataclass(frozen=True)
class DataFacts:
    """What the data is.

    Attributes
    ----------
    name : str
    description : str
        One or two sentences.
    source, licence : str
    split : str
        How the three sides were made, with the seed.
    """

    name: str = ""
    description: str = ""
    source: str = ""
    licence: str = ""
    split: str = ""


@dataclass(frozen=True)
class ReportInput:
    """All that a report shows.

    Attributes
    ----------
    title : str
    comparison : Comparison
    main : str
        Name of the entry that the report is about; by default the first that is no baseline, or the first.
    things : str
        What the rows are, in the plural.
    data : DataFacts
    history : sequence of EpochStats
        Of the main model.
    examples : sequence of Example
    examples_note : str
        How they were chosen: one sentence.
    neighbours : sequence of Neighbourhood
    neighbours_note : str
        How they were chosen: one sentence.
    siblings_note : str
        By which is-a list labels are siblings: half a sentence, such as "share a category of the collection". Empty
        where no sibling is known.
    label_notes : mapping of str to str
        Short words beside labels, such as the languages that use them.
    parameters : mapping
        Of the main model, as resolved.
    command : str
        Makes this report again.
    created : str
        Date, as it is to be shown.
    """

    title: str
    comparison: Comparison
    main: str = ""
    things: str = "rows"
    data: DataFacts = field(default_factory=DataFacts)
    history: Sequence[EpochStats] = ()
    examples: Sequence[Example] = ()
    examples_note: str = ""
    neighbours: Sequence[Neighbourhood] = ()
    neighbours_note: str = ""
    siblings_note: str = ""
    label_notes: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    created: str = ""
