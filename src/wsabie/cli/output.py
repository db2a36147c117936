"""Terminal output: progress bars with rate and time left, tables, figures of epochs, notes and errors."""

import json
import logging
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box, filesize
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, Task, TaskID
from rich.table import Table
from rich.text import Text

from wsabie.cli.framework import JsonObject
from wsabie.core.json_conversion import convert_records, to_json_value
from wsabie.core.message_references import format_references

if TYPE_CHECKING:
    from wsabie.training.epoch_stats import EpochStats

_NAME_WIDTH, _BAR_WIDTH = 18, 8
# Names that the user chose are shown verbatim: nothing in them is markup.
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
_TABLE: dict[str, Any] = {"title_justify": "left", "box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}
out = Console(**_PLAIN)
err = Console(stderr=True, **_PLAIN)
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line and paragraph separators, changes of writing direction, lone surrogates."""
_UNITS = {"mb_per_s": "MB/s"}
"""Units of the figures of a stage that are shown without their name."""
INTERRUPTED = 130
"""Exit code of Ctrl-C, the same as typer's."""
_MAX_WIDTH = 10_000
NARROW = ("p@1", "p@10", "recall@50", "MAP", "psib@10")
"""Metrics of a comparison that fit 80 columns; --json has them all."""
_MAX_BARS = 10
"""Characters of a drawn histogram; more bins are drawn two or more to a character."""


class ProgressLine(Progress):
    """Progress display that drops the bar first in a narrow terminal, then figures, then the name's end.

    Fields of a task: "all" (the total) and "unit" stand behind the number of finished items; "pace" and "figures".
    """

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """Build a table with the cells that fit."""
        table = Table.grid(padding=(0, 1))
        for task in tasks:
            table.add_row(*self._fit_cells(task))
        return table

    def _fit_cells(self, task: Task) -> list[RenderableType]:
        name, figures = task.description, str(task.fields["figures"])
        progress = f"{task.completed:,.0f}{task.fields['all']} {task.fields['unit']}" if task.fields["unit"] else ""
        fields = [text for text in (progress, task.fields["pace"](task)) if text]
        width_left = self.console.width - sum(cell_len(text) + 1 for text in fields)
        bar_width, figures_width = _BAR_WIDTH + 1, cell_len(figures) + 1 if figures else 0
        if cell_len(name) + bar_width + figures_width > width_left:
            bar_width = 0
        if cell_len(name) + figures_width > width_left:
            figures_width = 0
        width = max(min(max(_NAME_WIDTH, cell_len(name)), width_left - bar_width - figures_width), 1)
        label = name if cell_len(name) <= width else f"{set_cell_size(name, width - 1)}…"
        texts = [set_cell_size(label, width), *fields, *([figures] if figures_width else [])]
        cells: list[RenderableType] = [Text(text, no_wrap=True) for text in texts]
        return [cells[0], *([BarColumn(bar_width=_BAR_WIDTH).render(task)] if bar_width else []), *cells[1:]]


def is_at_terminal() -> bool:
    """Return True if a person can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class _Bar:
    def __init__(self, bars: ProgressLine, task: TaskID) -> None:
        self.bars, self.task = bars, task

    def advance(self, n: int = 1, **figures: float) -> None:
        text = " ".join(_format_stage_figure(name, value) for name, value in figures.items())
        fields: dict[str, Any] = {"figures": text} if figures else {}
        self.bars.update(self.task, advance=n, **fields)

    def end(self) -> None:
        """Fill the bar of a stage that ended early, such as training that no longer improves."""
        (task,) = self.bars.tasks
        if task.total is not None and task.completed < task.total:
            figures = f"{task.fields['figures']} ended early".strip()
            self.bars.update(self.task, total=task.completed, all="", figures=figures)


def _format_stage_figure(name: str, value: float) -> str:
    if name in _UNITS:
        return f"{value:.3g} {_UNITS[name]}" if value >= 0.1 else ""
    return f"{name} {value:.3g}"


class TerminalProgress:
    """Progress lines on standard error: bar, finished of total, rate, time left and figures."""

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[_Bar]:
        with ProgressLine(console=err) as bars:
            total_text = f"/{total:,}" if total is not None else ""
            fields: dict[str, Any] = {"all": total_text, "unit": unit, "pace": _format_pace, "figures": ""}
            bar = _Bar(bars, bars.add_task(escape_line(name), total=total, **fields))
            yield bar
            bar.end()


def _format_pace(task: Task) -> str:
    elapsed = task.elapsed or 0.0
    if task.fields["unit"] == "s" and task.total is not None:  # a time limit needs no rate
        seconds_left = max(task.total - elapsed, 0.0)
        return f"in {_format_clock(elapsed)}" if task.finished else f"{_format_clock(seconds_left)} left"
    if task.completed == 0 or elapsed < 0.1:
        return ""
    per_second = task.completed / elapsed
    rate = f"{per_second:,.0f}/s " if per_second >= 10 else f"{per_second:.1f}/s "
    if task.fields["unit"] == "bytes":
        rate = ""  # a figure shows the rate in megabytes of unpacked text
    if task.total is None:
        return f"{rate}{_format_clock(elapsed)}"
    if task.finished:
        return f"{rate}in {_format_clock(elapsed)}"
    return f"{rate}{_format_clock(elapsed * (task.total - task.completed) / task.completed)} left"


def _format_clock(seconds: float) -> str:
    minutes, seconds_left = divmod(round(seconds), 60)
    return f"{minutes}:{seconds_left:02d}"


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on standard output; every column but the first is right-aligned.

    Whole numbers get commas, and None is an empty cell. The table is as wide as its content: a narrower terminal wraps
    its lines, and no figure is cut.
    """
    table = Table(title=escape_line(title), show_header=any(columns), **_TABLE)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, Integral) else "" if cell is None else str(cell) for cell in row)
        table.add_row(*map(escape_line, cells))
    needed = out.measure(table, options=out.options.update(max_width=_MAX_WIDTH)).maximum
    Console(width=max(out.width, needed), **_PLAIN).print(table)


