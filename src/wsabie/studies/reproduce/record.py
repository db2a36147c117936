"""What a table or figure of a paper is: its figures as data, its mistakes, its claims, and how it is run here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.studies.reproduce.claims import Check, Claim
from wsabie.studies.reproduce.drawing import Chart

if TYPE_CHECKING:
    from wsabie.base.progress import Progress
    from wsabie.studies.reproduce.data import Data

Cell = float | str | None


@dataclass(frozen=True)
class Published:
    """Figures as a paper prints them.

    Attributes
    ----------
    data : str
        What the paper measured on.
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
        """What the paper prints, or None."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


class Entry(NamedTuple):
    """A row that a model fills: its name in the paper, the entrant, parameters in its place, and settings to try.

    A parameter may be a function of the `Setting`.
    """

    row: str
    entrant: str
    parameters: Mapping[str, Any] = {}
    options: tuple[Mapping[str, Any], ...] = ({},)


class Opening(NamedTuple):
    """How the data of a record are opened where they are none that any record takes.

    Attributes
    ----------
    open : callable
        As `wsabie.studies.reproduce.data.open_data`.
    wants : str
        What has to be named, in words.
    options : tuple of str
        Further parameters of `open`, and options of the command line.
    """

    open: Callable[..., "Data"]
    wants: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What a run is given.

    Attributes
    ----------
    data : Data or None
        None for records that need none.
    parameters : dict
        Of `Wsabie`, in place of its defaults.
    seeds : int or None
        Trainings of each model, where a record repeats them; None: as many as the record would.
    """

    data: "Data | None"
    seed: int
    threads: int | None
    parameters: dict[str, Any]
    progress: "Progress"
    seeds: int | None = None

    @property
    def given(self) -> "Data":
        """The data of a record that needs some."""
        if self.data is None:
            raise ValueError("this record needs data")
        return self.data


@dataclass(frozen=True)
class Found:
    """A row of what was found.

    Attributes
    ----------
    row : str
        The paper's name, or one of ours.
    title : str
        What stands there here.
    figures : dict of str to (float, str or None)
        By column; metrics as fractions.
    per_row : dict of str to (n,) array
        Values of single test rows, or of the seeds (see `Findings`), for paired intervals.
    errors : dict of str to float
        Standard errors, where there are several seeds.
    """

    row: str
    title: str
    figures: dict[str, Cell]
    per_row: dict[str, Any] = field(default_factory=dict, repr=False)
    errors: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Findings:
    """All that a run found.

    Attributes
    ----------
    rows : list of Found
    missing : dict of str to str
        Rows that could not be filled, with the reason.
    charts : list of Chart
    notes : list of str
        Sentences that belong to the figures.
    groups : sequence of str, dict of str to such, or None
        Groups of the judged rows: intervals draw whole groups. By column where columns are judged on other rows.
    drawn : bytes or None
        Pictures, as PNG, in place of charts.
    seeds : int
        Models were trained with so many seeds, of which `Found.per_row` has the means; 0: with one, and it has rows.
    """

    rows: list[Found]
    missing: dict[str, str] = field(default_factory=dict)
    charts: list[Chart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    groups: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    drawn: bytes | None = field(default=None, repr=False)
    seeds: int = 0

    def __getitem__(self, row: str) -> Found:
        for found in self.rows:
            if found.row == row:
                return found
        raise LookupError(row)

    def __contains__(self, row: str) -> bool:
        return any(found.row == row for found in self.rows)


@dataclass(frozen=True)
class Record:
    """One table or figure.

    Attributes
    ----------
    name : str
        For the command line.
    title : str
    document, place : str
        Where it stands.
    here : str
        What is run here, in a sentence.
    run : callable
        (record, setting) -> Findings.
    published : tuple of Published
    wrong : tuple of str
        What is known to be wrong, or open, with the paper's figures.
    claims : tuple of Claim or Check
    entries : tuple of Entry
        The rows that models fill.
    columns : tuple of str
        What is shown; empty = the columns of the first `published`.
    needs_data : bool
    opening : Opening or None
        Of data that not every record takes.
    tuned : bool
        Every trained model chooses among the same number of settings on the validation rows.
    chart : callable or None
        (record, findings) -> charts, after the run.
    """

    name: str
    title: str
    document: str
    place: str
    here: str
    run: Callable[["Record", Setting], Findings]
    published: tuple[Published, ...] = ()
    wrong: tuple[str, ...] = ()
    claims: tuple[Claim | Check, ...] = ()
    entries: tuple[Entry, ...] = ()
    columns: tuple[str, ...] = ()
    needs_data: bool = True
    opening: Opening | None = None
    tuned: bool = False
    chart: Callable[["Record", Findings], list[Chart]] | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.columns or (self.published[0].columns if self.published else ())

    @property
    def percent(self) -> bool:
        """Metrics are shown in per cent, as the paper does."""
        return any(published.percent for published in self.published)
