"""A bar with count, rate and time left, on the error stream."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

Item = TypeVar("Item")


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f}/s")


def track(items: Sequence[Item], name: str) -> Iterator[Item]:
    """The items, one by one, with a bar."""
    return follow(items, len(items), name)


def follow(items: Iterable[Item], total: int, name: str) -> Iterator[Item]:
    """Like `track` where only the number of items is known beforehand."""
    name_column = TextColumn("{task.description}")
    columns = name_column, BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(items, total=total, description=name)