def escape_line(text: str) -> str:
    """Escape line ends and terminal codes, which file names and labels may hold.

    Joiners of letters and emoji (U+200C, U+200D) stay.

    Examples
    --------
    >>> escape_line("sea\\nside")
    'sea\\\\nside'
    """
    return _CONTROL_CHARACTERS.sub(lambda code: code[0].encode("unicode_escape").decode(), text)


def format_time(at: str) -> str:
    """Format a time of ISO 8601 to the second."""
    return at[:19].replace("T", " ")


def format_figure(value: float | None, form: str) -> str:
    """Format a figure; "" for None."""
    return "" if value is None else f"{value:{form}}"


def format_count(n: int, word: str, plural: str | None = None) -> str:
    """Format a number of items: "1 row", "2,000 rows"; `plural` is for words without a plain s."""
    return f"{n:,} {word if n == 1 else plural or word + 's'}"


def format_bytes(n: float) -> str:
    """Format a size in units of 1,000: "640 bytes", "87.6 kB", "10.2 MB"."""
    return filesize.decimal(round(n))


def quote_path(path: Path) -> str:
    """Quote a path for a command line to copy."""
    return shlex.quote(str(path))


def print_row(*cells: str) -> None:
    """Print cells with tabs between them on standard output; `out` would turn the tabs into blanks."""
    sys.stdout.write("\t".join(map(escape_line, cells)) + "\n")


def show_json(value: object) -> None:
    """Print one JSON document on standard output, in ASCII if the encoding is not Unicode."""
    document = to_json_value(convert_records(value))
    sys.stdout.write(json.dumps(document, ensure_ascii=not out.encoding.startswith("utf"), allow_nan=False) + "\n")


def print_note(text: str) -> None:
    """Print a line for the person at the terminal, on standard error."""
    err.print(escape_line(format_references(text)))


