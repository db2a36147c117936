"""Record of a table or figure of a paper: its figures, its mistakes, its claims, and how to run it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from papers.claims import OrderingClaim, StatementCheck
from wsabie.workflows.charts.svg_charts import LineChart

if TYPE_CHECKING:
    from papers.datasets import PaperData
    from wsabie.core.execution import Progress

Cell = float | str | None


@dataclass(frozen=True)
class PublishedFigures:
    """Figures as a paper prints them.

    Attributes
    ----------
    data : str
        Data of the paper.
    columns : tuple of str
        Names of metrics as this project spells them ("p@1", "psib@10", "MAP"), or of other quantities.
    rows : mapping of str to tuple of (float, str or None)
        By the name of the row; None where the paper has no figure.
    percent : bool
        The figures are printed in per cent.
    """

    data: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Cell, ...]]
    percent: bool = False

    def figure(self, row: str, column: str) -> Cell:
        """Return the printed figure, or None."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


class RecordEntry(NamedTuple):
    """A row that a model fills: name in the paper, entrant, parameters, and candidate settings.

    A parameter may be a function of the `RunSettings`.
    """

    row: str
    entrant: str
    parameters: Mapping[str, Any] = {}
    options: tuple[Mapping[str, Any], ...] = ({},)


class DataOpener(NamedTuple):
    """Opener of data that only this record takes.

    Attributes
    ----------
    open : callable
        As `papers.datasets.open_data`.
    data_hint : str
        Required data, in words.
    options : tuple of str
        Further parameters of `open`, and options of the command line.
    """

    open: Callable[..., "PaperData"]
    data_hint: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run.

    Attributes
    ----------
    data : PaperData or None
        None for records without data.
    parameters : dict
        Of `Wsabie`, in place of its defaults.
    seeds : int or None
        Trainings of each model, where a record repeats them; None: the record's default.
    """

    data: "PaperData | None"
    seed: int
    threads: int | None
    parameters: dict[str, Any]
    progress: "Progress"
    seeds: int | None = None

    @property
    def required_data(self) -> "PaperData":
        """Data of a record that needs some."""
        if self.data is None:
            raise ValueError("this record needs data")
        return self.data


@dataclass(frozen=True)
class FindingRow:
    """A row of our figures.

    Attributes
    ----------
    row : str
        The paper's name, or one of ours.
    title : str
        Our model in this row.
    figures : dict of str to (float, str or None)
        By column; metrics as fractions.
    per_row : dict of str to (n,) array
        Values of single test rows, or of the seeds (see `RunFindings`), for paired intervals.
    errors : dict of str to float
        Standard errors, with several seeds.
    """

    row: str
    title: str
    figures: dict[str, Cell]
    per_row: dict[str, Any] = field(default_factory=dict, repr=False)
    errors: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunFindings:
    """All figures of a run.

    Attributes
    ----------
    rows : list of FindingRow
    missing : dict of str to str
        Rows that could not be filled, with the reason.
    charts : list of LineChart
    notes : list of str
        Sentences that belong to the figures.
    groups : sequence of str, dict of str to such, or None
        Groups of the test rows: intervals draw whole groups. By column if columns have other test rows.
    image_sheet : bytes or None
        Images, as PNG, in place of charts.
    seeds : int
        Number of seeds, if `FindingRow.per_row` holds the means of seeds; 0: one seed, and it holds rows.
    """

    rows: list[FindingRow]
    missing: dict[str, str] = field(default_factory=dict)
    charts: list[LineChart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    groups: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    image_sheet: bytes | None = field(default=None, repr=False)
    seeds: int = 0

    def __getitem__(self, row: str) -> FindingRow:
        for finding in self.rows:
            if finding.row == row:
                return finding
        raise LookupError(row)

    def __contains__(self, row: str) -> bool:
        return any(finding.row == row for finding in self.rows)


@dataclass(frozen=True)
class PaperRecord:
    """One table or figure.

    Attributes
    ----------
    name : str
        For the command line.
    title : str
    document, place : str
        Its place in the literature.
    procedure : str
        Our procedure, in a sentence.
    run : callable
        (record, setting) -> RunFindings.
    published : tuple of PublishedFigures
    wrong : tuple of str
        Mistakes and open questions of the paper's figures.
    claims : tuple of OrderingClaim or StatementCheck
    entries : tuple of RecordEntry
        The rows that models fill.
    columns : tuple of str
        Columns of the table; empty = the columns of the first `published`.
    needs_data : bool
    opening : DataOpener or None
        Of data that only this record takes.
    tuned : bool
        Every trained model chooses among the same number of settings on the validation rows.
    chart : callable or None
        (record, findings) -> charts, after the run.
    """

    name: str
    title: str
    document: str
    place: str
    procedure: str
    run: Callable[["PaperRecord", RunSettings], RunFindings]
    published: tuple[PublishedFigures, ...] = ()
    wrong: tuple[str, ...] = ()
    claims: tuple[OrderingClaim | StatementCheck, ...] = ()
    entries: tuple[RecordEntry, ...] = ()
    columns: tuple[str, ...] = ()
    needs_data: bool = True
    opening: DataOpener | None = None
    tuned: bool = False
    chart: Callable[["PaperRecord", RunFindings], list[LineChart]] | None = None

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.columns or (self.published[0].columns if self.published else ())

    @property
    def percent(self) -> bool:
        """True if metrics are shown in per cent, as in the paper."""
        return any(published.percent for published in self.published)
