"""The line of a stage: its name, a bar, how many are done of all, rate and time left, figures; as much as fits."""

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, Task
from rich.table import Table
from rich.text import Text

_NAME, _BAR = 18, 8


class ProgressLine(Progress):
    """Rich's display, in which a narrow terminal takes the bar first, then the figures, and the end of the name last.

    Fields of a task are "all" and "unit", which stand behind the number that is done, "pace" and "figures".
    """

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """A row of what fits."""
        table = Table.grid(padding=(0, 1))
        for task in tasks:
            table.add_row(*self._fitting(task))
        return table

    def _fitting(self, task: Task) -> list[RenderableType]:
        name, figures = task.description, str(task.fields["figures"])
        done = f"{task.completed:,.0f}{task.fields['all']} {task.fields['unit']}" if task.fields["unit"] else ""
        kept = [text for text in (done, task.fields["pace"](task)) if text]
        room = self.console.width - sum(cell_len(text) + 1 for text in kept)
        bar, shown = _BAR + 1, cell_len(figures) + 1 if figures else 0
        if cell_len(name) + bar + shown > room:
            bar = 0
        if cell_len(name) + shown > room:
            shown = 0
        width = max(min(max(_NAME, cell_len(name)), room - bar - shown), 1)
        said = name if cell_len(name) <= width else f"{set_cell_size(name, width - 1)}…"
        texts = [set_cell_size(said, width), *kept, *([figures] if shown else [])]
        cells: list[RenderableType] = [Text(text, no_wrap=True) for text in texts]
        return [cells[0], *([BarColumn(bar_width=_BAR).render(task)] if bar else []), *cells[1:]]