class _Notes(logging.Handler):
    """Log handler that prints each distinct message once, as a note."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.shown_messages: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        sentence = record.getMessage()
        if sentence not in self.shown_messages:
            self.shown_messages.add(sentence)
            print_note(sentence)


@contextmanager
def show_log_as_notes() -> Iterator[None]:
    """Show the log as notes inside the block, such as the size of a model or items left out."""
    log, handler = logging.getLogger("wsabie"), _Notes()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class InterruptExit(SystemExit):
    """Exit after Ctrl-C, with a message about the work that is kept.

    Parameters
    ----------
    unfinished_work : str
        Phrase about it, with a verb; "" if there is none.
    """

    def __init__(self, unfinished_work: str = "") -> None:
        super().__init__(INTERRUPTED)
        self.sentence = "stopped before anything was finished, so the same command starts from the beginning"
        if unfinished_work:
            command, *words = (word for word in sys.argv[1:] if word not in ("--resume", "--restart"))
            command_line = shlex.join(["wsabie", command, "--resume", *words])  # in front of a "--"
            self.sentence = f"stopped; {unfinished_work}; go on with: {command_line}"


def print_error(sentence: str) -> None:
    """Print an error as one line on standard error."""
    err.print(f"wsabie: {escape_line(format_references(sentence))}", style="red")


def show_epochs(history: "Sequence[EpochStats]") -> None:
    """Show a line per epoch with a drawn histogram of its ranks, and the histograms of some epochs."""

    from wsabie.training.epoch_stats import compute_rank_shares, list_other_metrics

    shares = compute_rank_shares(history)
    width = len(shares[0]) if shares else 0
    step = max(1, -(-width // _MAX_BARS))
    bars = [[sum(share[lo : lo + step]) for lo in range(0, width, step)] for share in shares]
    top = max((value for share in bars for value in share), default=0.0)
    extra_metrics = list_other_metrics(history)
    lines = [
        [*_format_figures(stats, extra_metrics), "".join(_draw_block(value, top) for value in share)]
        for stats, share in zip(history, bars, strict=True)
    ]
    deciding_metric = next((name for stats in history for name in stats.validation_metrics), "MAP")
    headers = ["epoch", "loss", "violators", "draws", "pairs/s", "GB/s", deciding_metric, *extra_metrics, "ranks"]
    show_table(f"epochs; estimated ranks from 1 to {2**width - 1:,}" if width else "epochs", headers, lines)
    if width:
        _show_ranks(history, shares, width)


def format_epoch_count(history: "Sequence[EpochStats]", facts: JsonObject) -> str:
    """Format the number of epochs; for a model of several parts, the number of each.

    Parameters
    ----------
    history : sequence of EpochStats
        Of one part after the other.
    facts : mapping
        The facts of the model: "models" of an ensemble, "blend" of one with two terms.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> history = [SimpleNamespace(epoch=epoch) for epoch in (0, 1, 0, 1, 2)]
    >>> (
    ...     format_epoch_count(history, {"blend": 1.0}),
    ...     format_epoch_count(history, {"models": 2}),
    ...     format_epoch_count(history[:2], {"blend": 1.0}),
    ... )
    ('2 to 3 epochs for each of 2 terms', '2 models of 2 to 3 epochs', '2 epochs')
    """
    if not {"models", "blend"} & facts.keys():
        return format_count(len(history), "epoch")
    starts = [i for i, stats in enumerate(history) if stats.epoch == 0]
    counts = [end - start for start, end in pairwise([*starts, len(history)])] or [0]
    fewest, most = min(counts), max(counts)
    phrase = format_count(most, "epoch") if fewest == most else f"{fewest:,} to {format_count(most, 'epoch')}"
    if "models" in facts:
        return f"{format_count(facts['models'], 'model')} of {phrase}"
    return f"{phrase} for each of {len(counts)} terms" if len(counts) > 1 else phrase


def _format_figures(stats: "EpochStats", extra_metrics: Sequence[str]) -> list[str]:
    steps = [f"{stats.loss:.4f}", f"{stats.violation_rate:.3f}", f"{stats.mean_draws:.1f}"]
    speeds = [f"{stats.pairs_per_second:,.0f}", f"{stats.bytes_per_second / 1e9:.1f}"]
    measured = [format_figure(stats.validation_metrics.get(name), ".3f") for name in extra_metrics]
    return [str(stats.epoch + 1), *steps, *speeds, format_figure(stats.validation, ".4f"), *measured]


def _show_ranks(history: "Sequence[EpochStats]", shares: Sequence[Sequence[float]], width: int) -> None:
    """Show the histograms of the first, the middle, the best and the last epoch."""
    validated = [i for i, stats in enumerate(history) if stats.validation is not None]
    best = max(validated, key=lambda i: history[i].validation or 0.0, default=None)
    last = len(history) - 1
    shown_epochs = sorted({0, last // 2, last} | ({best} if best is not None else set()))
    names = [f"epoch {history[i].epoch + 1}" + (" (best)" if i == best else "") for i in shown_epochs]
    lines = []
    for rank_bin in range(width):
        ranks = f"{2**rank_bin:,}-{2 ** (rank_bin + 1) - 1:,}" if rank_bin else "1"
        lines.append([ranks, *(f"{100 * shares[i][rank_bin]:.1f}" for i in shown_epochs)])
    show_table("estimated ranks, % of the epoch's steps", ["rank", *names], lines)


def _draw_block(share: float, top: float) -> str:
    """Draw a share as one block character, or as a digit on an ASCII terminal."""
    levels = ".12345678" if out.options.ascii_only else "·▁▂▃▄▅▆▇█"
    return levels[-int(-8 * share // top)] if share else levels[0]
