"""What is shown on the terminal: progress bars with rate and time left, tables, one-sentence errors."""

import json
import logging
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console

# Names of the user's are shown as they are: nothing in them is markup.
_AS_IT_IS: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
out = Console(**_AS_IT_IS)
err = Console(stderr=True, **_AS_IT_IS)


_CODES = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, ends of lines and paragraphs, changes of the direction of writing, bytes that are no letters."""

_UNITS = {"mb_per_s": "MB/s"}
"""Figures of a stage that are not called by their own name."""


class _Bar:
    def __init__(self, bars: Any, task: Any) -> None:
        self.bars, self.task = bars, task

    def advance(self, n: int = 1, **figures: float) -> None:
        shown = " ".join(_figure(name, value) for name, value in figures.items())
        self.bars.update(self.task, advance=n, **({"figures": shown} if figures else {}))

    def end(self) -> None:
        """Fill the bar of a stage that was done before all was, as training is that no longer gets better."""
        (task,) = self.bars.tasks
        if task.total is not None and task.completed < task.total:
            figures = f"{task.fields['figures']} ended early".strip()
            self.bars.update(self.task, total=task.completed, all="", figures=figures)


def _figure(name: str, value: float) -> str:
    if name in _UNITS:
        return f"{value:.3g} {_UNITS[name]}" if value >= 0.1 else ""
    return f"{name} {value:.3g}"


class TerminalProgress:
    """One line per stage on standard error: bar, done of all, rate, time left, figures. It fits the terminal."""

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[_Bar]:
        from wsabie.faces.cli.progress_line import ProgressLine

        bars = ProgressLine(console=err)
        with bars:
            known = f"/{total:,}" if total is not None else ""
            told: dict[str, Any] = {"all": known, "unit": unit, "pace": _pace, "figures": ""}
            bar = _Bar(bars, bars.add_task(one_line(name), total=total, **told))
            yield bar
            bar.end()


def _pace(task: Any) -> str:
    elapsed = task.elapsed or 0.0
    if task.fields["unit"] == "s" and task.total is not None:  # a limit on time: what is left of it needs no rate
        return f"in {_clock(elapsed)}" if task.finished else f"{_clock(max(task.total - elapsed, 0.0))} left"
    if task.completed == 0 or elapsed < 0.1:
        return ""
    per_second = task.completed / elapsed
    rate = f"{per_second:,.0f}/s " if per_second >= 10 else f"{per_second:.1f}/s "
    if task.fields["unit"] == "bytes":
        rate = ""  # a figure tells megabytes of text, which may be packed
    if task.total is None:
        return f"{rate}{_clock(elapsed)}"
    if task.finished:
        return f"{rate}in {_clock(elapsed)}"
    return f"{rate}{_clock(elapsed * (task.total - task.completed) / task.completed)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


INTERRUPTED = 130
"""The exit code of Ctrl-C, which typer takes too."""
_WIDEST = 10_000
NARROW = ("p@1", "p@10", "recall@50", "MAP", "psib@10")
"""Metrics of a comparison that fit 80 columns; --json has them all."""


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output; every column but the first is right-aligned.

    It is as wide as it needs to be: a terminal that is narrower breaks its lines, and no figure is cut.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=one_line(title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_header=any(columns),
    )
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(one_line, row))
    needed = out.measure(table, options=out.options.update(max_width=_WIDEST)).maximum
    Console(width=max(out.width, needed), **_AS_IT_IS).print(table)


def one_line(text: str) -> str:
    """A name with ends of lines and codes for the terminal escaped, which file names and labels may hold.

    What joins letters and pictures (U+200C, U+200D) stays.

    Examples
    --------
    >>> one_line("sea\\nside")
    'sea\\\\nside'
    """
    return _CODES.sub(lambda code: code[0].encode("unicode_escape").decode(), text)


def plural(n: int, word: str, several: str | None = None) -> str:
    """A number of things: "1 row", "2,000 rows"; `several` where it does not end in s."""
    return f"{n:,} {word if n == 1 else several or word + 's'}"


def show_json(value: Any) -> None:
    """One JSON document on standard output; where that is not Unicode, in ASCII, which JSON can say everything in."""
    from wsabie.base.plain import plain

    sys.stdout.write(json.dumps(plain(value), ensure_ascii=not out.encoding.startswith("utf"), allow_nan=False) + "\n")


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error, so that standard output stays clean."""
    err.print(one_line(text))


class _Notes(logging.Handler):
    """What the log says, as notes; the same is said once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        sentence = record.getMessage()
        if sentence not in self.said:
            self.said.add(sentence)
            note(sentence)


@contextmanager
def log_as_notes() -> Iterator[None]:
    """Inside, the person at the terminal is told what the log says: how large a model will be, what was left out."""
    log, handler = logging.getLogger("wsabie"), _Notes()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


NOTHING_KEPT = "stopped before anything was finished, so that the same command begins at the beginning"


def resume_line() -> str:
    """Return the command line that goes on from this one, whose first word is the command."""
    command, *words = (word for word in sys.argv[1:] if word not in ("--resume", "--anew"))
    return shlex.join(["wsabie", command, "--resume", *words])  # in front of a "--"


class Stopped(SystemExit):
    """Ended by Ctrl-C.

    Parameters
    ----------
    sentence : str
        What is left of the work.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(INTERRUPTED)
        self.sentence = sentence


def fail(sentence: str) -> None:
    """An error, as one line on standard error."""
    err.print(f"wsabie: {one_line(sentence)}", style="red")
