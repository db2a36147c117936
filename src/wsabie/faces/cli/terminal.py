"""What is shown on the terminal: progress bars with rate and time left, tables, one-sentence errors."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class _Bar:
    def __init__(self, bars: Any, task: Any) -> None:
        self.bars, self.task = bars, task

    def advance(self, n: int = 1, **figures: float) -> None:
        shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
        self.bars.update(self.task, advance=n, **({"figures": shown} if figures else {}))


class TerminalProgress:
    """One bar per stage on standard error, with rate and time left; a line when a stage is done."""

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[_Bar]:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        bars = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:>9,.0f}/{task.fields[all]} {task.fields[unit]}"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=err,
            transient=False,
        )
        bars.get_renderables = _with_rate(bars)  # type: ignore[method-assign]
        with bars:
            known = f"{total:,}" if total is not None else "?"
            yield _Bar(bars, bars.add_task(name, total=total, all=known, unit=unit, figures="", rate=""))


def _with_rate(bars: Any) -> Any:
    """Fill in items per second just before the bars are drawn."""
    draw = bars.get_renderables

    def drawn() -> Any:
        for task in bars.tasks:
            elapsed = task.elapsed or 0
            task.fields["rate"] = f"{task.completed / elapsed:>9,.0f}/s" if elapsed > 0.2 else ""
        yield from draw()

    return drawn


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output; every column but the first is right-aligned."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    out.print(table)


def show_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error, so that standard output stays clean."""
    err.print(text, markup=False)


def fail(sentence: str) -> None:
    """An error, as one line on standard error."""
    err.print(f"wsabie: {sentence}", markup=False, style="red")
